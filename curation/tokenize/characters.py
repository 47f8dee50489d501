"""Characters that byte-pair encoding completes before it does anything else with their bytes.

Merging a run of Chinese or Thai byte by byte spends most of its time on putting characters
together. A character may start as one symbol where that changes nothing, which the ranks decide.
Let R be the highest rank on the way from its bytes to its token. Starting with it is exact if

- every longer token that contains the character has a rank above R,
- every token that ends within the character, after at least one byte of its left neighbour, has a
  rank above R, and so has every token that begins within it and reaches into its right neighbour.

Then all merges inside the character come before any merge that touches it. The second condition
depends on the byte before the character and on the byte after it only.
"""

from __future__ import annotations

import numpy as np

from curation.bytes.code_points import is_tail, sound_point
from curation.compiled import Bool, Bytes, Int, Int32s, Int64s, Uint64s, borrowing, inlined, kernel

_NEVER = np.int32(0x7FFFFFFF)  # rank of a token that doesn't exist
_PLANE = 1 << 16  # characters of four bytes are left to merging


@inlined
def _wide_character(data: Bytes, i: Int, end: Int) -> tuple[Int, Int]:
    """Return code point and bytes of a character of two or three bytes at i; (0, 0) of others."""
    point, size = sound_point(data, i, end)
    return (point, size) if 1 < size < 4 else (np.int64(0), np.int64(0))


@inlined
def _lower(table: Int32s, row: Int, column: Int, rank: Int) -> None:
    if rank < table[row, column]:
        table[row, column] = rank


@borrowing
def _prefix(first: Int, second: Int, size: Int) -> Int:
    """Row of the first one or two bytes of a character."""
    if size == 1:
        return np.int64(first)
    return np.int64(256) + (np.int64(first & 0x0F) << 6 | np.int64(second & 0x3F))


@borrowing
def _suffix(first: Int, second: Int, size: Int) -> Int:
    """Row of the last one or two bytes of a character."""
    if size == 1:
        return np.int64(first & 0x3F)
    return np.int64(64) + (np.int64(first & 0x3F) << 6 | np.int64(second & 0x3F))


@kernel
def _lowest_ranks(blob: Bytes, offsets: Int64s) -> tuple[Int32s, Int32s, Int32s]:
    """Lowest rank of tokens that contain a character, that end within one, that begin within one.

    int32 [65536] by code point; [prefix, byte before it]; [suffix, byte after it].
    """
    contain = np.full(_PLANE, _NEVER, np.int32)
    ending = np.full((256 + 1024, 256), _NEVER, np.int32)
    beginning = np.full((64 + 4096, 256), _NEVER, np.int32)
    for rank in range(len(offsets) - 1):
        start, end = offsets[rank], offsets[rank + 1]
        i = start
        while i < end and is_tail(blob[i]):
            i += 1
        if 0 < i - start <= 2 and i < end:
            _lower(beginning, _suffix(blob[start], blob[start + 1], i - start), blob[i], rank)
        last = end - 1
        while last > start and is_tail(blob[last]):
            last -= 1
        cut = end - last
        if last > start and blob[last] >= 0xC2 and blob[last] < 0xF0:
            if cut < (2 if blob[last] < 0xE0 else 3):
                _lower(ending, _prefix(blob[last], blob[end - 1], cut), blob[last - 1], rank)
        while i < end:
            code, size = _wide_character(blob, i, end)
            if 0 < size < end - start and rank < contain[code]:
                contain[code] = rank
            i += max(size, 1)
    return contain, ending, beginning


@kernel
def whole_characters(blob: Bytes, offsets: Int64s) -> tuple[Int64s, Uint64s]:
    """Return which characters may start as one symbol, and between which bytes they may not.

    Tokens lie end to end in `blob`, by rank. The first array has, by code point, row << 32 | token,
    or -1 (int64 [65536]); the second, by row, 256 bits of the bytes that must not come before the
    character, then 256 bits of those that must not come after it (uint64 [rows, 8]).
    """
    contain, ending, beginning = _lowest_ranks(blob, offsets)
    rank_of_two = np.full(_PLANE, _NEVER, np.int32)
    for rank in range(len(offsets) - 1):
        start = offsets[rank]
        if offsets[rank + 1] - start == 2:
            rank_of_two[np.int64(blob[start]) << 8 | np.int64(blob[start + 1])] = rank
    characters = np.full(_PLANE, -1, np.int64)
    unsafe = np.zeros((len(offsets), 8), np.uint64)
    rows = 0
    for rank in range(len(offsets) - 1):
        start, end = offsets[rank], offsets[rank + 1]
        code, size = _wide_character(blob, start, end)
        if size == 0 or size != end - start:
            continue
        highest = np.int64(rank)  # on the way from its bytes to its token
        if size == 3:
            first = rank_of_two[np.int64(blob[start]) << 8 | np.int64(blob[start + 1])]
            second = rank_of_two[np.int64(blob[start + 1]) << 8 | np.int64(blob[start + 2])]
            highest = max(highest, np.int64(min(first, second)))
        if highest == _NEVER or contain[code] < highest:
            continue
        characters[code] = np.int64(rows) << 32 | np.int64(rank)
        for cut in range(1, size):
            before = ending[_prefix(blob[start], blob[start + 1], cut)]
            after = beginning[_suffix(blob[end - cut], blob[end - 1], cut)]
            for byte in range(256):
                bit = np.uint64(1) << np.uint64(byte & 63)
                if before[byte] < highest:
                    unsafe[rows, byte >> 6] |= bit
                if after[byte] < highest:
                    unsafe[rows, 4 + (byte >> 6)] |= bit
        rows += 1
    return characters, unsafe[:rows].copy()


@inlined
def _has(unsafe: Uint64s, row: Int, side: Int, byte: Int) -> Bool:
    word = unsafe[row, side + (np.int64(byte) >> 6)]
    return word >> np.uint64(byte & 63) & np.uint64(1) != np.uint64(0)


@borrowing
def whole_at(
    data: Bytes, start: Int, i: Int, end: Int, characters: Int64s, unsafe: Uint64s
) -> tuple[Int, Int]:
    """Token and bytes of the character at i of the piece data[start:end], or (-1, 0).

    Not negative only where starting with the token leads to the same ids as starting with bytes.
    """
    code, size = _wide_character(data, i, end)
    if size == 0 or characters[code] < 0:
        return np.int64(-1), np.int64(0)
    row = characters[code] >> 32
    if i > start and _has(unsafe, row, 0, data[i - 1]):
        return np.int64(-1), np.int64(0)
    after = np.int64(i + size)
    if after < end and (is_tail(data[after]) or _has(unsafe, row, 4, data[after])):
        return np.int64(-1), np.int64(0)
    return characters[code] & np.int64(0xFFFFFFFF), size
