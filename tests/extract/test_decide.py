"""Which blocks are kept, given probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.config import read_values
from curation.extract.decide import (
    CUTS,
    Limits,
    best_cut,
    decide_blocks,
    find_places,
)
from curation.extract.extractor import default_settings, extract
from curation.extract.features import COUNT, NAMES
from curation.extract.scan import scan
from curation.extract.tables import tables_of

Floats = npt.NDArray[np.float64]
# Without what is decided on runs and on parts of an article.
LIMITS = read_values(default_settings().decision, Limits)._replace(hole_blocks=0)
LONG = "Words that make up a paragraph of the kind that stories are made of. " * 20


def kept(
    html: str, probabilities: list[float], comments: bool = True, **measured: list[float]
) -> list[bool]:
    page = scan(html.encode(), 512, 10_000)
    rows = np.zeros((len(page.b_start), COUNT), np.float32)
    for name, column in measured.items():
        rows[:, NAMES.index(name)] = column
    where = find_places(page.b_element, page.e_above, rows, np.arange(len(rows)), LIMITS)
    decisions = decide_blocks(
        np.array(probabilities), page, tables_of(page), where, comments, LIMITS
    )
    return [bool(one) for one in decisions.kept]


def test_an_article_is_held_to_its_threshold_and_other_pages_to_their_own() -> None:
    below = LIMITS.article_threshold - 0.1
    assert kept(f"<p>{LONG}</p><div>short</div>", [0.99, below]) == [True, False]
    assert kept("<p>some</p><div>short</div>", [0.7, below]) == [True, True]
    assert kept(f"<p>{LONG}</p><div>{LONG}</div>", [0.8, 0.2]) == [True, False]
    assert kept(f"<p>{LONG}</p><div>{LONG}</div>", [0.3, 0.2]) == [True, True]


def expected_f(
    score: Floats, weight: Floats, cut: float, few: float, recall_weight: float
) -> float:
    """Sum over what may be content."""
    kept = weight[score >= cut].sum()
    sizes = [weight[score >= (other + 0.5) / CUTS].sum() for other in range(CUTS)]
    return float(
        sum(
            size / (size + few) * min(kept, size) / (kept + recall_weight * size)
            for size in sizes
            if size > 0
        )
    )


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 500)), min_size=1, max_size=30),
    st.sampled_from([0.0, 50.0, 700.0]),
    st.sampled_from([0.5, 1.0, 1.5]),
)
def test_the_cut_is_that_of_the_highest_expected_f(
    blocks: list[tuple[int, int]], few: float, recall_weight: float
) -> None:
    score = np.array([one / 100 for one, _ in blocks])
    weight = np.array([float(one) for _, one in blocks])
    best = best_cut(score, weight, few, recall_weight)
    cuts = [(cut + 0.5) / CUTS for cut in range(CUTS)]
    assert best in cuts
    assert expected_f(score, weight, best, few, recall_weight) == pytest.approx(
        max(expected_f(score, weight, cut, few, recall_weight) for cut in cuts)
    )


def test_a_title_is_not_taken_for_the_page() -> None:
    """Rather all answers of a thread, unlikely as each is, than their heading alone."""
    answers = "".join(f"<p>{n} is what I would say to it</p>" for n in range(20))
    probabilities = [0.5] + [0.1] * 20
    assert all(kept(f"<h1>Which one?</h1>{answers}", probabilities))
    assert kept("<h1>Which one?</h1><p>7 is it</p>", [0.5, 0.1]) == [True, False]


def test_like_blocks_under_one_parent_share_their_fate() -> None:
    items = "<ul>" + "<li>about as long as others</li>" * 4 + "</ul>"
    assert kept(f"<p>{LONG}</p>{items}", [0.99, 0.9, 0.9, 0.4, 0.9]) == [True] * 5
    assert kept(f"<p>{LONG}</p>{items}", [0.99, 0.1, 0.1, 0.6, 0.1]) == [True] + [False] * 4
    apart = items.replace("</li><li>", "</li></ul><ul><li>")
    assert kept(f"<p>{LONG}</p>{apart}", [0.99, 0.9, 0.4, 0.4, 0.4])[4] is False


def test_blocks_in_like_elements_elsewhere_count_for_less() -> None:
    posts = "".join(f'<div class="post"><p>{"about as long " * 9}</p></div>' for _ in range(4))
    assert kept(f"<div>{LONG}</div>{posts}", [0.99, 0.9, 0.9, 0.5, 0.9]) == [True] * 5
    other = posts.replace('"post"', '"card"', 3)
    assert kept(f"<div>{LONG}</div>{other}", [0.99, 0.9, 0.9, 0.9, 0.5])[4] is False


def test_something_is_kept_and_nothing_of_nothing() -> None:
    assert kept("<p>some</p><p>short</p>", [0.1, 0.0]) == [True, False]
    assert kept("", []) == []


def test_hidden_text_goes_unless_it_unfolds_or_is_the_page() -> None:
    html = f"<p>{LONG}</p><div hidden><p>{LONG[:300]}</p></div>"
    assert kept(html, [0.99, 0.99]) == [True, False]
    assert kept(html, [0.99, 0.99], region_12=[0, 1]) == [True, True]
    assert kept(html, [0.99, 0.99], flag_panel=[0, 1]) == [True, True]
    page = f"<p>Loading</p><div hidden><p>{LONG}</p></div>"
    assert kept(page, [0.1, 0.99]) == [False, True]


def test_comments_on_answers_are_kept_and_names_under_them_are_not() -> None:
    html = (
        f"<p>{LONG}</p><div>a comment that says something</div><div>by me</div>"
        "<div>2016-03-17 13:23:29 +00:00</div>"
    )
    measured = {
        "region_0": [0, 1, 1, 1],
        "b_words": [5, float(np.log1p(6)), float(np.log1p(2)), float(np.log1p(8))],
        "b_digits": [0, 0, 0, 0.6],
        "page_questions": [1, 1, 1, 1],
    }
    low, high = [0.99, 0.1, 0.1, 0.1], [0.99, 0.7, 0.7, 0.7]
    assert kept(html, low, **measured) == [True, True, False, False]
    assert kept(html, high, comments=False, **measured) == [True, False, False, False]
    measured["page_questions"] = [0, 0, 0, 0]
    assert kept(html, low, **measured) == [True, False, False, False]


def test_numbers_in_a_gutter_go_and_words_stay() -> None:
    html = f'<div class="gutter"><div>1</div><div>23</div><p>{LONG}</p></div>'
    assert kept(html, [0.99, 0.99, 0.99]) == [False, False, True]


def test_headings_may_be_links_and_other_links_need_more() -> None:
    below = LIMITS.link_threshold - 0.05
    entries = "".join(
        f"<{{0}}><a href=x>Title {i} of an entry</a></{{0}}><p>{LONG}</p>" for i in range(2)
    )
    probabilities = [below, 0.2, below, 0.2]
    assert kept(entries.format("h2"), probabilities) == [True] * 4
    assert kept(entries.format("div"), probabilities) == [False, True, False, True]


def test_code_is_decided_as_the_text_that_shares_a_container_with_it() -> None:
    text, code = f"<p>{LONG}</p>", "<pre>run()</pre>"
    for html, stays in (
        (f"<div>{text}{code}</div>", True),
        (f"<section>{text}<div><div>{code}</div></div></section>", True),
        (f"<div><div><div>{text}</div></div>{code}</div>", False),
        (f"<div>{text}</div><div>{code}</div>", False),
    ):
        assert kept(html, [0.99, 0.1]) == [True, stays]


def test_the_last_sentence_of_a_short_page_in_japanese_stays() -> None:
    lines = (
        "フェリーは朝の六時に港を出て、カモメは昼まで湾を渡る船のあとを追い続けていた。",
        "春になると農家の人々は海藻を畑に運ぶ。乾いた季節のあいだも土を湿らせておくためである。",
        "その先生は四十年にわたって毎日の天気を日記に書き続け、一日も欠かすことがなかった。",
        "橋が修理のために通行止めになったとき、人々は水車小屋の小さな舟で川を渡った。",
        "洪水のあと、町議会は市場を丘の上に移し、それ以来毎週木曜日に開かれている。",
    )
    paragraphs = "".join(f"<li>{line}</li>" for line in lines[:-1])
    menu = "<nav><a href=/>ホーム</a> <a href=/a>会社案内</a></nav>"
    page = f"<body>{menu}<article><ul>{paragraphs}</ul><p>{lines[-1]}</p></article></body>"
    assert extract(page).text.endswith(lines[-1])
