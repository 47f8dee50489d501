"""From the blocks that are kept to text: in reading order, rows as lines, code and formulas exact."""

from __future__ import annotations

import functools
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.extract import scanned as s
from curation.extract.code import language_of
from curation.extract.formulas import tex
from curation.extract.listings import Listings
from curation.extract.tables import CELL_BYTES, rows_and_cells

_LANGUAGE_LEVELS = 4  # elements around code whose class may name its language


@dataclass(frozen=True)
class Assembly:
    """Text of a page, and the programming languages that its code states."""

    text: str
    code_languages: tuple[str, ...]


def assemble(source: bytes, page: s.Page, kept: npt.NDArray[np.bool_]) -> Assembly:
    """Text of the kept blocks [n] of a scanned page.

    A block is a line (or the lines it has), cells of a row stand on one line with ` | ` between
    them, code has an empty line before and behind it.
    """
    chosen = np.flatnonzero(kept)
    row, cell, _ = rows_and_cells(page.e_parent, page.e_tag)
    blob = page.text.tobytes()
    if not len(page.a_at) and not (page.b_flags[chosen] & s.PRE).any():
        return Assembly(_plain(blob, page, chosen, row, cell), ())
    elements = page.b_element[chosen].tolist()
    starts, ends = page.b_start[chosen].tolist(), page.b_end[chosen].tolist()
    flags = page.b_flags[chosen].tolist()
    # Longer cells are lines of their own.
    small = page.b_end[chosen] - page.b_start[chosen] < CELL_BYTES
    rows = np.where(small, row[page.b_element[chosen]], -1).tolist()
    cells = cell[page.b_element[chosen]].tolist()
    atoms = Atoms.of(page)
    first_atoms = np.searchsorted(atoms.at, page.b_start[chosen]).tolist()
    last_atoms = np.searchsorted(atoms.at, page.b_end[chosen], side="right").tolist()
    out: list[str] = []
    languages: list[str] = []
    previous = -1
    listings = Listings(source, page, chosen, row, cell)
    for i, (start, end, element) in enumerate(zip(starts, ends, elements, strict=True)):
        if first_atoms[i] == last_atoms[i]:
            text = blob[start:end].decode("utf-8", "replace")
        else:
            inside = range(first_atoms[i], last_atoms[i])
            text = with_formulas(source, blob, start, end, atoms, inside)
        code = bool(flags[i] & s.PRE)
        if code:
            text = listings.text(i, text)
            if not text:
                continue
            language = language_around(source, page, element)
            if language and language not in languages:
                languages.append(language)
        elif not text or text.isspace():
            continue
        if out:
            listed = bool(flags[previous] & s.PRE)
            if code and listed and listings.continues(previous, i):
                out.append("\n")
            elif rows[i] >= 0 and rows[previous] == rows[i] and cells[previous] != cells[i]:
                out.append(" | ")
            elif code or listed:
                out.append("\n\n")
            else:
                out.append("\n")
        out.append(text)
        previous = i
    return Assembly("".join(out), tuple(languages))


def _plain(
    blob: bytes,
    page: s.Page,
    chosen: npt.NDArray[np.int64],
    row: npt.NDArray[np.int32],
    cell: npt.NDArray[np.int32],
) -> str:
    """The same where there is neither code nor formulas, without a look at each block."""
    if not len(chosen):
        return ""
    starts, ends = page.b_start[chosen], page.b_end[chosen]
    rows = np.where(ends - starts < CELL_BYTES, row[page.b_element[chosen]], -1)
    cells = cell[page.b_element[chosen]]
    beside = (rows[1:] >= 0) & (rows[1:] == rows[:-1]) & (cells[1:] != cells[:-1])
    parts = [b"\n"] * (2 * len(chosen) - 1)
    parts[::2] = [blob[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    for i in np.flatnonzero(beside).tolist():
        parts[2 * i + 1] = b" | "
    return b"".join(parts).decode("utf-8", "replace")


@dataclass(frozen=True)
class Atoms:
    """Formulas, and for markdown the edges of inline code: place in the text, kind, span of the source.

    Lists, because pages may have a hundred thousand, and numbers of arrays are slow to take singly.
    """

    at: npt.NDArray[Any]  # places, to search in
    places: list[int]
    kinds: list[int]
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, page: s.Page, inline_code: bool = False) -> Atoms:
        """Formulas of a page, and if asked for the edges of its inline code."""
        columns = [page.a_at, page.a_kind, page.a_start, page.a_end]
        if not inline_code:
            formulas = page.a_kind < s.CODE_ON
            columns = [column[formulas] for column in columns]
        return cls(columns[0], *(column.tolist() for column in columns))


def with_formulas(
    source: bytes,
    blob: bytes,
    start: int,
    end: int,
    atoms: Atoms,
    inside: Sequence[int],
) -> str:
    """Text `blob[start:end]` of a block, the formulas among those `inside` it in their places."""
    parts: list[str] = []
    at = start
    for atom in inside:
        place, kind = atoms.places[atom], atoms.kinds[atom]
        span = source[atoms.starts[atom] : atoms.ends[atom]].decode("utf-8", "replace")
        if formula := tex(kind, span):
            parts.append(blob[at:place].decode("utf-8", "replace"))
            parts.append(formula)
            at = place
    parts.append(blob[at:end].decode("utf-8", "replace"))
    return "".join(parts)


def language_around(source: bytes, page: s.Page, element: int) -> str:
    """Programming language that the classes around an element state, or ""."""
    for _ in range(_LANGUAGE_LEVELS):
        if element <= 0:
            break
        start, end = page.e_class[element].tolist()
        if end > start and (name := _stated_language(source[start:end])):
            return name
        element = int(page.e_parent[element])
    return ""


@functools.lru_cache(1 << 10)  # the pieces of a listing have one class
def _stated_language(classes: bytes) -> str:
    return language_of(html.unescape(classes.decode("utf-8", "replace")))
