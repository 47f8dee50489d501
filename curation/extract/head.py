"""Facts that are in a page's head, read without building a tree."""

from __future__ import annotations

import html as entities

import regex

_TITLE = regex.compile(r"<title\b[^>]*>(.*?)</title", regex.I | regex.S)
_HTML_LANG = regex.compile(
    r"""<html\b[^>]*?\s(?:xml:)?lang\s*=\s*["']?([a-z0-9_-]{2,20})""", regex.I
)
_SPACE = regex.compile(r"\s+")

#: The head of a page; titles further down belong to embedded graphics.
_HEAD_CHARACTERS = 100_000


def title_of(html: str) -> str:
    """The `<title>`, entities decoded, white space collapsed; "" when there is none."""
    found = _TITLE.search(html, 0, _HEAD_CHARACTERS)
    return _SPACE.sub(" ", entities.unescape(found.group(1))).strip() if found else ""


def declared_language(html: str) -> str:
    """The language that `<html lang>` declares, lower case; "" when it doesn't."""
    found = _HTML_LANG.search(html, 0, _HEAD_CHARACTERS)
    return found.group(1).lower() if found else ""


_TAG = regex.compile(r"<(/?)([a-z][a-z0-9]*)", regex.I)
_NO_END_TAG = """
area base br col embed hr img input link meta param source track wbr p li dt dd option tr td th
tbody thead tfoot colgroup optgroup rp rt
"""
_VOID = frozenset(_NO_END_TAG.split())


def deepest(html: str, limit: int) -> int:
    """Upper estimate of how deep elements nest, exact enough to refuse hostile pages.

    Counts open minus close tags of elements that need an end tag; stops just above `limit`.
    """
    if html.count("<") <= limit:
        return 0
    depth = top = 0
    for close, name in _TAG.findall(html):
        if name.lower() in _VOID:
            continue
        depth = max(0, depth - 1) if close else depth + 1
        if depth > top:
            top = depth
            if top > limit:
                return top
    return top
