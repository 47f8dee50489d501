"""What the scanner makes of markup, before any model judges it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.extract import Extractor, extract
from curation.extract.blocks import TEX_DISPLAY
from curation.extract.extractor import default_settings
from curation.extract.features import stated
from curation.extract.lexing import tag_name
from curation.extract.markup import ANCESTOR, name_hash
from curation.extract.scan import scan
from curation.hashing import xxh64


def blocks(html: str) -> list[tuple[str, int]]:
    """Text of each block, and the bits of what it is in."""
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


@pytest.mark.parametrize(
    "style", ["display:block;visibility:hidden", "visibility: hidden; display: inline"]
)
def test_text_that_waits_for_its_formulas_is_read(style: str) -> None:
    html = f'<p>Seen</p><span style="{style}"><span><p>Where $x=1$</p></span></span>'
    assert texts(html) == ["Seen", "Where $x=1$"]
    assert texts('<p>A<b style="display:inline;display:none;visibility:hidden">b</b></p>') == ["A"]


@pytest.mark.parametrize("name", ["style", "iframe", "textarea"])
def test_text_with_an_end_tag_belongs_to_a_tag_that_seems_to_close_itself(name: str) -> None:
    assert texts(f"<p>Before</p><{name} id=a />a {{ b: c }}</{name.upper()}><p>After</p>") == [
        "Before",
        "After",
    ]
    assert texts(f"<p>Before</p><{name} />lost?<p>After</p><{name}>x</{name}>") == [
        "Before",
        "lost?",
        "After",
    ]


def test_a_page_inside_noscript_is_read_and_a_request_for_scripts_is_not() -> None:
    post = "<div class=post><p>" + "A post that is read without scripts. " * 80 + "</p></div>"
    found = blocks(f"<noscript>{post}</noscript><p>After</p>")
    assert found[0][0].startswith("A post that")
    assert found[0][1] & ANCESTOR["noscript"]
    assert found[-1] == ("After", ANCESTOR["p"])
    assert texts("<p>One<noscript><img alt=x> Turn scripts on!</noscript> line</p>") == ["One line"]
    asks = "For full functionality of this site it is necessary to enable JavaScript. " * 3
    assert texts(f"<p>One<noscript>{asks}</noscript> line</p>") == ["One line"]
    player = "&lt;object classid=&quot;clsid:0&quot;&gt;" * 20
    assert texts(f"<p>One<noscript>{player}</noscript> line</p>") == ["One line"]
    assert texts("<p>Never closed<noscript> text</p>") == ["Never closed text"]


def test_mathjax_as_the_class_of_a_container_hides_nothing() -> None:
    html = (
        '<blockquote class="abstract mathjax">We show that $x=1$.</blockquote>'
        '<p>Then <span class="MathJax" id="MathJax-1">drawn</span>'
        '<script type="math/tex">x=2</script> holds.</p>'
        '<div class="MathJax_Display"><span class="MathJax">drawn</span></div>'
    )
    assert texts(html) == ["We show that $x=1$.", "Then  holds."]


@pytest.mark.parametrize(
    "drawn",
    [
        '<div class="MathJax_MathML"><math><mi>x</mi></math></div>',
        '<div class="MathJax_SVG_Display"><span class="MathJax_SVG" data-mathml="&lt;math&gt;">'
        '<span class="MJX_Assistive_MathML"><math><mi>x</mi></math></span></span></div>',
        '<div class="MJXc-display"><span class="mjx-chtml" data-mathml="&lt;math&gt;">x</span>'
        "</div>",
        '<div class="MathJax_Preview">x</div>',
    ],
)
def test_what_is_drawn_on_lines_of_its_own_is_not_said_again(drawn: str) -> None:
    source = '<script type="math/tex; mode=display">x</script>'
    page = scan(f"<p>Then</p>{drawn}{source}<p>More</p>".encode(), 512, 10_000)
    assert page.a_kind.tolist() == [TEX_DISPLAY]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("2<sup>10</sup> and 10<sup>-3</sup> m<sup>2</sup>", "2^10 and 10^-3 m^2"),
        ("in 1931<sup><a href=#n>3</a></sup>", "in 1931^3"),
        ("the 1<sup>st</sup>, n<sup>o</sup> 5 <sup>6</sup>", "the 1st, no 5 6"),
        ("<ruby>傍<rt>そば</rt></ruby>に", "傍（そば）に"),
        ("<ruby>漢<rp>（</rp><rt>かん</rt><rp>）</rp></ruby>字", "漢（かん）字"),
        ("<ruby>漢<rt>かん<rt></ruby>字", "漢（かん）字"),
        ('<ruby><rb aria-hidden="true">竹取</rb><rt>たけとり</rt></ruby>の', "竹取（たけとり）の"),
        ("<del>40</del><ins>45</ins>", "40 45"),
        ("Press the <button>Start</button> key", "Press the Start key"),
        ("<span>Senior engineer</span><span>Brückner</span>", "Senior engineer Brückner"),
        ("<span>HOST</span><span>00:41</span><span>Nine</span>", "HOST 00:41 Nine"),
        ("<b>Mac</b><i>OS</i>, i<b>Phone</b>, <b>O</b><b>nce</b>", "MacOS, iPhone, Once"),
        (
            "<em>The Mill</em>Open since one<b>Sunday</b>, Mc<b>Adam</b>, <b>Ду́ма</b>Москва",
            "The Mill Open since one Sunday, McAdam, Ду́ма Москва",
        ),
        ("<b>Д</b>ом, Aspect<wbr>Ratio", "Дом, AspectRatio"),
        ("<b>Bread</b><img src=a.png>Leave it to rise", "Bread Leave it to rise"),
        ("<code>U+0041</code><code>0x41</code><code>()</code>s", "U+0041 0x41()s"),
        ("<i class=l>Time</i><i class=v><b class=n>13</b></i><i class=u> h</i>", "Time 13 h"),
        (
            "<i class=d>2024</i><i class=t>8:23</i>, <i class=d>1</i><i class=d>9</i>",
            "2024 8:23, 19",
        ),
        ("<i class=d>IANS</i><i class=t>Viewed</i>, <i>CO</i><sub>2</sub>", "IANS Viewed, CO2"),
        ("<i class=d>2</i><sup class=t>10</sup>, <b>pur</b><i class=a>pose</i>", "2^10, purpose"),
        ("<ruby>傍<rt>(</rt></ruby>", "傍（(）"),
        ("Title <a href=#t>¶</a>", "Title"),
        ("note <a href=#n>↩\ufe0e</a> and <a href=#m>#1</a>", "note and #1"),
        ('fine <img class="emoji" alt="❤️" src=x>.', "fine ❤️."),
        ('fine <img class="emoji" alt="heart" src=x>.', "fine ."),
    ],
)
def test_small_things_inside_of_text(html: str, text: str) -> None:
    page = scan(f"<p>{html}</p>".encode(), 512, 1000)
    assert texts(f"<p>{html}</p>") == [text]
    written = page.text[page.b_start[0] : page.b_end[0]].tobytes().decode()
    assert page.b_chars[0] >= len("".join(written.split())) - 2  # brackets of readings


@given(st.lists(st.sampled_from(
    ["<sup>", "</sup>", "<rt>", "</rt>", "<ruby>", "</ruby>", "<a href=#x>", "</a>", "<p>", "</p>",
     "<del>", "</del>", "<span>", "</span>", "<button>", "</button>", "<pre>", "</pre>",
     "<code class=a>", "</code>", "¶", "#", "2", "x", "Ab", " ", "（", "(", "<br>",
     '<img class=emoji alt="✓">']
), max_size=40))  # fmt: skip
def test_they_leave_every_block_in_order(pieces: list[str]) -> None:
    page = scan("".join(pieces).encode(), 512, 1000)
    edges = np.stack([page.b_start, page.b_end], 1).ravel()
    assert (np.diff(edges) >= 0).all() and (page.b_end > page.b_start).all()
    assert (page.b_chars > 0).all() and (page.b_link_chars >= 0).all() and (page.b_links >= 0).all()
    page.text.tobytes().decode()
    assert (np.diff(page.a_at) >= 0).all()


@pytest.mark.parametrize(
    "head, title",
    [
        ("<title>One</title><meta property=og:title content=Two><h1>Three</h1>", "One"),
        ("<title> </title><meta property=og:title content='T&amp;wo'><h1>Three</h1>", "T&wo"),
        ("<meta property=og:title content=''><h1>Three<br>lines</h1>", "Three lines"),
        ("<h1>Three</h1><h1>Four</h1>", ""),
        ("<h2>Two</h2>", ""),
    ],
)
def test_a_page_without_title_has_that_of_its_card_or_heading(head: str, title: str) -> None:
    assert extract(f"{head}<p>Text of the page.").title == title


def test_names_that_tell_what_an_element_has_are_not_taken_for_its_kind() -> None:
    text = "The ferry to the islands did not sail on Tuesday, because the wind had turned. " * 4
    without = Extractor(default_settings().model_copy(update={"comments": False}))
    for name, stays in (("has-comments", True), ("no_comments", True), ("comments", False)):
        body = f"<p>{text}</p><p>{text[::-1]}</p>" * 3
        page = f"<title>T</title><main><p>{text[9:]}</p><div class='{name}'>{body}</div></main>"
        assert (text[::-1].strip() in without.extract(page).text) == stays, name


def names_of(html: str) -> list[list[int]]:
    page = scan(html.encode(), 512, 10_000)
    starts = page.e_tokens.tolist()
    return [page.tokens[a:b].tolist() for a, b in itertools.pairwise(starts)][1:]


@given(
    st.lists(
        st.text(alphabet="abA1- \t_é", max_size=70)
        | st.sampled_from(["post", "has-post x", "a" * 61]),
        max_size=12,
    )
)
def test_a_class_says_the_same_wherever_it_stands(classes: list[str]) -> None:
    alone = [names_of(f'<div class="{one}">x</div>')[0] for one in classes]
    page = "".join(f'<div class="{one}"><p class="{one}">x</div>' for one in classes)
    assert names_of(page) == [names for one in alone for names in (one, one)]


def test_more_classes_than_are_kept() -> None:
    classes = [f"name{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(600)] * 2
    found = names_of("".join(f'<div class="{one}">x</div>' for one in classes))
    assert found[:600] == found[600:]
    assert len({tuple(names) for names in found}) == 600


@given(st.binary(min_size=1, max_size=40), st.integers(0, 9), st.integers(0, 9))
def test_the_hash_of_a_span_is_that_of_its_bytes(span: bytes, one: int, other: int) -> None:
    def hashed(before: int, span: bytes, after: int) -> int:
        page = np.frombuffer(b"x" * before + span + b"y" * after, np.uint8)
        return int(xxh64(page, before, before + len(span), np.uint64(0)))

    assert hashed(one, span, other) == hashed(other, span, one)
    assert hashed(one, span, 1) != hashed(one, span + b"y", 0)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://x.org/cgi/MimeTeX.cgi?x", True),
        ("https://x.org/render?cht=tx", True),
        ("https://l.x.org/latexmath/render", True),
        ("https://x.org/math/render", True),
        ("https://x.org/photo-of-late", False),
        ("cht=t", False),
    ],
)
def test_addresses_of_formulas(address: str, shown: bool) -> None:
    page = scan(f'<p>so <img src="{address}">x</p>'.encode(), 512, 10_000)
    assert bool(page.b_atoms.sum()) == shown


@pytest.mark.parametrize(
    "one, other, alike",
    [
        ("post-1234 entry", "post-98 entry", False),  # two digits may be a size
        ("post-1234 entry", "post-5678901 entry", True),
        ("memitem:a105e5244132e2f3", "memitem:adde9bab0a98bf77", True),
        ("col-md-8", "col-md-4", False),
        ("w-100", "w-75", False),
        ("layout2023x", "layout2024x", True),
        ("a1234", "b1234", False),
    ],
)
def test_numbers_of_elements_tell_no_kinds_apart(one: str, other: str, alike: bool) -> None:
    page = scan(f'<div class="{one}">x</div><div class="{other}">y</div>'.encode(), 64, 99)
    first, second = page.e_signature[page.b_element]
    assert (first == second) == alike


@given(st.binary(max_size=12) | st.text("aZz-:=<?[@\x00\x01\xe9", max_size=12).map(str.encode))
def test_names_are_hashed_as_their_table_hashes_them(name: bytes) -> None:
    end = next((k for k, byte in enumerate(name) if byte in b"\t\n\f\r />"), len(name))
    src = np.frombuffer(name + b">" + bytes(16), np.uint8)
    assert tag_name(src, len(name) + 1, 0) == (name_hash(name[:end].lower()), end)


@pytest.mark.parametrize(
    "text", ["Zürich – naïve", "漢字かな　交じり", "Привет мир", "ไทย", "😀 ﬁn"]
)
@pytest.mark.parametrize("space", [" ", "\n", " \n\t ", "\xa0", "\u3000"])
def test_characters_of_every_size_are_read_with_at_most_one_blank_between(
    text: str, space: str
) -> None:
    (found,) = texts(f"<p>a{space}{space.join(text.split())}{space}b</p>")
    assert "".join(found.split()) == "a" + "".join(text.split()) + "b"
    assert "  " not in found


@pytest.mark.parametrize(
    ("types", "questions", "forum"),
    [
        ("QAPage", True, True),
        ("Question Answer", True, True),
        ("FAQPage Question Answer", False, False),  # a list of frequent questions
        ("DiscussionForumPosting", False, True),
        ("Article", False, False),
    ],
)
def test_types_of_schema_org_tell_threads(types: str, questions: bool, forum: bool) -> None:
    html = "".join(
        f'<div itemscope itemtype="https://schema.org/{one}">a</div>' for one in types.split()
    )
    source = html.encode()
    said = stated(source, scan(source, 512, 10_000))
    assert (said.questions, said.forum) == (questions, forum)
