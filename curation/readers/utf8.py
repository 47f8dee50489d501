"""Check whether bytes are valid UTF-8, in one compiled pass without decoding them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import Bool, Bytes, Int, Uint64s, borrowing

_ONES, _HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_ESCAPES = np.uint64(0x1B) * _ONES


class Survey(NamedTuple):
    """Properties of some bytes."""

    ascii: bool
    sound: bool  # UTF-8 throughout
    nul: bool
    escape: bool  # ESC, with which ISO-2022 encodings shift


@borrowing
def _signs(words: Uint64s) -> tuple[Int, Int, Int]:
    """High bits of all words, and a bit for each zero byte and each ESC (others may get one)."""
    high = np.uint64(0)
    nul = np.uint64(0)
    escape = np.uint64(0)
    for k in range(len(words)):
        word = words[k]
        high |= word
        nul |= (word - _ONES) & ~word
        other = word ^ _ESCAPES
        escape |= (other - _ONES) & ~other
    return high & _HIGH, nul & _HIGH, escape & _HIGH


@borrowing
def _sound(source: Bytes, words: Uint64s) -> Bool:
    """Whether bytes, of which `words` are the first eights, are UTF-8 (Unicode 3.9, table 3-7)."""
    n = len(source)
    i = 0
    while i < n:
        if i & 7 == 0:
            k = i >> 3
            while k < len(words) and words[k] & _HIGH == 0:
                k += 1
            i = k << 3
            if i >= n:
                break
        c = source[i]
        if c < 0x80:
            i += 1
            continue
        if c < 0xC2 or c > 0xF4:
            return False
        size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
        if i + size > n:
            return False
        low = np.uint8(0x80)
        high = np.uint8(0xBF)
        if c == 0xE0:
            low = np.uint8(0xA0)
        elif c == 0xED:
            high = np.uint8(0x9F)
        elif c == 0xF0:
            low = np.uint8(0x90)
        elif c == 0xF4:
            high = np.uint8(0x8F)
        if source[i + 1] < low or source[i + 1] > high:
            return False
        for k in range(i + 2, i + size):
            if source[k] & 0xC0 != 0x80:
                return False
        i += size
    return True


def survey(content: bytes) -> Survey:
    """Return the properties of `content`."""
    source: npt.NDArray[np.uint8] = np.frombuffer(content, np.uint8)
    words = np.frombuffer(content, np.uint64, len(content) // 8)
    rest = content[len(words) * 8 :]
    high, nul, escape = _signs(words)
    is_ascii = not high and rest.isascii()
    return Survey(
        is_ascii,
        is_ascii or bool(_sound(source, words)),
        bool(nul and b"\0" in content) or b"\0" in rest,
        bool(escape and b"\x1b" in content) or b"\x1b" in rest,
    )
