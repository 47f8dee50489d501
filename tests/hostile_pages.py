"""Pages made to hurt: `CASES` generates each at any size. benchmarks/hostile.py measures them."""

from __future__ import annotations

import codecs
from collections.abc import Callable

_MIB = 1 << 20
_WORDS = b"The harbour wall was rebuilt after the flood of that year, and it has stood since. "
PARAGRAPH = b"<p>" + _WORDS * 6 + b"</p>\n"
ARTICLE = b"<h1>Harbour walls</h1>\n" + PARAGRAPH * 4

Maker = Callable[[float], bytes]
CASES: dict[str, Maker] = {}


def case(maker: Maker) -> Maker:
    """Register a generator: the size of its page grows with its argument, 1.0 is full size."""
    CASES[maker.__name__] = maker
    return maker


def page(body: bytes, head: bytes = b"") -> bytes:
    return b"<!doctype html><title>Hostile</title>" + head + b"<body>" + body


# ------------------------------------------------------------------------------------- nesting


@case
def nested_20_000(scale: float) -> bytes:
    """A paragraph at the bottom of 20,000 elements: its text must come back."""
    n = int(20_000 * scale)
    return page(b"<div>" * n + ARTICLE + b"</div>" * n)


@case
def nested_million(scale: float) -> bytes:
    return page(b"<div>" * int(1_000_000 * scale) + ARTICLE)


@case
def nested_million_with_text(scale: float) -> bytes:
    return page(b"<div>a" * int(1_000_000 * scale) + ARTICLE)


@case
def nested_million_inline(scale: float) -> bytes:
    return page(ARTICLE + b"<b><i><a href=x>" * int(333_333 * scale) + b"deep")


@case
def nested_tables(scale: float) -> bytes:
    n = int(20_000 * scale)
    return page(ARTICLE + b"<table><tr><td>x" * n + b"</td></tr></table>" * n)


@case
def nested_lists(scale: float) -> bytes:
    return page(ARTICLE + b"<ul><li>item " * int(100_000 * scale))


@case
def nested_tables_unclosed_cells(scale: float) -> bytes:
    return page(ARTICLE + b"<table><tr>" * int(500 * scale) + b"<td>x" * int(100_000 * scale))


@case
def broken_nesting(scale: float) -> bytes:
    soup = (
        b"<b><p>one</b></div><table><tr><div>two</p></td><li><h1>three</h2></table></span><td>"
        b"<a href=x><form><p>four</a></form></li></ul><pre>five</div></pre><tr></table>"
    )
    return page(ARTICLE + soup * int(20_000 * scale))


@case
def end_tags_only(scale: float) -> bytes:
    return page(ARTICLE + b"</p></div></td>" * int(300_000 * scale))


@case
def far_end_tags(scale: float) -> bytes:
    """Each end tag looks far up the stack for a start tag that isn't there to be closed."""
    opened = b"<section>" + b"<table><tr><td>" * 160
    return page(ARTICLE + opened + b"</section></aside>x" * int(300_000 * scale))


# ------------------------------------------------------------------------------------ quantity


@case
def siblings_million(scale: float) -> bytes:
    return page(b"<p>a" * int(1_000_000 * scale))


@case
def siblings_of_words(scale: float) -> bytes:
    return page(b"<p>five words in a line</p>\n" * int(400_000 * scale))


@case
def table_100_000_cells(scale: float) -> bytes:
    row = b"<tr>" + b"<td>12.5</td>" * 100 + b"</tr>\n"
    return page(ARTICLE + b"<table>" + row * int(1_000 * scale) + b"</table>")


@case
def table_of_formatted_cells(scale: float) -> bytes:
    row = b"<tr>" + b'<td class="n"><b><i>7</i></b> <a href="/x">y</a></td>' * 300 + b"</tr>"
    return page(ARTICLE + b"<table>" + row * int(300 * scale) + b"</table>")


@case
def links_100_000(scale: float) -> bytes:
    return page(ARTICLE + b"".join(b'<a href="/%d">link</a> ' % i for i in range(int(1e5 * scale))))


