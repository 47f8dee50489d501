"""What the blocks of a page say about its text, from the page to the quality of its document."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation import run
from curation.classify import score
from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings, default_settings
from curation.extract import extract

PARAGRAPH = (
    "The council met on Tuesday to decide about the bridge, which engineers had called unsafe, "
    "and after three hours of debate it chose to repair the old one rather than to build another."
)


def classifier(**changes: object) -> Classifier:
    return Classifier(ClassifySettings.model_validate(default_settings().model_dump() | changes))


def columns(scores: list[float | None], shares: list[float | None]) -> dict[str, pa.Array]:
    return {
        "content_score": pa.array(scores, pa.float32()),
        "link_share": pa.array(shares, pa.float32()),
    }


def page(teasers: int, paragraphs: int) -> str:
    parts = [f"<h2><a href=/story/{i}>Story {i} of the week</a></h2><p>{PARAGRAPH}</p>"
             for i in range(teasers)]  # fmt: skip
    parts += [f"<p>{i}. {PARAGRAPH} <a href=/more>More</a> of it came later.</p>"
              for i in range(paragraphs)]  # fmt: skip
    return f"<html><body><article>{''.join(parts)}</article></body></html>"


def test_headlines_that_are_links_count_by_their_characters_and_links_in_sentences_do_not() -> None:
    found = extract(page(teasers=6, paragraphs=0))
    lines = ["".join(line.split()) for line in found.text.split("\n")]
    assert any(line.startswith("Story3") for line in lines)
    headlines = sum(len(line) for line in lines if line.startswith("Story"))
    assert found.link_share == pytest.approx(headlines / sum(map(len, lines)), abs=1e-4)
    assert extract(page(teasers=0, paragraphs=6)).link_share == 0.0


def test_an_article_is_surer_content_than_a_short_text_among_links() -> None:
    article = extract(page(teasers=0, paragraphs=12)).content_score
    links = "".join(f"<li><a href=/{i}>Page {i}</a></li>" for i in range(30))
    stray = extract(f"<html><body><ul>{links}</ul><div>Call us today.</div></body></html>")
    assert article is not None and stray.content_score is not None
    assert 0 <= stray.content_score < article <= 1


def test_a_page_without_text_says_nothing_for_itself() -> None:
    found = extract("<html><body></body></html>")
    assert (found.content_score, found.link_share) == (0.0, 0.0)


def test_an_article_that_the_page_states_is_no_block() -> None:
    body = " ".join([PARAGRAPH] * 5)
    stated = f'<script type="application/ld+json">{{"articleBody": "{body}"}}</script>'
    found = extract(f"<html><body>{stated}<p><a href=/>Home</a></p></body></html>")
    assert found.text == body
    assert found.content_score is None and found.link_share is None


def test_quality_falls_with_links_and_rises_with_the_certainty_of_the_extraction() -> None:
    texts = [PARAGRAPH] * 4
    of_pages = columns([0.9, 0.9, 0.9, 0.6], [0.0, 0.2, 0.5, 0.0])
    quality = classifier().apply(texts, None, of_pages).quality.to_numpy()
    assert quality[0] > quality[1] > quality[2]
    assert quality[0] > quality[3]
    odds = np.log(quality / (1 - quality))
    weights = default_settings().weights.page
    assert weights is not None
    assert odds[2] - odds[0] == pytest.approx(0.5 * weights.link_share, abs=0.05)
    assert odds[3] - odds[0] == pytest.approx(-0.3 * weights.content_score, abs=0.05)


def test_documents_without_one_of_the_columns_keep_the_quality_of_their_text() -> None:
    texts = [PARAGRAPH] * 3
    alone = classifier().apply(texts).quality
    found = classifier().apply(texts, None, columns([None, 0.2, None], [0.9, None, None])).quality
    assert found.equals(alone)
    half = {"link_share": pa.array([0.9] * 3, pa.float32())}
    assert classifier().apply(texts, None, half).quality.equals(alone)


def test_without_weights_pages_change_nothing() -> None:
    of_pages = columns([0.1, 0.9], [0.0, 1.0])
    quality = classifier(evidence=None).apply([PARAGRAPH] * 2, None, of_pages).quality
    assert quality[0] == quality[1]


def test_a_table_may_say_what_its_texts_are_made_of() -> None:
    table = pa.table(
        {"text": [PARAGRAPH] * 2, "language": ["en"] * 2, **columns([0.9] * 2, [0.0, 0.8])}
    )
    first, second = score(table).column("quality").to_pylist()
    assert first > second


def test_columns_that_know_nothing_of_pages_are_read() -> None:
    texts = [PARAGRAPH] * 2
    languages = ["en"] * 2
    plain = score(pa.table({"text": texts, "language": languages}))
    for nothing in (pa.nulls(2), pa.array([None, None], pa.float64()), pa.array(["?", "?"])):
        table = pa.table(
            {"text": texts, "language": languages, "content_score": nothing, "link_share": nothing}
        )
        assert score(table).column("quality").equals(plain.column("quality"))
    whole = pa.array([1, 1], pa.int64())
    table = pa.table({"text": texts, "content_score": whole, "link_share": pa.array([0, 0])})
    assert score(table).column("quality")[0].as_py() > plain.column("quality")[0].as_py()


def test_pages_of_a_table_are_judged_with_what_their_blocks_say() -> None:
    html = page(teasers=6, paragraphs=2)
    found = extract(html)
    stages = ["extract", "identify-language", "classify"]
    kept = run("llama3", pa.table({"html": [html]}), stages=stages).documents
    assert kept["link_share"][0].as_py() == pytest.approx(found.link_share)
    assert kept["content_score"][0].as_py() == pytest.approx(found.content_score)
    of_page = columns([found.content_score], [found.link_share])
    expected = classifier().apply([found.text], pa.array(["en"]), of_page).quality
    assert kept["quality"][0].as_py() == expected[0].as_py()
    assert expected != classifier().apply([found.text], pa.array(["en"])).quality
