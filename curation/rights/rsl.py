"""Really Simple Licensing 1.0 (rslstandard.org): the terms of a site's content, in XML.

A document has `content` elements, each for the paths that match its `url`, with licences: uses that
are permitted or prohibited, and what is to be paid. One licence on one page is one line here:

    https://example.org/terms.xml /articles/ permits=search prohibits=ai-train payment=crawl
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.parsers import expat

from curation.rights.robots import matches, path_of, pattern_of
from curation.rights.usage import Answer, is_unread, unread

MEDIA_TYPE = "application/rsl+xml"
NAMESPACE = "https://rslstandard.org/rsl"
#: Larger documents aren't read, nor those that say more of one page.
MOST_BYTES, _MOST_TEXT = 1 << 20, 1 << 13

_ELEMENTS = frozenset(
    "rsl content schema alternate copyright terms license permits prohibits payment standard "
    "custom amount accepts legal".split()
)
#: Blanks before a document, which pages have.
_BEFORE = re.compile(rb"\A(\xef\xbb\xbf)?\s+(?=<)")
_DEPTHS = {"rsl": 1, "content": 2, "license": 3}
#: What names of uses mean; all others, `ai-index` among them, are none of those asked for.
_USES = {
    "all": ("train", "search", "ai-input"),
    "ai-all": ("train", "ai-input"),
    "ai-train": ("train",),
    "train-ai": ("train",),  # as the project's guide writes it
    "ai-input": ("ai-input",),
    "search": ("search",),
}
#: Of a licence: uses, types of payment, users and countries, and addresses of shared licences.
_LISTS = "permits", "prohibits", "payment", "only_for", "standard"
#: Types of payment that ask for no money.
_FREE = frozenset(("free", "attribution"))


class Licence(NamedTuple):
    """One licence of one `content`."""

    path: str  # pattern, as it is written
    lists: Mapping[str, tuple[str, ...]]  # what it says, by _LISTS; one that permits is closed

    def line(self, address: str) -> str:
        """Return the licence as a line; see the module."""
        said = ((name, self.lists.get(name)) for name in _LISTS)
        lists = (f"{n}={','.join(v)}" for n, v in said if v or (v is not None and n == "permits"))
        return " ".join([address, self.path.replace(" ", "%20") or "/", *lists])

    @classmethod
    def of_line(cls, line: str) -> tuple[str, Licence | None]:
        """Return the address in a line, and its licence; None of a document that wasn't read."""
        address, *rest = line.split(" ")
        if not rest or is_unread(line):
            return address, None
        pairs = (part.partition("=") for part in rest[1:])
        given = {key: tuple(filter(None, values.split(","))) for key, _, values in pairs}
        return address, cls(rest[0], given)

    def answers(self, bought: bool = False) -> Iterator[tuple[str, Answer, bool]]:
        """Yield uses, what the licence says of each, and whether it prohibits the use by name."""
        refused, permitted = (
            {use for name in self.lists.get(of, ()) for use in _USES.get(name, ())}
            for of in ("prohibits", "permits")
        )
        is_free = _FREE.issuperset(self.lists.get("payment", ()))
        met = bought or (is_free and not self.lists.get("only_for"))
        for use in _USES["all"]:
            if use in refused:
                yield use, "deny", True
            elif use in permitted and met:
                yield use, "allow", False
            elif "permits" in self.lists or not is_free:
                yield use, "deny", False


def is_rsl(media_type: str) -> bool:
    """Return whether a media type, with parameters or without, is that of RSL."""
    return media_type.partition(";")[0].strip().lower() == MEDIA_TYPE


def lines_of(content: bytes, url: str, address: str) -> list[str]:
    """Return the licences of a document that are for a page, a line each; see the module.

    A document that is malformed, too large, has entities, says too much of the page, or isn't
    RSL permits nothing: its line is its address, followed by why it can't be read.

    Args:
        content: of the document.
        url: of the page.
        address: of the document, or a name for one that the page holds.
    """
    found = _licences(content)
    if isinstance(found, str):
        return [f"{address} {unread(found)}"]
    path, sites = path_of(url), ("", _parted(url)[0])
    parted = ((one, *_parted(one.path)) for one in found)
    lines = [o.line(address) for o, site, at in parted if site in sites and matches(at, path)]
    if (size := sum(map(len, lines))) > _MOST_TEXT:
        return [f"{address} {unread(f'{size} characters on one page')}"]
    return lines


