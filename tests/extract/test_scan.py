"""What the scanner makes of markup, before any model judges it."""

from __future__ import annotations

import pytest

from curation.extract.markup import ANCESTOR
from curation.extract.scan import scan


def blocks(html: str) -> list[tuple[str, int]]:
    """Text of each block, and the bits of what it stands in."""
    page = scan(html.encode(), 512, 10_000)
    texts = [
        page.text[start:end].tobytes().decode()
        for start, end in zip(page.b_start, page.b_end, strict=True)
    ]
    return list(zip(texts, page.e_above[page.b_element].tolist(), strict=True))


def texts(html: str) -> list[str]:
    return [text for text, _ in blocks(html)]


@pytest.mark.parametrize("name", ["gutter", "two-thirds gutter", "lineno"])
def test_gutter_on_a_block_outside_code_is_layout_until_proved_otherwise(name: str) -> None:
    found = blocks(f'<div class="{name}"><p>A column of the story.</p></div>')
    assert [text for text, _ in found] == ["A column of the story."]
    assert found[0][1] & ANCESTOR["gutter"]


def test_gutter_inside_code_is_passed_over() -> None:
    html = '<pre><span class="lineno">1</span>x = 1\n<span class="lineno">2</span>y = 2</pre>'
    assert texts(html) == ["x = 1\ny = 2"]


@pytest.mark.parametrize(
    "attribute",
    ["hidden", 'style="display: none"', 'aria-hidden="true"', 'style="VISIBILITY:hidden"'],
)
def test_hidden_blocks_are_marked_and_hidden_phrases_passed_over(attribute: str) -> None:
    html = f"<p>Seen</p><div {attribute}><p>Unseen</p></div><p>So <b {attribute}>not</b> seen</p>"
    found = blocks(html)
    assert [text for text, _ in found] == ["Seen", "Unseen", "So seen"]
    assert [bool(above & ANCESTOR["hidden"]) for _, above in found] == [False, True, False]


def test_a_page_inside_noscript_is_read_and_a_request_for_scripts_is_not() -> None:
    post = "<div class=post><p>" + "A post that is read without scripts. " * 80 + "</p></div>"
    found = blocks(f"<noscript>{post}</noscript><p>After</p>")
    assert found[0][0].startswith("A post that")
    assert found[0][1] & ANCESTOR["noscript"]
    assert found[-1] == ("After", ANCESTOR["p"])
    assert texts("<p>One<noscript><img alt=x> Turn scripts on!</noscript> line</p>") == ["One line"]
    assert texts("<p>Never closed<noscript> text</p>") == ["Never closed text"]


def test_mathjax_as_the_class_of_a_container_hides_nothing() -> None:
    html = (
        '<blockquote class="abstract mathjax">We show that $x=1$.</blockquote>'
        '<p>Then <span class="MathJax" id="MathJax-1">drawn</span>'
        '<script type="math/tex">x=2</script> holds.</p>'
        '<div class="MathJax_Display"><span class="MathJax">drawn</span></div>'
    )
    assert texts(html) == ["We show that $x=1$.", "Then  holds."]
