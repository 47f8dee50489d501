"""Compiled text normalization: UTF-8 bytes in, normalised UTF-8 bytes, tokens or exact keys out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import TextBuffers, Texts, text_buffers
from curation.bytes.code_points import code_point
from curation.compiled import Bool, Bytes, Int, Int64s, Uint64s, borrowing, inlined, kernel
from curation.dedup.characters import (
    DELETE,
    KIND,
    MARK,
    NUMBER,
    SEPARATOR,
    SINGLE,
    SPACE,
    WORD,
    character_table,
)
from curation.dedup.dedup_settings import TextNormalization
from curation.dedup.keys import SEEDS
from curation.hashing import xxh64

if TYPE_CHECKING:
    from curation.dedup.characters import CharacterTable

_BLANK = np.uint8(0x20)
_ZERO = np.uint8(0x30)


@borrowing
def _skip_digits(data: Bytes, i: Int, end: Int, kind: Bytes) -> Int:
    while i < end:
        point, size = code_point(data, i)
        if kind[point] & KIND != NUMBER:
            break
        i += size
    return i


@borrowing
def _skip_number(data: Bytes, i: Int, end: Int, kind: Bytes) -> Int:
    """End of the number that starts at the digit data[i]: digits[separator digits]."""
    i = _skip_digits(data, i, end, kind)
    if i < end:
        point, size = code_point(data, i)
        if kind[point] & SEPARATOR:
            after = _skip_digits(data, i + size, end, kind)
            if after > i + size:
                return after
    return i


@inlined
def _write(
    data: Bytes, i: Int, size: Int, entry: Int, table: CharacterTable, out: Bytes, o: Int
) -> Int:
    """Write a character of several bytes, or what replaces it, to out[o:]."""
    if entry == 0:
        for k in range(size):
            out[o + k] = data[i + k]
        return o + size
    for k in range(table.offsets[entry], table.offsets[entry + 1]):
        out[o] = table.data[k]
        o += 1
    return o


@inlined
def _write_ascii(
    data: Bytes, i: Int, end: Int, table: CharacterTable, out: Bytes, o: Int
) -> tuple[Int, Int]:
    """Write the ASCII sign at i and what follows of a word; return the places behind both."""
    while True:
        out[np.uint64(o)] = table.ascii[data[np.uint64(i)]]
        o += 1
        i += 1
        if i >= end or data[np.uint64(i)] >= 0x80 or table.kind[data[i]] & KIND != WORD:
            return i, o


@borrowing
def write_tokens(
    data: Bytes, start: Int, end: Int, table: CharacterTable, out: Bytes, starts: Int64s
) -> Int:
    """Write the tokens of data[start:end] to `out`, one space between two of them.

    `starts` takes the position of each token in `out` and, after the last, the end plus one, so
    that token k is out[starts[k]:starts[k + 1] - 1]. A token is a run of word characters with
    their marks, or one letter of a script without spaces, with its marks. Returns their number.
    """
    o = 0
    tokens = 0
    before = SPACE
    i = start
    while i < end:
        point, size = code_point(data, i)
        what = table.kind[point] & KIND
        if what in (SPACE, DELETE):
            before = SPACE if what == SPACE else before
            i += size
            continue
        opens = before == SPACE or what == SINGLE or (before == SINGLE and what != MARK)
        if opens:
            if tokens:
                out[o] = _BLANK
                o += 1
            starts[tokens] = o
            tokens += 1
            before = what
        if what == NUMBER:
            out[o] = _ZERO
            o += 1
            i = _skip_number(data, i, end, table.kind)
        elif size > 1:
            o = _write(data, i, size, table.entry[point], table, out, o)
            i += size
        else:  # most of most texts: the rest of a word in ASCII
            i, o = _write_ascii(data, i, end, table, out, o)
    starts[tokens] = o + 1
    return tokens


@borrowing
def write_normalized(
    data: Bytes, start: Int, end: Int, table: CharacterTable, collapse: Bool, out: Bytes
) -> Int:
    """Write data[start:end] normalised to `out`; return the number of bytes written.

    White space at both ends goes; inside, each run becomes one space where `collapse` is set and
    stays otherwise. Punctuation that the rules turn to space counts as white space.
    """
    o = 0
    last = 0  # end of what is not white space
    i = start
    while i < end:
        point, size = code_point(data, i)
        what = table.kind[point] & KIND
        if what == SPACE:
            if o > 0 and not (collapse and o > last):
                if collapse:
                    out[o] = _BLANK
                    o += 1
                else:
                    for k in range(size):
                        out[o + k] = data[i + k]
                    o += size
            i += size
        elif what == DELETE:
            i += size
        elif what == NUMBER:
            out[o] = _ZERO
            o += 1
            last = o
            i = _skip_number(data, i, end, table.kind)
        elif size > 1:
            o = _write(data, i, size, table.entry[point], table, out, o)
            last = o
            i += size
        else:
            i, o = _write_ascii(data, i, end, table, out, o)
            last = o
    return last


def scratch_bytes(buffers: TextBuffers, growth: int) -> int:
    """Bytes that the longest text may take once normalised."""
    longest = int(np.diff(buffers.offsets).max()) if len(buffers) else 0
    return longest * growth + 1


class ExactKeys(NamedTuple):
    keys: npt.NDArray[np.uint64]  # [documents, 2]
    lengths: npt.NDArray[np.int64]  # [documents], bytes of the normalised text; 0: nothing left


def exact_keys(texts: Texts, rules: TextNormalization) -> ExactKeys:
    """128-bit key of each text once normalised.

    Texts of which nothing is left have equal keys and length 0; whether they count as copies of
    one another is the caller's choice.
    """
    buffers = text_buffers(texts)
    table = character_table(rules)
    scratch = np.empty(scratch_bytes(buffers, table.growth), np.uint8)
    collapse = rules.whitespace == "collapse"
    found = _normalized_keys(buffers.data, buffers.offsets, table, collapse, SEEDS, scratch)
    return ExactKeys(*found)


@kernel
def _normalized_keys(
    data: Bytes,
    text_offsets: Int64s,
    table: CharacterTable,
    collapse: Bool,
    seeds: tuple[Int, Int],
    scratch: Bytes,
) -> tuple[Uint64s, Int64s]:
    documents = len(text_offsets) - 1
    keys = np.empty((documents, 2), np.uint64)
    lengths = np.empty(documents, np.int64)
    for d in range(documents):
        start, end = text_offsets[d], text_offsets[d + 1]
        size = write_normalized(data, start, end, table, collapse, scratch)
        lengths[d] = size
        keys[d, 0] = xxh64(scratch, 0, size, seeds[0])
        keys[d, 1] = xxh64(scratch, 0, size, seeds[1])
    return keys, lengths
