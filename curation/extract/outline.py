"""Items and quotes that blocks are in, with the marks that markdown has for them."""

from typing import NamedTuple

import numpy as np

from curation.extract import blocks as s
from curation.extract.markup import TAG

#: Items and quotes (elements) around a block, outermost first.
Path = tuple[int, ...]

_H1, _H6, _LI, _OL, _QUOTE = (TAG[name] for name in ("h1", "h6", "li", "ol", "blockquote"))
_DT, _DD, _DL = TAG["dt"], TAG["dd"], TAG["dl"]
_LISTS = frozenset(TAG[name] for name in ("ul", "ol", "menu", "dir"))
_MAX_NESTING = 16  # deeper ones are flattened


class Place(NamedTuple):
    """Where a block is, and what it is there."""

    path: Path
    level: int  # of the heading that it is in; 0: none
    term: bool  # of a definition list


class Outline:
    """Items and quotes of a page."""

    def __init__(self, page: s.Page) -> None:
        # Lists, because numbers of arrays are slow to take singly.
        self._parent, self._tag = page.e_parent.tolist(), page.e_tag.tolist()
        self._places = {-1: Place((), 0, False)}
        self._number: dict[int, int] = {}  # of an item in its list
        self._before: dict[int, int] = {}  # item that a list within a list, not an item, follows
        self._other: set[int] = set()  # lists that have the other mark
        self._begun: set[int] = set()  # lists whose first mark is written
        count: dict[int, int] = {}
        last: dict[int, int] = {}
        kinds = np.isin(page.e_tag, [_LI, *_LISTS])
        for element in np.flatnonzero(kinds).tolist():
            parent = self._parent[element]
            if self._tag[element] == _LI:
                count[parent] = self._number[element] = count.get(parent, 0) + 1
                last[parent] = element
            elif parent in last and self._tag[parent] in _LISTS:
                self._before[element] = last[parent]

    def place(self, element: int) -> Place:
        """Where the blocks of an element are."""
        waiting = []
        while element not in self._places:
            waiting.append(element)
            element = self._before.get(element, self._parent[element])
        place = self._places[element]
        for inner in reversed(waiting):
            place = self._places[inner] = self._inside(place, inner)
        return place

    def _inside(self, place: Place, element: int) -> Place:
        tag = self._tag[element]
        if _H1 <= tag <= _H6:
            return place._replace(level=tag - _H1 + 1)
        if tag in (_LI, _QUOTE):
            deep = len(place.path) >= _MAX_NESTING
            return Place(place.path if deep else (*place.path, element), 0, False)
        if tag in (_DT, _DD, _DL):
            return place._replace(term=tag == _DT)
        return place

    def part(self, before: Path, behind: Path) -> None:
        """Give a list another mark than a like list just before it, which would be the same list."""
        if not before or not behind or self.siblings(before[0], behind[0]):
            return
        one, other = self._parent[before[0]], self._parent[behind[0]]
        both = self._is_item(before[0]) and self._is_item(behind[0])
        if both and one not in self._other and other not in self._begun:
            self._other.add(other)

    def siblings(self, one: int, other: int) -> bool:
        """Whether two are items of one list."""
        items = self._is_item(one) and self._is_item(other)
        return items and self._parent[one] == self._parent[other]

    def may_interrupt(self, element: int) -> bool:
        """Whether what begins with this element may follow a paragraph without an empty line."""
        return self._is_item(element) and self._mark(element) in ("- ", "* ", "1. ", "1) ")

    def marks(self, path: Path) -> str:
        """What precedes the first line of a block that is the first in these elements."""
        self._begun.update(self._parent[element] for element in path)
        return "".join(map(self._mark, path))

    def prefix(self, path: Path) -> str:
        """What precedes further lines in these elements."""
        return "".join(
            " " * len(self._mark(element)) if self._is_item(element) else "> " for element in path
        )

    def _is_item(self, element: int) -> bool:
        return self._tag[element] == _LI

    def _mark(self, element: int) -> str:
        if not self._is_item(element):
            return "> "
        parent = self._parent[element]
        other = parent in self._other
        if self._tag[parent] == _OL:
            return f"{self._number[element]}{')' if other else '.'} "
        return "* " if other else "- "
