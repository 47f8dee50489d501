"""Characters of UTF-8, read and written inside kernels."""

import numpy as np

from curation.compiled import Bool, Bytes, Int, borrowing, inlined

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@inlined
def is_tail(byte: Int) -> Bool:
    """Return whether a byte continues a character."""
    return byte & 0xC0 == 0x80


@inlined
def code_point(data: Bytes, i: Int) -> tuple[Int, Int]:
    """Return the code point at byte i and its length in bytes; `data` is valid UTF-8."""
    at = np.uint64(i)  # of others numba asks each time if they count from the end
    b = np.int64(data[at])
    if b < 0x80:
        return b, 1
    if b < 0xE0:
        return (b & 0x1F) << 6 | np.int64(data[at + _ONE] & 0x3F), 2
    two = np.int64(data[at + _ONE] & 0x3F) << 6 | np.int64(data[at + _TWO] & 0x3F)
    if b < 0xF0:
        return (b & 0x0F) << 12 | two, 3
    return (b & 0x07) << 18 | two << 6 | np.int64(data[at + _THREE] & 0x3F), 4


@borrowing
def sound_point(data: Bytes, i: Int, end: Int) -> tuple[Int, Int]:
    """Return the code point at byte i of data[:end] and its length; 0 bytes of any other bytes."""
    b = np.int64(data[i])
    if b < 0x80:
        return b, 1
    size = 2 + np.int64(b >= 0xE0) + np.int64(b >= 0xF0)
    if b < 0xC2 or b > 0xF4 or i + size > end:
        return np.int64(0), 0
    for k in range(i + 1, i + size):
        if not is_tail(data[k]):
            return np.int64(0), 0
    point, _ = code_point(data, i)
    least = 0x80 if size == 2 else 0x800 if size == 3 else 0x10000
    return (point, size) if least <= point < 0x110000 else (np.int64(0), 0)


@inlined
def last_character(data: Bytes, begin: Int, end: Int) -> Int:
    """Return where the last character of data[begin:end] begins; there is one."""
    last = end - 1
    while last > begin and is_tail(data[last]):
        last -= 1
    return last


@inlined
def put(text: Bytes, o: Int, point: Int) -> Int:
    """Write a code point as UTF-8 at text[o]; return the position behind it."""
    if point < 0x80:
        text[o] = point
        return o + 1
    if point < 0x800:
        text[o] = 0xC0 | (point >> 6)
        text[o + 1] = 0x80 | (point & 63)
        return o + 2
    if point < 0x10000:
        text[o] = 0xE0 | (point >> 12)
        text[o + 1] = 0x80 | ((point >> 6) & 63)
        text[o + 2] = 0x80 | (point & 63)
        return o + 3
    text[o] = 0xF0 | (point >> 18)
    text[o + 1] = 0x80 | ((point >> 12) & 63)
    text[o + 2] = 0x80 | ((point >> 6) & 63)
    text[o + 3] = 0x80 | (point & 63)
    return o + 4