@case
def empty_spans(scale: float) -> bytes:
    return page(ARTICLE + b"<span></span>" * int(1_000_000 * scale))


@case
def line_breaks(scale: float) -> bytes:
    return page(ARTICLE + b"a<br><br>" * int(500_000 * scale))


@case
def options(scale: float) -> bytes:
    return page(ARTICLE + b"<form><select>" + b"<option>one" * int(300_000 * scale))


@case
def classes(scale: float) -> bytes:
    names = b" ".join(b"name-%d-part" % i for i in range(60))
    return page(ARTICLE + (b'<div class="' + names + b'">x</div>') * int(20_000 * scale))


# ----------------------------------------------------------------------------------- long things


@case
def script_50_mb(scale: float) -> bytes:
    line = b"var a = '<div>' + \"</p>\" + b < c && d; // -->\n"
    return page(b"<script>" + line * int(50 * _MIB * scale / len(line)) + b"</script>" + ARTICLE)


@case
def text_20_mb(scale: float) -> bytes:
    """One text node: its text must come back."""
    return page(b"<p>" + _WORDS * int(20 * _MIB * scale / len(_WORDS)))


@case
def text_20_mb_han(scale: float) -> bytes:
    sentence = "這座港口的堤壩在那年洪水之後重建,至今依然屹立。".encode()
    return page(b"<p>" + sentence * int(20 * _MIB * scale / len(sentence)))


@case
def text_beyond_the_first_plane(scale: float) -> bytes:
    """Python needs four bytes for every character of such a page."""
    return page(
        b"<p>" + "\U0001f30a wave ".encode() + _WORDS * int(60 * _MIB * scale / len(_WORDS))
    )


@case
def white_space(scale: float) -> bytes:
    return page(ARTICLE + b"<p>a" + b" \n\t" * int(5_000_000 * scale) + b"b</p>")


@case
def one_word(scale: float) -> bytes:
    return page(ARTICLE + b"<p>" + b"a" * int(20 * _MIB * scale))


@case
def combining_marks(scale: float) -> bytes:
    """Normal forms order marks: every mark against all before it, if done naively."""
    marks = "\u0316\u0301".encode() * int(500_000 * scale)
    return page(ARTICLE + b"<p>e" + marks + b"</p>")


@case
def double_encoded(scale: float) -> bytes:
    text = "naïve café – “déjà vu” ".encode().decode("latin-1").encode()
    return page(ARTICLE + b"<p>" + text * int(100_000 * scale))


@case
def attribute_20_mb(scale: float) -> bytes:
    return page(b'<div title="' + b"x > y < z " * int(2 * _MIB * scale) + b'">' + ARTICLE)


@case
def class_20_mb(scale: float) -> bytes:
    return page(b'<div class="' + b"alpha-beta " * int(2 * _MIB * scale) + b'">' + ARTICLE)


@case
def style_20_mb(scale: float) -> bytes:
    return page(b'<div style="' + b"color:red;" * int(2 * _MIB * scale) + b'">' + ARTICLE)


@case
def attributes_million(scale: float) -> bytes:
    names = b" ".join(b"a%d=1" % i for i in range(int(1_000_000 * scale)))
    return page(b"<div " + names + b">" + ARTICLE)


@case
def tag_name_10_mb(scale: float) -> bytes:
    return page(ARTICLE + b"<" + b"x" * int(10 * _MIB * scale) + b">tail")


@case
def title_10_mb(scale: float) -> bytes:
    return b"<title>" + _WORDS * int(10 * _MIB * scale / len(_WORDS)) + b"</title>" + ARTICLE


@case
def code_10_mb(scale: float) -> bytes:
    lines = b"\n".join(b"%d  if a &lt; b: return c" % i for i in range(int(400_000 * scale)))
    return page(ARTICLE + b"<pre><code>" + lines + b"</code></pre>")


@case
def code_pieces(scale: float) -> bytes:
    return page(ARTICLE + b"<p>text <code>x</code> <pre>a = 1</pre>" * int(50_000 * scale))


