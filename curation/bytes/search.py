"""Search bytes many at a time, without a branch for each.

Python's own search compares byte by byte where a word's last letter is frequent, as in markup.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from curation.compiled import Bool, Bytes, Int, borrowing, inlined

_BLOCK = 512  # bytes that are looked at before those of a block that may have the word
_BYTE = np.uint8
# Subtracting one from each byte of a 64-bit word borrows into the high bit of those that are zero
# (H. Warren, Hacker's Delight, 6-1). Up to the first of them, no other byte's is set.
ONES, HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


def word(letters: bytes) -> npt.NDArray[np.uint8]:
    """Return a word of four bytes or more, as `has` and `positions` take it."""
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
def _begins(first: Bytes, second: Bytes, third: Bytes, fourth: Bytes, word: Bytes) -> Bool:
    """Whether the first four bytes of a word are in four views that are a byte apart each.

    Without a branch, and in bytes throughout, so that it is compiled to vector instructions.
    """
    a, b, c, d = word[0], word[1], word[2], word[3]
    least = _BYTE(255)
    for k in range(len(fourth)):
        one = _BYTE(_BYTE(first[k] ^ a) | _BYTE(second[k] ^ b))
        other = _BYTE(_BYTE(third[k] ^ c) | _BYTE(fourth[k] ^ d))
        least = min(least, _BYTE(one | other))
    return least == 0


@borrowing
def _next(data: Bytes, word: Bytes, first: Int) -> Int:
    size = len(word)
    last = len(data) - size + 1
    for begin in range(first, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        if not _begins(
            data[begin:end],
            data[begin + 1 : end + 1],
            data[begin + 2 : end + 2],
            data[begin + 3 : end + 3],
            word,
        ):
            continue
        for at in range(begin, end):
            if same(data, at, word, 0, size):
                return at
    return -1


def has(source: bytes, word: npt.NDArray[np.uint8]) -> bool:
    """Return whether a word is in the source."""
    return bool(_next(np.frombuffer(source, np.uint8), word, 0) >= 0)


def positions(source: bytes, word: npt.NDArray[np.uint8]) -> Iterator[int]:
    """Yield where a word is in the source."""
    data, at = np.frombuffer(source, np.uint8), -1
    while (at := int(_next(data, word, at + 1))) >= 0:
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
