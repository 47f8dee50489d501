"""Byte-pair encoding as tiktoken defines it: the pair of lowest rank merges, leftmost first.

A piece that is a token stands for itself; any pair whose bytes together are a token may merge.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from curation.tokenize.pretokenize import piece_end
from curation.tokenize.vocabulary import find_bytes, find_pair, scramble

_NONE = np.int64(0x7FFFFFFF)  # rank of a pair that makes no token
_LINEAR = 96  # bytes up to which scanning for the minimum beats a heap

# A slot of the piece cache is sixteen words: hash, bytes | ids << 8, four of bytes, ten of ids.
_WORDS = 16
_CACHED_BYTES = 32
_CACHED_IDS = 20


def new_cache(slots: int = 1 << 14) -> npt.NDArray[np.uint64]:
    """Memory of recent pieces for one thread: uint64 [slots, 16], slots a power of two."""
    return np.zeros((slots, _WORDS), np.uint64)


@numba.njit(inline="always")
def _rank(left, right, pair_keys, pair_ids):  # type: ignore[no-untyped-def]
    found = find_pair(left, right, pair_keys, pair_ids)
    return _NONE if found < 0 else found


@numba.njit(cache=True, nogil=True)
def _merge_short(data, start, end, pair_keys, pair_ids, byte_ids, out):  # type: ignore[no-untyped-def]
    n = end - start
    ids = np.empty(n, np.int64)
    ranks = np.empty(n, np.int64)
    for k in range(n):
        ids[k] = byte_ids[data[start + k]]
    for k in range(n - 1):
        ranks[k] = _rank(ids[k], ids[k + 1], pair_keys, pair_ids)
    while n > 1:
        best = np.int64(0)
        for k in range(1, n - 1):
            if ranks[k] < ranks[best]:
                best = np.int64(k)
        token = ranks[best]
        if token == _NONE:
            break
        ids[best] = token
        for k in range(best + 1, n - 1):
            ids[k] = ids[k + 1]
            ranks[k] = ranks[k + 1]
        n -= 1
        if best + 1 < n:
            ranks[best] = _rank(token, ids[best + 1], pair_keys, pair_ids)
        if best > 0:
            ranks[best - 1] = _rank(ids[best - 1], token, pair_keys, pair_ids)
    for k in range(n):
        out[k] = ids[k]
    return n


@numba.njit(inline="always")
def _push(heap, size, item):  # type: ignore[no-untyped-def]
    k = size
    while k > 0:
        parent = (k - 1) >> 1
        if heap[parent] <= item:
            break
        heap[k] = heap[parent]
        k = parent
    heap[k] = item
    return size + 1


@numba.njit(inline="always")
def _pop(heap, size):  # type: ignore[no-untyped-def]
    """Remove the least item; the caller has read heap[0]."""
    size -= 1
    item = heap[size]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= item:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = item
    return size


@numba.njit(cache=True, nogil=True)
def _merge_long(data, start, end, pair_keys, pair_ids, byte_ids, out):  # type: ignore[no-untyped-def]
    """As `_merge_short` in O(n log n): a heap of (rank, position), stale entries skipped."""
    n = end - start
    ids = np.empty(n, np.int64)
    after = np.empty(n, np.int64)
    before = np.empty(n, np.int64)
    ranks = np.empty(n, np.int64)
    heap = np.empty(3 * n, np.int64)
    size = 0
    for k in range(n):
        ids[k] = byte_ids[data[start + k]]
        after[k] = k + 1
        before[k] = k - 1
    for k in range(n):
        ranks[k] = _NONE if k + 1 == n else _rank(ids[k], ids[k + 1], pair_keys, pair_ids)
        if ranks[k] != _NONE:
            size = _push(heap, size, ranks[k] << 32 | k)
    while size > 0:
        token = heap[0] >> 32
        k = heap[0] & 0xFFFFFFFF
        size = _pop(heap, size)
        if ranks[k] != token or ids[k] < 0:
            continue
        gone = after[k]
        ids[k] = token
        ids[gone] = -1
        right = after[gone]
        after[k] = right
        ranks[k] = _NONE
        if right < n:
            before[right] = k
            ranks[k] = _rank(token, ids[right], pair_keys, pair_ids)
            if ranks[k] != _NONE:
                size = _push(heap, size, ranks[k] << 32 | k)
        left = before[k]
        if left >= 0:
            ranks[left] = _rank(ids[left], token, pair_keys, pair_ids)
            if ranks[left] != _NONE:
                size = _push(heap, size, ranks[left] << 32 | left)
    count = 0
    k = 0
    while k < n:
        out[count] = ids[k]
        count += 1
        k = after[k]
    return count


@numba.njit(cache=True, nogil=True)
def merge_piece(  # type: ignore[no-untyped-def]
    data, start, end, pair_keys, pair_ids, byte_ids, out
):
    """Ids of data[start:end] by merging alone, into out (room: end - start); returns how many."""
    if end - start <= _LINEAR:
        return _merge_short(data, start, end, pair_keys, pair_ids, byte_ids, out)
    return _merge_long(data, start, end, pair_keys, pair_ids, byte_ids, out)


@numba.njit(inline="always")
def _encode_piece(data, start, end, blob, offsets, slots, pair_keys, pair_ids, byte_ids, out):  # type: ignore[no-untyped-def]
    whole = find_bytes(data, start, end, blob, offsets, slots)
    if whole >= 0:
        out[0] = whole
        return 1
    return merge_piece(data, start, end, pair_keys, pair_ids, byte_ids, out)


@numba.njit(inline="always")
def _cached_piece(  # type: ignore[no-untyped-def]
    data, start, end, blob, offsets, slots, pair_keys, pair_ids, byte_ids, cache, words, out
):
    """`_encode_piece` of at most 32 bytes through the cache."""
    size = end - start
    for k in range(4):
        words[k] = 0
    for k in range(size):
        words[k >> 3] |= np.uint64(data[start + k]) << np.uint64(8 * (k & 7))
    h = scramble(words[0] + np.uint64(size) * np.uint64(0x9E3779B97F4A7C15))
    if size > 8:
        h = scramble(h ^ words[1])
        if size > 16:
            h = scramble(scramble(h ^ words[2]) ^ words[3])
    row = cache[h & np.uint64(len(cache) - 1)]
    if (
        row[0] == h
        and (row[1] & np.uint64(0xFF)) == np.uint64(size)
        and row[2] == words[0]
        and row[3] == words[1]
        and row[4] == words[2]
        and row[5] == words[3]
    ):
        count = np.int64(row[1] >> np.uint64(8))
        for k in range(count):
            out[k] = (row[6 + (k >> 1)] >> np.uint64(32 * (k & 1))) & np.uint64(0xFFFFFFFF)
        return count
    count = np.int64(
        _encode_piece(data, start, end, blob, offsets, slots, pair_keys, pair_ids, byte_ids, out)
    )
    if count <= _CACHED_IDS:
        row[0] = h
        row[1] = np.uint64(size) | np.uint64(count) << np.uint64(8)
        for k in range(4):
            row[2 + k] = words[k]
        for k in range(6, _WORDS):
            row[k] = 0
        for k in range(count):
            row[6 + (k >> 1)] |= np.uint64(out[k]) << np.uint64(32 * (k & 1))
    return count


@numba.njit(cache=True, nogil=True)
def encode_texts(  # type: ignore[no-untyped-def]
    data,
    text_offsets,
    classes,
    blob,
    offsets,
    slots,
    pair_keys,
    pair_ids,
    byte_ids,
    cache,
    out,
    out_offsets,
):
    """Ids of every text into out (uint32, room for one per byte), bounds into out_offsets [n + 1].

    `cache` (see `new_cache`) only saves work; one thread at a time may use it.
    """
    words = np.zeros(4, np.uint64)
    n = np.int64(0)
    out_offsets[0] = 0
    for i in range(len(text_offsets) - 1):
        start, end = text_offsets[i], text_offsets[i + 1]
        while start < end:
            stop = piece_end(data, start, end, classes)
            room = out[n : n + stop - start]
            if stop - start <= _CACHED_BYTES:
                n += _cached_piece(
                    data, start, stop, blob, offsets, slots, pair_keys, pair_ids, byte_ids,
                    cache, words, room,
                )  # fmt: skip
            else:
                n += _encode_piece(
                    data, start, stop, blob, offsets, slots, pair_keys, pair_ids, byte_ids, room
                )
            start = stop
        out_offsets[i + 1] = n
    return n