# ------------------------------------------------------------------------------ what never ends


@case
def comments_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<!-- <p>a " * int(500_000 * scale))


@case
def cdata_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<![CDATA[ <p>a " * int(300_000 * scale))


@case
def templates_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<template><svg><p>a " * int(300_000 * scale))


@case
def quotes_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<a href=\"x><p title='y>" * int(300_000 * scale))


@case
def scripts_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<script><style><textarea><title>a " * int(200_000 * scale))


@case
def noscripts_inside_each_other(scale: float) -> bytes:
    return page(
        b"<div><noscript>"
        + b"x" * 350
        + b"</div>"
        + b"<div><noscript>ab </div>" * int(400_000 * scale)
        + b"</noscript>"
    )


@case
def hidden_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<div hidden><span style='display:none'>a " * int(200_000 * scale))


@case
def angle_brackets(scale: float) -> bytes:
    return page(ARTICLE + b"<" * int(10_000_000 * scale))


@case
def tag_starts(scale: float) -> bytes:
    return page(ARTICLE + b"<a <b </c <!d <?e " * int(500_000 * scale))


@case
def no_end_tag_found(scale: float) -> bytes:
    """Every element of another kind looks for its end once."""
    return page(ARTICLE + b"<svg><math><iframe><canvas><audio></x" * int(200_000 * scale))


# ----------------------------------------------------------------------------------- references


@case
def billion_laughs(scale: float) -> bytes:
    levels = b"".join(
        b'<!ENTITY lol%d "%s">' % (i, b"&lol%d;" % (i - 1) * 10) for i in range(1, 10)
    )
    doctype = b'<!DOCTYPE lolz [<!ENTITY lol0 "lol">' + levels + b"]>"
    return doctype + page(ARTICLE + b"<p>" + b"&lol9;" * int(300_000 * scale))


@case
def references(scale: float) -> bytes:
    return page(ARTICLE + b"<p>" + b"&amp;&notit;&#x1F30A;&ngE;&" * int(300_000 * scale))


@case
def endless_references(scale: float) -> bytes:
    n = int(5_000_000 * scale)
    return page(ARTICLE + b"<p>&#" + b"9" * n + b"; &" + b"a" * n + b"; &#x" + b"f" * n)


@case
def nuls(scale: float) -> bytes:
    return page(ARTICLE + b"<p>a\0b<di\0v>\0" * int(500_000 * scale) + b"\0" * int(5e6 * scale))


@case
def control_characters(scale: float) -> bytes:
    return page(ARTICLE + b"<p>" + bytes(range(1, 32)) * int(200_000 * scale))


@case
def bytes_at_random(scale: float) -> bytes:
    state, out = 1, bytearray()
    for _ in range(int(500_000 * scale)):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        out += (state >> 32).to_bytes(4, "little")
    return page(ARTICLE + bytes(out))


# ------------------------------------------------------------------------------------- encodings


@case
def utf16_without_mark(scale: float) -> bytes:
    return page(ARTICLE * int(1_000 * scale)).decode().encode("utf-16-le")


@case
def utf16_odd(scale: float) -> bytes:
    lone = b"\x00\xd8" * int(2_000_000 * scale)
    return codecs.BOM_UTF16_LE + page(ARTICLE).decode().encode("utf-16-le") + lone + b"\x41"


@case
def utf7(scale: float) -> bytes:
    head = b"<meta charset=utf-7>"
    return page(ARTICLE + b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-" * int(1e5 * scale), head)


@case
def meta_many(scale: float) -> bytes:
    return b"<meta charset='x" * int(300_000 * scale) + page(ARTICLE + b"\xe9")


@case
def escapes(scale: float) -> bytes:
    return page(ARTICLE + b"\x1b$B" * int(1_000_000 * scale))


# ------------------------------------------------------------------------------ formulas and data


@case
def formula_deep(scale: float) -> bytes:
    return page(ARTICLE + b"<math>" + b"<mrow><msup>" * int(8_000 * scale) + b"<mi>x</math>")


@case
def formula_endless(scale: float) -> bytes:
    return page(
        ARTICLE + b"<math>" + b"<mrow><mi>x</mi></mrow>" * int(200_000 * scale) + b"</math>"
    )


@case
def formulas_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<math><mi>x</mi><p>a" * int(200_000 * scale))


@case
def formulas_100_000(scale: float) -> bytes:
    return page(ARTICLE + b"<p><math><mi>x</mi></math> a" * int(100_000 * scale))


@case
def formulas_backtracking(scale: float) -> bytes:
    """A formula whose parts look like the beginning of an annotation."""
    inner = b"<annotation encoding=" * int(8_000 * scale)
    return page(ARTICLE + (b"<math>" + inner + b"</math>") * 10)


@case
def formula_scripts(scale: float) -> bytes:
    one = b'<script type="math/tex">{{{{\\displaystyle x</script> a '
    return page(ARTICLE + b"<p>" + one * int(100_000 * scale))


@case
def formulas_asciimath(scale: float) -> bytes:
    """Brackets that may be matrices, and bars that nothing closes."""
    one = b'<script type="math/asciimath">' + b"[[(x|{" * 700 + b"</script> a "
    return page(ARTICLE + b"<p>" + one * int(240 * scale))


@case
def formulas_drawn(scale: float) -> bytes:
    """KaTeX's HTML without its source, one deep, many flat."""
    deep = b'<p>a <span class="katex-html">' + b'<span class="vlist">' * int(20_000 * scale)
    flat = b'<p>a <span class="katex-html"><span class="mord">x</span></span>' * int(20_000 * scale)
    return page(ARTICLE + flat + deep)


@case
def formulas_bare(scale: float) -> bytes:
    return page(ARTICLE + b'<p>a <span class="math">x' * int(100_000 * scale))


@case
def cells_of_many_rows(scale: float) -> bytes:
    row = b'<tr><td rowspan="900" colspan=2>a<td rowspan=1000>b<td>c'
    return page(ARTICLE + b"<table>" + row * int(50_000 * scale) + b"</table>")


@case
def streamed_parts(scale: float) -> bytes:
    """Parts within parts, and one that comes again and again."""
    deep = b'<div hidden id="S:0"><template id="B:1"></template><!--$?-->' * int(20_000 * scale)
    again = b'$RC("B:1","S:0")<template id="B:1"></template>' * int(20_000 * scale)
    return page(ARTICLE + deep + again)


@case
def state_unclosed(scale: float) -> bytes:
    """Scripts of a framework's state that never end, on a page without text."""
    return page(
        b'<script id="__NEXT_DATA__" type="application/json">{"a":[' * int(50_000 * scale)
        + b'window.__INITIAL_STATE__ = {"b":' * int(50_000 * scale)
    )


@case
def textareas_read_only(scale: float) -> bytes:
    return page(
        ARTICLE + b"<textarea readonly>a<b>\n</textarea><textarea readonly>" * int(50_000 * scale)
    )


@case
def shortcodes_unclosed(scale: float) -> bytes:
    return page(ARTICLE + b"<p>" + b"[vc_row a=" * int(200_000 * scale))


@case
def formula_images(scale: float) -> bytes:
    return page(ARTICLE + b'<p><img class=tex alt="$\\frac{1}{2}$"> a ' * int(100_000 * scale))


@case
def linked_data(scale: float) -> bytes:
    n = int(2_000_000 * scale)
    head = b'<script type="application/ld+json">%s</script>'
    body = b'{"articleBody": "' + b"&lt;p&gt;<a" * n + b'"}'
    return page(ARTICLE, head % (b'["articleBody"' + b"[" * n) + head % body)


@case
def stated_answers(scale: float) -> bytes:
    n = int(50_000 * scale)
    stated = b'<script type="application/ld+json">{"@type":"Answer","text":"%s"}</script>'
    blocks = b"".join(b"<div>what is at number %d, in words</div>" % i for i in range(n))
    return page(ARTICLE + blocks, stated % (b"what is at number 1, in figures. " * n))
