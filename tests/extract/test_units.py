"""Runs of kept blocks made whole."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from curation.config import read_values
from curation.extract.blocks import PRE, Page
from curation.extract.decide import Limits, Places, decide_blocks, find_places
from curation.extract.extractor import default_settings
from curation.extract.features import COUNT
from curation.extract.scan import scan
from curation.extract.tables import tables_of
from curation.extract.units import whole

LIMITS = read_values(default_settings().decision, Limits)
LONG = "Words that make up a paragraph of the kind that stories are made of. " * 20


def scanned(html: str) -> Page:
    return scan(html.encode(), 512, 10_000)


def nowhere(page: Page) -> Places:
    """The Places of blocks of which nothing is known."""
    rows = np.zeros((len(page.b_start), COUNT), np.float32)
    return find_places(page.b_element, page.e_above, rows, np.arange(len(rows)), LIMITS)


def kept(html: str, probabilities: list[float], **changed: float) -> list[bool]:
    page = scanned(html)
    limits, likely = LIMITS._replace(**changed), np.array(probabilities)
    decisions = decide_blocks(likely, page, tables_of(page), nowhere(page), True, limits)
    return [bool(one) for one in decisions.kept]


def test_what_stands_in_a_kept_run_is_kept_and_what_stands_before_and_behind_is_not() -> None:
    one, other = f"<section>{LONG}</section>", f"<article>{LONG}</article>"
    html = f"<div>before</div>{one}<div>between</div>{other}<div>behind</div>"
    likely = LIMITS.hole_probability + 0.05
    assert kept(html, [likely, 0.99, likely, 0.99, likely]) == [False, True, True, True, False]
    less = LIMITS.hole_probability - 0.05
    assert kept(html, [less, 0.99, less, 0.99, less]) == [False, True, False, True, False]


def test_hidden_text_does_not_keep_what_is_beside_it() -> None:
    html = (
        f"<h1>Title</h1><div>by me</div><div hidden>{LONG}</div><div hidden>{LONG}</div>"
        f"<p>{LONG * 3}</p>"
    )
    assert kept(html, [0.9, 0.1, 0.9, 0.9, 0.99]) == [True, False, False, False, True]


def test_what_stands_between_two_cards_stays_out() -> None:
    card = f"<div class=post><div>{LONG}</div></div>"
    likely = LIMITS.hole_probability + 0.05
    html = f"<section>{card}<span>name</span>{card}{card}</section>"
    assert kept(html, [0.99, likely, 0.99, 0.99]) == [True, False, True, True]
    html = html.replace("<div class=post>", "<div>", 1)
    assert kept(html, [0.99, likely, 0.99, 0.99]) == [True, True, True, True]


def test_entries_of_a_list_in_an_article_stay_with_their_neighbours() -> None:
    for tag, child, least in (
        ("ul", "li", LIMITS.entry_probability),
        ("section", "article", LIMITS.card_hole_probability),
    ):
        entries = f"<{child}>depth of the lock</{child}>" * 5
        html = f"<p>{LONG * 3}</p><{tag}>{entries}</{tag}><p>{LONG}</p>"
        for likely, stays in ((least + 0.03, True), (least - 0.03, False)):
            found = kept(html, [0.99, 0.99, likely, likely, likely, 0.99, 0.99])
            assert found == [True, True, *[stays] * 3, True, True]


def test_what_a_rule_took_out_of_a_run_stays_out() -> None:
    html = f"<p>{LONG}</p><div hidden>unseen</div><div>seen</div><p>{LONG}</p>"
    found = kept(html, [0.99, 0.5, 0.5, 0.99])
    assert found == [True, False, True, True]
    links = "".join(f"<a href={i}>name</a> " for i in range(3))
    menu = f"<p>{LONG}</p><div>{links}</div><p>{LONG}</p>"
    assert kept(menu, [0.99, 0.5, 0.99]) == [True, False, True]


def test_a_text_does_not_end_in_what_its_neighbours_lift() -> None:
    html = "".join(f"<p>{text}</p>" for text in (LONG, LONG, "Next page"))
    own = LIMITS.ending_share * 0.9
    assert kept(html, [0.99, 0.99, own]) == [True, True, False]
    assert kept(html, [0.99, 0.99, own], ending_share=0.0) == [True, True, True]
    inside = "".join(f"<p>{text}</p>" for text in (LONG, "Next page", LONG))
    assert kept(inside, [0.99, own, 0.99]) == [True, True, True]
    listing = f"<div><p>{LONG}</p><p>{LONG}</p><pre>run it</pre></div>"
    assert kept(listing, [0.99, 0.99, own]) == [True, True, True]


def test_a_text_may_end_in_a_sentence_that_tells_something() -> None:
    """Thirteen letters of Japanese may."""
    for told, between, stays in ((True, "", True), (False, "", False), (True, "Share", False)):
        page = scanned(
            f"<p>{LONG}</p><p>{LONG}</p><div>{between}</div><p>船は朝の六時に港を出る。</p>"
        )
        n = len(page.b_start)
        likely = np.array([0.99, 0.99, *[0.0] * (n - 3), LIMITS.ending_share * 0.9])
        where = nowhere(page)._replace(told=np.arange(n) == n - told)
        decisions = decide_blocks(likely, page, tables_of(page), where, True, LIMITS)
        assert decisions.kept[-1] == stays


def test_a_text_does_not_end_in_what_announces_more() -> None:
    for text, stays in (
        ("Related:", False),
        ("延伸阅读：", False),
        ("Related", True),
        ("This is what he said when they asked him:", True),
    ):
        html = "".join(f"<p>{one}</p>" for one in (LONG, LONG, text))
        assert kept(html, [0.99, 0.99, 0.9]) == [True, True, stays]


def test_a_line_that_is_mostly_links_fills_no_hole_of_an_article() -> None:
    line = "<div>by <a href=/a>Martha Quill</a> in <a href=/b>Ferries</a>, May</div>"
    figure, plain = f"<figure>{line}</figure>", "<div>by Martha Quill in Ferries, May</div>"
    for between, stays in ((line, False), (figure, True), (plain, True)):
        html = f"<h1>Title</h1>{between}<p>{LONG}</p><p>{LONG}</p>"
        assert kept(html, [0.9, 0.3, 0.99, 0.99]) == [True, stays, True, True]


def test_a_heading_in_an_element_of_its_own_is_no_card_that_ends_the_text() -> None:
    least = LIMITS.long_hole_probability + 0.1
    sections = (
        f"<div class=head><h2>Heading {k}</h2><a href=/e>edit</a></div>"
        f"<section class=s{k}><p>{text}</p>"
        f"<blockquote><p>{LONG}</p></blockquote></section>"
        for k, text in enumerate((LONG, "A sentence of some length that tells who it was.", LONG))
    )
    likely = [p for own in (0.99, least, 0.99) for p in (0.9, 0.01, own, 0.99)]
    found = kept("".join(sections), likely)
    assert found == [p > 0.1 for p in likely]


def test_several_blocks_in_a_row_need_to_be_likelier_than_one() -> None:
    likely = LIMITS.long_hole_probability + 0.02
    less = (LIMITS.hole_probability + LIMITS.long_hole_probability) / 2
    for own, several in ((likely, True), (less, False)):
        blocks = "".join(f"<div class=c{i}>between</div>" for i in range(3))
        html = f"<section>{LONG}</section>{blocks}<article>{LONG}</article>"
        assert kept(html, [0.99, own, own, own, 0.99])[1:4] == [several] * 3


def test_the_last_card_loses_its_stock_ending_but_not_its_only_text() -> None:
    own = LIMITS.ending_share * 0.9
    cards = f"<div class=c><p>{LONG}</p></div>" * 2
    both = f"<section>{cards}<div class=c><p>{LONG}</p><div>More</div></div></section>"
    assert kept(both, [0.99, 0.99, 0.99, own]) == [True, True, True, False]
    heading = f"<section>{cards}<div class=c><p>{LONG}</p><h2>More</h2></div></section>"
    assert kept(heading, [0.99, 0.99, 0.99, 0.9]) == [True, True, True, False]
    only = f"<section>{cards}<div class=c><div>Thanks!</div></div></section>"
    assert kept(only, [0.99, 0.99, own]) == [True, True, True]


def reference(
    page: Page, first: list[bool], own: list[float], score: list[float]
) -> tuple[list[bool], set[int], set[int]]:
    out, ended, filled = list(first), set[int](), set[int]()
    listed = [b for b, one in enumerate(first) if one]
    sizes = [float(np.sqrt(page.b_chars[b])) + 1 for b in listed]
    mass = sum(size * own[b] for size, b in zip(sizes, listed, strict=True))
    for b in sorted((b for b, one in enumerate(first) if one), reverse=True)[:-1]:
        code = page.b_flags[b] & PRE or page.b_atoms[b]
        short = page.b_chars[b] < LIMITS.ending_characters
        if code or not short or score[b] == 1:
            break
        likely = own[b] * sum(sizes) >= LIMITS.ending_share * mass
        if likely or len(ended) == LIMITS.ending_blocks:
            break
        out[b] = False
        ended.add(b)
    left = [b for b, one in enumerate(out) if one]
    for before, behind in itertools.pairwise(left):
        hole = range(before + 1, behind)
        area = [float(np.sqrt(page.b_chars[b])) + 1 for b in hole]
        likely = sum(size * own[b] for size, b in zip(area, hole, strict=True) if score[b] > 0)
        cards = (page.b_flags & PRE > 0).sum() >= 3  # so many listings under one parent are cards
        listed_code = [bool(cards and page.b_flags[b] & PRE) for b in (before, behind)]
        apart = listed_code[1] or (listed_code[0] and len(hole) > 1)
        few = 0 < len(hole) <= LIMITS.hole_blocks
        single = LIMITS.hole_probability
        least = single if len(hole) == 1 else LIMITS.long_hole_probability
        least = LIMITS.card_hole_probability if apart else least
        if few and likely >= least * sum(area):
            filled |= {b for b in hole if score[b] > 0}
    out = [one or b in filled for b, one in enumerate(out)]
    listings = [b for b in range(len(out)) if page.b_flags[b] & PRE]
    if len(listings) >= 3 and 2 * sum(out[b] for b in listings) >= len(listings):
        filled |= {b for b in listings if not out[b] and score[b] > 0}
    return [one or b in filled for b, one in enumerate(out)], filled, ended


def test_like_elements_keep_the_parts_that_half_of_them_keep() -> None:
    post = f"<div class=post><div class=name>Ann</div><p>{LONG}</p></div>"
    page = scanned(f"<h1>Title</h1>{post * 4}")
    texts, names = [2, 4, 6, 8], [1, 3, 5, 7]
    for kept_texts, all_texts in ((texts[:2], texts), (texts[:1], texts[:1])):
        first = np.isin(np.arange(9), [0, *kept_texts, names[0]])
        likely = np.full(9, 0.01)
        found = whole(
            first, likely, likely, nowhere(page), page, np.full(9, -1, np.int32),
            LIMITS._replace(ending_blocks=0), False,
        )  # fmt: skip
        assert np.flatnonzero(found.kept).tolist() == sorted({0, names[0], *all_texts})
        assert set(np.flatnonzero(found.filled)) == set(all_texts) - set(kept_texts)
    div = scanned(
        f"<h1>Title</h1><div>one</div><div>{LONG}</div><div>three</div>"
    )  # no name, no card
    alone = np.array([True, True, True, False])
    found = whole(
        alone, np.full(4, 0.01), np.full(4, 0.01), nowhere(div), div,
        np.full(4, -1, np.int32), LIMITS._replace(ending_blocks=0),
        False,
    )  # fmt: skip
    assert found.kept.tolist() == alone.tolist()


_BLOCKS = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from([0.0, 0.05, 0.125, 0.25, 0.5, 0.75]),
        st.sampled_from([0.0, 0.25, 0.75, 1.0]),
        st.sampled_from(["<p>short</p>", f"<p>{LONG}</p>", "<pre>some code</pre>"]),
    ),
    max_size=25,
)


@given(_BLOCKS)
def test_runs_are_made_whole_as_told(blocks: list[tuple[bool, float, float, str]]) -> None:
    page = scanned("".join(html for *_, html in blocks))
    first, own, score = ([block[i] for block in blocks] for i in range(3))
    data: npt.NDArray[np.int32] = np.full(len(blocks), -1, np.int32)
    found = whole(
        np.array(first, np.bool_),
        np.array(own),
        np.array(score),
        nowhere(page),
        page,
        data,
        LIMITS,
        False,
    )
    out, filled, ended = reference(page, first, own, score)
    assert found.kept.tolist() == out
    assert set(np.flatnonzero(found.filled).tolist()) == filled
    assert set(np.flatnonzero(found.ended).tolist()) == ended


def test_the_text_does_not_end_in_a_notice_of_rights() -> None:
    """However likely it is, and where it is all that is kept of a row."""
    row = "<tr><td>{}</td></tr>"
    rights = "&#169; A. Publisher, all rights reserved everywhere and for ever, for every purpose"
    rows = "".join(map(row.format, [f"<p>One. {LONG}</p>", f"<p>Two. {LONG}</p>", rights]))
    assert kept(f"<table>{rows}</table>", [0.9, 0.9, 0.9]) == [True, True, False]


def test_a_button_does_not_fill_a_hole() -> None:
    some = "Copy what is above to the clipboard of this device"
    page = f"<div><p>{LONG}</p><{{0}}>{some}</{{0}}><p>Behind. {LONG}</p></div>"
    likely = LIMITS.hole_probability + 0.05
    assert kept(page.format("button"), [0.99, likely, 0.99]) == [True, False, True]
    assert kept(page.format("p"), [0.99, likely, 0.99]) == [True, True, True]


def test_a_label_between_paragraphs_does_not_fill_a_hole() -> None:
    page = f"<div><p>{LONG}</p><div>Advertisement</div><p>Behind. {LONG}</p></div>"
    for likely, stays in ((LIMITS.hole_probability + 0.05, False), (0.5, True)):
        assert kept(page, [0.99, likely, 0.99]) == [True, stays, True]


def test_a_heading_at_the_head_of_a_card_goes_with_the_text_behind_it() -> None:
    likely = LIMITS.hole_probability + 0.05
    card = f"<div class=faq><{{0}}>How?</{{0}}><p>{{1}} {LONG}</p></div>"
    cards = "".join(card.format("h3", text) for text in ("One.", "Two.", "Three."))
    own = [likely, 0.99] * 3
    found = kept(f"<p>{LONG}</p><section>{cards}</section>", [0.99, *own])
    assert found == [True] * 7
    unlikely = [0.0 if one == likely else one for one in own]
    assert kept(f"<p>{LONG}</p><section>{cards}</section>", [0.99, *unlikely])[1:6:2] == [False] * 3
    names = f"<p>{LONG}</p><section>{cards.replace('h3', 'span')}</section>"
    assert kept(names, [0.99, *own])[1:6:2] == [False] * 3
    alone = f"<section>{cards}</section>"  # what is before all text is left to `with_headline`
    assert kept(alone, own)[0] is False


def test_the_last_part_of_a_card_is_not_kept_for_the_other_cards_sake() -> None:
    post = f"<div class=post><p>{{}} {LONG}</p><div>{{}}</div></div>"
    for last, stays in (("Ann", False), ("Ann is the first of us. " * 4, True)):
        html = "".join(map(post.format, "123", [*["Ann is the first of us. " * 4] * 2, last]))
        page = scanned(html)
        first = np.array([True, True, True, True, True, False])
        found = whole(
            first, np.full(6, 0.9), np.full(6, 0.9), nowhere(page), page,
            np.full(6, -1, np.int32), LIMITS, False,
        )  # fmt: skip
        assert found.kept.tolist() == [True] * 5 + [stays]
        assert found.filled[5] == stays
