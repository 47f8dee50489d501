"""Articles that a page has only in its scripts: in the JSON of a framework's state, or as a string of
HTML in any program, under whatever name.

Pages that React streams: parts that come late, in hidden elements, are put where they belong.

The page has a place, `<template id="B:0"></template>` with what is shown while it waits up to
`<!--/$-->`, or `<template id="P:1"></template>` with nothing; behind it `<div hidden id="S:0">` with
the part, and a script, `$RC("B:0","S:0")` or `$RS("S:1","P:1")`, that puts one into the other.

Questions, answers and posts that a page states in its JSON-LD: blocks that say the same are content.
"""

import bisect
import functools
import heapq
import html
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.bytes.search import has, word
from curation.extract import blocks as s

#: Scripts that are elsewhere, or say what the page is about: these are read by `linked_data`.
_OTHER_SCRIPT = re.compile(rb"\bsrc\s*=|ld\+json", re.I)
_MOST_SCRIPTS = 8  # the longest ones
_MOST_BYTES = 5_000_000  # of a script
#: Where JSON begins behind the name that it is given.
_ASSIGNED = re.compile(r"""=\s*(?=\{\s*"|\[\s*[{["])""")
#: A string, or what begins as one and ends with its line, so that nothing is searched twice. What
#: comes before it tells its beginning from its end, wherever quotes in comments hide which is which.
_STRING = re.compile(
    r"""[\s:=,;(\[{+?&|](?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+("|)|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+('|))"""
)
#: What programs write in strings and JSON does not.
_ESCAPE = re.compile(r"""\\(?:x([0-9a-fA-F]{2})|([^"\\/bfnrtu])|.)|\"""")
_KEY = re.compile(r"""(\w{1,40})["']?\s*[:=]\s*$""")
_KEY_CHARACTERS = 50
_NEAR = 2000  # characters around a string in which the page's title may be
_TITLED = 2  # times its length more counts what is near it
_PARTS_OF_TITLE = re.compile(r"\s[-–—|·•]\s")
_MOST_STRINGS = 100  # of a script, and of places where JSON may begin
_LEAST = 400  # bytes of an article: a letter of Han or kana has three, and says as much
_SENTENCE = re.compile(r"[.!?…。！？।۔؟](?:\s|[\"'»”」]|<|$)|[。！？]|</p\b")
_SENTENCES = 3
_PARAGRAPH = re.compile(r"<(?:p|br|div)\b", re.I)
_LESS = r"(?:amp;)*(?:lt|#0*60|#x0*3c);"
#: What begins a tag as HTML escapes it, or a paragraph's as JSON does, once or more often.
_ESCAPED_TAG = re.compile(rf"(&){_LESS}|\\(?:u00|x)(?:3c|26{_LESS})(?=/?(?:p|br|div)\b)", re.I)
_LAYERS = 4  # of escapes
_TAG = re.compile(r"<[^<>]*>")
#: Rows that Next.js sends: elements, and text before which its length stands.
_ROW = re.compile(r"^\w{1,6}:(?=[\[{\"])")
_TEXT_ROW = re.compile(r"^\w{1,6}:T[0-9a-f]{1,6},")
_NO_TEXT = re.compile(
    r"\s*(?:[\[{]|https?:|data:|<svg|@media|\.[\w-]+\s*\{|\(?function\b|var |(?s:.*?(?:\{\{|\$\{|<%|<form\b)))"
)
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


def stated_article(source: bytes, titles: Sequence[str] = ()) -> str:
    """Return the longest article in the scripts of a page: HTML, or lines of text; "" when there is none.
    What is near one of the page's titles counts as longer.
    """
    named = [max(_PARTS_OF_TITLE.split(title), key=len) for title in filter(None, titles)]
    named += [json.dumps(title)[1:-1] for title in named]
    best, most = "", 0
    for script in _scripts(source):
        of_states = ((text, 1) for state in _states(script) for text in _articles(state))
        for text, weight in itertools.chain(of_states, _strings(script, named)):
            if weight * len(text) > most and _is_long(text):
                best, most = text, weight * len(text)
    return best


