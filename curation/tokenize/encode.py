"""Encoding of texts: pieces, their parts between seams, and the memory of what those became.

A seam is a place between two characters that no token of a vocabulary reaches across. No merge
crosses it, so the parts of a piece on either side of it have the ids that they have alone. Chinese,
Thai or Tamil words fall into parts of a few characters, which recur far more often than the words
do. Seams are looked for between characters of three bytes only: letters of Latin, Cyrillic or
Arabic have hardly any, because nearly every two of them are a token.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import code_point, is_tail
from curation.bytes.hash_tables import has_bit
from curation.bytes.search import eight_at
from curation.compiled import Bool, Bytes, Int, Int64s, Uint32s, Uint64s, borrowing, inlined
from curation.tokenize.bpe import WORK, merge_piece
from curation.tokenize.pretokenize import piece_end
from curation.tokenize.vocabulary import Tables, find_bytes

_PIECES = 1 << 17  # that are remembered
_LONGEST = 31  # bytes of these
#: Ids that one of these may have; so many may be written beyond those of the last piece.
SPARE = 7
_IDS = 8
# Bits of a word's bytes that belong to a piece with k - 24 bytes from there on.
_MASKS = np.array([(1 << 8 * min(max(k - 24, 0), 8)) - 1 for k in range(56)], np.uint64)
_A, _B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_C, _D = np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)
_PAIR_BITS = 17
_SHIFT = np.uint64(64 - _PAIR_BITS)


class Seams(NamedTuple):
    """Bits of what a token reaches across; where neither has a bit there is a seam."""

    pairs: npt.NDArray[np.uint64]  # 2^17 bits by hash of two whole characters
    edges: npt.NDArray[np.uint64]  # 2^16 bits, where a token begins or ends within a character: by
    # six bits of the byte before, four of the first byte after and six of the next


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


@borrowing
def _add_tokens(blob: Bytes, offsets: Int64s, seams: Seams) -> None:
    """Set the bits of what the tokens reach across."""
    for token in range(len(offsets) - 1):
        start, end = offsets[token], offsets[token + 1]
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


class Encoder(NamedTuple):
    """What the kernel needs of a vocabulary."""

    tables: Tables
    seams: Seams


def encoder(tables: Tables) -> Encoder:
    """Return what `encode_texts` needs of a vocabulary."""
    seams = Seams(*(np.zeros(1 << (bits - 6), np.uint64) for bits in (_PAIR_BITS, 16)))
    _add_tokens(tables.blob, tables.offsets, seams)
    return Encoder(tables, seams)


class Memory(NamedTuple):
    """What one thread at a time writes while it encodes. What it holds changes no id."""

    pieces: npt.NDArray[np.uint64]  # [pieces, 8] bytes and their number; zeros where none is
    ids: npt.NDArray[np.uint32]  # the same memory: from _IDS on, SPARE ids and their number
    merging: npt.NDArray[np.int64]


def new_memory(pieces: int = _PIECES) -> Memory:
    """Return memory for so many pieces, a power of two, that holds none yet."""
    room = np.zeros(8 * pieces + 8, np.uint64)
    first = -room.ctypes.data % 64 // room.itemsize  # so that a piece is in one line of the cache
    held = room[first : first + 8 * pieces].reshape(-1, 8)
    return Memory(held, held.view(np.uint32), np.empty(WORK, np.int64))


@inlined
def _last_word(data: Bytes, start: Int, size: Int) -> Int:
    word = np.uint64(0)
    for k in range(min(size, 8)):
        word |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return word


@inlined
def _key(data: Bytes, start: Int, size: Int, is_part: Bool) -> tuple[Int, Int, Int, Int]:
    """Return up to _LONGEST bytes and their number in four words, others for a part of a piece."""
    note = np.uint64(size) << np.uint64(56) | np.uint64(is_part) << np.uint64(63)
    if start + 32 > len(data):
        first, second = _last_word(data, start, size), _last_word(data, start + 8, size - 8)
        third = _last_word(data, start + 16, size - 16)
        return first, second, third, _last_word(data, start + 24, size - 24) | note
    first = eight_at(data, start) & _MASKS[np.uint64(size + 24)]
    second = eight_at(data, start + 8) & _MASKS[np.uint64(size + 16)]
    if size <= 16:
        return first, second, np.uint64(0), note
    third = eight_at(data, start + 16) & _MASKS[np.uint64(size + 8)]
    return first, second, third, eight_at(data, start + 24) & _MASKS[np.uint64(size)] | note


@borrowing
def _encode_new(
    data: Bytes,
    start: Int,
    end: Int,
    is_part: Bool,
    tables: Tables,
    work: Int64s,
    out: Uint32s,
    n: Int,
) -> Int:
    """Write the ids of a piece that is not remembered, a token or its bytes merged."""
    whole = np.int64(-1)
    if not is_part:
        whole = find_bytes(data, start, end, tables.blob, tables.offsets, tables.slots)
    if whole < 0:
        return np.int64(merge_piece(data, start, end, tables, work, out, n))
    out[n] = whole
    return np.int64(1)


@borrowing
def _encode_piece(
    data: Bytes,
    start: Int,
    end: Int,
    is_part: Bool,
    tables: Tables,
    memory: Memory,
    out: Uint32s,
    n: Int,
) -> Int:
    """Write the ids of a piece, or of a part between seams, to out[n:]; return how many."""
    if end - start > _LONGEST:
        return _encode_new(data, start, end, is_part, tables, memory.merging, out, n)
    pieces, ids = memory.pieces, memory.ids
    a, b, c, d = _key(data, start, end - start, is_part)
    h = (a ^ a >> np.uint64(32)) * _A + (b ^ b >> np.uint64(32)) * _B
    h += (c ^ c >> np.uint64(32)) * _C + (d ^ d >> np.uint64(32)) * _D
    home = h >> np.uint64(40) & np.uint64(len(pieces) - 1)
    other = home ^ np.uint64(1)
    at = home if pieces[home, 3] == d and pieces[home, 0] == a else other
    if pieces[at, 3] == d and pieces[at, 0] == a and pieces[at, 1] == b and pieces[at, 2] == c:
        for k in range(np.uint64(SPARE)):
            out[np.uint64(n) + k] = ids[at, np.uint64(_IDS) + k]
        return np.int64(ids[at, _IDS + SPARE])
    count = _encode_new(data, start, end, is_part, tables, memory.merging, out, n)
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
    encoder: Encoder,
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
            first = start
            while start < stop:
                last = stop
                # Only words of characters of three bytes, a space or sign before them, have seams.
                if data[start] >= 0xE0 or (start + 1 < stop and data[start + 1] >= 0xE0):
                    last = part_end(data, start, stop, encoder.seams)
                is_part = first < start or last < stop
                n += _encode_piece(data, start, last, is_part, encoder.tables, memory, out, n)
                start = last
        out_offsets[i + 1] = n
    return n, start
