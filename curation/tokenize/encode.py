"""Encoding of texts: pieces, and a memory of what they became, so that a word is merged once."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.search import eight_at
from curation.compiled import Bytes, Int, Int64s, Uint32s, borrowing, inlined
from curation.tokenize.bpe import WORK, merge_piece
from curation.tokenize.pretokenize import piece_end
from curation.tokenize.vocabulary import Tables, find_bytes

_PIECES = 1 << 16  # that are remembered
_LONGEST = 31  # bytes of these
#: Ids that one of these may have; so many may be written beyond those of the last piece.
SPARE = 7
_IDS = 8
# Bits of a word's bytes that belong to a piece with k - 24 bytes from there on.
_MASKS = np.array([(1 << 8 * min(max(k - 24, 0), 8)) - 1 for k in range(56)], np.uint64)
_A, _B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_C, _D = np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)


class Memory(NamedTuple):
    """What one thread at a time writes while it encodes. What it holds changes no id."""

    pieces: npt.NDArray[np.uint64]  # [pieces, 8] bytes and their number; zeros where none is
    ids: npt.NDArray[np.uint32]  # the same memory: from _IDS on, SPARE ids and their number
    merging: npt.NDArray[np.int64]


def new_memory(pieces: int = _PIECES) -> Memory:
    """Return memory for so many pieces, a power of two, that holds none yet."""
    held = np.zeros((pieces, 8), np.uint64)
    return Memory(held, held.view(np.uint32), np.empty(WORK, np.int64))


@inlined
def _last_word(data: Bytes, start: Int, size: Int) -> Int:
    word = np.uint64(0)
    for k in range(min(size, 8)):
        word |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return word


@inlined
def _key(data: Bytes, start: Int, size: Int) -> tuple[Int, Int, Int, Int]:
    """Return up to _LONGEST bytes and their number, in four words."""
    note = np.uint64(size) << np.uint64(56)
    zero = np.uint64(0)
    if start + 32 > len(data):
        first, second = _last_word(data, start, size), _last_word(data, start + 8, size - 8)
        third, last = (
            _last_word(data, start + 16, size - 16),
            _last_word(data, start + 24, size - 24),
        )
        return first, second, third, last | note
    first = eight_at(data, start) & _MASKS[np.uint64(size + 24)]
    second = eight_at(data, start + 8) & _MASKS[np.uint64(size + 16)]
    if size <= 16:
        return first, second, zero, note
    third = eight_at(data, start + 16) & _MASKS[np.uint64(size + 8)]
    return first, second, third, eight_at(data, start + 24) & _MASKS[np.uint64(size)] | note


@borrowing
def _encode_new(
    data: Bytes, start: Int, end: Int, tables: Tables, memory: Memory, out: Uint32s, n: Int
) -> Int:
    """Write the ids of a piece that is not remembered, a token or its bytes merged."""
    whole = find_bytes(data, start, end, tables.blob, tables.offsets, tables.slots)
    if whole < 0:
        return np.int64(merge_piece(data, start, end, tables, memory.merging, out, n))
    out[n] = whole
    return np.int64(1)


@borrowing
def _encode_piece(
    data: Bytes, start: Int, end: Int, tables: Tables, memory: Memory, out: Uint32s, n: Int
) -> Int:
    """Write the ids of a piece to out[n:]; return how many."""
    if end - start > _LONGEST:
        return _encode_new(data, start, end, tables, memory, out, n)
    pieces, ids = memory.pieces, memory.ids
    a, b, c, d = _key(data, start, end - start)
    h = (a ^ a >> np.uint64(32)) * _A + (b ^ b >> np.uint64(32)) * _B
    h += (c ^ c >> np.uint64(32)) * _C + (d ^ d >> np.uint64(32)) * _D
    home = h >> np.uint64(40) & np.uint64(len(pieces) - 1)
    other = home ^ np.uint64(1)
    for at in (home, other):
        if pieces[at, 3] == d and pieces[at, 0] == a and pieces[at, 1] == b and pieces[at, 2] == c:
            for k in range(SPARE):
                out[n + k] = ids[at, _IDS + k]
            return np.int64(ids[at, _IDS + SPARE])
    count = _encode_new(data, start, end, tables, memory, out, n)
    if count <= SPARE:  # a new piece goes home; what was there goes to the other place
        for k in range(8):
            pieces[other, k] = pieces[home, k]
        pieces[home, 0], pieces[home, 1], pieces[home, 2], pieces[home, 3] = a, b, c, d
        for k in range(SPARE):
            ids[home, _IDS + k] = out[n + k]
        ids[home, _IDS + SPARE] = count
    return count


@borrowing
def encode_texts(
    data: Bytes,
    text_offsets: Int64s,
    limit: Int,
    classes: Bytes,
    tables: Tables,
    memory: Memory,
    out: Uint32s,
    out_offsets: Int64s,
) -> tuple[Int, Int]:
    """Write ids of texts to out, bounds to out_offsets [n + 1].

    `out` is uint32 with room for one id per byte and SPARE + 1 more. No piece begins at byte
    `limit` or later: return the number of ids and the byte where the last text stopped.
    """
    n = np.int64(0)
    out_offsets[0] = 0
    start = text_offsets[0]
    for i in range(len(text_offsets) - 1):
        start, end = text_offsets[i], text_offsets[i + 1]
        while start < min(end, limit):
            stop = piece_end(data, start, end, classes)
            n += _encode_piece(data, start, stop, tables, memory, out, n)
            start = stop
        out_offsets[i + 1] = n
    return n, start
