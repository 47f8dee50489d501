"""Byte-pair encoding as tiktoken defines it: the pair of lowest rank merges, leftmost first.

A piece that is a token stands for itself; any pair whose bytes together are a token may merge.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.compiled import borrowing, inlined, kernel
from curation.tokenize.characters import whole_at
from curation.tokenize.pretokenize import piece_end
from curation.tokenize.vocabulary import find_bytes, find_pair

_NONE = np.int64(0x7FFFFFFF)  # rank of a pair that makes no token
_LINEAR = 96  # bytes up to which scanning for the minimum beats a heap
WORK = 2 * _LINEAR  #: numbers of scratch memory that `merge_piece` needs

# A slot of the piece cache is a line of the processor's cache, eight words. Four have the bytes of
# the piece and, in the highest byte, their number; four have three ids each, the last two ids and
# their number. A piece may be in the slot that its hash says and in the neighbouring one.
_WORDS = 8
_CACHED_BYTES = 31
_CACHED_IDS = 11
_ID_BITS = np.uint64(21)
_ID_MASK = np.uint64((1 << 21) - 1)
_COUNT_AT = np.uint64(42)
_LINE = 64  # bytes


def new_cache(slots: int = 1 << 16) -> npt.NDArray[np.uint64]:
    """Memory of recent pieces for one thread: uint64 [slots, 8], slots a power of two."""
    memory = np.zeros(slots * _WORDS + _WORDS, np.uint64)
    first = -memory.ctypes.data % _LINE // memory.itemsize
    return memory[first : first + slots * _WORDS].reshape(slots, _WORDS)


@inlined
def _rank(left, right, tables):  # type: ignore[no-untyped-def]
    found = find_pair(left, right, tables.pairs, tables.pair_bits)
    return _NONE if found < 0 else found


@inlined
def _byte_rank(data, k, byte_pairs):  # type: ignore[no-untyped-def]
    found = np.int64(byte_pairs[np.int64(data[k]) << 8 | np.int64(data[k + 1])])
    return _NONE if found < 0 else found


@inlined
def _word(data, start, size):  # type: ignore[no-untyped-def]
    """Return up to eight bytes as a little-endian integer."""
    word = np.uint64(0)
    if start + 8 <= len(data):
        at = np.uint64(start)
        # Written out, this becomes one load.
        word = (
            np.uint64(data[at])
            | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
            | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
            | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
            | np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
            | np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
            | np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
            | np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
        )
        if size < 8:
            word &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
        return word
    for k in range(min(size, 8)):
        word |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return word


@borrowing
def _symbols(data, start, end, tables, work):  # type: ignore[no-untyped-def]
    """Write the first symbols of a piece, and the rank of each with the next; return how many.

    Returns _LINEAR + 1 where there is no room for them.
    """
    n = np.int64(0)
    i = start
    was_byte = False
    while i < end:
        if n == _LINEAR:
            return n + 1
        token, size = np.int64(-1), np.int64(0)
        if data[i] >= 0xC2:
            token, size = whole_at(data, start, i, end, tables.characters, tables.unsafe)
        is_byte = token < 0
        if is_byte:
            token, size = np.int64(tables.byte_ids[data[i]]), np.int64(1)
        work[n] = token
        if n > 0:
            if is_byte and was_byte:
                work[_LINEAR + n - 1] = _byte_rank(data, i - 1, tables.byte_pairs)
            else:
                work[_LINEAR + n - 1] = _rank(work[n - 1], token, tables)
        was_byte = is_byte  # type: ignore[assignment]
        n += 1
        i += size
    return n


@borrowing
def _merge_short(n, tables, work, out, at):  # type: ignore[no-untyped-def]
    ids, ranks = np.int64(0), np.int64(_LINEAR)  # where in `work` each begins
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
            work[ranks + best] = _rank(token, work[ids + best + 1], tables)
        if best > 0:
            work[ranks + best - 1] = _rank(work[ids + best - 1], token, tables)
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
def _merge_long(data, start, end, tables, out, at):  # type: ignore[no-untyped-def]
    """As `_merge_short` in O(n log n): a heap of (rank, position), stale entries skipped."""
    n = end - start
    ids = np.empty(n, np.int64)
    after = np.empty(n, np.int64)
    before = np.empty(n, np.int64)
    ranks = np.empty(n, np.int64)
    heap = np.empty(3 * n, np.int64)
    size = 0
    for k in range(n):
        ids[k] = tables.byte_ids[data[start + k]]
        after[k] = k + 1
        before[k] = k - 1
    for k in range(n):
        ranks[k] = _NONE if k + 1 == n else _byte_rank(data, start + k, tables.byte_pairs)
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
            ranks[k] = _rank(token, ids[right], tables)
            if ranks[k] != _NONE:
                size = _push(heap, size, ranks[k] << 32 | k)
        left = before[k]
        if left >= 0:
            ranks[left] = _rank(ids[left], token, tables)
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
def merge_piece(data, start, end, tables, work, out, at):  # type: ignore[no-untyped-def]
    """Write ids of data[start:end] by merging alone to out[at:]; return how many.

    `work` is scratch memory, int64 [WORK].
    """
    n = _symbols(data, start, end, tables, work)
    if n <= _LINEAR:
        return _merge_short(n, tables, work, out, at)
    return _merge_long(data, start, end, tables, out, at)


@borrowing
def _encode_piece(data, start, end, tables, work, out, at):  # type: ignore[no-untyped-def]
    whole = find_bytes(data, start, end, tables.blob, tables.offsets, tables.slots)
    if whole >= 0:
        out[at] = whole
        return np.int64(1)
    return np.int64(merge_piece(data, start, end, tables, work, out, at))


@inlined
def _is_in(cache, row, key):  # type: ignore[no-untyped-def]
    a, b, c, d = key
    return cache[row, 0] == a and cache[row, 3] == d and cache[row, 1] == b and cache[row, 2] == c


@inlined
def _recall(cache, row, out, n):  # type: ignore[no-untyped-def]
    """Write the ids of a slot to out[n:]; return how many."""
    count = np.int64(cache[row, 7] >> _COUNT_AT)
    word = cache[row, 4]
    out[n] = word & _ID_MASK
    for k in range(1, count):
        word = cache[row, 4 + k // 3] if k % 3 == 0 else word >> _ID_BITS
        out[n + k] = word & _ID_MASK
    return count


@inlined
def _remember(cache, row, key, out, n, count):  # type: ignore[no-untyped-def]
    """Write a piece and its ids to its slot; what was there goes to the neighbouring one."""
    for k in range(_WORDS):
        cache[row ^ 1, k] = cache[row, k]
        cache[row, k] = 0
    cache[row, 0], cache[row, 1], cache[row, 2], cache[row, 3] = key
    for k in range(count):
        cache[row, 4 + k // 3] |= np.uint64(out[n + k]) << _ID_BITS * np.uint64(k % 3)
    cache[row, 7] |= np.uint64(count) << _COUNT_AT


@kernel
def encode_texts(  # type: ignore[no-untyped-def]
    data, text_offsets, limit, classes, tables, cache, out, out_offsets
):
    """Write ids of texts to out (uint32, room for one per byte), bounds to out_offsets [n + 1].

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
                n += _encode_piece(data, start, stop, tables, work, out, n)
                start = stop
                continue
            a = _word(data, start, size)
            b = _word(data, start + 8, size - 8) if size > 8 else zero
            c = _word(data, start + 16, size - 16) if size > 16 else zero
            d = np.uint64(size) << np.uint64(56)
            if size > 24:
                d |= _word(data, start + 24, size - 24)
            h = (a ^ d) * np.uint64(0x9E3779B97F4A7C15)
            if size > 8:
                h = (h ^ h >> np.uint64(32) ^ b) * np.uint64(0xBF58476D1CE4E5B9)
                h = (h ^ h >> np.uint64(32) ^ c) * np.uint64(0x94D049BB133111EB)
            row = np.int64((h ^ h >> np.uint64(32)) & np.uint64(len(cache) - 1))
            key = (a, b, c, d)
            if _is_in(cache, row, key):
                n += _recall(cache, row, out, n)
            elif _is_in(cache, row ^ 1, key):
                n += _recall(cache, row ^ 1, out, n)
            else:
                count = _encode_piece(data, start, stop, tables, work, out, n)
                if count <= _CACHED_IDS:
                    _remember(cache, row, key, out, n, count)
                n += count
            start = stop
        out_offsets[i + 1] = n
    return n, start
