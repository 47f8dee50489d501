"""Search bytes many at a time, without a branch for each.

Python's own search compares byte by byte where a word's last letter is frequent, as in markup.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from curation.compiled import Bool, Bytes, Int, borrowing, inlined

_BLOCK = 512  # bytes that are looked at before those of a block that may have the word
_BYTE, _NO_CASE = np.uint8, np.uint8(0xDF)  # bits of letters that are the same in both cases
# Subtracting one from each byte of a 64-bit word borrows into the high bit of those that are zero
# (H. Warren, Hacker's Delight, 6-1). Up to the first of them, no other byte's is set.
ONES, HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


def word(letters: bytes) -> npt.NDArray[np.uint8]:
    """Return a word of four bytes or more, as `has` and kernels take it."""
    return np.frombuffer(letters, np.uint8)


# Bytes in lower case: ASCII capitals as small letters.
_bytes = np.arange(256, dtype=np.uint8)
LOWER = np.where((_bytes >= 65) & (_bytes <= 90), _bytes | 32, _bytes).astype(np.uint8)


@inlined
def stands_at(data: Bytes, i: Int, end: Int, word: Bytes) -> Bool:
    """Return whether data[i:end] begins with the lower-case `word`, in any case."""
    size = len(word)
    if i + size > end:
        return False
    k = 0
    while k < size and LOWER[data[i + k]] == word[k]:
        k += 1
    return k == size


@inlined
def same(data: Bytes, i: Int, other: Bytes, j: Int, size: Int) -> Bool:
    """Return whether data[i:i + size] and other[j:j + size] are the same bytes."""
    k = 0
    while k < size and data[i + k] == other[j + k]:
        k += 1
    return k == size


@borrowing
def copy_bytes(data: Bytes, start: Int, end: Int, out: Bytes, at: Int) -> Int:
    """Write data[start:end] to out[at:]; return where it ends.

    Numba compiles seconds of messages about shapes for an assignment to a slice.
    """
    first, place = np.uint64(start), np.uint64(at)  # many at a time, as no index is negative
    for k in range(np.uint64(max(0, end - start))):
        out[place + k] = data[first + k]
    return at + end - start


@borrowing
def _next(data: Bytes, words: Bytes, first: Int) -> Int:
    last = len(data) - 3
    for begin in range(first, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        one, two = data[begin:end], data[begin + 1 : end + 1]
        three, four = data[begin + 2 : end + 2], data[begin + 3 : end + 3]
        least = _BYTE(255)
        # Without a branch, and in bytes throughout, it is compiled to vector instructions.
        for k in range(len(one)):
            for w in range(0, 12, 4):
                half = _BYTE(_BYTE(one[k] ^ words[w]) | _BYTE(two[k] ^ words[w + 1]))
                rest = _BYTE(_BYTE(three[k] ^ words[w + 2]) | _BYTE(four[k] ^ words[w + 3]))
                least = min(least, _BYTE(_BYTE(half | rest) & _NO_CASE))
        for at in range(begin, begin if least else end):
            for w in range(0, 12, 4):
                if stands_at(data, at, len(data), words[w : w + 4]):
                    return at
    return -1


def has(source: bytes, word: Bytes) -> bool:
    """Return whether a word is in the source."""
    letters = word.tobytes()
    return any(source.startswith(letters, at) for at in positions(source, letters[:4]))


def positions(source: bytes, words: bytes) -> Iterator[int]:
    """Yield where any of one or three words of four bytes is in the source, whatever its case."""
    data, at = np.frombuffer(source, np.uint8), -1
    three = np.frombuffer((3 * words)[:12].lower(), np.uint8)
    while (at := int(_next(data, three, at + 1))) >= 0:
        yield at


@inlined
def eight_of(byte: Int) -> Int:
    """Return a byte eight times, as `next_byte` takes it."""
    return np.uint64(byte) * ONES


@inlined
def eight_at(src: Bytes, i: Int) -> Int:
    """Return the eight bytes from i on, the first one lowest."""
    x = np.uint64(0)
    for k in range(8):
        # An unsigned index spares the test for negative ones, and the loop becomes one load.
        x |= np.uint64(src[np.uint64(i) + np.uint64(k)]) << np.uint64(8 * k)
    return x


@inlined
def bits_below(found: Int) -> Int:
    """Return all bits of the bytes below the first one whose high bit is set."""
    return ((found & (~found + np.uint64(1))) >> np.uint64(7)) - np.uint64(1)


@inlined
def count_bytes(bits: Int) -> Int:
    """Return how many bytes have their lowest bit set."""
    return np.int64(((bits & ONES) * ONES) >> np.uint64(56))


@inlined
def next_byte(src: Bytes, i: Int, n: Int, eight: Int) -> Int:
    """Return where a byte comes next, from i; n where it doesn't come before.

    `src` (uint8) has eight bytes behind n at least; `eight` is the byte as `eight_of` has it.
    """
    while i < n:
        x = eight_at(src, i) ^ eight
        found = (x - ONES) & ~x & HIGH
        if found:
            return min(n, i + count_bytes(bits_below(found)))
        i += 8
    return n
