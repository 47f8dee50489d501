"""How kept blocks follow each other: as lines, or as cells of a row with ` | ` between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import kernel
from curation.extract import blocks as s
from curation.extract.normalized import is_normalized
from curation.extract.tables import Tables


class Layout(NamedTuple):
    """The kept blocks of a page, k of them, and their text where it is nothing but text."""

    chosen: npt.NDArray[np.int64]  # [k] which they are
    beside: npt.NDArray[np.bool_]  # [k] another cell of the same row as the one before
    empty: npt.NDArray[np.int32]  # [k] cells without text before it, in tables of data
    plain: bool  # there is neither code nor formulas
    text: npt.NDArray[np.uint8]  # of all, as UTF-8; empty unless `plain`
    normalized: bool  # it surely needs neither `mojibake.repaired` nor `clean.normal`


def laid_out(page: s.Page, tables: Tables, kept: npt.NDArray[np.bool_]) -> Layout:
    """How the kept blocks [n] of a page follow each other."""
    return Layout(
        *_laid_out(
            kept, page.text, page.b_start, page.b_end, page.b_element, page.b_flags, page.b_atoms,
            tables.short, tables.data, tables.row, tables.cell, tables.column,
        )
    )  # fmt: skip


@kernel
def _laid_out(  # type: ignore[no-untyped-def]
    kept, text, b_start, b_end, b_element, b_flags, b_atoms, short, data, row, cell, column
):
    """The parts of a Layout."""
    chosen = np.flatnonzero(kept)
    beside, empty = _joints(chosen, b_element, b_flags, short, data, row, cell, column)
    plain = True
    for b in chosen:
        plain = plain and b_flags[b] & s.PRE == 0 and b_atoms[b] == 0
    out = np.empty(0, np.uint8)
    if plain:
        out = _joined(chosen, beside, empty, text, b_start, b_end)
    return chosen, beside, empty, plain, out, plain and is_normalized(out)


@kernel
def _joints(chosen, b_element, b_flags, short, data, row, cell, column):  # type: ignore[no-untyped-def]
    beside = np.zeros(len(chosen), np.bool_)
    empty = np.zeros(len(chosen), np.int32)
    last = -1  # element of the block before, if that may be a cell
    for i in range(len(chosen)):
        b = chosen[i]
        e = b_element[b]
        same = short[b] and row[e] >= 0 and last >= 0 and row[last] == row[e]
        beside[i] = same and cell[last] != cell[e]
        if data[b] >= 0 and not b_flags[b] & s.PRE:  # not before listings, for their line numbers
            empty[i] = max(column[e] - (column[last] + 1 if same else 0), 0)
        # Longer cells are lines of their own.
        last = e if short[b] else -1
    return beside, empty


@kernel
def _joined(chosen, beside, empty, text, b_start, b_end):  # type: ignore[no-untyped-def]
    size = 0
    for i in range(len(chosen)):
        size += 3 + 2 * empty[i] + b_end[chosen[i]] - b_start[chosen[i]]
    out = np.empty(size, np.uint8)
    o = 0
    for i in range(len(chosen)):
        if beside[i]:
            out[o] = 32
            out[o + 1] = 124
            out[o + 2] = 32
            o += 3
        elif i > 0:
            out[o] = 10
            o += 1
        for _ in range(empty[i]):
            out[o] = 124
            out[o + 1] = 32
            o += 2
        for k in range(b_start[chosen[i]], b_end[chosen[i]]):
            out[o] = text[k]
            o += 1
    return out[:o]
