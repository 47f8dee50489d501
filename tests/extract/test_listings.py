"""What is a listing, what it is written in, and what it must not lose."""

from __future__ import annotations

import pytest

from curation.extract import Extractor
from curation.extract.extractor import default_settings
from curation.extract.listings import language_of

_OWN = Extractor(default_settings())
_PROSE = "<p>The mill stood beside the stream for a hundred years, and for more than that.</p>" * 3


def _text(html: str) -> str:
    page = f"<main><article><h1>The mill</h1>{_PROSE}{html}{_PROSE}</article></main>"
    return _OWN.extract(page.encode()).text


@pytest.mark.parametrize("listing", ["Copy\nPaste", "Cut\nCopy", "python\nCopy code\nx = 1"])
def test_the_same_words_in_a_listing_stay(listing: str) -> None:
    assert f"\n\n{listing}\n\n" in _text(f"<pre>{listing}</pre>")
    assert f"\n\n{listing}\n\n" in _text(f"<button>Run</button><p>Copy</p><pre>{listing}</pre>")


@pytest.mark.parametrize(
    ("classes", "language"),
    [
        ("code highlight js-syntax-highlight", ""),
        ("file-content code blob-viewer", ""),
        ("code panel pdl", ""),
        ("code-frame", ""),
        ("highlight highlight-source-shell notranslate", "shell"),
        ("highlight hl-ipython3", "ipython3"),
        ("hljs language-objective-c", "objective-c"),
        ("sourceCode python", "python"),
    ],
)
def test_names_of_components_are_no_languages(classes: str, language: str) -> None:
    assert language_of(classes) == language


_NAMES = (
    "cm-content", "syntaxhighlighter", "crayon-pre", "codemirror-code", "codemirror-lines",
    "view-lines", "react-code-lines", "dp-highlighter", "recodeblock", "ace_text-layer", "de1",
    "blob-code", "fragment",
)  # fmt: skip
_SENTENCES = (
    "The ferry leaves the harbour at six in the morning and returns at noon.",
    "People on the island say that autumn came earlier than in other years.",
    "The council wants to repair the bridge before the storms of the winter.",
)


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize(
    "body",
    [
        "\n\t\t\n\t\t{p}\n\t\t",
        "\n\t<div class='entry'>\n\t\t{p}</div>",
        "\n\t<h2>Harbour</h2>\n\t{p}",
        "\n\t<div class='headline'>Harbour</div>\n\t{p}",
        "\n\t<section>\n\t\t{p}\n\t</section>",
        "\n\t{loose}\n\t\t{loose}",
        "\n\t<figure><img src=a.jpg></figure>\n\t{p}",
    ],
)
def test_a_name_alone_makes_no_listing(name: str, body: str) -> None:
    paragraphs = "\n\t\t".join(f"<p>{sentence}</p>" for sentence in _SENTENCES * 2)
    inner = body.format(p=paragraphs, loose=" ".join(_SENTENCES))
    text = _text(f'<div class="wrap {name}">{inner}</div>')
    assert "\t" not in text and "\n\n\n" not in text
    assert all(sentence in text for sentence in _SENTENCES)


@pytest.mark.parametrize(
    ("holder", "line"),
    [
        ('<div class="cm-content" role="textbox">{}</div>', '<div class="cm-line">{}</div>'),
        ('<div class="view-lines">{}</div>', '<div class="view-line">{}</div>'),
        ('<div class="ace_text-layer">{}</div>', '<div><div class="ace_line">{}</div></div>'),
        ('<div class="react-code-lines">{}</div>', '<div class="react-code-line">{}</div>'),
        ("<ol>{}</ol>", '<li class="li1"><div class="de1">{}</div></li>'),
    ],
)
def test_lines_of_an_editor_are_a_listing(holder: str, line: str) -> None:
    lines = "".join(line.format(text) for text in ("a:", "  b"))
    assert "a:\n  b" in _text(holder.format(lines))


def test_a_column_of_codes_is_no_listing() -> None:
    rows = "".join(f"<tr><td{{}}>AB-{i}</td><td>Part number {i}</td></tr>" for i in range(6))
    marked, plain = (f"<table>{rows.replace('{}', x)}</table>" for x in (' class="code"', ""))
    assert _text(marked) == _text(plain)


def test_numbers_alone_are_a_listing() -> None:
    prose = "<p>The mill stood beside the stream for a hundred years, and more than that.</p>" * 3
    page = f"<article><h1>Mill</h1>{prose}<pre>1\n2\n3\n</pre>{prose}</article>"
    text = Extractor(default_settings()).extract(page.encode()).text
    assert text.count("1\n2\n3") == 1
