"""Parts of pages that forms can't show: state in scripts, streamed parts, growth, headlines."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.extract import Extractor, extract
from curation.extract.clean import clean
from curation.extract.extractor import default_settings
from curation.extract.page_state import in_place, stated_article

_SENTENCE = "The harbour wall was rebuilt after the flood of that year, and it has stood since. "
_ARTICLE = "<p>" + _SENTENCE * 6 + "</p>"


def _next(props: object) -> bytes:
    state = json.dumps({"props": {"pageProps": props}})
    return (
        '<html><body><div id="__next"></div>'
        f'<script id="__NEXT_DATA__" type="application/json">{state}</script></body></html>'
    ).encode()


def test_an_article_in_the_state_of_a_page_without_text_is_read() -> None:
    html = _next({"post": {"title": "Walls", "content": _ARTICLE + "<ul><li>One more.</li></ul>"}})
    assert extract(html).text == (_SENTENCE * 6).strip() + "\nOne more."


@pytest.mark.parametrize(
    "sentence",
    [
        "渡し船は朝の六時に港を出て、島の人々を乗せて昼前に戻ってきた。",
        "เรือข้ามฟากออกจากท่าเวลาหกโมงเช้าทุกวัน ",
    ],
)
def test_an_article_of_scripts_of_three_bytes_needs_fewer_characters(sentence: str) -> None:
    lines = [f"{sentence}{number}" for number in "一二三四五六"]
    html = _next({"post": {"content": "".join(f"<p>{line}</p>" for line in lines)}})
    assert extract(html).text == "\n".join(lines)
    assert extract(_next({"post": {"content": f"<p>{sentence}</p>" * 3}})).text == ""


def test_rich_text_in_the_state_is_read_block_by_block() -> None:
    nodes = [
        {"nodeType": "paragraph", "content": [{"nodeType": "text", "value": _SENTENCE * 6}]},
        {"nodeType": "paragraph", "content": [{"nodeType": "text", "value": "It "},
                                              {"nodeType": "text", "value": "held."}]},
    ]  # fmt: skip
    html = _next({"body": {"nodeType": "document", "content": nodes}})
    assert extract(html).text == (_SENTENCE * 6).strip() + "\nIt held."


def test_a_page_with_text_of_its_own_does_not_read_its_state() -> None:
    html = _next({"content": "<p>" + "Another article. " * 60 + "</p>"}).replace(
        b'<div id="__next"></div>', f"<main><article>{_ARTICLE}</article></main>".encode()
    )
    assert "Another article" not in extract(html).text


def _script(content: str) -> bytes:
    return f'<html><body><div id="root"></div><script>{content}</script></body></html>'.encode()


def _string(value: object) -> str:
    return json.dumps(value).replace("<", "\\u003C")


@pytest.mark.parametrize(
    "content",
    [
        "window.__NUXT__=(function(a,b){return {data:[{body:%s,draft:a}]}}(false,null));",
        'window.__remixContext = {"state":{"loaderData":{"post":{"html":%s}}}};',
        '{__sveltekit_1 = {};kit.start(app, {data: [null,{type:"data",data:{content:%s}}]});}',
        'window.__PRELOADED_STATE__ = {"article":{"body":%s}}',
    ],
    ids=["nuxt", "remix", "sveltekit", "preloaded"],
)
def test_an_article_in_a_program_of_a_framework_is_read(content: str) -> None:
    assert extract(_script(content % _string(_ARTICLE))).text == (_SENTENCE * 6).strip()


def test_an_article_in_json_that_is_a_string_is_read() -> None:
    state = json.dumps({"article": {"body": _ARTICLE}})
    page = _script(f"window.__INITIAL_STATE__ = JSON.parse({_string(state)})")
    assert extract(page).text == (_SENTENCE * 6).strip()
    answer = _string({"status": 200, "body": state})
    fetched = f'<script type="application/json" data-sveltekit-fetched>{answer}</script>'
    assert extract(f"<html><body>{fetched}</body></html>".encode()).text == (_SENTENCE * 6).strip()
    flat = f'<script type="application/json" id="__NUXT_DATA__">{_string([1, _ARTICLE])}</script>'
    assert extract(f"<html><body>{flat}</body></html>".encode()).text == (_SENTENCE * 6).strip()


def test_rows_of_next_are_no_text_but_what_they_say_is() -> None:
    push = "self.__next_f.push([1,%s])"
    row = '5:["$","p",null,{"children":"' + _SENTENCE * 6 + '"}]'
    assert stated_article(_script(push % _string(row))) == ""
    assert stated_article(_script(push % _string("6:T1f4," + _ARTICLE))) == _ARTICLE


@pytest.mark.parametrize(
    "nodes",
    [
        [{"name": "core/paragraph", "attributes": {"content": _SENTENCE * 6}}],
        [{"id": "a", "type": "paragraph", "data": {"text": _SENTENCE * 6}}],
        [
            {
                "slice_type": "text",
                "primary": {"content": [{"type": "paragraph", "text": _SENTENCE * 6}]},
            }
        ],
    ],
    ids=["wordpress", "editor.js", "prismic"],
)
def test_nodes_have_their_words_one_step_further_in(nodes: list[object]) -> None:
    assert extract(_next({"blocks": nodes * 2})).text.count(_SENTENCE.strip()) == 12


_TOLD = {
    "en": "The ferry left before six, and nobody on the quay knew when the next would come. ",
    "ru": "Паром ушёл до шести, и никто на причале не знал, когда придёт следующий. ",
    "zh": "渡船在六点之前离开了港口，码头上没有人知道下一班船什么时候会来。",
    "ar": "غادرت العبارة قبل السادسة ولم يعرف أحد على الرصيف متى ستصل التالية. ",
    "th": "เรือข้ามฟากออกจากท่าก่อนหกโมงเช้า และไม่มีใครบนท่าเรือรู้ว่าเรือลำต่อไปจะมาเมื่อใด ",
}


def _paragraphs(language: str = "en") -> tuple[str, list[str]]:
    """An article's HTML and its paragraphs."""
    told = [(f"{k}. " + _TOLD[language] * (20 // k)).strip() for k in (1, 2, 3)]
    return "".join(f'<p class="editor-p">{text}</p>' for text in told), told


def _javascript(value: str, quote: str) -> str:
    escaped = value.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return quote + escaped.replace("<", "\\x3c") + quote


def _row(html: str) -> str:
    """Return a row of Next.js whose element has its HTML as a string, as a string."""
    return json.dumps(
        f'a:["$","div",null,{{"dangerouslySetInnerHTML":{{"__html":{_string(html)}}}}}]'
    )


@pytest.mark.parametrize("language", _TOLD)
@pytest.mark.parametrize(
    ("script", "written"),
    [
        ('window.APP = {"id":7,"contentHtml":@}', _string),
        ("var q=@;render(q)", _string),
        ("start({x7:@,y:[1,2]})", lambda html: json.dumps(html).replace("</", "<\\/")),
        ("page.push([3, @])", lambda html: json.dumps(html, ensure_ascii=False)),
        ("load(JSON.parse(@))", lambda html: _javascript(_string({"a": {"b": html}}), "'")),
        ("const t = @", lambda html: _javascript(html, "'")),
        ("const t = @", lambda html: _javascript(html, '"')),
        ("set('body', @)", lambda html: _string(html.replace("<", "&lt;").replace(">", "&gt;"))),
        ('k={"d":@}', lambda html: json.dumps(json.dumps({"r": [{"markup": html}]}))),
        ("self.__next_f.push([1,@])", _row),
        ("// it's a comment\nlet s = /[\"']/, t = {\n  inner: @\n}", _string),
        ("f(0)" * 200 + ';w["art-1"]=@', _string),
    ],
    ids=["object", "variable", "bare-key", "pushed", "parsed", "single", "double", "entities",
         "json-in-json", "row", "quotes-in-comments", "behind-code"],
)  # fmt: skip
def test_html_in_a_string_of_any_program_is_read(
    script: str, written: Callable[[str], str], language: str
) -> None:
    html, told = _paragraphs(language)
    assert extract(_script(script.replace("@", written(html)))).text == "\n".join(told)


@pytest.mark.parametrize(
    "script",
    [
        'cfg({"consentText":@})',
        'cfg({"privacyPolicyHtml":@})',
        'define("t", "<p>{{ name }}</p>@")',
        'f("' + "var a = b ? c : d; if (a) { b(); } " * 40 + '")',
        '{"@type":"x"}</script><script src="x.js">a = @',
        'x = "never ends <p> ' + _SENTENCE * 9,
    ],
    ids=["consent", "privacy", "template", "program", "elsewhere", "unclosed"],
)
def test_other_strings_of_programs_are_left_alone(script: str) -> None:
    written = _string(_paragraphs()[0])
    page = _script(script.replace('>@"', f">{written[1:]}").replace("@", written))
    assert extract(page).text == ""


def test_what_the_page_shows_is_not_read_again_from_its_script() -> None:
    html, told = _paragraphs()
    page = _script(f"a={_string(html)}")
    assert extract(page).text == "\n".join(told)
    links = "".join(f"<li><a href=/{k}>{text}</a>" for k, text in enumerate(told))
    shown = f"<body><nav>{links}</nav><article><h1>Walls</h1><p>{_SENTENCE}</p></article>"
    assert extract(page.replace(b"<body>", shown.encode())).text == "Walls\n" + _SENTENCE.strip()


def test_of_several_articles_that_near_the_title_is_read() -> None:
    html, told = _paragraphs()
    other = html.replace("ferry", "train") + "<p>" + _SENTENCE * 8 + "</p>"
    filler = "f(0);" * 500
    for title in ("Ferries at dawn", "Паромы на рассвете"):
        mine = json.dumps({"headline": title, "parts": [html]})
        for script in (
            f"a={_string(other)};{filler}b={mine}",
            f"b={mine};{filler}a={_string(other)}",
        ):
            page = _script(script).replace(
                b"<body>", f"<title>{title} | News</title><body>".encode()
            )
            assert extract(page).text == "\n".join(told)
        assert extract(_script(f"a={_string(other)};{filler}b=0")).text.endswith(_SENTENCE.strip())


_PROGRAM = [*"\"'\\=:{[<\n", "\\u003cp", "</p>", "<script>", "</script>", "a" * 300, "One. Two. "]


@given(st.lists(st.sampled_from(_PROGRAM), max_size=40))
def test_any_program_is_read_to_its_end(pieces: list[str]) -> None:
    assert len(stated_article(_script("".join(pieces)))) < 300 * len(pieces) + 1000


def test_state_that_is_no_article_is_left_alone() -> None:
    assert stated_article(_next({"cookieText": "We use cookies. " * 60})) == ""
    assert stated_article(_next({"css": ".a { color: red } " * 60})) == ""
    assert stated_article(b'<script type="application/json">{"a": [</script>') == ""


def test_streamed_parts_go_where_their_script_puts_them() -> None:
    late = b'<div hidden id="S:0"><p>Late.</p></div><script>$RC("B:0","S:0")</script>'
    page = b'<p>A</p><!--$?--><template id="B:0"></template><i>wait</i><!--/$--><p>C</p>'
    found = in_place(page + late)
    assert found.startswith(b"<p>A</p><!--$?--><p>Late.</p><p>C</p>")
    assert b"hidden" not in found
    segment = (
        b'<p>A<template id="P:1"></template>C</p><div hidden id="S:1">B</div>'
        b'<script>$RS("S:1","P:1")</script>'
    )
    assert in_place(segment).startswith(b"<p>ABC</p>")
    assert in_place(page) == page


def test_parts_that_wait_for_themselves_are_left_alone() -> None:
    place = b'<template id="B:0"></template>'
    html = b'<div hidden id="S:0">' + place + b'</div><script>$RC("B:0","S:0")</script>'
    assert in_place(html) == html


_PIECES = b"""<div hidden id="S:0">
<div hidden id="S:1">
</div>
<template id="B:0"></template>
<template id="B:1"></template>
$RC("B:0","S:0")
$RC("B:1","S:1")
<!--$?-->
<!--/$-->
text
<div>""".split(b"\n")


@given(st.lists(st.sampled_from(_PIECES), max_size=30))
def test_streaming_ends_whatever_the_order(pieces: list[bytes]) -> None:
    html = b"".join(pieces)
    assert in_place(html).count(b"text") <= html.count(b"text")


def test_zero_width_spaces_part_words_of_khmer_only() -> None:
    assert clean("ភាសា\u200bខ្មែរ and har\u200bbour\u200b") == "ភាសា\u200bខ្មែរ and harbour"


def test_the_headline_is_kept_if_it_repeats_the_title() -> None:
    html = (
        "<title>Walls of the harbour - The Daily</title><body><div class='x'><div class='menu-top'>"
        "<h1>Walls of the harbour</h1></div><div class='y share'>Share</div></div>"
        f"<article>{_ARTICLE * 3}</article>"
    )
    assert extract(html).text.startswith("Walls of the harbour\nThe harbour wall")
    settings = default_settings()
    structure = settings.structure.model_copy(update={"title": False})
    without = Extractor(settings.model_copy(update={"structure": structure})).extract(html)
    assert len(without.text) <= len(extract(html).text)


def test_a_banner_over_columns_makes_no_table_of_a_layout() -> None:
    """One cell over both columns, then navigation beside the article, as pages of 1999 have it."""
    links = "".join(
        f"<a href=s{i}.html>{n}</a><br>" for i, n in enumerate(("Start", "Links", "Photos"))
    )
    words = "Until the railways came, noon was the moment when the sun stood highest. " * 4
    page = (
        "<title>Noon</title><table width='100%'><tr><td colspan=2>Uncle Herbert's Page</td></tr>"
        f"<tr><td width=140>{links}</td><td><h1>When every town had its noon</h1><p>{words}</p>"
        f"<p>Trains made that dangerous. {words}</p></td></tr></table>"
    )
    text = Extractor(default_settings()).extract(page).text
    assert text.startswith("When every town had its noon\nUntil") and "Photos" not in text


def test_letters_read_in_another_encoding_are_mended_on_pages_with_listings_and_formulas() -> None:
    """Text that needs no repair is found where the blocks are laid out, formulas aside."""
    listing = "<pre>x = 1\ny = 2</pre>"
    text = "Caf\xc3\xa9s and fa\xc3\xa7ades \xc3\xa0 la carte; that is what the article is about."
    paragraphs = "".join(f"<p>Part {k}: {text}</p>" for k in range(12))
    found = extract(f"<article>{paragraphs}{listing}</article>")
    assert "Cafés and façades" in found.text and "x = 1\ny = 2" in found.text
    tex = '<annotation encoding="application/x-tex">e\u0301 + 1</annotation>'
    line = f"An article with a formula: <math><semantics><mi>e</mi>{tex}</semantics></math>."
    paragraphs = "".join(f"<p>{line} It is number {k}.</p>" for k in range(12))
    assert "$\u00e9 + 1$" in extract(f"<article>{paragraphs}{listing}</article>").text


def _unicode(html: str) -> str:
    return html.replace("<", "\\u003c").replace(">", "\\u003e")


#: How pages write HTML in a string of JSON, escaped once or more often.
_ESCAPES: dict[str, Callable[[str], str]] = {
    "named": escape,
    "less-than": lambda html: html.replace("<", "&lt;"),
    "decimal": lambda html: html.replace("<", "&#60;").replace(">", "&#62;"),
    "hexadecimal": lambda html: html.replace("<", "&#x3C;").replace(">", "&#x3E;"),
    "named twice": lambda html: escape(escape(html)),
    "thrice": lambda html: escape(escape(escape(html))),
    "unicode": _unicode,
    "quoted": lambda html: _unicode(json.dumps(html)[1:-1]),
    "unicode of named": lambda html: escape(html).replace("&", "\\u0026"),
    "hexadecimal of programs": lambda html: html.replace("<", "\\x3c").replace(">", "\\x3e"),
}


@pytest.mark.parametrize("language", _TOLD)
@pytest.mark.parametrize("escaped", _ESCAPES.values(), ids=_ESCAPES)
def test_escaped_html_in_a_state_is_read(escaped: Callable[[str], str], language: str) -> None:
    told = [f"{k}. {_TOLD[language].strip()}" for k in range(1, 13)]  # one sentence each
    written = escaped("".join(f'<p class="x">{text}</p>' for text in told))
    for script in (
        json.dumps({"a": [{"body": written}]}),
        json.dumps([1, written]),
        f"window.S={json.dumps({'q': written})};run()",
        f"show({{id:3,v:{json.dumps(written)}}})",
        f"load({json.dumps(json.dumps({'q': written}))})",
    ):
        assert extract(_script(script)).text == "\n".join(told)


def test_an_escape_that_a_state_speaks_of_stays() -> None:
    told = (
        r"JSON has `\u003c` for it, and `\x3cb` is a bold `\u0026lt;`. C:\new\table holds it. " * 9
    )
    assert extract(_script(json.dumps({"a": {"body": told}}))).text.strip() == told.strip()


def test_halves_of_characters_behind_escapes_in_a_state() -> None:
    told = (
        r"\u003cp>It is told here \ud800 at some length. And so on it goes. So it ends.\u003c/p>"
        * 9
    )
    assert "It is told here \ufffd at" in extract(_script(json.dumps({"a": {"body": told}}))).text
