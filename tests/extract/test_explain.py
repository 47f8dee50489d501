"""`curate extract-file` and the view that explains a page."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from curation.extract import extract
from curation.extract.explain import explain, view
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


def test_blocks_that_share_a_judgement_show_what_was_judged() -> None:
    few = default_settings().model_copy(update={"max_judged_blocks": 20})
    rows = "".join(f"<p>{'word ' * length}</p>" for length in range(1, 200))
    explanation = explain(rows.encode(), few)
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


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes += attrs


def test_view_is_escaped_and_needs_no_network() -> None:
    evil = "<script>alert(1)</script><img src=http://x.example/y onerror=z>"
    escaped = evil.replace("<", "&lt;").replace(">", "&gt;")
    page = f"""<title>{escaped}</title><div class="a'&quot;><script>"><p>Text {escaped}</p></div>"""
    explanation = explain(page.encode(), default_settings())
    parser = _Elements()
    parser.feed(shown := view(explanation, evil, f"Text {evil}"))
    assert not {"script", "img", "link", "object"} & set(parser.found)
    attributes = set(parser.attributes)
    assert not {"src", "onerror"} & {name for name, _ in attributes}
    assert all(value.startswith("#b") for name, value in attributes if name == "href" and value)
    assert parser.found.count("iframe") == 1 and ("sandbox", "") in attributes
    assert "url(" not in shown and "@import" not in shown
    assert shown.count("alert(1)") == 6  # title, heading, page with its title, block, text


def test_view_folds_what_was_removed() -> None:
    explanation = explain(_PAGE.read_bytes(), default_settings())
    shown = view(explanation, "", "")
    folded = "".join(re.findall("<details class=dropped>.*?</details>", shown, re.DOTALL))
    kept = [number for number, block in enumerate(explanation.blocks) if block.kept]
    assert kept and not any(f"id=b{number}>" in folded for number in kept)
    assert folded.count('<div class="block removed') == len(explanation.blocks) - len(kept)
    assert shown.count("<p class=unit>") == len(explanation.units)
    assert not re.search("</details>\\s*<details", shown)  # one run, one fold


def test_extract_file_prints_text_and_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = extract(_PAGE.read_bytes())
    target = tmp_path / "view.html"
    assert main(["extract-file", str(_PAGE), "--explain", str(target)]) == 0
    assert capsys.readouterr().out == expected.text + "\n"
    assert len(re.findall('<div class="block kept', target.read_text())) > 3
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
