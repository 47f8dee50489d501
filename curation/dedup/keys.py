"""Keys of strings, and columns sorted by them.

Equal strings have equal 128-bit keys, others differ but by a 2^-128 chance."""

from typing import Any

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, stable_order, text_buffers
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
    """Both columns, each [n], in the order of (first, second)."""
    return sort_rows(first, second)[:2]


def sort_rows(first: Ids, second: Ids) -> tuple[Ids, Ids, npt.NDArray[np.int64]]:
    """As `sort_pairs`, and the row of each; rows equal in both columns keep their order."""
    order = stable_order(second)
    order = order[stable_order(first[order])]
    return first[order], second[order], order


def run_starts(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Positions at which one of the columns [n], sorted together, takes a new value."""
    new = np.ones(len(columns[0]), bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(new)


def run_lengths(starts: npt.NDArray[np.int64], total: int) -> npt.NDArray[np.int64]:
    """Length of each run that starts at `starts` in an array of `total` entries."""
    return np.diff(np.append(starts, total))
