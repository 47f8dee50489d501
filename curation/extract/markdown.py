"""From the blocks that are kept to markdown: CommonMark with the tables of GitHub.

Lists, quotes, headings, tables, listings, inline code and formulas are marked; bold, italics, links
and images are not. Terms of definition lists, which CommonMark doesn't know, are bold paragraphs.

Prose, inline code and formulas as CommonMark: nothing in them is taken for markup.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from curation.extract import blocks as s
from curation.extract.assemble import Assembly, Texts
from curation.extract.formulas import tex
from curation.extract.listings import Listings, StatedLanguages
from curation.extract.markup import TAG
from curation.extract.outline import Outline, Path
from curation.extract.tables import Tables

# Signs of markup wherever they are. `_` within a word and `*` between spaces are none; `\$` is a
# dollar to MathJax and to markdown.
_SIGNS = regex.compile(
    r"""\\(?=[!-\#%-/:-@\[-`{-~\n]|\Z) | ` | (?<!\s)\* | \*(?!\s) | (?<![^\W_])_ | _(?![^\W_])
    | <(?=[A-Za-z/!?]) | &(?=\#?\w{1,31};) | \](?=\() | ~(?=~) | (?<=~)~""",
    regex.X,
)
_LINE_STARTS = regex.compile(
    r"""(?m)^(?: \#{1,6}(?=\s|$) | [-+*](?=\s|$) | > | (\d{1,9})(?=[.)](?:\s|$)) | ~~~ | \[
    | =+[ ]*$ | (?=[|:\- ]*-)[|:-][|:\- ]*$ )""",
    regex.X,
)
# Formulas that are in the text of a page as they are.
_WRITTEN = regex.compile(
    r"""\\\((?<inline>[^\n]{1,2000}?)\\\) | \\\[(?<display>.{1,2000}?)\\\]
    | (?<verbatim>\$\$[^$]{1,2000}\$\$ | \$(?=[^\s$])[^$\n]{1,300}(?<=[^\s\\])\$(?!\d))""",
    regex.X | regex.S,
)
_BACKTICKS = regex.compile(r"`+")
_CLOSING = regex.compile(r"(?<=\s)#(?=#*$)")


def prose(text: str) -> str:
    """Text with the signs of markup escaped; formulas written in it are between dollars."""
    if "$" not in text and "\\" not in text:
        return _SIGNS.sub(r"\\\g<0>", text)
    parts = []
    at = 0
    for found in _WRITTEN.finditer(text):
        parts.append(_SIGNS.sub(r"\\\g<0>", text[at : found.start()]))
        if found["inline"] is not None:
            parts.append(f"${found['inline'].strip()}$")
        elif found["display"] is not None:
            parts.append(f"$${' '.join(found['display'].split())}$$")
        else:
            parts.append(" ".join(found["verbatim"].split()))
        at = found.end()
    parts.append(_SIGNS.sub(r"\\\g<0>", text[at:]))
    return "".join(parts)


def inline_code(code: str) -> str:
    """A code span; "" when there is nothing in it."""
    code = code.replace("\n", " ")
    if not code.strip():
        return code
    taken = {len(run) for run in _BACKTICKS.findall(code)}
    ticks = "`" * next(n for n in itertools.count(1) if n not in taken)
    padded = code[0] == "`" or code[-1] == "`" or (code[0] == " " and code[-1] == " ")
    return f"{ticks} {code} {ticks}" if padded else f"{ticks}{code}{ticks}"


def fence(code: str) -> str:
    """The fence of a listing: longer than any run of backticks in it."""
    return "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(code)), default=0))


def paragraph(text: str) -> str:
    """A paragraph of escaped text: its lines end in hard breaks and start no other block."""
    lines = (line.strip() for line in text.split("\n"))
    text = "\n".join(line for line in lines if line)
    return _LINE_STARTS.sub(_escaped_start, text).replace("\n", "\\\n")


def _escaped_start(found: regex.Match[str]) -> str:
    return f"{found[0]}\\" if found[1] else f"\\{found[0]}"


def heading(text: str, level: int) -> str:
    """A heading of escaped text."""
    return "#" * level + " " + _CLOSING.sub(r"\\#", " ".join(text.split()))


def in_cell(text: str, formula: bool) -> str:
    """A piece of escaped text, or a formula, as it is in a cell of a table."""
    if formula:
        text = text.replace("\\|", "\\Vert ").replace("|", "\\vert ").replace("\n", " ")
        return text.replace(" $", "$")  # a space before it, and it ends no formula
    return text.replace("|", "\\|")


_TD, _TH = TAG["td"], TAG["th"]


@dataclass
class _Leaf:
    """A block of markdown without the marks of the items and quotes around it."""

    text: str
    path: Path
    plain: bool = False  # a paragraph


def markdown(source: bytes, page: s.Page, tables: Tables, kept: npt.NDArray[np.bool_]) -> Assembly:
    """Markdown of the kept blocks [n] of a scanned page."""
    chosen = np.flatnonzero(kept)
    outline = Outline(page)
    starts = {grid.first: grid for grid in _grids(page, tables, chosen)}
    listings, stated = Listings(page, chosen), StatedLanguages(source, page)
    words = _Words(source, page, chosen, inline_code=True)
    elements = page.b_element[chosen].tolist()
    listed = (page.b_flags[chosen] & s.PRE != 0).tolist()
    leaves: list[_Leaf] = []
    languages: dict[str, None] = {}  # in order
    i = 0
    while i < len(chosen):
        place = outline.place(elements[i])
        if listed[i]:
            i, code = _listing(i, listed, listings, words)
            if code.strip():
                language = stated.of(int(chosen[i - 1]))
                if language:
                    languages[language] = None
                ticks = fence(code)
                leaves.append(_Leaf(f"{ticks}{language}\n{code}\n{ticks}", place.path))
        elif i in starts:
            grid = starts[i]
            leaves.append(_Leaf(_table(grid, words), outline.place(grid.table).path))
            i += len(grid.cells)
        else:
            text = words.marked(i)
            if text.strip() and place.level:
                text = heading(text, place.level)
            elif text := paragraph(text):
                text = f"**{text}**" if place.term else text
            if text:
                leaves.append(_Leaf(text, place.path, not place.level))
            i += 1
    return Assembly(_joined(leaves, outline), tuple(languages))


class _Words(Texts):
    """Texts of the blocks that are chosen: prose escaped, inline code and formulas marked."""

    def marked(self, i: int, within_cell: bool = False) -> str:
        """The text of a block."""
        atoms = self._atoms
        start, end, inside = self._starts[i], self._ends[i], range(self._first[i], self._after[i])
        parts: list[str] = []
        at, code = start, False

        def take(stop: int) -> None:
            span = self._span(at, stop)
            if code and parts and parts[-1].endswith("`"):
                parts.append(" ")  # two spans of code in a row
            span = inline_code(span) if code else prose(span)
            if span:
                parts.append(in_cell(span, False) if within_cell else span)

        for atom in inside:
            place, kind = atoms.places[atom], atoms.kinds[atom]
            if kind >= s.CODE_ON:
                take(place)
                at, code = place, kind == s.CODE_ON
                continue
            span = self._source[atoms.starts[atom] : atoms.ends[atom]].decode("utf-8", "replace")
            if formula := tex(kind, span):
                take(place)
                at = place
                shown = formula if formula.startswith("$") else prose(formula)
                parts.append(in_cell(shown, True) if within_cell else shown)
        take(end)
        return "".join(parts)

    def _span(self, start: int, end: int) -> str:
        return self._blob[start:end].decode("utf-8", "replace")


def _listing(
    i: int,
    listed: list[bool],
    listings: Listings,
    words: _Words,
) -> tuple[int, str]:
    """The listing at i with all lines that are blocks of their own, and where it ends."""
    lines = [words.of(i)]
    i += 1
    while i < len(listed) and listed[i] and listings.continues(i - 1, i):
        lines.append(words.of(i))
        i += 1
    return i, "\n".join(lines)


def _table(grid: _Grid, words: _Words) -> str:
    """A table of GitHub's markdown; its first row is the head, which such a table must have."""
    texts: dict[int, list[str]] = {}
    for i, cell in enumerate(grid.cells, grid.first):
        text = words.marked(i, within_cell=True).strip()
        texts.setdefault(cell, []).append(text.replace("\n", "<br>"))
    rows = [["<br>".join(texts.get(cell, ())) for cell in row] for row in grid.rows]
    width = max(map(len, rows))
    rows[0] += [""] * (width - len(rows[0]))  # other rows may be shorter
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * width, *lines[1:]])


