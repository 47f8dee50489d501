"""Programming languages that class names state."""

from __future__ import annotations

import functools
import html

import numpy as np
import regex

from curation.compiled import Bools, Int32s, kernel
from curation.extract import blocks as s

_LEVELS = 4  # elements around code whose class may name its language
_LANGUAGE = regex.compile(
    r"(?:^|\s)(?:ltx_lst_language_"
    r"|(?:language|lang|highlight-source|highlight|brush|sourceCode|code|hljs)[-:\s]+)"
    r"([A-Za-z][\w+#.-]{0,20})(?![\w+#.-])",
    regex.I,
)
_NO_LANGUAGE = frozenset(
    "block box file wrapper container copy toolbar text-wrap highlight code pre none content body panel frame"
    " header title inner line lines view viewer area example examples snippet sample section editor group".split()
)
_PREFIXES = ("language-", "lang-", "highlight-", "source-", "hl-")
#: Ends of names of what is around a listing: `js-syntax-highlight`, `blob-viewer`.
_COMPONENTS = ("-highlight", "-viewer", "-block", "-wrapper", "-container", "-panel", "-numbers")


def language_of(classes: str) -> str:
    """Programming language that class names state (`language-python`, `brush: js`), or ""."""
    for found in _LANGUAGE.finditer(classes):
        name = found.group(1).lower().rstrip(";")
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        if name not in _NO_LANGUAGE and not name.endswith(_COMPONENTS):
            return name
    return ""


@functools.lru_cache(1 << 10)  # the pieces of a listing have one class
def _language(classes: bytes) -> str:
    return language_of(html.unescape(classes.decode("utf-8", "replace")))


class StatedLanguages:
    """What the listings of one page say that they are written in."""

    def __init__(self, source: bytes, page: s.Page) -> None:
        self._source, self._page = source, page
        # Most listings have no class, and a page may have a hundred thousand.
        self._classed = _classed(
            page.b_start, page.b_end, page.b_element, page.e_parent, page.e_class,
            page.a_at, page.a_kind,
        ).tolist()  # fmt: skip

    def of(self, block: int) -> str:
        """Language of a listing by the classes of <code> in it and around it, or ""."""
        if not self._classed[block]:
            return ""
        page = self._page
        first, last = np.searchsorted(page.a_at, [page.b_start[block], page.b_end[block]])
        for atom in range(first, last):
            if page.a_kind[atom] == s.CODE_CLASS:
                if name := _language(self._source[page.a_start[atom] : page.a_end[atom]]):
                    return name
        element = int(page.b_element[block])
        for _ in range(_LEVELS):
            if element <= 0:
                break
            start, end = page.e_class[element].tolist()
            if end > start and (name := _language(self._source[start:end])):
                return name
            element = int(page.e_parent[element])
        return ""


@kernel
def _classed(
    b_start: Int32s,
    b_end: Int32s,
    b_element: Int32s,
    e_parent: Int32s,
    e_class: Int32s,
    a_at: Int32s,
    a_kind: Int32s,
) -> Bools:
    """Whether each block [n] has a class in it, or on an element near around it."""
    out = np.zeros(len(b_start), np.bool_)
    atom = 0
    for b in range(len(b_start)):
        while atom < len(a_at) and a_at[atom] < b_end[b]:
            if a_kind[atom] == s.CODE_CLASS and a_at[atom] >= b_start[b]:
                out[b] = True
            atom += 1
        element = b_element[b]
        for _ in range(_LEVELS):
            if element <= 0:
                break
            out[b] = out[b] or e_class[element, 1] > e_class[element, 0]
            element = e_parent[element]
    return out
