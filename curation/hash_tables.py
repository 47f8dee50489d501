"""Hash tables with open addressing over flat arrays, for use inside kernels.

A table is a pair of arrays whose length is a power of two; key 0 marks a free slot, so a true 0 is
stored as 1. Lookups of a key that is absent return 0, which is therefore no useful value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import borrowing, inlined


class Table(NamedTuple):
    keys: npt.NDArray[np.uint64]  # [2^k]
    values: npt.NDArray[np.int64]  # [2^k]


@inlined
def slot_of(key):  # type: ignore[no-untyped-def]
    """Scrambled key, from whose low bits the slot is taken."""
    h = key * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@borrowing
def lookup(table, key):  # type: ignore[no-untyped-def]
    """Value of a uint64 key, 0 if absent."""
    keys = table.keys
    if key == np.uint64(0):
        key = np.uint64(1)
    mask = np.uint64(len(keys) - 1)
    slot = slot_of(key) & mask
    while keys[slot] != np.uint64(0):
        if keys[slot] == key:
            return table.values[slot]
        slot = (slot + np.uint64(1)) & mask
    return np.int64(0)


@borrowing
def _fill(keys, values, new_keys, new_values):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(keys) - 1)
    for i in range(len(new_keys)):
        key = new_keys[i]
        if key == np.uint64(0):
            key = np.uint64(1)
        slot = slot_of(key) & mask
        while keys[slot] != np.uint64(0) and keys[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if keys[slot] == key:
            values[slot] |= new_values[i]
        else:
            keys[slot] = key
            values[slot] = new_values[i]


def build(keys: npt.NDArray[np.uint64], values: npt.NDArray[np.int64]) -> Table:
    """Table of the given keys; the values of a repeated key are joined by bitwise or."""
    size = 4
    while size < 2 * len(keys):
        size *= 2
    table = Table(np.zeros(size, np.uint64), np.zeros(size, np.int64))
    _fill(
        table.keys,
        table.values,
        np.ascontiguousarray(keys, np.uint64),
        np.ascontiguousarray(values, np.int64),
    )
    return table


@inlined
def intern(key, slots, keys, mask, fresh):  # type: ignore[no-untyped-def]
    """Id of `key` in an emptied table, `fresh` if it is new there.

    `slots` hold ids, negative where they are free, and `keys` the key of each id.
    """
    slot = slot_of(key) & mask
    while slots[slot] >= 0:
        if keys[slots[slot]] == key:
            return np.int64(slots[slot])
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = fresh
    keys[fresh] = key
    return np.int64(fresh)