def _scripts(source: bytes) -> Iterator[str]:
    """Yield the longest scripts of a page that are long enough for an article."""
    found: list[bytes] = []
    start = source.find(b"<script")
    while (begin := source.find(b">", start) + 1) and start >= 0:
        if (end := source.find(b"</script", begin)) < 0:
            break
        if _LEAST < end - begin < _MOST_BYTES and not _OTHER_SCRIPT.search(source, start, begin):
            found.append(source[begin:end])
        start = source.find(b"<script", end)
    for script in heapq.nlargest(_MOST_SCRIPTS, found, len):
        yield script.decode("utf-8", "replace").strip()


def _states(script: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    places = (place.end() for place in _ASSIGNED.finditer(script))
    for place in itertools.chain([0], itertools.islice(places, _MOST_STRINGS)):
        try:
            yield decoder.raw_decode(script, place)[0]
        except (ValueError, RecursionError):
            continue


def _strings(script: str, titles: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the long strings of a program that are HTML, or JSON that has such, with their weights."""
    long = (
        found for found in _STRING.finditer(script) if (found[1] or found[2]) and _is_long(found[0])
    )
    for found in itertools.islice(long, _MOST_STRINGS):
        start, end = found.span()
        key = _KEY.search(script, max(0, start - _KEY_CHARACTERS), start + 1)
        if key and _OTHER_KEYS.search(key[1]):
            continue
        whole = _read(found[0][1:]) or _unquoted(found[0][2:-1])
        if not isinstance(whole, str):
            continue
        weight = 1 + _TITLED * any(t in script[max(0, start - _NEAR) : end + _NEAR] for t in titles)
        text = _TEXT_ROW.sub("", whole)
        for line in text.split("\n") if _ROW.match(text) else [text]:
            for article in _articles({"": _ROW.sub("", line)}):
                if len(text) < len(whole) or _PARAGRAPH.search(article):
                    yield article, weight


def _as_json(escape: re.Match[str]) -> str:
    same = escape[0] if len(escape[0]) > 1 else '\\"'
    return f"\\u00{escape[1]}" if escape[1] else escape[2] or same


def _unquoted(text: str) -> Any:
    """What a program's string between quotes is; None where it is none."""
    return _read(f'"{_ESCAPE.sub(_as_json, text)}"')


def _bare(text: str) -> str:
    """A string whose tags are escaped, without the escapes; any other as it is."""
    for _ in range(_LAYERS):
        found = None if "<" in text else _ESCAPED_TAG.search(text)
        if found:
            text = html.unescape(text) if found[1] else _unquoted(text) or text
    return text


def _read(text: str) -> Any:
    """What JSON says; None where it is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _articles(state: Any) -> Iterator[str]:
    """Texts of a state that may be an article: long strings, and rich text."""
    waiting, is_other = [state], functools.cache(_OTHER_KEYS.search)
    while waiting:
        item = waiting.pop()
        if isinstance(item, (list, dict)):
            pairs = item.items() if isinstance(item, dict) else (("", one) for one in item)
            for key, value in pairs:
                if is_other(key):
                    continue
                if not isinstance(value, str):
                    if key in _NODES and isinstance(value, list):
                        lines = (one if isinstance(one, str) else _words(one, 0) for one in value)
                        yield _bare("\n".join(filter(None, map(str.strip, lines))))
                    waiting.append(value)
                elif _is_long(value) and value[0] in "{[":
                    waiting.append(_read(value))  # an answer, as SvelteKit notes it
                elif _is_long(value) and _is_prose(text := _bare(value)):
                    yield text


def _is_long(text: str) -> bool:
    """Whether a text may be an article, by its bytes in UTF-8."""
    return 4 * len(text) > _LEAST and len(text.encode("utf-8", "surrogatepass")) > _LEAST


def _is_prose(text: str) -> bool:
    worded = _is_long(_TAG.sub("", text)) and not _NO_TEXT.match(text)
    sentences = itertools.islice(_SENTENCE.finditer(text), _SENTENCES)
    return worded and len(list(sentences)) == _SENTENCES


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


_MOVE = re.compile(rb"""\$R([CS])\(\s*["']([\w:.-]{1,40})["']\s*,\s*["']([\w:.-]{1,40})["']""")
_TEMPLATE, _COMPLETES, _SHOWS = word(b"<template"), word(b"$RC("), word(b"$RS(")
_PART = re.compile(rb"""<div\s+hidden(?:="")?\s+id=["']([\w:.-]{1,40})["']\s*>""")
_PLACE = re.compile(
    rb"""<template\s[^<>]{0,100}?id=["']([\w:.-]{1,40})["'][^<>]{0,100}>\s*</template>"""
)
_EDGE = re.compile(rb"<(/?)div\b", re.I)
_WAITING_ENDS = b"<!--/$-->"
_WAITING = re.compile(rb"<!--(?:\$[?!]?|/\$)-->")
_MOST_PARTS = 50  # parts within parts


def in_place(source: bytes) -> bytes:
    """A page with its late parts where their script puts them; any other page as it is. O(bytes)."""
    if not has(source, _TEMPLATE) or not (has(source, _COMPLETES) or has(source, _SHOWS)):
        return source
    moves: dict[bytes, bytes] = {}  # part by place
    for kind, one, other in _MOVE.findall(source):
        moves.setdefault(*((one, other) if kind == b"C" else (other, one)))
    parts = _parts(source) if moves else {}
    if not parts:
        return source
    return _Page(source, moves, parts).whole()


def _parts(source: bytes) -> dict[bytes, tuple[int, int, int, int]]:
    """Of each part: start and end of its element, and of its content."""
    starts = {found.start(): found for found in _PART.finditer(source)}
    if not starts:
        return {}
    parts: dict[bytes, tuple[int, int, int, int]] = {}
    opened: list[int] = []
    for edge in _EDGE.finditer(source, min(starts)):
        if not edge[1]:
            opened.append(edge.start())
        elif opened and (found := starts.get(opened.pop())):
            end = source.find(b">", edge.end()) + 1 or len(source)
            parts.setdefault(found[1], (found.start(), end, found.end(), edge.start()))
    return parts


class _Page:
    def __init__(
        self,
        source: bytes,
        moves: dict[bytes, bytes],
        parts: dict[bytes, tuple[int, int, int, int]],
    ) -> None:
        self._source, self._moves, self._parts = source, moves, parts
        self._used: set[bytes] = set()
        places = [found for found in _PLACE.finditer(source) if found[1] in moves]
        self._behind = _ends(source, places)
        wanted = set(moves.values())
        self._events = sorted(
            [(place.start(), True, place[1]) for place in places]
            + [(part[0], False, name) for name, part in parts.items() if name in wanted]
        )

    def whole(self) -> bytes:
        text = self._between(0, len(self._source), 0)
        return text if self._used else self._source

    def _between(self, start: int, end: int, depth: int) -> bytes:
        """The source from start to end, parts in their places, and left out where they came."""
        out: list[bytes] = []
        at = start
        for k in range(bisect.bisect_left(self._events, (start,)), len(self._events)):
            where, is_place, name = self._events[k]
            if where >= end:
                break
            if where < at:
                continue
            if not is_place:
                out.append(self._source[at:where])
                at = self._parts[name][1]
                continue
            part = self._parts.get(self._moves[name])
            if part is None or self._moves[name] in self._used or depth >= _MOST_PARTS:
                continue
            if part[0] <= where < part[1]:
                continue  # a place within the part that it waits for
            self._used.add(self._moves[name])
            out += [self._source[at:where], self._between(part[2], part[3], depth + 1)]
            at = min(end, self._behind[where])
        out.append(self._source[at:end])
        return b"".join(out)


def _ends(source: bytes, places: list[re.Match[bytes]]) -> dict[int, int]:
    """Where what is shown while each place waits ends."""
    ends = {place.start(): place.end() for place in places}
    marks = sorted(
        [(place.start(), place) for place in places]
        + [(mark.start(), mark) for mark in _WAITING.finditer(source)],
        key=lambda mark: mark[0],
    )
    opened: list[list[int]] = []  # of each pair of comments, the places directly in it
    for _, mark in marks:
        if mark.re is _PLACE:
            if opened and not mark[1].startswith(b"P"):
                opened[-1].append(mark.start())
        elif mark[0] != _WAITING_ENDS:
            opened.append([])
        elif opened:
            ends |= dict.fromkeys(opened.pop(), mark.end())
    return ends


def linked_data(source: bytes, page: s.Page, marks: Sequence[bytes]) -> Iterator[Any]:
    """Yield what the page's JSON-LD scripts hold that have one of `marks`, those that are JSON."""
    for slot in range(s.LINKED_DATA, s.ITEM_TYPES, 2):
        start, end = page.facts[slot], page.facts[slot + 1]
        data = source[start:end]
        if not start or not any(mark in data for mark in marks):
            continue
        try:
            yield json.loads(data.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            continue


_MARKS = (b'"Question"', b'"Answer"', b'"DiscussionForumPosting"')
_THREADS = frozenset(("DiscussionForumPosting", "QAPage"))
#: What each type says. A comment is content in a thread only.
_SAYS = {
    "Question": ("name", "text"),
    "Answer": ("text",),
    "DiscussionForumPosting": ("text", "articleBody"),
    "Comment": ("text",),
}
#: Bytes of letters and digits: shorter blocks are labels that occur in any sentence.
_LEAST_SAID = 24
_LINKED = 0.5  # of a block's characters: links to other pages may repeat what this one says
_SIGNS = bytes(c for c in range(128) if not chr(c).isalnum())
_WORK = 50  # bytes compared for each byte of the page, so that time stays linear


def stated_posts(
    source: bytes, page: s.Page, kept: npt.NDArray[np.bool_], barred: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which blocks [n] that are neither `kept` nor `barred` a question, an answer or a post of
    the JSON-LD has word for word. Of blocks that say the same, one is enough."""
    out = np.zeros(len(kept), np.bool_)
    said = "\n".join(map(letters, _stated(source, page))).encode()
    if len(said) < _LEAST_SAID:
        return out
    seen = {_text(page, b) for b in np.flatnonzero(kept).tolist()}
    left = _WORK * len(source)
    linked = page.b_link_chars > _LINKED * page.b_chars
    for b in np.flatnonzero(
        ~(kept | barred | linked) & (page.b_chars >= _LEAST_SAID // 4)
    ).tolist():
        text = _text(page, b)
        if len(text) < _LEAST_SAID or text in seen:
            continue
        left -= len(said)
        if left < 0:
            break
        if text in said:
            out[b] = True
            seen.add(text)
    return out


def _text(page: s.Page, block: int) -> bytes:
    raw = page.text[page.b_start[block] : page.b_end[block]].tobytes()
    return letters(raw.decode("utf-8", "replace")).encode()


def letters(text: str) -> str:
    """Return the letters and digits of a text, without case."""
    if text.isascii():  # sooner
        return text.encode().lower().translate(None, _SIGNS).decode()
    return "".join(filter(str.isalnum, text.casefold()))


def _stated(source: bytes, page: s.Page) -> Iterator[str]:
    """The texts of questions, answers and posts in the JSON-LD of a page."""
    for whole in linked_data(source, page, _MARKS):
        for text in _texts(whole):
            yield _TAG.sub(" ", html.unescape(html.unescape(text)))


def _texts(whole: Any) -> Iterator[str]:
    waiting = [(whole, False)]
    while waiting:
        item, thread = waiting.pop()
        if isinstance(item, dict):
            kinds = item.get("@type")
            names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
            kinds = {name for name in names if isinstance(name, str)}
            thread = thread or bool(kinds & _THREADS)
            for kind in sorted(kinds & _SAYS.keys()):
                if kind != "Comment" or thread:
                    said = (item.get(key) for key in _SAYS[kind])
                    yield from (text for text in said if isinstance(text, str))
            waiting.extend((value, thread) for value in item.values())
        elif isinstance(item, list):
            waiting.extend((value, thread) for value in item)
