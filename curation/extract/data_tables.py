"""Tables that can be shown as rows of cells: those of short texts, and no layouts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.extract import blocks as s
from curation.extract.markup import TAG
from curation.extract.tables import Tables

_TD, _TH = TAG["td"], TAG["th"]


class Grid(NamedTuple):
    """A table: blocks first, first + 1, ... stand in `cells`, elements among those of `rows`."""

    table: int
    first: int
    cells: list[int]
    rows: list[list[int]]


def grids(page: s.Page, tables: Tables, chosen: npt.NDArray[np.int64]) -> Iterator[Grid]:
    """Such tables among the blocks that are chosen [k]: two rows or more, and columns."""
    row, cell, table = tables.row, tables.cell, tables.table
    elements = page.b_element[chosen]
    rows = row[elements]
    if not (rows >= 0).any():
        return
    cells, inside = cell[elements], np.where(rows >= 0, table[elements], -1)
    inner = np.unique(table[elements])
    around = table[page.e_parent[inner[inner > 0]]]  # tables with tables in their cells
    long = ~tables.short[chosen]
    listed = page.b_flags[chosen] & s.PRE != 0
    layouts = {*around.tolist(), *inside[long | listed | (cells < 0)].tolist(), -1}
    all_cells: dict[int, list[int]] = {}  # of a row, empty ones among them
    for element in np.flatnonzero((page.e_tag == _TD) | (page.e_tag == _TH)).tolist():
        all_cells.setdefault(int(row[element]), []).append(element)
    edges = np.flatnonzero(np.diff(inside, prepend=-2, append=-2)).tolist()
    for first, stop in itertools.pairwise(edges):
        if int(inside[first]) in layouts:
            continue
        present = dict.fromkeys(rows[first:stop].tolist())
        filled = {
            (r, c)
            for r, c in zip(rows[first:stop].tolist(), cells[first:stop].tolist(), strict=True)
        }
        if 1 < len(present) < len(filled):
            yield Grid(
                int(inside[first]), first, cells[first:stop].tolist(),
                [list(all_cells[r]) for r in present],
            )  # fmt: skip
