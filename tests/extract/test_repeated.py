"""Passages that a page holds more than once."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.extract import blocks as s
from curation.extract.decide import copies, title_again
from curation.extract.scan import scan

LEAST, NEAR = 30, 90
FIRST = "<h2>The ferry to the island</h2><p>It leaves at seven in the morning.</p>"
LONGER = FIRST + "<p>In winter it stays in the harbour, and the mail goes by air.</p>"


def copied(html: str, comments: tuple[int, ...] = ()) -> list[int]:
    """Numbers of the blocks that are copies, all being kept."""
    page = scan(html.encode(), 512, 10_000)
    kept = np.ones(len(page.b_start), np.bool_)
    remarks = np.isin(np.arange(len(kept)), comments)
    return np.flatnonzero(copies(kept, page, remarks, LEAST, NEAR)).tolist()


def test_a_passage_that_stands_twice_is_a_copy_the_second_time() -> None:
    narrow, wide = f"<section><div>{FIRST}</div></section>", f"<main><div>{FIRST}</div></main>"
    assert copied(narrow + "<p>Between</p>" + wide) == [3, 4]
    assert copied(narrow + wide + narrow) == [2, 3, 4, 5]


def test_under_one_grandparent_more_must_be_said_twice() -> None:
    assert copied(f"<div>{FIRST}</div><div>{FIRST}</div>") == []
    assert copied(f"<div>{LONGER}</div><div>{LONGER}</div>") == [3, 4, 5]


@pytest.mark.parametrize(
    "html",
    [
        pytest.param(f"<div>{LONGER}{LONGER}</div>", id="one parent"),
        pytest.param(f"<div>{LONGER}</div><blockquote>{LONGER}</blockquote>", id="quotation"),
        pytest.param(f"<blockquote>{LONGER}</blockquote><div>{LONGER}</div>", id="quoted first"),
        pytest.param("<div><p>A motto of a firm that stands in many places</div>" * 3, id="motto"),
        pytest.param(f"<table><tr><td>{LONGER}<tr><td>{LONGER}</table>", id="cells"),
        pytest.param("<div><pre>let long_name = 1</pre><pre>print(it)</pre></div>" * 3, id="code"),
        pytest.param(
            "<div><p>It follows that $$x^2$$ for all of them</p><p>and so on to the end</p></div>"
            "<div><p>It follows that $$x^3$$ for all of them</p><p>and so on to the end</p></div>",
            id="formulas",
        ),
    ],
)
def test_what_repeats_on_purpose_is_no_copy(html: str) -> None:
    assert copied(html) == []


def test_comments_are_no_copies() -> None:
    html = f"<div>{LONGER}</div><div>{LONGER}</div>"
    assert copied(html, (3, 4, 5)) == []
    assert copied(html, (0, 1, 2)) == []


@st.composite
def pages(draw: st.DrawFn) -> str:
    word = st.sampled_from(["<p>one", "<p>other words", "<p>a third of them", "<li>one"])
    inner = st.lists(word, min_size=1, max_size=4).map("".join)
    boxed = st.one_of(inner, inner.map(lambda html: f"<div>{html}</div>"))
    return "".join(f"<section>{html}</section>" for html in draw(st.lists(boxed, max_size=8)))


def plainly(page: s.Page, kept: list[int], least: int, near: int) -> list[int]:
    """The same, block by block."""
    texts = [page.text[page.b_start[b] : page.b_end[b]].tobytes() for b in kept]
    parents = [int(page.e_parent[page.b_element[b]]) for b in kept]
    source: list[int | None] = []
    for i, text in enumerate(texts):
        first = texts.index(text)
        before = source[i - 1] if i else None
        if before is not None and texts[before + 1] == text:
            first = before + 1
        source.append(first if first < i and parents[first] != parents[i] else None)
    out, start = [], 0
    while start < len(kept):
        end, at = start + 1, source[start]
        if at is not None:
            while end < len(kept) and source[end] == at + end - start and at + end - start < start:
                end += 1
            above = [int(page.e_parent[max(parents[i], 0)]) for i in (start, at)]
            size = sum(int(page.b_chars[b]) for b in kept[start:end])
            if end - start > 1 and size >= (near if above[0] == above[1] else least):
                out += kept[start:end]
        start = end
    return out


@given(pages(), st.integers(0, 40), st.integers(0, 60), st.randoms())
def test_copies_agree_with_a_plain_search(
    html: str, least: int, near: int, chance: random.Random
) -> None:
    page = scan(html.encode(), 512, 10_000)
    kept = np.array([chance.random() < 0.9 for _ in page.b_start], np.bool_)
    none = np.zeros(len(kept), np.bool_)
    found = np.flatnonzero(copies(kept, page, none, least, near)).tolist()
    assert found == plainly(page, np.flatnonzero(kept).tolist(), least, near)


@pytest.mark.parametrize(
    ("html", "again"),
    [
        ("<table><tr><th>The FAQ</th></tr></table><h1>The FAQ</h1><p>One.</p>", 0),
        ("<h3>The FAQ</h3><p>The FAQ</p><p>One.</p>", 1),
        ("<h1>The FAQ</h1><h2>The FAQ</h2><p>One.</p>", 0),
        ("<p>The FAQ</p><p>The FAQ</p><p>One.</p>", -1),
        ("<p>The FAQ</p><h1>The FAQs</h1><p>One.</p>", -1),
        ("<p>One.</p><h1>The FAQ</h1><h2>The FAQ</h2>", -1),
        ("<h1>The FAQ</h1>", -1),
        ("", -1),
    ],
)
def test_a_title_beside_itself(html: str, again: int) -> None:
    page = scan(html.encode(), 512, 10_000)
    assert title_again(np.ones(len(page.b_start), np.bool_), page) == again
