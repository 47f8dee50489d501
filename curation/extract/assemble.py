"""From the blocks that are kept to text: in reading order, rows as lines, code and formulas exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.extract import blocks as s
from curation.extract.code import StatedLanguages
from curation.extract.formulas import tex
from curation.extract.layout import laid_out
from curation.extract.listings import Listings
from curation.extract.tables import Tables


@dataclass(frozen=True)
class Assembly:
    """Text of a page, and the programming languages that its code states."""

    text: str
    code_languages: tuple[str, ...]
    normalized: bool = False  # it needs neither `mojibake.repaired` nor `clean.normal`


def assemble(source: bytes, page: s.Page, tables: Tables, kept: npt.NDArray[np.bool_]) -> Assembly:
    """Text of the kept blocks [n] of a scanned page.

    A block is a line (or the lines it has), cells of a row stand on one line with ` | ` between
    them (in tables of data also around empty ones, so that columns stay what they are), code has an
    empty line before and behind it.
    """
    layout = laid_out(page, tables, kept)
    if layout.plain:
        return Assembly(str(layout.text.tobytes(), "utf-8", "replace"), (), layout.normalized)
    chosen = layout.chosen
    blob = page.text.tobytes()
    blocks = chosen.tolist()
    starts, ends = page.b_start[chosen].tolist(), page.b_end[chosen].tolist()
    flags = page.b_flags[chosen].tolist()
    beside, empty = layout.beside.tolist(), layout.empty.tolist()
    atoms = Atoms.of(page)
    first_atoms = np.searchsorted(atoms.at, page.b_start[chosen]).tolist()
    last_atoms = np.searchsorted(atoms.at, page.b_end[chosen], side="right").tolist()
    out: list[str] = []
    languages: list[str] = []
    previous = -1
    listings, stated = Listings(source, page, tables, chosen), StatedLanguages(source, page)
    for i, (start, end, block) in enumerate(zip(starts, ends, blocks, strict=True)):
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
            language = stated.of(block)
            if language and language not in languages:
                languages.append(language)
        elif not text or text.isspace():
            continue
        if out:
            listed = bool(flags[previous] & s.PRE)
            if code and listed and listings.continues(previous, i):
                out.append("\n")
            elif beside[i] and previous == i - 1:
                out.append(" | ")
            elif code or listed:
                out.append("\n\n")
            else:
                out.append("\n")
        if empty[i]:
            out.append("| " * empty[i])
        out.append(text)
        previous = i
    return Assembly("".join(out), tuple(languages))


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
        shown = page.a_kind < (s.CODE_CLASS if inline_code else s.CODE_ON)
        columns = [column[shown] for column in columns]
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
            display = formula.startswith("$$")  # on lines of their own, unless spaces are around
            parts.append(blob[at:place].decode("utf-8", "replace"))
            if display and place > start and blob[place - 1] > 32:
                parts.append("\n")
            parts.append(formula)
            if display and place < end and blob[place] > 32 and blob[place] not in b".,;:!?)":
                parts.append("\n")
            at = place
    parts.append(blob[at:end].decode("utf-8", "replace"))
    return "".join(parts)
