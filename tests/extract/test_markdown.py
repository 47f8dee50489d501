"""Markdown: valid, and with the structure of the page."""

from __future__ import annotations

import numpy as np
import pytest

from curation.extract.markdown import markdown
from curation.extract.scan import scan
from curation.extract.tables import tables_of

_FIRST = (
    "<p>The workshop opened in 1931 in a disused dairy on the edge of the town, and for "
    "forty years "
    "nobody who worked there owned a car or wanted one.</p>"
)
_LAST = (
    "<p>What changed it was the road. Once lorries could reach the yard, the firm began to "
    "buy timber "
    "from further away, and the old saw pit was filled with concrete.</p>"
)


def _between(html: str) -> str:
    page = f"<main><article><h1>The old workshop</h1>{_FIRST}{html}{_LAST}</article></main>"
    scanned = scan(page.encode(), 512, 10_000)
    everything = np.ones(len(scanned.b_start), np.bool_)
    text = markdown(page.encode(), scanned, tables_of(scanned), everything).text
    assert text.startswith("# The old workshop\n\nThe workshop opened")
    start, end = text.index("wanted one.") + len("wanted one."), text.index("What changed it")
    return text[start:end].strip("\n")


_PAGES = {
    "table": (
        "<table><tr><th>Name</th><th>Kinds | sorts</th></tr><tr><td></td><td><code>a|b"
        "</code></td></tr>"
        "<tr><td>Ada<p>(until 1936)</p></td><td>one<br>two</td></tr></table>",
        "| Name | Kinds \\| sorts |\n|---|---|\n|  | `a\\|b` |\n| Ada<br>(until 1936) | one"
        "<br>two |",
    ),
    "table with a formula": (
        "<table><tr><td>Norm</td><td><math><mo>|</mo><mi>x</mi><mo>|</mo></math></td></tr>"
        "<tr><td>Size</td><td>12</td></tr></table>",
        "| Norm | $\\vert x\\vert$ |\n|---|---|\n| Size | 12 |",
    ),
    "short first row": (
        "<table><tr><th>Figures</th></tr><tr><td>Ada</td><td>36</td></tr></table>",
        "| Figures |  |\n|---|---|\n| Ada | 36 |",
    ),
    "numbers and nesting": (
        "<ol><li>Cut the boards.</li><li>Plane them.<ul><li>First the face.</li>"
        "<li>Then the edge.</li></ul></li><li>Glue them.</li></ol>",
        "1. Cut the boards.\n2. Plane them.\n   - First the face.\n   - Then the edge.\n3. "
        "Glue them.",
    ),
    "a list right in a list": (
        "<ol><li>Cut the boards.</li><ol><li>With the saw.</li></ol><li>Glue them.</li></ol>",
        "1. Cut the boards.\n   1. With the saw.\n2. Glue them.",
    ),
    "two lists": (
        "<ul><li>Cut the boards.</li></ul><ul><li>Glue the boards.</li></ul>",
        "- Cut the boards.\n\n* Glue the boards.",
    ),
    "code in an item": (
        "<ol><li><p>Run the test:</p><pre>if x:\n    make()</pre></li><li><p>Then commit."
        "</p></li></ol>",
        "1. Run the test:\n\n   ```\n   if x:\n       make()\n   ```\n\n2. Then commit.",
    ),
    "text behind a list within an item": (
        "<ul><li>One thing<ul><li>Its part</li></ul>and the rest</li></ul>",
        "- One thing\n  - Its part\n\n  and the rest",
    ),
    "definitions": (
        "<dl><dt>Chase</dt><dd><p>A steel frame.</p><p>It holds the type.</p></dd></dl>",
        "**Chase**\n\nA steel frame.\n\nIt holds the type.",
    ),
    "formula in a definition": (
        "<p>It holds that</p><dl><dd><math display='block'><mi>x</mi><mo>=</mo><mn>1</mn>"
        "</math></dd></dl>",
        "It holds that\n\n$$x=1$$",
    ),
    "quotes": (
        "<blockquote><p>It was a good year.</p><blockquote>Was it?</blockquote></blockquote>"
        "<blockquote><p>It was not.</p></blockquote>",
        "> It was a good year.\n>\n> > Was it?\n\n> It was not.",
    ),
    "fence in a listing": (
        "<p>Write this:</p><pre>```python\nx = 1\n```</pre>",
        "Write this:\n\n````\n```python\nx = 1\n```\n````",
    ),
    "inline code": (
        "<p>Type <code>a `b` c</code>, <code>`</code> and <code>x</code><code>*y</code>.</p>",
        "Type ``a `b` c``, `` ` `` and `x` `*y`.",
    ),
    "starts of blocks": (
        "<p># comment sign</p><p>1986. A great year.</p><p>- no item<br>+ none<br>---"
        "<br>&gt; x</p>",
        "\\# comment sign\n\n1986\\. A great year.\n\n\\- no item\\\n\\+ none\\\n\\---\\\n\\> x",
    ),
    "signs in prose": (
        "<p>Neither 5 * 3 nor snake_case, but *this*, _that_, [a](b), &lt;b&gt;, &amp;amp; "
        "and ~~c~~.</p>",
        "Neither 5 * 3 nor snake_case, but \\*this\\*, \\_that\\_, [a\\](b), \\<b>, \\&amp; "
        "and \\~\\~c\\~\\~.",
    ),
    "formulas in the text": (
        "<p>Let \\(a_1 * b_*\\) be $x_1 * y_*$, and \\[y = 1\\] as before.</p>",
        "Let $a_1 * b_*$ be $x_1 * y_*$, and $$y = 1$$ as before.",
    ),
    "heading": ("<h2>On <code>x_y</code> in<br>C #</h2>", "## On `x_y` in C \\#"),
}


@pytest.mark.parametrize(("html", "expected"), _PAGES.values(), ids=_PAGES.keys())
def test_markdown(html: str, expected: str) -> None:
    assert _between(html) == expected


def test_a_heading_of_nothing_is_left_out() -> None:
    assert _between("<h2><math></math></h2>") == ""


_PARSED = {
    "table": ("<table><thead><tr><th>Name</th><th>Kinds | sorts</th>", "<code>a|b</code></td>"),
    "numbers and nesting": (
        "<li>Plane them.\n<ul>\n<li>First the face.</li>",
        "<li>Glue them.</li>",
    ),
    "two lists": ("<ul>\n<li>Cut the boards.</li>\n</ul>\n<ul>\n<li>Glue the boards.</li>\n</ul>",),
    "code in an item": ("<pre><code>if x:\n    make()\n</code></pre>\n</li>\n<li>",),
    "quotes": ("<blockquote>\n<p>Was it?</p>", "</blockquote>\n<blockquote>\n<p>It was not.</p>"),
    "fence in a listing": ("<pre><code>```python\nx = 1\n```\n</code></pre>",),
    "inline code": (
        "Type <code>a `b` c</code>, <code>`</code> and <code>x</code> <code>*y</code>.",
    ),
    "starts of blocks": (
        "<p># comment sign</p>\n<p>1986. A great year.</p>",
        "<p>- no item<br />\n+ none<br />\n---<br />\n&gt; x</p>",
    ),
    "signs in prose": ("*this*, _that_, [a](b), &lt;b&gt;, &amp;amp; and ~~c~~.</p>",),
    "heading": ("<h2>On <code>x_y</code> in C #</h2>",),
}


@pytest.mark.parametrize("name", _PARSED)
def test_a_parser_reads_the_same(name: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    html = parser.render(_between(_PAGES[name][0])).replace(">\n<t", "><t")
    for fragment in _PARSED[name]:
        assert fragment in html
