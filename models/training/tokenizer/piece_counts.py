"""Count the distinct pieces of a corpus, compiled, in memory proportional to the distinct ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.bytes.hash_tables import filled, slot_of_bytes
from curation.bytes.search import copy_bytes
from curation.compiled import Bytes, Int, Int64s, borrowing, kernel
from curation.hashing import xxh64
from curation.tokenize.pretokenize import Pattern, piece_end

_SEED = np.uint64(0)


class Table(NamedTuple):
    """Words end to end, in order of first appearance; arrays have room for more."""

    arena: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]  # bounds of each word in `arena`
    hashes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]  # word by hash, -1 where empty; a power of two


@borrowing
def _enter(data: Bytes, start: Int, end: Int, h: Int, weight: Int, table: Table, words: Int) -> Int:
    """Count the word data[start:end]; return how many words there are, -1 if there is no room."""
    slot = slot_of_bytes(data, start, end, h, table.arena, table.offsets, table.slots)
    word = np.int64(table.slots[slot])
    if word < 0:
        begin = table.offsets[words]
        full = begin + end - start > len(table.arena)
        if full or words == len(table.hashes) or 2 * words >= len(table.slots):
            return np.int64(-1)
        word = np.int64(words)
        table.offsets[word + 1] = copy_bytes(data, start, end, table.arena, begin)
        table.hashes[word] = h
        table.counts[word] = 0
        table.slots[slot] = word
        words += 1
    table.counts[word] += weight
    return np.int64(words)


@kernel
def _count(
    data: Bytes,
    start: Int,
    end: Int,
    weight: Int,
    split: tuple[Bytes, Int],
    table: Table,
    words: Int,
) -> tuple[Int, Int]:
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


@kernel
def _add(source: Table, weights: Int64s, first: Int, table: Table, words: Int) -> tuple[Int, Int]:
    """Add the words of another table with weights [words] from `first` on, as `_count`."""
    for i in range(first, len(weights)):
        start, end = source.offsets[i], source.offsets[i + 1]
        more = _enter(source.arena, start, end, source.hashes[i], weights[i], table, words)
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
            np.zeros((1 << 9) + 1, np.int64),
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
        return self._table.offsets[: self.size + 1]

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """Bytes of all words end to end."""
        return self._table.arena[: self._table.offsets[self.size]]

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
                at, size = _count(buffers.data, at, end, weight, how, self._table, self.size)
                self.size = int(size)
                if at < end:
                    self._grow(longest)

    def add(self, other: WordCounts, weights: npt.NDArray[np.int64]) -> None:
        """Add the words of another count, each with the given weight [len(other)]."""
        at = 0
        longest = int(np.diff(other.offsets).max(initial=0))
        while at < len(other):
            done, size = _add(other._table, weights, at, self._table, self.size)
            at = int(done)
            self.size = int(size)
            if at < len(other):
                self._grow(longest)

    def _grow(self, room: int) -> None:
        """Double whatever is more than half full."""
        table = self._table
        if 2 * len(self.data) + room > len(table.arena):
            more = np.empty(max(room, len(table.arena)), np.uint8)
            table = table._replace(arena=np.concatenate([table.arena, more]))
        if 2 * self.size > len(table.hashes):
            longer = {
                name: np.concatenate([array, np.empty(len(table.hashes), array.dtype)])
                for name, array in table._asdict().items()
                if name in ("offsets", "hashes", "counts")
            }
            table = table._replace(**longer)
        if 4 * self.size >= len(table.slots):
            slots = filled(2 * len(table.slots), table.hashes[: self.size])
            table = table._replace(slots=slots)
        self._table = table
