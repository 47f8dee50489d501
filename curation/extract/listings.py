"""Listings among the blocks that are kept: what they lose and gain, and which are lines of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from curation.extract import blocks as s
from curation.extract.copy_buttons import CopyLabels
from curation.extract.line_numbers import is_gutter, without_line_numbers
from curation.extract.markup import TAG
from curation.extract.tables import Tables

_FAR = 1000  # elements between two lines of one listing
#: Sign of an added or removed line, which a diff may have in an attribute alone.
_MARKER = regex.compile(rb"""data-code-marker=["']([-+ ])["']""")
_REACH = 1000  # bytes from the class of a line's cell to the attribute
_NUMBER_BLANK = regex.compile(
    rb"""class=["']lineno["']>\s*\d+\s*(?:</a>)?</span>(?:</a>)?(?:&#160;|&nbsp;|\xc2\xa0)"""
)
_FIRST_BLANK = regex.compile(r"^ ", regex.M)
_LINES = (TAG["td"], TAG["div"])  # elements that hold one line of a listing each


class Listings:
    """Listings of one page, by their places among the blocks that are `chosen` [k]."""

    def __init__(
        self,
        source: bytes,
        page: s.Page,
        tables: Tables,
        chosen: npt.NDArray[np.int64],
    ) -> None:
        self._source, self._page, self._tables, self._chosen = source, page, tables, chosen
        self._labels = CopyLabels(source)
        self._marked = b"data-code-marker=" in source
        self._numbered = b"lineno" in source
        self._signs: dict[int, str] = {}  # of the lines of diffs

    def text(self, i: int, code: str) -> str:
        """The listing without its line numbers and button; "" when nothing is left."""
        if "\n" in code:
            code = without_line_numbers(self._labels.taken_off(code))
        if not code or code.isspace() or self._numbers_the_next(i, code):
            return ""
        if code[0] == " " and self._numbered and self._is_set_off(i):
            code = _FIRST_BLANK.sub("", code)
        if self._marked:
            element = self._element(i)
            self._signs[i] = _marker_of(self._source, int(self._page.e_class[element, 1]))
            code = self._signs[i] + code
        return code

    def continues(self, previous: int, i: int) -> bool:
        """Whether listing i is a line of the listing before it: like elements hold them."""
        page, one, other = self._page, self._element(previous), self._element(i)
        if one == other or page.e_tag[other] not in _LINES:
            return False
        signed = self._signs.get(previous) and self._signs.get(i)
        if signed or page.e_signature[one] == page.e_signature[other]:
            return True
        # GeSHi has every fifth line in another style.
        items = page.e_parent[one], page.e_parent[other]
        is_item = page.e_tag[items[0]] == page.e_tag[items[1]] == TAG["li"]
        return bool(is_item and page.e_parent[items[0]] == page.e_parent[items[1]])

    def empty_lines(self, previous: int, i: int) -> int:
        """Lines without text between two lines of a listing: like elements that have no block."""
        page, one, other = self._page, int(self._element(previous)), int(self._element(i))
        if other - one > _FAR or page.e_signature[one] != page.e_signature[other]:
            return 0
        alike = (
            np.flatnonzero(page.e_signature[one + 1 : other] == page.e_signature[other]) + one + 1
        )
        return int((~np.isin(alike, page.b_element)).sum()) if len(alike) else 0

    def _is_set_off(self, i: int) -> bool:
        """Whether the first line number of the listing is parted from its line by a blank (Doxygen)."""
        start = int(self._page.e_at[self._element(i)])
        return _NUMBER_BLANK.search(self._source, start, start + _REACH) is not None

    def _element(self, i: int) -> Any:
        return self._page.b_element[self._chosen[i]]

    def _numbers_the_next(self, i: int, code: str) -> bool:
        """Whether the listing is the gutter of the one in the next cell of its row."""
        if not code.startswith("1\n") or i + 1 >= len(self._chosen):
            return False
        one, other = self._element(i), self._element(i + 1)
        row, cell = self._tables.row, self._tables.cell
        page, beside = self._page, self._chosen[i + 1]
        if row[one] < 0 or row[one] != row[other] or cell[one] == cell[other]:
            return False
        span = page.text[page.b_start[beside] : page.b_end[beside]]
        return bool(page.b_flags[beside] & s.PRE) and is_gutter(code, span.tobytes().decode())


def _marker_of(source: bytes, class_end: int) -> str:
    """Sign of the line whose cell has its class before `class_end`: `+`, `-`, a space, or none."""
    if not class_end:
        return ""
    stop = source.find(b"</td", class_end, class_end + _REACH)
    found = _MARKER.search(source, class_end, stop if stop >= 0 else class_end + _REACH)
    return found[1].decode() if found else ""
