"""Memory of the ids of recent pieces, so that a word is merged once and not at each occurrence.

It is divided into lines of the processor's cache, eight words each. A line has one or two pieces:

- of up to 15 bytes in half a line: their bytes in two words, with their number in the highest byte;
  three ids; two ids and how many there are;
- of up to 31 bytes in a line: the first eight bytes; the last seven with their number; the rest;
  three ids; two ids and how many there are; six more ids.

A piece may be in the half that its hash says, its home, and in three others: those of the line and
of its neighbour. A new piece goes home; what was there goes to another of these. What a cache holds
changes no id.
"""

import numpy as np
import numpy.typing as npt

from curation.bytes.search import eight_at
from curation.compiled import Bool, Bytes, Int, Uint32s, Uint64s, borrowing, inlined

_HALF = 4  # words
_SHORT = 15  # bytes
CACHED_BYTES = 31  #: longest piece that is remembered
#: Ids that `recall` may write beyond those of the piece.
SPARE = 5
_ID_BITS = np.uint64(21)
_ID_MASK = np.uint64((1 << 21) - 1)
_COUNT_AT = np.uint64(42)
_LINE = 64  # bytes
# Bits of a word's bytes that belong to a piece with k - 24 bytes from there on.
_MASKS = np.array([(1 << 8 * min(max(k - 24, 0), 8)) - 1 for k in range(56)], np.uint64)
_A, _B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_C, _D = np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)


def new_cache(pieces: int = 1 << 19) -> npt.NDArray[np.uint64]:
    """Memory of so many short pieces, a power of two, for one thread: uint64 [4 * pieces]."""
    memory = np.zeros(pieces * _HALF + 2 * _HALF, np.uint64)
    first = -memory.ctypes.data % _LINE // memory.itemsize
    return memory[first : first + pieces * _HALF]


@inlined
def _last_word(data: Bytes, start: Int, size: Int) -> Int:
    word = np.uint64(0)
    for k in range(min(size, 8)):
        word |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return word


@inlined
def piece_key(data: Bytes, start: Int, size: Int, is_part: Bool) -> tuple[Int, Int, Int, Int]:
    """Return four words for up to CACHED_BYTES bytes, others for a part than for a whole piece."""
    note = np.uint64(size) << np.uint64(56) | np.uint64(is_part) << np.uint64(63)
    zero = np.uint64(0)
    if start + 32 > len(data):
        first = _last_word(data, start, size)
        second = _last_word(data, start + 8, size - 8)
        if size <= _SHORT:
            return first, second | note, zero, zero
        last = _last_word(data, start + 24, size - 24)
        return first, last | note, second, _last_word(data, start + 16, size - 16)
    first = eight_at(data, start) & _MASKS[np.uint64(size + 24)]
    second = eight_at(data, start + 8) & _MASKS[np.uint64(size + 16)]
    if size <= _SHORT:
        return first, second | note, zero, zero
    last = eight_at(data, start + 24) & _MASKS[np.uint64(size)]
    return first, last | note, second, eight_at(data, start + 16) & _MASKS[np.uint64(size + 8)]


@inlined
def key_hash(key: tuple[Int, Int, Int, Int]) -> Int:
    """Return 64 bits of which the highest are good: a sum of products."""
    a, b, c, d = key
    h = (a ^ a >> np.uint64(32)) * _A + (b ^ b >> np.uint64(32)) * _B
    return h + (c ^ c >> np.uint64(32)) * _C + (d ^ d >> np.uint64(32)) * _D


@inlined
def home(cache: Uint64s, h: Int) -> Int:
    """Return where the half line begins that a hash says."""
    return np.int64(h >> np.uint64(40) & np.uint64(len(cache) // _HALF - 1)) * _HALF


@inlined
def is_long(word: Int) -> Bool:
    """Return whether a piece has a line, by its second word."""
    return word >> np.uint64(56) & np.uint64(0x7F) > _SHORT


@borrowing
def find(cache: Uint64s, at: Int, key: tuple[Int, Int, Int, Int]) -> Int:
    """Return where the ids of a piece are whose home is `at`, or -1."""
    a, b, c, d = key
    if is_long(b):
        for other in range(0, 4 * _HALF, 2 * _HALF):
            k = (at & ~np.int64(_HALF)) ^ other
            if cache[k] == a and cache[k + 1] == b and cache[k + 2] == c and cache[k + 3] == d:
                return k + _HALF
    else:
        for other in range(0, 4 * _HALF, _HALF):
            k = at ^ other
            if cache[k] == a and cache[k + 1] == b:
                return k + 2
    return np.int64(-1)


@inlined
def recall(cache: Uint64s, at: Int, out: Uint32s, n: Int) -> Int:
    """Write ids to out[n:], and up to SPARE more; return how many are the piece's."""
    word, rest = cache[at], cache[at + 1]
    count = np.int64(rest >> _COUNT_AT)
    out[n] = word & _ID_MASK
    out[n + 1] = word >> _ID_BITS & _ID_MASK
    out[n + 2] = word >> _COUNT_AT
    out[n + 3] = rest & _ID_MASK
    out[n + 4] = rest >> _ID_BITS & _ID_MASK
    for k in range(5, count):
        out[n + k] = cache[at + (k + 1) // 3] >> _ID_BITS * np.uint64((k + 1) % 3) & _ID_MASK
    return count


@borrowing
def _make_room(cache: Uint64s, at: Int, for_line: Bool) -> None:
    """Move what is at home to another place of the set, over what is there."""
    line, neighbour = at & ~np.int64(_HALF), (at & ~np.int64(_HALF)) ^ 2 * _HALF
    if for_line or is_long(cache[line + 1]):
        for k in range(2 * _HALF):
            cache[neighbour + k] = cache[line + k]
            cache[line + k] = 0
        return
    if cache[at + 1] == 0:
        return
    other = at ^ _HALF
    if not is_long(cache[neighbour + 1]):
        for k in range(2 * _HALF, 4 * _HALF, _HALF):
            if cache[other + 1] != 0:
                other = at ^ k
    for k in range(_HALF):
        cache[other + k] = cache[at + k]


@borrowing
def remember(
    cache: Uint64s, at: Int, key: tuple[Int, Int, Int, Int], out: Uint32s, n: Int, count: Int
) -> None:
    """Write a piece and its ids at its home, if there is room for them all."""
    a, b, c, d = key
    has_line = is_long(b)
    if count > (11 if has_line else 5):
        return
    _make_room(cache, at, has_line)
    if has_line:
        at &= ~np.int64(_HALF)
        cache[at + 2], cache[at + 3] = c, d
    cache[at], cache[at + 1] = a, b
    words = _HALF if has_line else 2
    at += words
    for k in range(words):
        cache[at + k] = 0
    for k in range(count):
        j = k if k < 5 else k + 1  # after two ids comes their number
        cache[at + j // 3] |= np.uint64(out[n + k]) << _ID_BITS * np.uint64(j % 3)
    cache[at + 1] |= np.uint64(count) << _COUNT_AT
