"""How kept blocks follow each other: as lines, or as cells of a row with ` | ` between them.

Text that is in normal form and has no double-encoded letters, as a look at each character tells.

Most text is, and is spared `mojibake.repaired` and `clean.normal`.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from curation.bytes import ascii as ch
from curation.bytes.code_points import code_point
from curation.compiled import Bool, Bools, Bytes, Float64s, Int32s, Int64s, borrowing, kernel
from curation.extract import blocks as s
from curation.extract.tables import Tables
from curation.text.mojibake import FIRST_LETTERS

_LINK = 0.9  # of the characters of a block that is a link
_TABLE = 0x3000
_UNSETTLED = regex.compile(r"[\x80-\x9f\p{NFC_QC=No}\p{NFC_QC=Maybe}\P{ccc=0}]")
# Beyond the table: Han without its compatibility forms, kana, Hangul syllables, full-width forms.
_SETTLED = ((0x3001, 0x3029), (0x3041, 0x3096), (0x309D, 0x30FF), (0x3400, 0x9FFF),
            (0xAC00, 0xD7A3), (0xFF01, 0xFFEE))  # fmt: skip


def _unnormalized() -> npt.NDArray[np.bool_]:
    """Which code points have another normal form, take part in one, or begin a double encoding."""
    table = np.zeros(_TABLE, np.bool_)
    signs = "".join(map(chr, range(_TABLE)))
    table[[sign.start() for sign in _UNSETTLED.finditer(signs)]] = True
    table[[ord(letter) for letter in FIRST_LETTERS]] = True
    return table


_UNNORMALIZED = _unnormalized()
_STARTS = np.array([first for first, _ in _SETTLED])
_ENDS = np.array([last for _, last in _SETTLED])


@borrowing
def is_normalized(data: Bytes) -> Bool:
    """Whether UTF-8 (uint8 array) surely comes back from `repaired` and `normal` as it is."""
    i = 0
    while i < len(data):
        if data[i] < 0x80:
            i += 1
            continue
        point, size = code_point(data, i)
        i += size
        if point < _TABLE:
            if _UNNORMALIZED[point]:
                return False
            continue
        known = False
        for k in range(len(_STARTS)):
            known = known or _STARTS[k] <= point <= _ENDS[k]
        if not known:
            return False
    return True


class Layout(NamedTuple):
    """The kept blocks of a page, k of them, and their text where it is nothing but text."""

    chosen: npt.NDArray[np.int64]  # [k] which they are
    beside: npt.NDArray[np.bool_]  # [k] another cell of the same row as the one before
    empty: npt.NDArray[np.int32]  # [k] cells without text before it, in tables of data
    cells: npt.NDArray[np.bool_]  # [k] in a cell of a table of data, so that it is one line
    plain: bool  # there is neither code nor formulas
    text: npt.NDArray[np.uint8]  # of all, as UTF-8; empty unless `plain`
    normalized: Bool  # it surely needs neither `mojibake.repaired` nor `clean.normal`
    score: float  # mean over its characters: that of their block as main content; 0 without any
    link_share: float  # of its characters, that in blocks which are links from end to end


def laid_out(page: s.Page, tables: Tables, kept: Bools, scores: Float64s) -> Layout:
    """The Layout of the kept blocks [n] of a page, by the scores [n] of its blocks."""
    # Plain tuples are handed over in a fifth of the time that named ones take.
    layout: Layout = _laid_out(tuple(page), tuple(tables), kept, scores)
    return layout


@kernel
def _laid_out(
    page_columns: tuple[Any, ...], table_columns: tuple[Any, ...], kept: Bools, scores: Float64s
) -> Layout:
    page, tables = s.Page(*page_columns), Tables(*table_columns)
    chosen = np.flatnonzero(kept)
    beside, empty, cells = _joints(chosen, page, tables)
    plain = normalized = True
    total = linked = sure = 0.0
    for b in chosen:
        plain = plain and page.b_flags[b] & s.PRE == 0 and page.b_atoms[b] == 0
        normalized = normalized and is_normalized(page.text[page.b_start[b] : page.b_end[b]])
        characters = np.float64(page.b_chars[b])
        total += characters
        linked += characters if page.b_link_chars[b] >= max(_LINK * characters, 1.0) else 0.0
        sure += characters * scores[b]
    total = total or 1.0
    out = np.empty(0, np.uint8)
    if plain:
        out = _joined(chosen, beside, empty, cells, page)
    score, share = sure / total, linked / total
    return Layout(chosen, beside, empty, cells, plain, out, normalized, score, share)


@kernel
def _joints(chosen: Int64s, page: s.Page, tables: Tables) -> tuple[Bools, Int32s, Bools]:
    row, cell, short = tables.row, tables.cell, tables.short
    beside = np.zeros(len(chosen), np.bool_)
    empty = np.zeros(len(chosen), np.int32)
    cells = np.zeros(len(chosen), np.bool_)
    last = -1  # element of the block before, if that may be a cell
    for i in range(len(chosen)):
        b = chosen[i]
        e = page.b_element[b]
        same = short[b] and row[e] >= 0 and last >= 0 and row[last] == row[e]
        beside[i] = same and cell[last] != cell[e]
        # Not before listings, for their line numbers.
        if tables.data[b] >= 0 and not page.b_flags[b] & s.PRE:
            cells[i] = short[b] and cell[e] >= 0
            empty[i] = max(tables.column[e] - (tables.column[last] + 1 if same else 0), 0)
        # Longer cells are lines of their own.
        last = e if short[b] else -1
    return beside, empty, cells


@kernel
def _joined(chosen: Int64s, beside: Bools, empty: Int32s, cells: Bools, page: s.Page) -> Bytes:
    size = 0
    for i in range(len(chosen)):
        size += 3 + 2 * empty[i] + page.b_end[chosen[i]] - page.b_start[chosen[i]]
    out = np.empty(size, np.uint8)
    o = 0
    for i in range(len(chosen)):
        if beside[i]:
            out[o] = ch.SPACE
            out[o + 1] = ch.BAR
            out[o + 2] = ch.SPACE
            o += 3
        elif i > 0:
            out[o] = ch.LF
            o += 1
        for _ in range(empty[i]):
            out[o] = ch.BAR
            out[o + 1] = ch.SPACE
            o += 2
        for k in range(page.b_start[chosen[i]], page.b_end[chosen[i]]):
            out[o] = ch.SPACE if cells[i] and page.text[k] == ch.LF else page.text[k]
            o += 1
    return out[:o]
