"""Memory of the ids of recent pieces, so that a word is merged once and not at each occurrence.

A slot is a line of the processor's cache, eight words. Four have the bytes of the piece and, in the
highest byte, their number; four have three ids each, the last two ids and their number. A piece may
be in the slot that its hash says and in the neighbouring one. What a cache holds changes no id.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.compiled import borrowing, inlined

_WORDS = 8
CACHED_BYTES = 31  #: longest piece that is remembered
WAYS = 4  #: slots that a piece may be in
CACHED_IDS = 11  #: most ids that are remembered of a piece
#: Ids that `recall` may write beyond those of the piece.
SPARE = 3
_ID_BITS = np.uint64(21)
_ID_MASK = np.uint64((1 << 21) - 1)
_COUNT_AT = np.uint64(42)
_LINE = 64  # bytes
# Bits of a word's bytes that belong to a piece with k - 24 bytes from there on.
_MASKS = np.array([(1 << 8 * min(max(k - 24, 0), 8)) - 1 for k in range(56)], np.uint64)
_A, _B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_C, _D = np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)


def new_cache(slots: int = 1 << 18) -> npt.NDArray[np.uint64]:
    """Memory of recent pieces for one thread: uint64 [slots, 8], slots a power of two."""
    memory = np.zeros(slots * _WORDS + _WORDS, np.uint64)
    first = -memory.ctypes.data % _LINE // memory.itemsize
    return memory[first : first + slots * _WORDS].reshape(slots, _WORDS)


@inlined
def _word(data, start):  # type: ignore[no-untyped-def]
    """Return eight bytes as a little-endian integer."""
    at = np.uint64(start)
    # Written out, this becomes one load.
    return (
        np.uint64(data[at])
        | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
        | np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
        | np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
        | np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
        | np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    )


@inlined
def _last_word(data, start, size):  # type: ignore[no-untyped-def]
    word = np.uint64(0)
    for k in range(min(size, 8)):
        word |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return word


@inlined
def piece_key(data, start, size, is_part):  # type: ignore[no-untyped-def]
    """Return the four words of up to CACHED_BYTES bytes; a part of a piece has others than a piece."""
    if start + 32 <= len(data):
        a = _word(data, start) & _MASKS[np.uint64(size + 24)]
        b = _word(data, start + 8) & _MASKS[np.uint64(size + 16)]
        c = _word(data, start + 16) & _MASKS[np.uint64(size + 8)]
        d = _word(data, start + 24) & _MASKS[np.uint64(size)]
    else:
        a = _last_word(data, start, size)
        b = _last_word(data, start + 8, size - 8)
        c = _last_word(data, start + 16, size - 16)
        d = _last_word(data, start + 24, size - 24)
    return a, b, c, d | np.uint64(size) << np.uint64(56) | np.uint64(is_part) << np.uint64(63)


@inlined
def key_hash(key):  # type: ignore[no-untyped-def]
    """Return 64 bits of which the highest are good: a sum of products."""
    a, b, c, d = key
    h = (a ^ a >> np.uint64(32)) * _A + (b ^ b >> np.uint64(32)) * _B
    return h + (c ^ c >> np.uint64(32)) * _C + (d ^ d >> np.uint64(32)) * _D


@inlined
def slot(cache, h):  # type: ignore[no-untyped-def]
    """Return the row that a hash says."""
    return np.int64(h >> np.uint64(40) & np.uint64(len(cache) - 1))


@inlined
def is_in(cache, row, key):  # type: ignore[no-untyped-def]
    """Return whether the slot has the piece."""
    a, b, c, d = key
    return (
        (cache[row, 0] ^ a) | (cache[row, 1] ^ b) | (cache[row, 2] ^ c) | (cache[row, 3] ^ d)
    ) == np.uint64(0)


@borrowing
def find(cache, row, a, b, c, d):  # type: ignore[no-untyped-def]
    """Return the slot that has the piece, of the set of its own; or -1."""
    for other in range(1, WAYS):
        if is_in(cache, row ^ other, (a, b, c, d)):
            return row ^ other
    return np.int64(-1)


@inlined
def recall(cache, row, out, n):  # type: ignore[no-untyped-def]
    """Write the ids of a slot to out[n:], and up to SPARE more; return how many are the piece's."""
    count = np.int64(cache[row, 7] >> _COUNT_AT)
    word = cache[row, 4]
    out[n] = word & _ID_MASK
    out[n + 1] = word >> _ID_BITS & _ID_MASK
    out[n + 2] = word >> _COUNT_AT
    for k in range(3, count):
        word = cache[row, 4 + k // 3] if k % 3 == 0 else word >> _ID_BITS
        out[n + k] = word & _ID_MASK
    return count


@borrowing
def remember(cache, row, a, b, c, d, out, n, count):  # type: ignore[no-untyped-def]
    """Write a piece and its ids to its slot; what was there goes to another slot of the set."""
    other = row ^ 1
    for k in range(2, WAYS):
        if cache[other, 3] != 0:
            other = row ^ k
    for k in range(_WORDS):
        cache[other, k] = cache[row, k]
        cache[row, k] = 0
    cache[row, 0], cache[row, 1], cache[row, 2], cache[row, 3] = a, b, c, d
    for k in range(count):
        cache[row, 4 + k // 3] |= np.uint64(out[n + k]) << _ID_BITS * np.uint64(k % 3)
    cache[row, 7] |= np.uint64(count) << _COUNT_AT
