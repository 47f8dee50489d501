"""`curate extract-file`, and what explains a page."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from curation.extract import explain as explaining
from curation.extract import extract, native
from curation.extract.explain import explain
from curation.extract.extractor import default_settings
from curation.resources import root
from pipelines.cli import main

_PAGE = Path(__file__).parent / "pages" / "a08-article-with-comments.html"
_FORMULA = Path(__file__).parent / "pages" / "30-wikipedia.html"


def test_blocks_tell_their_fate() -> None:
    source = _PAGE.read_bytes()
    blocks = explain(source, default_settings()).blocks
    text = extract(source).text
    for block in blocks:
        assert block.kept == (block.score >= block.threshold)
        assert not block.kept or block.text in text
        assert f"{block.threshold:.2f}" in block.reason
    assert "body > main > article.post > p" in {block.path for block in blocks if block.kept}
    assert any("cookie" in block.path for block in blocks if not block.kept)


def test_comments_left_out_and_last_resorts_are_named() -> None:
    source = _PAGE.read_bytes()
    without = default_settings().model_copy(update={"comments": False})
    reasons = {block.reason for block in explain(source, without).blocks}
    assert "in comments, which the settings leave out" in reasons
    short = explain(b"<nav><a href=/>a</a></nav>", default_settings()).blocks
    assert short[0].kept and short[0].reason.startswith("nothing reached its threshold")


def test_a_passage_for_telephones_is_kept_once_and_says_why() -> None:
    passage = "".join(
        f"<p>Paragraph {number} of a story about the river, told at length, with its mills, its "
        "bridges and the people who lived by it for three hundred years.</p>"
        for number in range(1, 7)
    )
    html = "<h1>The river</h1>" + 2 * f"<section><article>{passage}</article></section>"
    blocks = explain(html.encode(), default_settings()).blocks
    copied = [block for block in blocks if block.reason == "the page says the same above"]
    assert len(copied) == 6 and not any(block.kept for block in copied)
    assert extract(html.encode()).text.count("Paragraph 3 of a story") == 1


def test_formulas_stand_in_their_blocks() -> None:
    blocks = explain(_FORMULA.read_bytes(), default_settings()).blocks
    assert "The $x^{2}$ term." in {block.text for block in blocks}


def test_blocks_that_share_a_judgement_show_what_was_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (native, explaining):
        monkeypatch.setattr(module, "MOST_JUDGED_BLOCKS", 20)
    rows = "".join(f"<p>{'word ' * length}</p>" for length in range(1, 200))
    explanation = explain(rows.encode(), default_settings())
    assert len({block.values for block in explanation.blocks}) < 50
    assert any("share a judgement" in note for note in explanation.notes)


def test_stated_body_is_noted() -> None:
    body = "A long body of an article that only the linked data has. " * 20
    data = '<script type="application/ld+json">{"articleBody": "%s"}</script>' % body  # noqa: UP031
    explanation = explain(f"{data}<p>Please enable scripts.".encode(), default_settings())
    assert any("linked data" in note for note in explanation.notes)


def test_half_a_character_in_a_stated_body() -> None:
    body = "A long body of an article. " * 20 + "\\ud83d"
    data = '<script type="application/ld+json">{"articleBody": "%s"}</script>' % body  # noqa: UP031
    assert extract(f"{data}<p>Please enable scripts.".encode()).text.endswith("article. \ufffd")


def test_extract_file_prints_text_and_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = extract(_PAGE.read_bytes())
    assert main(["extract-file", str(_PAGE)]) == 0
    assert capsys.readouterr().out == expected.text + "\n"
    blocks = explain(_PAGE.read_bytes(), default_settings()).blocks
    assert main(["extract-file", str(_PAGE), "--explain"]) == 0
    printed = capsys.readouterr().out.splitlines()
    for block in blocks:
        decision = "kept" if block.kept else "removed"
        assert f"{decision}: {block.reason}  {block.path}" in printed
    assert main(["extract-file", str(_PAGE), "--explain", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["text"] == expected.text
    assert [block["score"] for block in told["blocks"]] == [block.score for block in blocks]
    stdin = io.TextIOWrapper(io.BytesIO(_PAGE.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert main(["extract-file", "-", "--json", "--url", "https://a.example/"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["text"] == expected.text and facts["url"] == "https://a.example/"
    assert (facts["title"], facts["language_hint"]) == (expected.title, "en")
    assert main(["extract-file", str(_PAGE), "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("# Why we moved the bees")


def test_extract_file_reads_a_record_of_an_archive(capsys: pytest.CaptureFixture[str]) -> None:
    archive = root() / "data_samples" / "english-00000.warc.gz"
    assert main(["extract-file", f"{archive}@9763"]) == 0
    assert "front crawl" in capsys.readouterr().out
    assert main(["extract-file", str(archive)]) == 2
    assert "name one as" in capsys.readouterr().err
    assert main(["extract-file", f"{archive}@9764"]) == 1
    assert "no page at 9764" in capsys.readouterr().err
