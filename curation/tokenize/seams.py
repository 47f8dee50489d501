"""Places between two characters that no token of a vocabulary reaches across.

No merge crosses such a seam, so the parts of a piece on either side of it have the ids that they
have alone. Chinese, Thai or Tamil words fall into parts of a few characters, which recur far more
often than the words do. Seams are looked for between characters of three bytes only: letters of
Latin, Cyrillic or Arabic have hardly any, because nearly every two of them are a token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import code_point, is_tail
from curation.compiled import Bool, Bytes, Int, Uint64s, borrowing, inlined

_PAIR_BITS = 17
_SHIFT = np.uint64(64 - _PAIR_BITS)


class Seams(NamedTuple):
    """Bits of what a token reaches across; where neither has a bit there is a seam."""

    pairs: npt.NDArray[np.uint64]  # 2^17 bits by hash of two whole characters
    edges: npt.NDArray[np.uint64]  # 2^16 bits, where a token begins or ends within a character: by
    # six bits of the byte before, four of the first byte after and six of the next


@inlined
def has_bit(bits: Uint64s, k: Int) -> Bool:
    """Return whether a bit, by its number, is set."""
    return bits[k >> np.uint64(6)] >> (k & np.uint64(63)) & np.uint64(1) != np.uint64(0)


@inlined
def set_bit(bits: Uint64s, k: Int) -> None:
    """Set a bit by its number."""
    bits[k >> np.uint64(6)] |= np.uint64(1) << (k & np.uint64(63))


@inlined
def _wide(data: Bytes, i: Int, end: Int) -> Bool:
    """Return whether a character of three bytes is at i, valid or not."""
    return i + 3 <= end and data[i] >> 4 == 0xE and is_tail(data[i + 1]) and is_tail(data[i + 2])


@inlined
def _pair(before: Int, after: Int) -> Int:
    both = np.uint64(before) << np.uint64(16) | np.uint64(after)
    return both * np.uint64(0x9E3779B97F4A7C15) >> _SHIFT


def no_seams() -> Seams:
    """Return bits for `add_token` to set."""
    return Seams(*(np.zeros(1 << (bits - 6), np.uint64) for bits in (_PAIR_BITS, 16)))


@borrowing
def add_token(blob: Bytes, start: Int, end: Int, seams: Seams) -> None:
    """Set the bits of what the token blob[start:end] reaches across."""
    for i in range(start + 1, end):
        if blob[i] >> 4 != 0xE or not is_tail(blob[i - 1]):
            continue
        if i - 3 >= start and _wide(blob, i - 3, i) and _wide(blob, i, end):
            set_bit(seams.pairs, _pair(code_point(blob, i - 3)[0], code_point(blob, i)[0]))
            continue
        # The token has one of the characters in part, and may have it in others' place.
        edge = np.uint64(blob[i - 1] & 0x3F) << np.uint64(10)
        edge |= np.uint64(blob[i] & 0x0F) << np.uint64(6)
        if i + 1 < end:
            set_bit(seams.edges, edge | np.uint64(blob[i + 1] & 0x3F))
        else:
            seams.edges[edge >> np.uint64(6)] = ~np.uint64(0)


@borrowing
def part_end(data: Bytes, start: Int, end: Int, seams: Seams) -> Int:
    """Return the first seam of the piece data[start:end], or its end."""
    i = start
    while i < end:
        if not _wide(data, i, end):
            i += 1
            continue
        before = code_point(data, i)[0]
        i += 3
        while _wide(data, i, end):
            code = code_point(data, i)[0]
            edge = np.uint64((before & 0x3F) << 10 | code >> 6)
            if not (has_bit(seams.pairs, _pair(before, code)) or has_bit(seams.edges, edge)):
                return i
            before = code
            i += 3
    return end
