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
from curation.extract.copying import CopyLabels
from curation.extract.diffs import has_markers, marker_of
from curation.extract.formulas import tex
from curation.extract.gutter import is_gutter, without_line_numbers
from curation.extract.markup import ANCESTOR, TAG
from curation.extract.tables import CELL_BYTES, rows_and_cells

_H1, _H6, _LI, _DT, _DD = TAG["h1"], TAG["h6"], TAG["li"], TAG["dt"], TAG["dd"]
_TD, _TH, _DIV = TAG["td"], TAG["th"], TAG["div"]
_ITEM, _QUOTE, _HEADING = ANCESTOR["item"], ANCESTOR["quote"], ANCESTOR["heading"]
_LANGUAGE_LEVELS = 4  # elements around code whose class may name its language


@dataclass(frozen=True)
class Assembly:
    """Text of a page, and the programming languages that its code states."""

    text: str
    code_languages: tuple[str, ...]


def assemble(
    source: bytes, page: s.Page, kept: npt.NDArray[np.bool_], markdown: bool = False
) -> Assembly:
    """Text of the kept blocks [n] of a scanned page.

    A block is a line (or the lines it has), cells of a row stand on one line with ` | ` between
    them, code has an empty line before and behind it.
    """
    chosen = np.flatnonzero(kept)
    row, cell, _ = rows_and_cells(page.e_parent, page.e_tag)
    blob = page.text.tobytes()
    if not markdown and not len(page.a_at) and not (page.b_flags[chosen] & s.PRE).any():
        return Assembly(_plain(blob, page, chosen, row, cell), ())
    elements = page.b_element[chosen].tolist()
    starts, ends = page.b_start[chosen].tolist(), page.b_end[chosen].tolist()
    flags = page.b_flags[chosen].tolist()
    # Longer cells are lines of their own.
    small = page.b_end[chosen] - page.b_start[chosen] < CELL_BYTES
    rows = np.where(small, row[page.b_element[chosen]], -1).tolist()
    cells = cell[page.b_element[chosen]].tolist()
    tags = page.e_tag[page.b_element[chosen]].tolist()
    above = page.e_above[page.b_element[chosen]].tolist()
    signatures = page.e_signature[page.b_element[chosen]].tolist()
    atoms = Atoms.of(page, markdown)
    first_atoms = np.searchsorted(atoms.at, page.b_start[chosen]).tolist()
    last_atoms = np.searchsorted(atoms.at, page.b_end[chosen], side="right").tolist()
    out: list[str] = []
    languages: list[str] = []
    previous = -1
    fence = ""
    marked = has_markers(source)
    labels = CopyLabels(source)
    sign = previous_sign = ""
    for i, (start, end, element) in enumerate(zip(starts, ends, elements, strict=True)):
        if first_atoms[i] == last_atoms[i]:
            text = blob[start:end].decode("utf-8", "replace")
        else:
            inside = range(first_atoms[i], last_atoms[i])
            text = with_formulas(source, blob, start, end, atoms, inside, markdown)
        code = bool(flags[i] & s.PRE)
        if code:
            if "\n" in text:
                text = labels.taken_off(text)
            if text.count("\n") > 1:
                text = without_line_numbers(text)
            if not text or text.isspace() or _numbers_the_next(text, i, page, chosen, row, cell):
                continue
            language = _language(source, page, element)
            previous_sign, sign = sign, ""
            if marked and (sign := marker_of(source, int(page.e_class[element, 1]))):
                text = sign + text
            if language and language not in languages:
                languages.append(language)
        elif not text or text.isspace():
            continue
        if out:
            if (
                code
                and flags[previous] & s.PRE
                # Lines of one listing: another element of the same class each.
                and element != elements[previous]
                and (signatures[i] == signatures[previous] or (sign and previous_sign))
                and tags[i] in (_TD, _DIV)
            ):
                out.append("\n")
            elif rows[i] >= 0 and rows[previous] == rows[i] and cells[previous] != cells[i]:
                out.append(" | ")
            elif code or flags[previous] & s.PRE:
                out.append(f"{fence}\n\n")
                fence = ""
            elif markdown:
                both = tags[i] in (_LI, _DT, _DD, _TD, _TH) and tags[i] == tags[previous]
                out.append("\n" if both or above[i] & _ITEM & above[previous] else "\n\n")
            else:
                out.append("\n")
        if markdown:
            if code and not fence:
                out.append(f"```{language}\n")
                fence = "\n```"
            elif not code:
                text = _marked(text, tags[i], above[i], flags[i])
        out.append(text)
        previous = i
    return Assembly("".join(out) + fence, tuple(languages))


def _numbers_the_next(
    text: str,
    i: int,
    page: s.Page,
    chosen: npt.NDArray[np.int64],
    row: npt.NDArray[np.int32],
    cell: npt.NDArray[np.int32],
) -> bool:
    """Whether a listing is the gutter of the listing in the next cell of its row."""
    if not text.startswith("1\n") or i + 1 >= len(chosen):
        return False
    this, beside = chosen[i], chosen[i + 1]
    one, other = page.b_element[this], page.b_element[beside]
    if row[one] < 0 or row[one] != row[other] or cell[one] == cell[other]:
        return False
    span = page.text[page.b_start[beside] : page.b_end[beside]]
    return bool(page.b_flags[beside] & s.PRE) and is_gutter(text, span.tobytes().decode("utf-8"))


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
    """Formulas, and in markdown edges of inline code: place in the text, kind, span of the source.

    Lists, because pages may have a hundred thousand, and numbers of arrays are slow to take singly.
    """

    at: npt.NDArray[Any]  # places, to search in
    places: list[int]
    kinds: list[int]
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, page: s.Page, markdown: bool) -> Atoms:
        columns = [page.a_at, page.a_kind, page.a_start, page.a_end]
        if not markdown:
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
    markdown: bool,
) -> str:
    """Text `blob[start:end]` of a block, the formulas among those `inside` it in their places."""
    parts: list[str] = []
    at = start
    for atom in inside:
        place, kind = atoms.places[atom], atoms.kinds[atom]
        if kind >= s.CODE_ON:
            if markdown:
                parts.append(blob[at:place].decode("utf-8", "replace"))
                parts.append("`")
                at = place
            continue
        span = source[atoms.starts[atom] : atoms.ends[atom]].decode("utf-8", "replace")
        if formula := tex(kind, span):
            parts.append(blob[at:place].decode("utf-8", "replace"))
            parts.append(formula)
            at = place
    parts.append(blob[at:end].decode("utf-8", "replace"))
    return "".join(parts)


def _language(source: bytes, page: s.Page, element: int) -> str:
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


def _marked(text: str, tag: int, above: int, flags: int) -> str:
    """The block as markdown."""
    if _H1 <= tag <= _H6:
        return "#" * (tag - _H1 + 1) + " " + text.replace("\n", " ")
    if tag in (_LI, _DD) or above & _ITEM:
        text = ("  " if flags & s.CONTINUED else "- ") + text.replace("\n", "\n  ")
    if above & _QUOTE:
        text = "> " + text.replace("\n", "\n> ")
    return text