def _joined(leaves: list[_Leaf], outline: Outline) -> str:
    """Blocks with the marks of the items and quotes around them."""
    out: list[str] = []
    previous: _Leaf | None = None
    for leaf in leaves:
        shared = 0
        if previous is not None:
            for one, other in zip(previous.path, leaf.path, strict=False):
                if one != other:
                    break
                shared += 1
            outline.part(previous.path[shared:], leaf.path[shared:])
            out.append("\n")
            if not _tight(previous, leaf, shared, outline):
                out.append(outline.prefix(leaf.path[:shared]).rstrip() + "\n")
        margin = outline.prefix(leaf.path)
        opening = outline.prefix(leaf.path[:shared]) + outline.marks(leaf.path[shared:])
        for k, line in enumerate(leaf.text.split("\n")):
            out.append((f"\n{margin}" if k else opening) + line)
        previous = leaf
    return "".join(out)


def _tight(previous: _Leaf, leaf: _Leaf, shared: int, outline: Outline) -> bool:
    """Whether no empty line is needed: an item of one paragraph behind such a one."""
    if not (previous.plain and leaf.plain) or len(leaf.path) == shared:
        return False
    if len(previous.path) > shared:
        return outline.siblings(previous.path[shared], leaf.path[shared])
    return shared > 0 and outline.may_interrupt(leaf.path[shared])


class _Grid(NamedTuple):
    """A table: blocks first, first + 1, ... are in `cells`, elements among those of `rows`."""

    table: int
    first: int
    cells: list[int]
    rows: list[list[int]]


def _grids(page: s.Page, tables: Tables, chosen: npt.NDArray[np.int64]) -> Iterator[_Grid]:
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
            yield _Grid(
                int(inside[first]), first, cells[first:stop].tolist(),
                [list(all_cells[r]) for r in present],
            )  # fmt: skip
