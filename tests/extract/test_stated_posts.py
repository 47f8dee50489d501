"""Questions, answers and posts of the JSON-LD, and the blocks that say the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from curation.extract.page_state import stated_posts
from curation.extract.scan import scan

QUESTION = "How long may a bridge stay closed?"
ANSWER = "Not longer than the council has decided in public, says the law."
OTHER = "A sentence of some length that nobody has stated anywhere else."


def stated(data: Any, body: str, before: tuple[int, ...] = (), barred: int = -1) -> list[int]:
    """Return which blocks are stated and neither in `before` nor `barred`."""
    written = data if isinstance(data, str) else json.dumps(data)
    source = f'<script type="application/ld+json">{written}</script>{body}'.encode()
    page = scan(source, 512, 10_000)
    blocks = np.arange(len(page.b_start))
    found = stated_posts(source, page, np.isin(blocks, before), blocks == barred)
    return np.flatnonzero(found).tolist()


def faq(text: str) -> dict[str, Any]:
    answer = {"@type": "Answer", "text": text}
    return {
        "@type": "FAQPage",
        "mainEntity": [{"@type": "Question", "name": QUESTION, "acceptedAnswer": answer}],
    }


BODY = f"<h3>{QUESTION}</h3><div>{ANSWER}</div><div>{OTHER}</div>"


def test_questions_and_answers_are_found() -> None:
    assert stated(faq(ANSWER), BODY) == [0, 1]
    assert stated(faq(f"&lt;p&gt;{ANSWER}&lt;/p&gt;<p>More."), BODY) == [0, 1]
    assert stated({"@type": "WebPage", "description": OTHER}, BODY) == []


def test_comments_are_found_in_threads_only() -> None:
    comment = {"@type": "Comment", "text": ANSWER}
    post = {"@type": ["DiscussionForumPosting"], "text": OTHER, "comment": [comment]}
    assert stated({"@graph": [post]}, BODY) == [1, 2]
    assert stated({"@type": "NewsArticle", "Question": "Question", "comment": comment}, BODY) == []
    # A question that the page has as well doesn't make its comments content.
    assert stated([faq("None."), {"@type": "NewsArticle", "comment": comment}], BODY) == [0]


def test_links_labels_and_what_is_kept_already_stay_out() -> None:
    linked = f"<div><a href=/a>{ANSWER}</a></div><div>the law</div><div>{ANSWER}</div>"
    assert stated(faq(ANSWER), linked) == [2]
    assert stated(faq(ANSWER), f"<div>{ANSWER}</div>" * 2) == [0]
    assert stated(faq(ANSWER), f"<div>{ANSWER}</div>" * 2, (1,)) == []
    assert stated(faq(ANSWER), f"<div>{ANSWER}</div>" * 2, barred=0) == [1]


@pytest.mark.parametrize(
    "data", ["", '{"@type": "Question"', '"Question"', "[" * 100_000 + '"Answer"']
)
def test_what_is_no_json_states_nothing(data: str) -> None:
    assert stated(data, BODY) == []
