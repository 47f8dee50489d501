"""Count the distinct pieces of a corpus, compiled, in memory proportional to the distinct ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.compiled import borrowing, inlined, kernel
from curation.hashing import xxh64
from curation.text.buffers import copy_bytes
from curation.tokenize.pretokenize import Pattern, piece_end

_SEED = np.uint64(0)


class Table(NamedTuple):
    """Words end to end, in order of first appearance; arrays have room for more."""

    arena: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]  # of each word in `arena`
    hashes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]  # word by hash, -1 where empty; a power of two


@inlined
def _slot(data, start, end, h, table):  # type: ignore[no-untyped-def]
    """Slot of the word data[start:end], or the empty slot where it belongs."""
    mask = np.uint64(len(table.slots) - 1)
    slot = h & mask
    while table.slots[slot] >= 0:
        word = table.slots[slot]
        if table.hashes[word] == h:
            begin = table.ends[word - 1] if word > 0 else np.int64(0)
            if table.ends[word] - begin == end - start:
                same = True
                for k in range(end - start):
                    if table.arena[begin + k] != data[start + k]:
                        same = False
                        break
                if same:
                    break
        slot = (slot + np.uint64(1)) & mask
    return slot


@borrowing
def _enter(data, start, end, h, weight, table, words):  # type: ignore[no-untyped-def]
    """Count the word data[start:end]; return how many words there are, -1 if there is no room."""
    slot = _slot(data, start, end, h, table)
    word = np.int64(table.slots[slot])
    if word < 0:
        begin = table.ends[words - 1] if words > 0 else np.int64(0)
        full = begin + end - start > len(table.arena)
        if full or words == len(table.ends) or 2 * words >= len(table.slots):
            return np.int64(-1)
        word = np.int64(words)
        table.ends[word] = copy_bytes(data, start, end, table.arena, begin)
        table.hashes[word] = h
        table.counts[word] = 0
        table.slots[slot] = word
        words += 1
    table.counts[word] += weight
    return np.int64(words)


@kernel
def _count(data, start, end, weight, split, table, words):  # type: ignore[no-untyped-def]
    """Add the pieces of data[start:end] by `split`, character classes and bytes of the longest.

    Stops early where a table is full: returns the byte where it stopped and the number of words.
    """
    classes, longest = split
    while start < end:
        stop = piece_end(data, start, end, classes)
        if stop - start <= longest:
            h = xxh64(data, start, stop, _SEED)
            more = _enter(data, start, stop, h, weight, table, words)
            if more < 0:
                break
            words = more
        start = stop
    return start, words


@borrowing
def _rehash(hashes, words, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(slots) - 1)
    for word in range(words):
        slot = hashes[word] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = word


@kernel
def _add(source, weights, first, table, words):  # type: ignore[no-untyped-def]
    """Add the words of another table with weights [words] from `first` on, as `_count`."""
    for i in range(first, len(weights)):
        start = source.ends[i - 1] if i > 0 else np.int64(0)
        h = source.hashes[i]
        more = _enter(source.arena, start, source.ends[i], h, weights[i], table, words)
        if more < 0:
            return i, words
        words = more
    return len(weights), words


class WordCounts:
    """Distinct words with counts, in order of first appearance."""

    def __init__(self) -> None:
        self.size = 0
        self.bytes_seen = 0
        self._table = Table(
            np.empty(1 << 12, np.uint8),
            np.empty(1 << 9, np.int64),
            np.empty(1 << 9, np.uint64),
            np.empty(1 << 9, np.int64),
            np.full(1 << 10, -1, np.int32),
        )

    def __len__(self) -> int:
        return self.size

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each word came: [words]."""
        return self._table.counts[: self.size]

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Bounds of each word in `data`: [words + 1]."""
        return np.concatenate([np.zeros(1, np.int64), self._table.ends[: self.size]])

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """Bytes of all words end to end."""
        return self._table.arena[: self._table.ends[self.size - 1] if self.size else 0]

    def count(
        self,
        texts: Texts,
        split: Pattern,
        longest: int,
        times: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Add the pieces of texts; pieces of more than `longest` bytes are left out.

        `times` says how often each text occurs: [texts].
        """
        buffers = text_buffers(texts)
        how = split.classes, longest
        if times is None:
            times = np.ones(len(buffers), np.int64)
        self.bytes_seen += int(np.diff(buffers.offsets) @ times)
        ends = buffers.offsets[1:].tolist()
        for at, end, weight in zip(
            buffers.offsets[:-1].tolist(), ends, times.tolist(), strict=True
        ):
            while at < end:
                at, self.size = _count(buffers.data, at, end, weight, how, self._table, self.size)
                if at < end:
                    self._grow(longest)

    def add(self, other: WordCounts, weights: npt.NDArray[np.int64]) -> None:
        """Add the words of another count, each with the given weight [len(other)]."""
        at = 0
        longest = int(np.diff(other.offsets).max(initial=0))
        while at < len(other):
            at, self.size = _add(other._table, weights, at, self._table, self.size)
            if at < len(other):
                self._grow(longest)

    def _grow(self, room: int) -> None:
        """Double whatever is more than half full."""
        table = self._table
        if 2 * len(self.data) + room > len(table.arena):
            more = np.empty(max(room, len(table.arena)), np.uint8)
            table = table._replace(arena=np.concatenate([table.arena, more]))
        if 2 * self.size > len(table.ends):
            longer = {
                name: np.concatenate([array, np.empty_like(array)])
                for name in ("ends", "hashes", "counts")
                for array in (getattr(table, name),)
            }
            table = table._replace(**longer)
        if 4 * self.size >= len(table.slots):
            table = table._replace(slots=np.full(2 * len(table.slots), -1, np.int32))
            _rehash(table.hashes, self.size, table.slots)
        self._table = table
