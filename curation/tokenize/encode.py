"""Encoding of texts: pieces, their parts between seams, and the memory of what those became.

Places between two characters that no token of a vocabulary reaches across.

No merge crosses such a seam, so the parts of a piece on either side of it have the ids that they
have alone. Chinese, Thai or Tamil words fall into parts of a few characters, which recur far more
often than the words do. Seams are looked for between characters of three bytes only: letters of
Latin, Cyrillic or Arabic have hardly any, because nearly every two of them are a token.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import code_point, is_tail
from curation.compiled import Bool, Bytes, Int, Int64s, Uint32s, Uint64s, borrowing, inlined
from curation.tokenize.bpe import WORK, merge_piece
from curation.tokenize.piece_cache import (
    CACHED_BYTES,
    find,
    home,
    is_long,
    key_hash,
    new_cache,
    piece_key,
    recall,
    remember,
)
from curation.tokenize.pretokenize import piece_end
from curation.tokenize.vocabulary import Tables, find_bytes

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


_WHOLE_BITS = 21
_WHOLE_SHIFT = np.uint64(64 - _WHOLE_BITS)
_PARTS = 64  # that are looked up at once


class Encoder(NamedTuple):
    """What the kernel needs of a vocabulary."""

    tables: Tables
    seams: Seams
    wholes: npt.NDArray[np.uint64]  # 2^21 bits by hash of a piece: where a token's hash falls


@borrowing
def _add_tokens(data: Bytes, offsets: Int64s, seams: Seams, wholes: Uint64s) -> None:
    for token in range(len(offsets) - 1):
        start, end = offsets[token], offsets[token + 1]
        add_token(data, start, end, seams)
        if end - start <= CACHED_BYTES:
            h = key_hash(piece_key(data, start, end - start, False))
            set_bit(wholes, h >> _WHOLE_SHIFT)


def encoder(tables: Tables) -> Encoder:
    """Return what `encode_texts` needs of a vocabulary."""
    made = Encoder(tables, no_seams(), np.zeros(1 << (_WHOLE_BITS - 6), np.uint64))
    _add_tokens(tables.blob, tables.offsets, made.seams, made.wholes)
    return made


class Memory(NamedTuple):
    """What one thread at a time writes while it encodes. What it holds changes no id."""

    cache: npt.NDArray[np.uint64]
    merging: npt.NDArray[np.int64]
    # Consecutive parts of a text:
    ends: npt.NDArray[np.int64]
    are_parts: npt.NDArray[np.bool_]  # of a piece with seams; else they are pieces
    keys: npt.NDArray[np.uint64]  # [parts, 4] unless too long to be remembered
    hashes: npt.NDArray[np.uint64]
    found: npt.NDArray[np.uint64]  # a word of what is at home


def new_memory() -> Memory:
    """Return memory that holds no pieces yet."""
    return Memory(
        new_cache(),
        np.empty(WORK, np.int64),
        np.empty(_PARTS, np.int64),
        np.empty(_PARTS, np.bool_),
        np.empty((_PARTS, 4), np.uint64),
        np.empty(_PARTS, np.uint64),
        np.empty(_PARTS, np.uint64),
    )


@borrowing
def _divide(
    data: Bytes,
    start: Int,
    stop: Int,
    end: Int,
    limit: Int,
    classes: Bytes,
    seams: Seams,
    memory: Memory,
) -> tuple[Int, Int, Int]:
    """Write the next parts of data[start:end], `stop` being the end of a piece begun before.

    Return their number, and where the last part and its piece end.
    """
    n = np.int64(0)
    while n < len(memory.ends):
        if start < stop:
            last = part_end(data, start, stop, seams)
            memory.are_parts[n] = True
        elif start < limit:
            stop = piece_end(data, start, end, classes)
            last = stop
            # Only words of characters of three bytes, a space or sign before them, have seams.
            if data[start] >= 0xE0 or (start + 1 < stop and data[start + 1] >= 0xE0):
                last = part_end(data, start, stop, seams)
            memory.are_parts[n] = last < stop
        else:
            break
        memory.ends[n] = last
        start = last
        n += 1
    return n, start, stop


@borrowing
def _look_up(data: Bytes, start: Int, n: Int, memory: Memory) -> None:
    """Read a word of each part's home, so that the processor waits for all of them at once."""
    for k in range(n):
        size = memory.ends[k] - start
        if size <= CACHED_BYTES:
            key = piece_key(data, start, size, memory.are_parts[k])
            h = key_hash(key)
            memory.keys[k, 0], memory.keys[k, 1], memory.keys[k, 2], memory.keys[k, 3] = key
            memory.hashes[k] = h
            memory.found[k] = memory.cache[home(memory.cache, h)]
        start = memory.ends[k]


@borrowing
def _encode_part(
    data: Bytes,
    start: Int,
    end: Int,
    is_token: Bool,
    tables: Tables,
    work: Int64s,
    out: Uint32s,
    at: Int,
) -> Int:
    """Write the ids of a piece that may be a token, or of a part; return how many."""
    if is_token:
        whole = find_bytes(data, start, end, tables.blob, tables.offsets, tables.slots)
        if whole >= 0:
            out[at] = whole
            return np.int64(1)
    return np.int64(merge_piece(data, start, end, tables, work, out, at))


@borrowing
def _encode_batch(
    data: Bytes, start: Int, m: Int, encoder: Encoder, memory: Memory, out: Uint32s, n: Int
) -> Int:
    """Write the ids of m parts to out[n:]; return n and their number."""
    cache, work = memory.cache, memory.merging
    for k in range(m):
        end, is_part = memory.ends[k], memory.are_parts[k]
        if end - start > CACHED_BYTES:
            n += _encode_part(data, start, end, not is_part, encoder.tables, work, out, n)
            start = end
            continue
        h = memory.hashes[k]
        key = (memory.keys[k, 0], memory.keys[k, 1], memory.keys[k, 2], memory.keys[k, 3])
        at = home(cache, h)
        ids = at + 2
        if cache[at] != key[0] or cache[at + 1] != key[1] or is_long(key[1]):
            ids = find(cache, at, key)
        if ids >= 0:
            n += recall(cache, ids, out, n)
        else:
            is_token = not is_part and has_bit(encoder.wholes, h >> _WHOLE_SHIFT)
            count = _encode_part(data, start, end, is_token, encoder.tables, work, out, n)
            remember(cache, at, key, out, n, count)
            n += count
        start = end
    return n


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

    `out` is uint32 with room for one id per byte and SPARE more. No piece begins at byte `limit` or
    later: return the number of ids and the byte where the last text stopped.
    """
    n = np.int64(0)
    out_offsets[0] = 0
    start = text_offsets[0]
    for i in range(len(text_offsets) - 1):
        start, end = text_offsets[i], text_offsets[i + 1]
        last, stop = min(end, limit), start
        while start < last or start < stop:
            m, reached, stop = _divide(data, start, stop, end, last, classes, encoder.seams, memory)
            _look_up(data, start, m, memory)
            n = _encode_batch(data, start, m, encoder, memory, out, n)
            start = reached
        out_offsets[i + 1] = n
    return n, start
