"""Articles that a page has only in the state of its framework, `__NEXT_DATA__` and the like, as JSON."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from curation.text.search import has, word

_SCRIPT = re.compile(
    rb"""<script\b(?=[^<>]*\b(?:id=["']?__\w+|type=["']?application/json))[^<>]*>""", re.I
)
_ASSIGNED = re.compile(
    rb"\b(?:window|self|globalThis)\.__[A-Z][A-Z_]{2,40}__\s*=\s*(?=\{)|\b__INITIAL_STATE__\s*=\s*(?=\{)"
)
_MARKS = tuple(map(word, (b"__NEXT_DATA__", b"application/json", b"_STATE__", b"_DATA__")))
_MOST_BYTES = 5_000_000  # of a script
_MOST_SCRIPTS = 8
_LEAST = 400  # characters of an article
_SENTENCE = re.compile(r"[.!?…。！？।۔؟](?:\s|[\"'»”」]|<|$)|[。！？]")
_SENTENCES = 3
_NO_TEXT = re.compile(r"\s*(?:[\[{]|https?:|data:|<svg|@media|\.[\w-]+\s*\{|\(?function\b|var )")
#: Keys whose texts are no article.
_OTHER_KEYS = re.compile(
    r"cookie|consent|privacy|legal|terms|style|css|query|script|token|translation|messages|i18n|svg"
    r"|schema|footer|disclaimer",
    re.I,
)
#: What rich text calls its nodes, their kinds and their words.
_NODES = ("content", "children", "blocks", "nodes", "body", "richText", "paragraphs", "components")
_KINDS = ("type", "_type", "nodeType", "__typename", "tagName", "kind")
_WORDS = ("text", "value", "html", "markdown")
_MOST_DEPTH = 40


def stated_article(source: bytes) -> str:
    """The longest article in the state of a page: HTML, or lines of text; "" when there is none."""
    if not any(has(source, mark) for mark in _MARKS):
        return ""
    best = ""
    for state in _states(source):
        for text in _articles(state):
            if len(text) > max(len(best), _LEAST):
                best = text
    return best


def _states(source: bytes) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    for place in (
        *itertools.islice(_SCRIPT.finditer(source), _MOST_SCRIPTS),
        *itertools.islice(_ASSIGNED.finditer(source), _MOST_SCRIPTS),
    ):
        end = source.find(b"</script", place.end(), place.end() + _MOST_BYTES)
        script = source[place.end() : end] if end >= 0 else b""
        try:
            yield decoder.raw_decode(script.decode("utf-8", "replace").strip())[0]
        except (ValueError, RecursionError):
            continue


def _articles(state: Any) -> Iterator[str]:
    """Texts of a state that may be an article: long strings, and rich text."""
    waiting = [state]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            for key, value in item.items():
                if _OTHER_KEYS.search(key):
                    continue
                if isinstance(value, str):
                    if _is_prose(value):
                        yield value
                    continue
                if key in _NODES and isinstance(value, list):
                    yield "\n".join(filter(None, (_words(node, 0).strip() for node in value)))
                waiting.append(value)


def _is_prose(text: str) -> bool:
    if len(text) < _LEAST or _NO_TEXT.match(text):
        return False
    return (
        sum(1 for _ in zip(_SENTENCE.finditer(text), range(_SENTENCES), strict=False)) >= _SENTENCES
    )


def _words(node: Any, depth: int) -> str:
    """The text of a node of rich text: a line for each block in it."""
    if not isinstance(node, dict) or depth > _MOST_DEPTH:
        return ""
    if depth == 0 and not any(kind in node for kind in _KINDS):
        return ""
    for key in _WORDS:
        if isinstance(node.get(key), str):
            return str(node[key])
    for key in _NODES:
        if isinstance(node.get(key), list):
            parts = [_words(inner, depth + 1) for inner in node[key]]
            kinds = {str(inner.get(kind, "")) for inner in node[key] if isinstance(inner, dict)
                     for kind in _KINDS}  # fmt: skip
            blocks = any(_BLOCK.match(kind) for kind in kinds)
            return ("\n" if blocks else "").join(filter(None, parts))
    return ""


_BLOCK = re.compile(r"paragraph|heading|block$|list|li$|p$|h\d$", re.I)