@functools.lru_cache(maxsize=16)  # all pages of a site have one
def _licences(content: bytes) -> list[Licence] | str:
    """Return the licences of a document, or why it can't be read."""
    reader = _Reader()
    try:
        reader.read(content)
    except (expat.ExpatError, ValueError, LookupError) as error:  # LookupError: its encoding
        return str(error)
    return reader.licences


def _parted(written: str) -> tuple[str, str]:
    """Return the site in what `content` is for, in small letters, "" without one; its pattern."""
    if written[:1] in ("", "/", "*"):
        return "", pattern_of(written)
    *site, path = [*written.split("/", 3), ""][:4]
    return "/".join(site).lower(), pattern_of(f"/{path}")


class _Reader:
    """Collects the licences of a document.

    Raises ExpatError or ValueError where it is no valid one.
    """

    def __init__(self) -> None:
        self.licences: list[Licence] = []
        self._path = ""
        self._given: dict[str, list[str]] = {}
        self._list: list[str] | None = None  # that the text at hand is part of
        self._foreign = 0  # depth in elements of others
        self._depth = 0

    def read(self, content: bytes) -> None:
        if len(content) > MOST_BYTES:
            raise ValueError(f"{len(content)} bytes")
        parser: Any = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True  # not a call for each line
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._entity
        parser.Parse(_BEFORE.sub(rb"\1", content, 1), True)

    def _entity(self, *_: object) -> None:
        raise ValueError("entities are declared")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, element = name.rpartition(" ")
        self._depth += 1
        if self._foreign or namespace != NAMESPACE:
            if self._depth == 1:
                raise ValueError(f"{name} in place of rsl")
            self._foreign += 1
        elif element not in _ELEMENTS or _DEPTHS.get(element, max(2, self._depth)) != self._depth:
            raise ValueError(f"unknown element {element}, or in another place")
        elif element == "content":
            self._path = attributes.get("url", "").strip()
        elif element == "license":
            self._given = {}
        elif element == "payment":
            self._given.setdefault("payment", []).extend(attributes.get("type", "").split())
        elif element == "amount" and not self._given.get("payment"):
            self._given["payment"] = ["purchase"]  # money is asked, of whatever type
        elif element in ("permits", "prohibits", "standard"):
            usage = attributes.get("type", "usage") == "usage" or element == "standard"
            self._list = self._given.setdefault(element if usage else "only_for", [])
            self._list.append("")

    def _text(self, text: str) -> None:
        if self._list is not None and not self._foreign:
            self._list[-1] += text

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._foreign:
            self._foreign -= 1
            return
        self._list = None
        if name.endswith(" license"):
            given = {k: tuple(dict.fromkeys(_names(v))) for k, v in self._given.items()}
            self.licences.append(Licence(self._path, given))


def _names(texts: Iterable[str]) -> Iterator[str]:
    """Yield names separated by white space, or by commas as in drafts."""
    for text in texts:
        yield from text.replace(",", " ").split()


def answers_of(lines: Sequence[str], bought: Sequence[str] = ()) -> dict[str, Answer]:
    """Return what one document says of a page, given the lines of its licences.

    The narrowest path that speaks of a use decides. Of licences for one path any may be chosen,
    but what one of them prohibits by name is prohibited.

    Args:
        lines: see the module.
        bought: addresses of documents whose conditions are met.
    """
    found = [
        (len(_parted(one.path)[1]), address, one)
        for address, one in map(Licence.of_line, lines)
        if one
    ]
    said: dict[str, Answer] = {}
    for size in sorted({size for size, _, _ in found}, reverse=True):
        here: dict[str, list[tuple[Answer, bool]]] = {}
        for _, address, one in (each for each in found if each[0] == size):
            for use, answer, by_name in one.answers(address in bought):
                here.setdefault(use, []).append((answer, by_name))
        for use, answers in here.items():
            free = ("allow", False) in answers and ("deny", True) not in answers
            said.setdefault(use, "allow" if free else "deny")
    return said
