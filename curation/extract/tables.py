"""Rows and cells of tables, and which tables hold data rather than a layout."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import Bools, Float, Float64s, Int, Int32s, borrowing, kernel
from curation.extract.blocks import Page
from curation.extract.markup import TAG

_TR, _TABLE, _TD, _TH = TAG["tr"], TAG["table"], TAG["td"], TAG["th"]
_CAPTION = TAG["caption"]
# Of a table of data, by tables of the development pages: a cell with so many bytes is part of a
# layout, tables with fewer rows of text are layouts, and this share of the rows have the same number
# of cells, two or more.
_CELL_BYTES, _LEAST_ROWS, _REGULAR_SHARE = 400, 3, 0.7


class Tables(NamedTuple):
    """What is in tables (-1: nothing); of nested tables the innermost counts."""

    row: npt.NDArray[np.int32]  # [m] of each element
    cell: npt.NDArray[np.int32]  # [m]
    table: npt.NDArray[np.int32]  # [m]
    column: npt.NDArray[np.int32]  # [m] place of the cell in its row
    short: npt.NDArray[np.bool_]  # [n] blocks that may be cells of a table of data
    data: npt.NDArray[np.int32]  # [n] row of a table of data that each block is in


@kernel
def _rows_and_cells(
    e_parent: Int32s, e_tag: Int32s, e_span: Int32s
) -> tuple[Int32s, Int32s, Int32s, Int32s, Int32s]:
    """The columns [m] of Tables, and how many columns each row has [m].

    A cell of several columns or rows (`e_span`) moves those behind it and below it.
    """
    m = len(e_parent)
    row = np.full(m, -1, np.int32)
    cell = np.full(m, -1, np.int32)
    table = np.full(m, -1, np.int32)
    column = np.full(m, -1, np.int32)
    count = np.zeros(m, np.int32)  # columns of a row so far
    number = np.zeros(m, np.int32)  # rows of a table so far
    long = np.full((4, _LONG_CELLS), -1, np.int32)  # cells of several rows, by _OF to _UNTIL
    seen = 0
    for e in range(1, m):
        tag = e_tag[e]
        if tag == _TABLE:
            table[e] = e
            continue
        table[e] = table[e_parent[e]]
        if tag == _TR:
            row[e] = e
            if table[e] >= 0:
                number[table[e]] += 1
        else:
            row[e] = row[e_parent[e]]
            cell[e] = cell[e_parent[e]]
            column[e] = column[e_parent[e]]
            if tag == _TD or tag == _TH:
                cell[e] = e
                r = row[e]
                if r >= 0:
                    if seen:
                        _pass_over(long, table[e], number[max(table[e], 0)], count, r)
                    columns = max(e_span[e] & 0xFFFF, 1)
                    column[e] = count[r]
                    count[r] += columns
                    if e_span[e] >> 16 > 1 and table[e] >= 0:
                        place = seen % _LONG_CELLS
                        long[_OF, place] = table[e]
                        long[_COLUMN, place] = column[e]
                        long[_COLUMNS, place] = columns
                        long[_UNTIL, place] = number[table[e]] + (e_span[e] >> 16) - 1
                        seen += 1
    return row, cell, table, column, count


_LONG_CELLS = 64  # cells of several rows that are kept in mind, the last ones
_OF, _COLUMN, _COLUMNS, _UNTIL = range(4)


@borrowing
def _pass_over(long: Int32s, table: Int, number: Int, count: Int32s, row: Int) -> None:
    """Move the next cell of a row, the table's `number`-th, behind cells that reach down into it."""
    moved = True
    while moved:
        moved = False
        for k in range(_LONG_CELLS):
            if long[_OF, k] == table and long[_UNTIL, k] >= number:
                if long[_COLUMN, k] <= count[row] < long[_COLUMN, k] + long[_COLUMNS, k]:
                    count[row] = long[_COLUMN, k] + long[_COLUMNS, k]
                    moved = True


