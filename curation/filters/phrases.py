"""Sets of short phrases searched for in lines, ASCII letters in either case."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import code_point
from curation.bytes.search import LOWER
from curation.compiled import Bytes, Int, Uint16s, borrowing
from curation.text import characters as ch

_SPACE = ch.SPACE
_BLANK = 0x20


class Phrases(NamedTuple):
    """Phrase k is `data[offsets[k]:offsets[k + 1]]`, in lower case, and sets the bits `bits[k]`."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    bits: npt.NDArray[np.int64]
    first: npt.NDArray[np.uint64]  # [256] a bit for each phrase that begins with the byte
    second: npt.NDArray[np.uint64]  # [256] bits of those whose second byte it may be


def _cases(b: int) -> list[int]:
    """An ASCII letter in both cases, any byte for a blank, another byte alone."""
    if b == _BLANK:
        return [*range(256)]
    return [b, b - 32] if 97 <= b <= 122 else [b]


def compile_phrases(phrases: Sequence[tuple[int, str]]) -> Phrases:
    """Pack (bits, phrase), at most 64."""
    raw = [(bits, phrase.lower().encode()) for bits, phrase in phrases]
    first = np.zeros(256, np.uint64)
    second = np.zeros(256, np.uint64)
    for number, (_, phrase) in enumerate(raw):
        bit = np.uint64(1) << np.uint64(number)
        first[_cases(phrase[0])] |= bit
        second[_cases(phrase[1]) if len(phrase) > 1 else slice(None)] |= bit
    return Phrases(
        np.frombuffer(b"".join(p for _, p in raw) + b"\0", np.uint8).copy(),
        np.cumsum([0, *(len(p) for _, p in raw)]).astype(np.int64),
        np.array([bits for bits, _ in raw], np.int64),
        first,
        second,
    )


@borrowing
def phrase_end(
    data: Bytes, start: Int, end: Int, pattern: Bytes, a: Int, b: Int, properties: Uint16s
) -> Int:
    """Byte after pattern[a:b] (lower case) at data[start:], not beyond `end`, or -1.

    A blank of the pattern stands for white space of any kind and length.
    """
    i = start
    for k in range(a, b):
        if i >= end:
            return -1
        if pattern[k] != _BLANK:
            if LOWER[data[i]] != pattern[k]:
                return -1
            i += 1
            continue
        first = i
        while i < end:
            c, size = code_point(data, i)
            if not properties[c] & _SPACE:
                break
            i += size
        if i == first:
            return -1
    return i


@borrowing
def find_phrases(
    data: Bytes, start: Int, end: Int, stop: Int, phrases: Phrases, properties: Uint16s
) -> tuple[Int, Int, Int]:
    """Bits of all phrases that occur in the line data[start:end], bits of those that begin in it
    and end behind it, before `stop`, and the byte after the last of these."""
    found = np.int64(0)
    beyond = np.int64(0)
    last = end
    for i in range(start, end):
        after = min(i + 1, stop - 1)  # behind the last byte of all is nothing
        here = phrases.first[data[np.uint64(i)]] & phrases.second[data[np.uint64(after)]]
        if not here:
            continue
        for k in range(len(phrases.bits)):
            if not here >> np.uint64(k) & np.uint64(1) or found & phrases.bits[k]:
                continue
            after = phrase_end(
                data, i, stop, phrases.data, phrases.offsets[k], phrases.offsets[k + 1], properties
            )
            if after > end:
                beyond |= phrases.bits[k]
                last = after
            elif after > 0:
                found |= phrases.bits[k]
    return found, beyond, last
