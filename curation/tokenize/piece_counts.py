"""Count the distinct pieces of a corpus, compiled, in memory proportional to the distinct ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.compiled import borrowing, inlined, kernel
from curation.hashing import xxh64
from curation.text.buffers import copy_bytes
from curation.tokenize.pretokenize import Pattern, piece_end

_SEED = np.uint64(0)


@inlined
def _slot(data, start, end, h, arena, ends, hashes, slots):  # type: ignore[no-untyped-def]
    """Slot of the word data[start:end], or the empty slot where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = h & mask
    while slots[slot] >= 0:
        word = slots[slot]
        if hashes[word] == h:
            begin = ends[word - 1] if word > 0 else np.int64(0)
            if ends[word] - begin == end - start:
                same = True
                for k in range(end - start):
                    if arena[begin + k] != data[start + k]:
                        same = False
                        break
                if same:
                    break
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel
def _count(data, start, end, weight, classes, longest, arena, ends, hashes, counts, slots, words):  # type: ignore[no-untyped-def]
    """Add the pieces of data[start:end]; stops early where a table is full.

    Returns the byte where it stopped and the number of words.
    """
    while start < end:
        stop = piece_end(data, start, end, classes)
        if stop - start <= longest:
            h = xxh64(data, start, stop, _SEED)
            slot = _slot(data, start, stop, h, arena, ends, hashes, slots)
            word = np.int64(slots[slot])
            if word < 0:
                begin = ends[words - 1] if words > 0 else np.int64(0)
                full = begin + stop - start > len(arena)
                if full or words == len(ends) or 2 * words >= len(slots):
                    return start, words
                word = np.int64(words)
                ends[word] = copy_bytes(data, start, stop, arena, begin)
                hashes[word] = h
                counts[word] = 0
                slots[slot] = word
                words += 1
            counts[word] += weight
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
def _add(  # type: ignore[no-untyped-def]
    source, source_ends, source_hashes, weights, first, arena, ends, hashes, counts, slots, words
):
    """Add whole words with weights from `first` on; stops early where a table is full."""
    for i in range(first, len(source_ends)):
        start = source_ends[i - 1] if i > 0 else np.int64(0)
        stop = source_ends[i]
        h = source_hashes[i]
        slot = _slot(source, start, stop, h, arena, ends, hashes, slots)
        word = np.int64(slots[slot])
        if word < 0:
            begin = ends[words - 1] if words > 0 else np.int64(0)
            full = begin + stop - start > len(arena)
            if full or words == len(ends) or 2 * words >= len(slots):
                return i, words
            word = np.int64(words)
            copy_bytes(source, start, stop, arena, begin)
            ends[word] = begin + stop - start
            hashes[word] = h
            counts[word] = 0
            slots[slot] = word
            words += 1
        counts[word] += weights[i]
    return len(source_ends), words


class WordCounts:
    """Distinct words with counts, in order of first appearance."""

    def __init__(self) -> None:
        self.size = 0
        self.bytes_seen = 0
        self._arena = np.empty(1 << 12, np.uint8)
        self._ends = np.empty(1 << 9, np.int64)
        self._hashes = np.empty(1 << 9, np.uint64)
        self._counts = np.empty(1 << 9, np.int64)
        self._slots = np.full(1 << 10, -1, np.int32)

    def __len__(self) -> int:
        return self.size

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each word came: [words]."""
        return self._counts[: self.size]

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Bounds of each word in `data`: [words + 1]."""
        return np.concatenate([np.zeros(1, np.int64), self._ends[: self.size]])

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """Bytes of all words end to end."""
        return self._arena[: self._ends[self.size - 1] if self.size else 0]

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
        classes = split.classes
        if times is None:
            times = np.ones(len(buffers), np.int64)
        self.bytes_seen += int(np.diff(buffers.offsets) @ times)
        ends = buffers.offsets[1:].tolist()
        for at, end, weight in zip(
            buffers.offsets[:-1].tolist(), ends, times.tolist(), strict=True
        ):
            while at < end:
                at, self.size = _count(
                    buffers.data, at, end, weight, classes, longest, *self._arrays, self.size
                )
                if at < end:
                    self._grow(longest)

    def add(self, other: WordCounts, weights: npt.NDArray[np.int64]) -> None:
        """Add the words of another count, each with the given weight [len(other)]."""
        at = 0
        ends = other._ends[: other.size]
        longest = int(np.diff(other.offsets).max(initial=0))
        while at < len(other):
            at, self.size = _add(
                other.data, ends, other._hashes, weights, at, *self._arrays, self.size
            )
            if at < len(other):
                self._grow(longest)

    @property
    def _arrays(self) -> tuple[npt.NDArray, ...]:
        return self._arena, self._ends, self._hashes, self._counts, self._slots

    def _grow(self, room: int) -> None:
        """Double whatever is more than half full."""
        if 2 * len(self.data) + room > len(self._arena):
            self._arena = np.concatenate(
                [self._arena, np.empty(max(room, len(self._arena)), np.uint8)]
            )
        if 2 * self.size > len(self._ends):
            self._ends = np.concatenate([self._ends, np.empty_like(self._ends)])
            self._hashes = np.concatenate([self._hashes, np.empty_like(self._hashes)])
            self._counts = np.concatenate([self._counts, np.empty_like(self._counts)])
        if 4 * self.size >= len(self._slots):
            self._slots = np.full(2 * len(self._slots), -1, np.int32)
            _rehash(self._hashes, self.size, self._slots)