@kernel
def _data_rows(
    row: Int32s,
    cell: Int32s,
    table: Int32s,
    width: Int32s,
    b_element: Int32s,
    short: Bools,
) -> Int32s:
    m = len(row)
    n = len(b_element)
    cells = np.zeros(m, np.int32)  # of a row that has text, the empty ones too
    wide = np.zeros(m, np.bool_)  # tables with a long cell
    for b in range(n):
        e = b_element[b]
        if table[e] >= 0 and not short[b]:
            wide[table[e]] = True
        if row[e] >= 0:
            cells[row[e]] = 1
    for e in range(m):
        if cell[e] == e and row[e] >= 0 and cells[row[e]]:
            cells[row[e]] += 1
    for r in range(m):
        cells[r] = max(cells[r] - 1, 0)
        if cells[r] > 1:  # one cell over all columns is a banner, or a heading between rows
            cells[r] = max(cells[r], width[r])
    rows = np.zeros(m, np.int32)
    usual = np.zeros(m, np.int32)  # the majority's number of cells (Boyer and Moore)
    lead = np.zeros(m, np.int32)
    for r in range(m):
        if cells[r]:
            t = table[r]
            rows[t] += 1
            if lead[t] == 0:
                usual[t] = cells[r]
            lead[t] += 1 if usual[t] == cells[r] else -1
    regular = np.zeros(m, np.int32)
    for r in range(m):
        if cells[r] and cells[r] == usual[table[r]]:
            regular[table[r]] += 1
    out = np.full(n, -1, np.int32)
    for b in range(n):
        r = row[b_element[b]]
        if r >= 0:
            t = table[r]
            if not wide[t] and usual[t] > 1 and rows[t] >= _LEAST_ROWS:
                if regular[t] >= _REGULAR_SHARE * rows[t]:
                    out[b] = r
    return out


@kernel
def tables_of(page: Page) -> Tables:
    """The Tables of a page."""
    row, cell, table, column, width = _rows_and_cells(page.e_parent, page.e_tag, page.e_span)
    b_element = page.b_element
    n = len(b_element)
    short = page.b_end - page.b_start < _CELL_BYTES
    data = np.full(n, -1, np.int32)
    if (table[b_element] >= 0).any():
        data = _data_rows(row, cell, table, width, b_element, short)
    return Tables(row, cell, table, column, short, data)


@kernel
def whole_tables(
    probabilities: Float64s,
    data: Int32s,
    table: Int32s,
    linked: Bools,
    share: Float,
    b_element: Int32s,
    e_tag: Int32s,
) -> Float64s:
    """Probabilities [n] where a table of data is judged by more than its cells.

    A number or a name in a cell says little about itself. The cells of a row share the highest
    probability among them, and those that are no links (`linked` [n]) get at least `share` of that
    of the two blocks before the table. A caption gets the highest of the table. `data` and `table`
    are those of Tables.
    """
    n = len(data)
    out = probabilities.copy()
    if n == 0 or data.max() < 0:
        return out
    m = len(table)
    best = np.zeros(m, np.float64)  # of a row
    context = np.full(m, -1.0)  # of a table: the text before it
    top = np.zeros(m, np.float64)  # of a table
    one = 0.0
    other = 0.0
    for b in range(n):
        if data[b] < 0:
            other = one
            one = probabilities[b]
            continue
        t = table[data[b]]
        if context[t] < 0:
            context[t] = share * max(one, other)
        if probabilities[b] > best[data[b]]:
            best[data[b]] = probabilities[b]
    for b in range(n):
        if data[b] >= 0:
            out[b] = best[data[b]]
            if not linked[b]:
                out[b] = max(out[b], context[table[data[b]]])
            t = table[data[b]]
            top[t] = max(top[t], out[b])
    for b in range(n):
        e = b_element[b]
        if e_tag[e] == _CAPTION and data[b] < 0 and table[e] >= 0:
            out[b] = max(out[b], top[table[e]])
    return out
