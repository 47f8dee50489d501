"""Marks of lists, definitions and quotations in plain text, as a reader of the page sees them."""

import html
from collections import Counter
from typing import NamedTuple

import regex

from curation.extract import blocks as s
from curation.extract.markup import TAG
from curation.extract.outline import Outline, Path

_LI, _OL, _DD, _QUOTE = TAG["li"], TAG["ol"], TAG["dd"], TAG["blockquote"]
_TAG = regex.compile(rb"<[^<>]*+>")
_TAG_BYTES = 1000  # longer tags of lists aren't read
_NO_MARK = regex.compile(r"list-style(?:-type)?\s*:\s*none", regex.I)
_CHECKBOX = regex.compile(
    rb"<li\b[^<>]*+>\s*+(?:<(?:p|label|span|div)\b[^<>]*+>\s*+)*+"
    rb"<input\b([^<>]*\btype\s*=\s*[\"']?checkbox[^<>]*)>",
    regex.I,
)
_CHECKED = regex.compile(rb"\schecked\b", regex.I)
_TYPED = regex.compile(r"[•·‣◦▪■●○–—*-]\s|\(?(?:\d{1,3}|[a-zA-Z])[.)]\s")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_MOST_ROMAN = 3999
_INDENT = "  "


class Prefix(NamedTuple):
    """What precedes the first line of a block, and before its other lines."""

    first: str
    other: str


class Marks:
    """Marks of the blocks of one page, asked for in their order."""

    def __init__(self, source: bytes, page: s.Page) -> None:
        self._source, self._page = source, page
        self._outline = Outline(page, definitions=True)
        self._before: Path = ()
        self._labels: dict[int, str] = {}  # of items
        self._number: dict[int, int] = {}  # of the next item of a list
        self._listed: dict[int, dict[str, str]] = {}  # attributes of lists
        items = (page.e_tag == _LI).nonzero()[0]
        self._sizes = Counter(page.e_parent[items].tolist())
        for element in items.tolist():
            self._labels[element] = self._label(element)

    def of(self, element: int, text: str) -> Prefix:
        """Prefix of the next block, which has this text and is in this element."""
        path = self._outline.place(element).path
        shared = 0
        for one, other in zip(self._before, path, strict=False):
            if one != other:
                break
            shared += 1
        self._before = path
        typed = bool(_TYPED.match(text))
        first, margin = "", ""
        for depth, inner in enumerate(path):
            tag = self._page.e_tag[inner]
            mark = self._labels.get(inner, "")
            if typed and not mark.startswith("- ["):
                mark = ""
            if tag == _QUOTE:
                first, margin = first + "> ", margin + "> "
            elif tag == _DD:
                first, margin = first + _INDENT, margin + _INDENT
            else:
                first += mark if depth >= shared else " " * len(mark)
                margin += " " * len(mark)
        return Prefix(first, margin)

    def _label(self, item: int) -> str:
        around = int(self._page.e_parent[item])
        if around not in self._listed:
            self._listed[around] = self._attributes(around)
        listed = self._listed[around]
        if _NO_MARK.search(listed.get("style", "")):
            return ""
        if self._page.e_tag[around] != _OL:
            start = int(self._page.e_at[item])
            box = _CHECKBOX.match(self._source, start, start + _TAG_BYTES)
            if box is None:
                return "- "
            return "- [x] " if _CHECKED.search(box[1]) else "- [ ] "
        step = -1 if "reversed" in listed else 1
        if around not in self._number:
            first = self._sizes[around] if step < 0 else 1
            self._number[around] = _whole(listed.get("start"), first)
        number = _whole(self._attributes(item).get("value"), self._number[around])
        self._number[around] = number + step
        return f"{_numeral(number, listed.get('type', '1'))}. "

    def _attributes(self, element: int) -> dict[str, str]:
        start = int(self._page.e_at[element])
        tag = _TAG.match(self._source, start, start + _TAG_BYTES)
        if tag is None:
            return {}
        text = tag[0].decode("utf-8", "replace")
        return {
            name.lower(): html.unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(text)
        }


_ATTRIBUTE = regex.compile(r"""\s([\w-]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++)))?""")


def _whole(text: str | None, otherwise: int) -> int:
    found = regex.fullmatch(r"\s*(-?\d{1,6})\s*", text or "")
    return int(found[1]) if found else otherwise


def _numeral(number: int, kind: str) -> str:
    """A number as `type` of a list asks for it: 1, a, A, i or I."""
    if kind in ("a", "A") and number > 0:
        letters = ""
        while number > 0:
            number, rest = divmod(number - 1, 26)
            letters = chr(ord(kind) + rest) + letters
        return letters
    if kind in ("i", "I") and 0 < number <= _MOST_ROMAN:
        roman = ""
        for value, sign in _ROMAN:
            count, number = divmod(number, value)
            roman += sign * count
        return roman if kind == "i" else roman.upper()
    return str(number)
