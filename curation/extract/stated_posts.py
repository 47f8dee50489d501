"""Questions, answers and posts that a page states in its JSON-LD: blocks that say the same are content."""

import html
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.extract import blocks as s


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


_TAG = re.compile(r"<[^<>]*>")
_MARKS = (b'"Question"', b'"Answer"', b'"DiscussionForumPosting"')
_THREADS = frozenset(("DiscussionForumPosting", "QAPage"))
#: What each type says. A comment is content in a thread only.
_SAYS = {
    "Question": ("name", "text"),
    "Answer": ("text",),
    "DiscussionForumPosting": ("text", "articleBody"),
    "Comment": ("text",),
}
_LEAST = 24  # bytes of letters and digits: shorter blocks are labels that occur in any sentence
_LINKED = 0.5  # of a block's characters: links to other pages may repeat what this one says
_WORK = 50  # bytes compared for each byte of the page, so that time stays linear


def stated_posts(
    source: bytes, page: s.Page, kept: npt.NDArray[np.bool_], barred: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which blocks [n] that are neither `kept` nor `barred` a question, an answer or a post of
    the JSON-LD has word for word. Of blocks that say the same, one is enough."""
    out = np.zeros(len(kept), np.bool_)
    said = "\n".join(map(_squeezed, _stated(source, page))).encode()
    if len(said) < _LEAST:
        return out
    seen = {_text(page, b) for b in np.flatnonzero(kept).tolist()}
    left = _WORK * len(source)
    linked = page.b_link_chars > _LINKED * page.b_chars
    for b in np.flatnonzero(~(kept | barred | linked) & (page.b_chars >= _LEAST // 4)).tolist():
        text = _text(page, b)
        if len(text) < _LEAST or text in seen:
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
    return _squeezed(raw.decode("utf-8", "replace")).encode()


def _squeezed(text: str) -> str:
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
