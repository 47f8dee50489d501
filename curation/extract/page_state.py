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
_MARKS = tuple(
    map(word, (b"__NEXT_DATA__", b"application/json", b"_STATE__", b"_DATA__", b"__NUXT__",
               b"__remixContext", b"__sveltekit", b"__next_f"))
)  # fmt: skip
#: Scripts in which a framework has its state as a program, or as JSON within JSON: only its long
#: strings are read there.
_PROGRAM = re.compile(
    rb"""<script\b(?![^<>]*\b(?:src=|ld\+json))[^<>]*>(?=[^<]{0,2000}?(?:__NUXT|__remixContext|__sveltekit"""
    rb"""|__next_f|__INITIAL_STATE__|__PRELOADED_STATE__))""",
    re.I,
)
#: A string, or what begins as one and ends with its line, so that nothing is searched twice.
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*+("|)')
_KEY = re.compile(rb"""(\w{1,40})["']?\s*[:=]\s*$""")
_KEY_BYTES = 50
_MOST_BYTES = 5_000_000  # of a script
_MOST_SCRIPTS = 8
_MOST_STRINGS = 100  # of a script
_LEAST = 400  # characters of an article
_SENTENCE = re.compile(r"[.!?…。！？।۔؟](?:\s|[\"'»”」]|<|$)|[。！？]")
_SENTENCES = 3
#: Rows that Next.js sends: elements, and text before which its length stands.
_ROW = re.compile(r"\w{1,6}:[\[{\"I$]")
_TEXT_ROW = re.compile(r"^\w{1,6}:T[0-9a-f]{1,6},")
_NO_TEXT = re.compile(r"\s*(?:[\[{]|https?:|data:|<svg|@media|\.[\w-]+\s*\{|\(?function\b|var )")
#: Keys whose texts are no article.
_OTHER_KEYS = re.compile(
    r"cookie|consent|privacy|legal|terms|style|css|query|script|token|translation|messages|i18n|svg"
    r"|schema|footer|disclaimer",
    re.I,
)
#: What rich text calls its nodes, their kinds and their words.
_NODES = (
    "content", "children", "blocks", "nodes", "body", "richText", "paragraphs", "components", "slices",
)  # fmt: skip
_KINDS = ("type", "_type", "nodeType", "__typename", "tagName", "kind", "slice_type", "name")
_WORDS = ("text", "value", "html", "markdown", "content")
#: Where a node of rich text has its words or nodes: Editor.js, WordPress, Prismic.
_INNER = ("data", "attributes", "attrs", "primary")
_MOST_DEPTH = 40


def stated_article(source: bytes) -> str:
    """The longest article in the state of a page: HTML, or lines of text; "" when there is none."""
    if not any(has(source, mark) for mark in _MARKS):
        return ""
    return _longest(_states(source)) or _longest(_strings(source))


def _longest(states: Iterator[Any]) -> str:
    best = ""
    for state in states:
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


def _strings(source: bytes) -> Iterator[Any]:
    """Long strings in the scripts of a framework, and what those say that are JSON themselves."""
    for place in itertools.islice(_PROGRAM.finditer(source), _MOST_SCRIPTS):
        end = source.find(b"</script", place.end(), place.end() + _MOST_BYTES)
        long = (
            found
            for found in _STRING.finditer(source, place.end(), max(end, 0))
            if found[1] and found.end() - found.start() > _LEAST
        )
        for found in itertools.islice(long, _MOST_STRINGS):
            key = _KEY.search(source, max(0, found.start() - _KEY_BYTES), found.start())
            if key and _OTHER_KEYS.search(key[1].decode()):
                continue
            text = _read(found[0].decode("utf-8", "replace"))
            if isinstance(text, str) and not _ROW.match(text):
                yield {"": _TEXT_ROW.sub("", text)}


def _read(text: str) -> Any:
    """What JSON says; None where it is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _articles(state: Any) -> Iterator[str]:
    """Texts of a state that may be an article: long strings, and rich text."""
    waiting = [state]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
            yield from (text for text in item if isinstance(text, str) and _is_prose(text))
        elif isinstance(item, dict):
            for key, value in item.items():
                if _OTHER_KEYS.search(key):
                    continue
                if isinstance(value, str):
                    if value[:1] in ("{", "[") and len(value) > _LEAST:
                        waiting.append(_read(value))  # an answer, as SvelteKit notes it
                    elif _is_prose(value):
                        yield value
                    continue
                if key in _NODES and isinstance(value, list):
                    lines = (node if isinstance(node, str) else _words(node, 0) for node in value)
                    yield "\n".join(filter(None, map(str.strip, lines)))
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
    for key in _INNER:
        if isinstance(node.get(key), dict):
            return _words(node[key], depth + 1)
    return ""


_BLOCK = re.compile(r"paragraph|heading|block$|list|li$|p$|h\d$", re.I)
