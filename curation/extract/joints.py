"""How kept blocks join: as lines, or as cells of a row with ` | ` between them."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from curation.extract import scanned as s
from curation.extract.tables import Tables


class Joints(NamedTuple):
    """How kept blocks [k] in tables join the last."""

    beside: npt.NDArray[np.bool_]  # another cell of the same row as the one before
    empty: npt.NDArray[np.int32]  # cells without text before it, in tables of data


def joints_of(page: s.Page, tables: Tables, chosen: npt.NDArray[np.int64]) -> Joints:
    """Of the blocks `chosen` [k], in the order of the page."""
    return Joints(
        *_joints(
            page.b_element, page.b_flags, tables.short, tables.data, tables.row, tables.cell,
            tables.column, chosen,
        )
    )  # fmt: skip


@numba.njit(cache=True, nogil=True)
def _joints(b_element, b_flags, short, data, row, cell, column, chosen):  # type: ignore[no-untyped-def]
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


def joined(
    page: s.Page, chosen: npt.NDArray[np.int64], joints: Joints
) -> npt.NDArray[np.uint8]:
    """Text (UTF-8) of the blocks `chosen` [k] where there is neither code nor formulas."""
    text: npt.NDArray[np.uint8] = _joined(page.text, page.b_start, page.b_end, chosen, *joints)
    return text


@numba.njit(cache=True, nogil=True)
def _joined(text, b_start, b_end, chosen, beside, empty):  # type: ignore[no-untyped-def]
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
