"""Texts as they are read: every white space a blank, and nothing that nobody sees.

Signs without a form (zero-width spaces, soft hyphens, marks of direction, selectors) and blanks of
another width change no word for a reader, so they change no measurement. Line breaks stay. So do
the zero-width joiners of Persian, Indic scripts and emoji, between the characters that they shape.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import regex

from curation.bytes.code_points import code_point, last_character
from curation.bytes.search import copy_bytes
from curation.compiled import Bool, Bools, Bytes, Int, Int64s, borrowing, kernel
from curation.kernels import kept
from curation.text import characters as ch

if TYPE_CHECKING:
    from curation.arrow import Texts

_SHAPED, _BLANK, _UNSEEN, _JOINER = 1, 2, 3, 4
#: What is read otherwise than it is written, and what a joiner may stand between.
_PATTERNS = {
    _SHAPED: r"[[\p{L}\p{M}\p{S}]&&[\u0590-\U0010ffff]]+",
    _BLANK: r"[[\p{White_Space}]--[\x00-\x7f\x85\u2028\u2029]]+",
    _UNSEEN: r"\p{Default_Ignorable_Code_Point}+",
    _JOINER: r"[\u200c\u200d]+",
}
_TAGS = slice(0xE0000, 0xE1000)


@functools.cache
@kept
def _readings() -> npt.NDArray[np.uint8]:
    """Return how each code point is read, 0 for as it is: uint8 [0x110000]."""
    table = np.zeros(ch.CODE_POINTS, np.uint8)
    for reading, pattern in _PATTERNS.items():
        for match in regex.compile(pattern, regex.V1).finditer(ch.every_character()):
            table[match.start() : match.end()] = reading
    table[_TAGS] = _UNSEEN
    table.flags.writeable = False
    return table


@functools.cache
def _leads() -> npt.NDArray[np.bool_]:
    """Return the first bytes of characters that are not read as they are: bool [256]."""
    table = np.zeros(256, np.bool_)
    table[[chr(c).encode()[0] for c in np.flatnonzero(_readings() > _SHAPED).tolist()]] = True
    table.flags.writeable = False
    return table


def plain(texts: Texts) -> Texts:
    """Return the texts as they are read: large_string [texts], or `texts` if nothing changes."""
    from curation.arrow import from_buffers, text_buffers

    offsets, data = text_buffers(texts)
    if not _is_odd(data, offsets[0], offsets[-1], _leads(), _readings()):
        return texts
    out, new_offsets = np.empty(offsets[-1] - offsets[0], np.uint8), np.zeros_like(offsets)
    _write(data, offsets, _leads(), _readings(), out, new_offsets)
    return from_buffers(new_offsets, out[: new_offsets[-1]])


def in_original(
    texts: Texts, rows: npt.NDArray[np.int64], spans: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return where spans of the plain texts lie in the texts as they are: int64 [spans, 2].

    Span k is of bytes of text `rows[k]`; the result is of bytes in the buffer of all. Spans ascend
    and don't overlap. Signs that nobody sees lie behind a place, not before it.
    """
    from curation.arrow import text_buffers

    offsets, data = text_buffers(texts)
    found = np.zeros(spans.shape, np.int64)
    _find(data, offsets, _readings(), rows, spans, found)
    return found


@kernel
def _is_odd(data: Bytes, begin: Int, end: Int, leads: Bools, readings: Bytes) -> Bool:
    for i in range(np.uint64(begin), np.uint64(end)):
        if leads[data[i]] and readings[code_point(data, np.int64(i))[0]] > _SHAPED:
            return True
    return False


@borrowing
def _read(data: Bytes, i: Int, end: Int, before: Int, readings: Bytes) -> tuple[Int, Int]:
    """(bytes, reading) of the character at i; `before` is the reading of what is seen before it."""
    c, size = code_point(data, i)
    reading = readings[c]
    if reading == _JOINER:
        shapes = before == _SHAPED and i + size < end
        shapes = shapes and readings[code_point(data, i + size)[0]] == _SHAPED
        reading = _SHAPED if shapes else _UNSEEN
    return size, reading


@kernel
def _write(
    data: Bytes, offsets: Int64s, leads: Bools, readings: Bytes, out: Bytes, new_offsets: Int64s
) -> None:
    n = 0
    for d in range(len(offsets) - 1):
        begin, end = offsets[d], offsets[d + 1]
        i = copied = begin
        hidden, before = -1, 0  # where signs that nobody sees end, what is seen before them
        while i < end:
            size = code_point(data, i)[1] if leads[data[np.uint64(i)]] else 1
            if size == 1 or readings[code_point(data, i)[0]] <= _SHAPED:
                i += size
                continue
            if i != hidden:
                last = last_character(data, begin, i)
                before = readings[code_point(data, last)[0]] if i > begin else 0
            size, reading = _read(data, i, end, before, readings)
            if reading > _SHAPED:
                n = copy_bytes(data, copied, i, out, n)
                copied = i + size
            if reading == _BLANK:
                out[n] = 0x20
                n += 1
            elif reading == _UNSEEN:
                hidden = copied
            i += size
        n = copy_bytes(data, copied, end, out, n)
        new_offsets[d + 1] = n


@kernel
def _find(
    data: Bytes, offsets: Int64s, readings: Bytes, rows: Int64s, spans: Int64s, found: Int64s
) -> None:
    n = before = i = 0
    for k in range(len(rows)):
        if k == 0 or rows[k] != rows[k - 1]:
            n = before = 0
            i = offsets[rows[k]]
        for side in range(2):
            while n < spans[k, side]:
                size, reading = _read(data, i, offsets[rows[k] + 1], before, readings)
                n += 1 if reading == _BLANK else 0 if reading == _UNSEEN else size
                before = before if reading == _UNSEEN else reading
                i += size
            found[k, side] = i
