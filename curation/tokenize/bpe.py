"""Byte-pair encoding as tiktoken defines it: the pair of lowest rank merges, leftmost first.

A piece that is a token stands for itself; any pair whose bytes together are a token may merge.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from curation.compiled import Bytes, Int, Int64s, Uint32s, borrowing, kernel
from curation.tokenize.vocabulary import NO_TOKEN, find_pair

if TYPE_CHECKING:
    from curation.tokenize.vocabulary import Tables

_LINEAR = 96  # bytes up to which scanning for the minimum beats a heap
WORK = 2 * _LINEAR  #: numbers of scratch memory that `merge_piece` needs


@borrowing
def _merge_short(
    data: Bytes, start: Int, end: Int, tables: Tables, work: Int64s, out: Uint32s, at: Int
) -> Int:
    ids, ranks = np.int64(0), np.int64(_LINEAR)  # where in `work` each begins
    n = np.int64(end - start)
    for k in range(n):
        work[ids + k] = tables.byte_ids[data[start + k]]
    for k in range(n - 1):
        work[ranks + k] = tables.byte_pairs[data[start + k], data[start + k + 1]]
    while n > 1:
        best = np.int64(0)
        token = work[ranks]
        for k in range(1, n - 1):
            if work[ranks + k] < token:
                token = work[ranks + k]
                best = np.int64(k)
        if token == NO_TOKEN:
            break
        work[ids + best] = token
        for k in range(best + 1, n - 1):
            work[ids + k] = work[ids + k + 1]
            work[ranks + k] = work[ranks + k + 1]
        n -= 1
        if best + 1 < n:
            work[ranks + best] = find_pair(token, work[ids + best + 1], tables.pairs)
        if best > 0:
            work[ranks + best - 1] = find_pair(work[ids + best - 1], token, tables.pairs)
    for k in range(n):
        out[at + k] = work[ids + k]
    return n


@kernel
def _merge_long(data: Bytes, start: Int, end: Int, tables: Tables, out: Uint32s, at: Int) -> Int:
    """As `_merge_short` in O(n log n): a heap of (rank, position), stale entries skipped."""
    n = end - start
    ids = np.empty(n, np.int64)
    after = np.empty(n, np.int64)
    before = np.empty(n, np.int64)
    ranks = np.empty(n, np.int64)
    heap = [np.int64(0)][:0]
    for k in range(n):
        ids[k] = tables.byte_ids[data[start + k]]
        after[k] = k + 1
        before[k] = k - 1
        last = k + 1 == n
        ranks[k] = NO_TOKEN if last else tables.byte_pairs[data[start + k], data[start + k + 1]]
        if ranks[k] != NO_TOKEN:
            heappush(heap, ranks[k] << 32 | k)
    while len(heap):
        least = heappop(heap)
        token = least >> 32
        k = least & 0xFFFFFFFF
        if ranks[k] != token or ids[k] < 0:
            continue
        gone = after[k]
        ids[k] = token
        ids[gone] = -1
        right = after[gone]
        after[k] = right
        ranks[k] = NO_TOKEN
        if right < n:
            before[right] = k
            ranks[k] = find_pair(token, ids[right], tables.pairs)
            if ranks[k] != NO_TOKEN:
                heappush(heap, ranks[k] << 32 | k)
        left = before[k]
        if left >= 0:
            ranks[left] = find_pair(ids[left], token, tables.pairs)
            if ranks[left] != NO_TOKEN:
                heappush(heap, ranks[left] << 32 | left)
    count = 0
    k = 0
    while k < n:
        out[at + count] = ids[k]
        count += 1
        k = after[k]
    return count


@borrowing
def merge_piece(
    data: Bytes, start: Int, end: Int, tables: Tables, work: Int64s, out: Uint32s, at: Int
) -> Int:
    """Write ids of data[start:end] by merging alone to out[at:]; return how many.

    `work` is scratch memory, int64 [WORK].
    """
    if end - start <= _LINEAR:
        return _merge_short(data, start, end, tables, work, out, at)
    return _merge_long(data, start, end, tables, out, at)
