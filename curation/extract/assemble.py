"""From the blocks that are kept to text: in reading order, rows as lines, code and formulas exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.extract import blocks as s
from curation.extract.formulas import tex
from curation.extract.layout import Layout
from curation.extract.listings import Listings, StatedLanguages, is_copy_label
from curation.extract.markup import TAG


@dataclass(frozen=True)
class Assembly:
    """Text of a page, and the programming languages that its code states."""

    text: str
    code_languages: tuple[str, ...]
    normalized: bool = False  # it needs neither `mojibake.repaired` nor `clean.normal`


def assemble(source: bytes, page: s.Page, layout: Layout) -> Assembly:
    """Text of the kept blocks of a scanned page.

    A block is a line (or the lines it has), cells of a row are on one line with ` | ` between
    them (in tables of data also around empty ones, so that columns stay what they are), code has an
    empty line before and behind it.
    """
    if layout.plain:
        return Assembly(str(layout.text.tobytes(), "utf-8", "replace"), (), bool(layout.normalized))
    return _Pieces(source, page, layout).assembly()


class _Pieces:
    """The kept blocks of one page, put together one by one."""

    def __init__(self, source: bytes, page: s.Page, layout: Layout) -> None:
        self._page, self._layout = page, layout
        self._blocks = layout.chosen.tolist()
        self._flags = page.b_flags[layout.chosen].tolist()
        self._elements = page.b_element[layout.chosen].tolist()
        self._texts = Texts(source, page, layout.chosen)
        self._listings = Listings(page, layout.chosen)
        self._stated = StatedLanguages(source, page)
        self._out: list[str] = []
        self._languages: dict[str, None] = {}  # in order
        self._last = -1  # the block before the last one

    def assembly(self) -> Assembly:
        beside, empty = self._layout.beside.tolist(), self._layout.empty.tolist()
        cells = self._layout.cells.tolist()
        previous = -1
        for i in range(len(self._blocks)):
            text = self._texts.of(i)
            if not text or text.isspace():
                continue
            if self._flags[i] & s.PRE:
                if self._drops_label(previous, i):
                    previous = self._last
                if self._repeats(previous, i, text):
                    previous = i
                    continue
            if cells[i] and "\n" in text:
                text = text.replace("\n", " ")
            joined = bool(beside[i]) and previous == i - 1
            if previous >= 0:
                self._out.append(" | " if joined else self._between(previous, i))
            if empty[i]:
                text = "| " * empty[i] + text
            self._out.append(text)
            self._last, previous = previous, i
        normalized = bool(self._layout.normalized) and not self._texts.have_formulas
        return Assembly("".join(self._out), tuple(self._languages), normalized)

    def _repeats(self, previous: int, i: int, code: str) -> bool:
        """Whether a listing is that before it once more, of which the better laid out one stays.

        Highlighters have the source next to what they make of it (Crayon, Enlighter).
        """
        if previous < 0 or not self._flags[previous] & s.PRE:
            return False
        if self._listings.continues(previous, i):
            return False
        one, other = "".join(self._out[-1].split()), "".join(code.split())
        if one != other or (len(one) < _REPEATED and "\n" not in code):
            return False
        if len(code) > len(self._out[-1]):
            self._out[-1] = code
        return True

    def _between(self, previous: int, i: int) -> str:
        """What parts a block from the one before it."""
        code, listed = self._flags[i] & s.PRE, self._flags[previous] & s.PRE
        if code and listed and self._listings.continues(previous, i):
            return "\n" * (1 + self._listings.empty_lines(previous, i))
        return "\n\n" if code or listed else "\n"

    def _drops_label(self, previous: int, i: int) -> bool:
        """Note the language of listing i; take back the block before it if that only names it or
        copies it."""
        language = self._stated.of(self._blocks[i])
        if language:
            self._languages[language] = None
        if previous < 0 or self._flags[previous] & s.PRE:
            return False
        if self._blocks[i] - self._blocks[previous] > _LABEL_REACH:
            return False
        label = self._out[-1].strip().casefold()
        named = bool(language) and label.replace(" ", "") in (language, _NAMES.get(language))
        if named:
            named = self._page.e_tag[self._elements[previous]] in _LABELS
        if not named and not is_copy_label(label):
            return False
        del self._out[-2:]
        return True


_REPEATED = 16  # characters of a line that is there twice; shorter ones may be output
_LABEL_REACH = 2  # blocks from a label to its listing: a button may be between
_LABELS = frozenset(TAG[name] for name in ("div", "button", "header"))
#: What labels call languages whose class is short.
_NAMES = {
    "py": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "yml": "yaml", "cs": "c#",
    "csharp": "c#", "cpp": "c++", "rb": "ruby", "golang": "go", "rs": "rust", "kt": "kotlin",
}  # fmt: skip


class Texts:
    """Texts of the blocks that are chosen, formulas in their places."""

    def __init__(
        self, source: bytes, page: s.Page, chosen: npt.NDArray[Any], inline_code: bool = False
    ) -> None:
        self._source, self._blob = source, page.text.tobytes()
        self._atoms = Atoms.of(page, inline_code)
        self._starts, self._ends = page.b_start[chosen].tolist(), page.b_end[chosen].tolist()
        self._first = np.searchsorted(self._atoms.at, page.b_start[chosen]).tolist()
        self._after = np.searchsorted(self._atoms.at, page.b_end[chosen], side="right").tolist()
        self.have_formulas = self._first != self._after

    def of(self, i: int) -> str:
        """Return the text of the i-th."""
        start, end = self._starts[i], self._ends[i]
        if self._first[i] == self._after[i]:
            return self._blob[start:end].decode("utf-8", "replace")
        inside = range(self._first[i], self._after[i])
        return with_formulas(self._source, self._blob, start, end, self._atoms, inside)


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
    def of(cls, page: s.Page, inline_code: bool) -> Atoms:
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
        elif blob[place : place + 1] == b" " and (place == start or blob[place - 1] == 32):
            parts.append(blob[at:place].decode("utf-8", "replace"))
            at = place + 1  # one blank where nothing is left of a formula between two
    parts.append(blob[at:end].decode("utf-8", "replace"))
    return "".join(parts)
