"""Really Simple Licensing 1.0 (rslstandard.org): the terms of a site's content, in XML.

A document has `content` elements, each for the paths that match its `url`, with licences: uses that
are permitted or prohibited, and what is to be paid. One licence on one page is one line here:

    https://example.org/terms.xml /articles/ permits=search prohibits=ai-train payment=crawl
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from html.entities import entitydefs
from typing import NamedTuple
from xml.etree import ElementTree

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
    found, path = list[Licence](), ""
    try:
        if len(content) > MOST_BYTES:
            raise ValueError(f"{len(content)} bytes")
        if b"<!ENTITY" in content.replace(b"\0", b""):  # in UTF-16 and comments, too
            raise ValueError("entities are declared")
        parser = ElementTree.XMLParser()
        parser.entity.update(entitydefs)  # HTML's, of documents with a DOCTYPE of their own
        root = ElementTree.fromstring(_BEFORE.sub(rb"\1", content, 1), parser)
        for name, element in _own(root, 1):
            if name == "content":
                path = element.get("url", "").strip()
            elif name == "license":
                found.append(Licence(path, _given(element)))
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # LookupError: its encoding
        return str(error)
    return found


def _parted(written: str) -> tuple[str, str]:
    """Return the site in what `content` is for, in small letters, "" without one; its pattern."""
    if written[:1] in ("", "/", "*"):
        return "", pattern_of(written)
    *site, path = [*written.split("/", 3), ""][:4]
    return "/".join(site).lower(), pattern_of(f"/{path}")


def _own(element: ElementTree.Element, depth: int) -> Iterator[tuple[str, ElementTree.Element]]:
    """Yield an element at a depth and all in it by name, in order, but for what is in elements of
    others. Raises ValueError where one is not RSL's, or in another place."""
    waiting = [(element, depth)]
    while waiting:
        element, depth = waiting.pop()
        namespace, _, name = element.tag.rpartition("}")
        if namespace != f"{{{NAMESPACE}":
            if depth == 1:
                raise ValueError(f"{element.tag.lstrip('{').replace('}', ' ')} in place of rsl")
            continue
        if name not in _ELEMENTS or _DEPTHS.get(name, max(2, depth)) != depth:
            raise ValueError(f"unknown element {name}, or in another place")
        yield name, element
        waiting += [(child, depth + 1) for child in reversed(element)]


def _given(licence: ElementTree.Element) -> dict[str, tuple[str, ...]]:
    """Return what a licence says, by _LISTS."""
    given: dict[str, list[str]] = {}
    for name, element in _own(licence, _DEPTHS["license"]):
        if name == "payment":
            given.setdefault("payment", []).extend(
                element.get("type", "").replace(",", " ").split()
            )
        elif name == "amount" and not given.get("payment"):
            given["payment"] = ["purchase"]  # money is asked, of whatever type
        elif name in ("permits", "prohibits", "standard"):
            usage = element.get("type", "usage") == "usage" or name == "standard"
            texts = (element.text, *(child.tail for child in element))
            names = "".join(text or "" for text in texts).replace(",", " ").split()
            given.setdefault(name if usage else "only_for", []).extend(names)
    return {key: tuple(dict.fromkeys(names)) for key, names in given.items()}


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
