"""Hash tables with open addressing over flat arrays, and sets of bits, for use inside kernels.

The tables' length is a power of two; a key is in the first free slot from its hash on.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.search import same
from curation.compiled import Bool, Bytes, Int, Int32s, Int64s, Uint64s, borrowing, inlined

_NOTHING = np.uint64(0)


class Table(NamedTuple):
    """Values of 64-bit hashes; key 0 and value -1 where a slot is free."""

    keys: npt.NDArray[np.uint64]  # [2^k]
    values: npt.NDArray[np.int32]  # [2^k]


@inlined
def has_bit(bits: Uint64s, k: Int) -> Bool:
    """Return whether a bit, by its number, is set."""
    return bits[k >> np.uint64(6)] >> (k & np.uint64(63)) & np.uint64(1) != np.uint64(0)


@inlined
def scrambled(key: Int) -> Int:
    """Return a hash of a key, good in its low bits."""
    h = key * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@inlined
def slot_of(keys: Any, key: Int, start: Int, free: Int) -> Int:
    """Return the slot of a key of hash `start`, or the `free` slot where it belongs."""
    mask = np.uint64(len(keys) - 1)
    slot = np.uint64(start) & mask
    while keys[slot] != key and keys[slot] != free:
        slot = (slot + np.uint64(1)) & mask
    return slot


def filled(size: int, hashes: Uint64s) -> Int32s:
    """Return the number of the entry in each of `size` slots, -1 where it is free.

    All entries are placed at once, round by round: those whose slot is taken try the next one. Of
    several the first gets it.
    """
    slots = np.full(size, len(hashes), np.int32)
    left, at = np.arange(len(hashes)), (hashes & np.uint64(size - 1)).astype(np.int64)
    while len(left):
        free = slots[at] == len(hashes)
        np.minimum.at(slots, at[free], left[free])
        waiting = slots[at] != left
        left, at = left[waiting], (at[waiting] + 1) & (size - 1)
    return np.where(slots == len(hashes), np.int32(-1), slots)


def of_hashes(entries: Mapping[int, int]) -> Table:
    """Return a table of 64-bit hashes, at most half full, for `find`."""
    keys, values = np.array([*entries], np.uint64), np.array([*entries.values()], np.int32)
    slots = filled(1 << max(4, (2 * len(keys) + 1).bit_length()), keys)
    return Table(np.append(keys, _NOTHING)[slots], np.append(values, np.int32(-1))[slots])


@borrowing
def find(keys: Uint64s, values: Int32s, key: Int) -> Int:
    """Return the value of a hash in a table made by `of_hashes`, -1 if it is absent."""
    return np.int64(values[slot_of(keys, key, key, _NOTHING)])


@inlined
def intern(key: Int, slots: Int32s, keys: Uint64s, mask: Int, fresh: Int) -> Int:
    """Return the id of `key` in an emptied table, `fresh` if it is new there.

    `slots` have ids, negative where they are free, and `keys` the key of each id.
    """
    slot = scrambled(key) & mask
    while slots[slot] >= 0:
        if keys[np.uint64(slots[slot])] == key:
            return np.int64(slots[slot])
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = fresh
    keys[np.uint64(fresh)] = key
    return np.int64(fresh)


@borrowing
def slot_of_bytes(
    data: Bytes, start: Int, end: Int, h: Int, blob: Bytes, offsets: Int64s, slots: Int32s
) -> Int:
    """Return the slot of the word data[start:end] of hash h, or the free one where it belongs.

    `slots` have the number of each word, negative where they are free; word k is
    `blob[offsets[k]:offsets[k + 1]]`.
    """
    mask = np.uint64(len(slots) - 1)
    slot = np.uint64(h) & mask
    while slots[slot] >= 0:
        begin = offsets[slots[slot]]
        size = offsets[slots[slot] + 1] - begin
        if size == end - start and same(data, start, blob, begin, size):
            break
        slot = (slot + np.uint64(1)) & mask
    return slot
