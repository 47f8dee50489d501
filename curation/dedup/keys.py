"""Keys of strings, and their radix sort, several times as fast as numpy's lexsort.

Equal strings have equal 128-bit keys, others differ but by a 2^-128 chance."""

from typing import Any

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, read_only, text_buffers
from curation.compiled import Uint64s, kernel
from curation.hashing import hash_spans, mix64

#: Seeds of the two XXH64 values that make a key.
SEEDS = (np.uint64(0), np.uint64(0x9E3779B97F4A7C15))


def string_keys(texts: Texts) -> npt.NDArray[np.uint64]:
    """Key of the UTF-8 bytes of each text -> uint64 [n, 2]. A null has the key of "", for the
    caller to leave out."""
    return np.stack([_hashes(texts, seed) for seed in SEEDS], axis=1)


def half_keys(texts: Texts) -> npt.NDArray[np.uint64]:
    """The first half of `string_keys` -> uint64 [n]: of ids, of hosts, of languages as scopes."""
    return _hashes(texts, SEEDS[0])


def _hashes(texts: Texts, seed: np.uint64) -> npt.NDArray[np.uint64]:
    buffers = text_buffers(texts)
    found: npt.NDArray[np.uint64]
    found = hash_spans(buffers.data, buffers.offsets[:-1], buffers.offsets[1:], seed)
    return found


def within(
    hashes: npt.NDArray[np.uint64], scopes: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Hashes [n, ...] that are equal where both the hash and its scope [n] are.

    For any hashes of this package (keys, bands, lines): what is to be compared within languages
    or buckets then needs no grouping by these.
    """
    salt = mix64(scopes).reshape(-1, *[1] * (hashes.ndim - 1))
    return mix64(hashes ^ salt)


Ids = npt.NDArray[np.uint64]


def sort_pairs(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Both columns, each [n], in the order of (first, second). Takes 32 bytes per pair.

    Bytes that all pairs have in common cost nothing, as the high ones of shards and rows.
    """
    first, second = (read_only(np.ascontiguousarray(k, np.uint64)) for k in (first, second))
    return _sort_pairs(first, second)


def sort_with(first: Ids, second: Ids, carried: Ids) -> tuple[Ids, Ids, Ids]:
    """Three columns [n] in the order of the first two; rows equal in these keep their order."""
    second, order = sort_pairs(second, np.arange(len(carried), dtype=np.uint64))
    rank = np.arange(len(order), dtype=np.uint64)
    first, rank = sort_pairs(first[order.astype(np.int64)], rank)
    rows = rank.astype(np.int64)
    return first, second[rows], carried[order[rows].astype(np.int64)]


def run_starts(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Positions at which one of the columns [n], sorted together, takes a new value."""
    new = np.ones(len(columns[0]), bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(new)


def run_lengths(starts: npt.NDArray[np.int64], total: int) -> npt.NDArray[np.int64]:
    """Length of each run that starts at `starts` in an array of `total` entries."""
    return np.diff(np.append(starts, total))


@kernel
def _sort_pairs(first: Uint64s, second: Uint64s) -> tuple[Uint64s, Uint64s]:
    n = len(first)
    counts = np.zeros((16, 256), np.int64)
    for i in range(n):
        for byte in range(8):
            counts[byte, np.int64((second[i] >> np.uint64(8 * byte)) & np.uint64(255))] += 1
            counts[byte + 8, np.int64((first[i] >> np.uint64(8 * byte)) & np.uint64(255))] += 1
    a, b = first.copy(), second.copy()
    c, d = np.empty_like(a), np.empty_like(b)
    for digit in range(16 if n else 0):  # least significant first; a pass keeps the former's order
        shift = np.uint64(8 * (digit % 8))
        common = b[0] if digit < 8 else a[0]
        if counts[digit, np.int64((common >> shift) & np.uint64(255))] == n:
            continue
        places = np.zeros(256, np.int64)
        for value in range(1, 256):
            places[value] = places[value - 1] + counts[digit, value - 1]
        for i in range(n):
            key = b[i] if digit < 8 else a[i]
            slot = np.int64((key >> shift) & np.uint64(255))
            at = places[slot]
            places[slot] = at + 1
            c[at] = a[i]
            d[at] = b[i]
        a, b, c, d = c, d, a, b
    return a, b
