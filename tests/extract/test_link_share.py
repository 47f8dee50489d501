"""How much of a page's text is links, from the page to the quality of its document."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.classify import Classifier, ClassifySettings, default_settings, score
from curation.extract import extract

PARAGRAPH = (
    "The council met on Tuesday to decide about the bridge, which engineers had called unsafe, "
    "and after three hours of debate it chose to repair the old one rather than to build another."
)


def page(teasers: int, paragraphs: int) -> str:
    parts = [f"<h2><a href=/story/{i}>Story {i} of the week</a></h2><p>{PARAGRAPH}</p>"
             for i in range(teasers)]  # fmt: skip
    parts += [f"<p>{i}. {PARAGRAPH} <a href=/more>More</a> of it came later.</p>"
              for i in range(paragraphs)]  # fmt: skip
    return f"<html><body><article>{''.join(parts)}</article></body></html>"


def test_headlines_that_are_links_count_and_links_in_sentences_do_not() -> None:
    found = extract(page(teasers=6, paragraphs=0))
    lines = found.text.split("\n")
    assert "Story 3 of the week" in lines
    assert found.link_share == pytest.approx(
        sum(n.startswith("Story") for n in lines) / len(lines), abs=1e-4
    )
    assert extract(page(teasers=0, paragraphs=6)).link_share == 0.0


def test_a_page_without_text_has_no_links_in_it() -> None:
    assert extract("<html><body></body></html>").link_share == 0.0


def test_an_article_that_the_page_states_is_no_block() -> None:
    body = " ".join([PARAGRAPH] * 5)
    stated = f'<script type="application/ld+json">{{"articleBody": "{body}"}}</script>'
    found = extract(f"<html><body>{stated}<p><a href=/>Home</a></p></body></html>")
    assert found.text == body and found.link_share is None


def test_quality_falls_with_the_share_of_links() -> None:
    texts, shares = [PARAGRAPH] * 4, pa.array([None, 0.0, 0.25, 1.0], pa.float32())
    quality = Classifier(default_settings()).apply(texts, None, shares).quality.to_numpy()
    assert quality[0] == quality[1] > quality[2] > quality[3]
    odds = np.log(quality / (1 - quality))
    assert odds[0] - odds[3] == pytest.approx(default_settings().link_penalty, abs=0.05)
    assert quality[0] == Classifier(default_settings()).apply(texts).quality[0].as_py()


def test_without_a_penalty_links_change_nothing() -> None:
    none = ClassifySettings.model_validate(default_settings().model_dump() | {"link_penalty": 0})
    shares = pa.array([0.0, 1.0], pa.float32())
    quality = Classifier(none).apply([PARAGRAPH] * 2, None, shares).quality
    assert quality[0] == quality[1]


def test_a_table_may_say_what_its_texts_are_made_of() -> None:
    table = pa.table({"text": [PARAGRAPH] * 2, "language": ["en"] * 2, "link_share": [0.0, 0.8]})
    first, second = score(table).column("quality").to_pylist()
    assert first > second


def test_a_column_that_knows_nothing_of_links_is_read() -> None:
    texts = [PARAGRAPH] * 2
    languages = ["en"] * 2
    plain = score(pa.table({"text": texts, "language": languages}))
    for shares in (pa.nulls(2), pa.array([None, None], pa.float64()), pa.array([0, 0], pa.int64())):
        table = pa.table({"text": texts, "language": languages, "link_share": shares})
        assert score(table).column("quality").equals(plain.column("quality"))
