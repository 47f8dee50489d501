"""Byte-pair encoding as tiktoken defines it: the pair of lowest rank merges, leftmost first.

A piece that is a token stands for itself; any pair whose bytes together are a token may merge.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.compiled import borrowing, inlined, kernel
from curation.tokenize.pretokenize import piece_end
from curation.tokenize.vocabulary import find_bytes, find_pair, scramble

_NONE = np.int64(0x7FFFFFFF)  # rank of a pair that makes no token
_LINEAR = 96  # bytes up to which scanning for the minimum beats a heap
WORK = 2 * _LINEAR  #: numbers of scratch memory that `merge_piece` needs

# A slot of the piece cache is sixteen words: hash, bytes | ids << 8, four of bytes, ten of ids.
_WORDS = 16
_CACHED_BYTES = 32
_CACHED_IDS = 20


def new_cache(slots: int = 1 << 14) -> npt.NDArray[np.uint64]:
    """Memory of recent pieces for one thread: uint64 [slots, 16], slots a power of two."""
    return np.zeros((slots, _WORDS), np.uint64)


@inlined
def _rank(left, right, pairs, pair_bits):  # type: ignore[no-untyped-def]
    found = find_pair(left, right, pairs, pair_bits)
    return _NONE if found < 0 else found


@inlined
def _byte_rank(data, k, byte_pairs):  # type: ignore[no-untyped-def]
    found = np.int64(byte_pairs[np.int64(data[k]) << 8 | np.int64(data[k + 1])])
    return _NONE if found < 0 else found


@inlined
def _word(data, start, size):  # type: ignore[no-untyped-def]
    """Up to eight bytes as a little-endian integer; 0 for none."""
    word = np.uint64(0)
    for k in range(size):
        word |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return word


@borrowing
def _merge_short(  # type: ignore[no-untyped-def]
    data, start, end, pairs, pair_bits, byte_ids, byte_pairs, work, out, at
):
    n = end - start
    ids, ranks = np.int64(0), np.int64(_LINEAR)  # where in `work` each begins
    for k in range(n):
        work[ids + k] = byte_ids[data[start + k]]
    for k in range(n - 1):
        work[ranks + k] = _byte_rank(data, start + k, byte_pairs)
    while n > 1:
        best = np.int64(0)
        token = work[ranks]
        for k in range(1, n - 1):
            if work[ranks + k] < token:
                token = work[ranks + k]
                best = np.int64(k)
        if token == _NONE:
            break
        work[ids + best] = token
        for k in range(best + 1, n - 1):
            work[ids + k] = work[ids + k + 1]
            work[ranks + k] = work[ranks + k + 1]
        n -= 1
        if best + 1 < n:
            work[ranks + best] = _rank(token, work[ids + best + 1], pairs, pair_bits)
        if best > 0:
            work[ranks + best - 1] = _rank(work[ids + best - 1], token, pairs, pair_bits)
    for k in range(n):
        out[at + k] = work[ids + k]
    return n


@inlined
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


@inlined
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


@kernel
def _merge_long(  # type: ignore[no-untyped-def]
    data, start, end, pairs, pair_bits, byte_ids, byte_pairs, out, at
):
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
        ranks[k] = _NONE if k + 1 == n else _byte_rank(data, start + k, byte_pairs)
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
            ranks[k] = _rank(token, ids[right], pairs, pair_bits)
            if ranks[k] != _NONE:
                size = _push(heap, size, ranks[k] << 32 | k)
        left = before[k]
        if left >= 0:
            ranks[left] = _rank(ids[left], token, pairs, pair_bits)
            if ranks[left] != _NONE:
                size = _push(heap, size, ranks[left] << 32 | left)
    count = 0
    k = 0
    while k < n:
        out[at + count] = ids[k]
        count += 1
        k = after[k]
    return count


@borrowing
def merge_piece(  # type: ignore[no-untyped-def]
    data, start, end, pairs, pair_bits, byte_ids, byte_pairs, work, out, at
):
    """Ids of data[start:end] by merging alone, into out[at:] (room: end - start); how many.

    `work` is scratch memory, int64 [WORK].
    """
    if end - start <= _LINEAR:
        return _merge_short(data, start, end, pairs, pair_bits, byte_ids, byte_pairs, work, out, at)
    return _merge_long(data, start, end, pairs, pair_bits, byte_ids, byte_pairs, out, at)


@borrowing
def _encode_piece(  # type: ignore[no-untyped-def]
    data, start, end, blob, offsets, slots, pairs, pair_bits, byte_ids, byte_pairs, work, out, at
):
    whole = find_bytes(data, start, end, blob, offsets, slots)
    if whole >= 0:
        out[at] = whole
        return np.int64(1)
    return np.int64(
        merge_piece(data, start, end, pairs, pair_bits, byte_ids, byte_pairs, work, out, at)
    )


@kernel
def encode_texts(  # type: ignore[no-untyped-def]
    data,
    text_offsets,
    limit,
    classes,
    blob,
    offsets,
    slots,
    pairs,
    pair_bits,
    byte_ids,
    byte_pairs,
    cache,
    out,
    out_offsets,
):
    """Ids of every text into out (uint32, room for one per byte), bounds into out_offsets [n + 1].

    No piece begins at byte `limit` or later: return the number of ids and the byte where the last
    text stopped. `cache` (see `new_cache`) only saves work; one thread at a time may use it.
    """
    work = np.empty(WORK, np.int64)
    zero = np.uint64(0)
    n = np.int64(0)
    out_offsets[0] = 0
    end = text_offsets[0]
    start = end
    for i in range(len(text_offsets) - 1):
        start, end = text_offsets[i], text_offsets[i + 1]
        end = min(end, limit)
        while start < end:
            stop = piece_end(data, start, text_offsets[i + 1], classes)
            size = stop - start
            if size > _CACHED_BYTES:
                n += _encode_piece(
                    data, start, stop, blob, offsets, slots, pairs, pair_bits, byte_ids,
                    byte_pairs, work, out, n,
                )  # fmt: skip
                start = stop
                continue
            a = _word(data, start, min(size, 8))
            b = _word(data, start + 8, min(size - 8, 8)) if size > 8 else zero
            c = _word(data, start + 16, min(size - 16, 8)) if size > 16 else zero
            d = _word(data, start + 24, size - 24) if size > 24 else zero
            h = scramble(a + np.uint64(size) * np.uint64(0x9E3779B97F4A7C15))
            if size > 8:
                h = scramble(h ^ b)
                if size > 16:
                    h = scramble(scramble(h ^ c) ^ d)
            row = np.int64(h & np.uint64(len(cache) - 1))
            if (
                cache[row, 0] == h
                and (cache[row, 1] & np.uint64(0xFF)) == np.uint64(size)
                and cache[row, 2] == a
                and cache[row, 3] == b
                and cache[row, 4] == c
                and cache[row, 5] == d
            ):
                count = np.int64(cache[row, 1] >> np.uint64(8))
                for k in range(count):
                    both = cache[row, 6 + (k >> 1)]
                    out[n + k] = both >> np.uint64(32 * (k & 1)) & np.uint64(0xFFFFFFFF)
            else:
                count = _encode_piece(
                    data, start, stop, blob, offsets, slots, pairs, pair_bits, byte_ids,
                    byte_pairs, work, out, n,
                )  # fmt: skip
                if count <= _CACHED_IDS:
                    cache[row, 0] = h
                    cache[row, 1] = np.uint64(size) | np.uint64(count) << np.uint64(8)
                    cache[row, 2] = a
                    cache[row, 3] = b
                    cache[row, 4] = c
                    cache[row, 5] = d
                    for k in range(6, _WORDS):
                        cache[row, k] = 0
                    for k in range(count):
                        cache[row, 6 + (k >> 1)] |= np.uint64(out[n + k]) << np.uint64(32 * (k & 1))
            n += count
            start = stop
        out_offsets[i + 1] = n
    return n, start
