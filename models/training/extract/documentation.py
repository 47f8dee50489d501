"""Pages of software documentation with gold text, from what their generators mark.

    apt-get download libcairo2-doc qttools5-doc-html ...
    for p in *.deb; do dpkg-deb -x $p pages/${p%%_*}; done
    python -m models.training.extract.documentation --pages pages --output DATA/documentation

Documentation needs no labels: a generator puts what a page is for into an element of its own. Gold
text is what lies in the elements of GENERATORS, without permalinks, line numbers, navigation and
tables of contents in them. Each subfolder of --pages is a site; its generator is the first whose
sign is on most of its pages, and sites of none are named and left out. Pages are drawn by the hash
of their name. DATA then has one more set for `python -m models.training.extract --data DATA`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lxml.etree  # type: ignore[import-untyped]
import lxml.html  # type: ignore[import-untyped]

from models.training.extract.pages import words_of

WORDS = range(40, 4001)  # of a page's gold text
PAGE_BYTES = 200_000


@dataclass(frozen=True)
class Generator:
    """Where a generator puts what a page is for: XPaths of elements, and of what in them is not."""

    sign: str  # XPath of what tells its pages
    content: tuple[str, ...]
    without: tuple[str, ...] = ()


def _says(name: str) -> str:
    """XPath of a `<meta>` that names the generator."""
    return f"//meta[translate(@name, 'G', 'g') = 'generator'][contains(@content, '{name}')]"


def _has(name: str, tag: str = "*") -> str:
    """XPath of the elements of a class."""
    return f"//{tag}[contains(concat(' ', normalize-space(@class), ' '), ' {name} ')]"


SPHINX = (_has("headerlink", "a"), _has("toctree-wrapper"), _has("contents", "nav"),
          "//div[contains(@class, 'topic') and contains(@class, 'contents')]")  # fmt: skip
GENERATORS = {
    "doxygen": Generator(
        _says("Doxygen"),
        (_has("headertitle"), "//div[@class='contents']"),
        (
            _has("ttc"),
            _has("lineno"),
            _has("permalink"),
            _has("toc"),
            _has("qindex"),
            _has("mlabels"),
            "//div[@class='levels']",
        ),
    ),
    "gtk-doc": Generator(
        "//table[@id='top']//td[@id='shortcuts' or @class='shortcuts']",
        ("//div[@class='refentry']", "//div[@class='section']", "//div[@class='chapter']"),
        (_has("gallery_image"), _has("toc"), _has("lineart")),
    ),
    "gi-docgen": Generator(
        _has("body-wrapper", "div"),
        ("//section[@id='main']",),
        (_has("anchor"), _has("toggle-wrapper")),
    ),
    "makeinfo": Generator(
        f"({_says('makeinfo')} | {_says('texi2any')})",
        ("//body",),
        (
            "//div[@class='header' or @class='nav-panel']",
            "//div[contains(@class, 'contents')]",
            "//table[@class='menu']",
        ),
    ),
    "apache": Generator(
        "//div[@id='page-content']",
        ("//div[@id='page-content']",),
        (
            "//div[@id='quickview']",
            "//div[@class='toplang' or @class='bottomlang' or @class='top']",
            _has("permalink"),
        ),
    ),
    "node": Generator(
        "//div[@id='apicontent']",
        ("//div[@id='apicontent']",),
        (_has("mark"), "//a[@class='srclink']"),
    ),
    "javadoc 8": Generator(
        "//div[@class='topNav' or @class='fixedNav']",
        ("//div[@class='header']", _has("contentContainer")),
        (_has("subNav"), _has("topNav"), _has("bottomNav"), _has("skipNav")),
    ),
    "javadoc": Generator(
        _says("javadoc"), ("//main",), ("//*[contains(@class, 'sub-nav')]", "//div[@class='copy']")
    ),
    "rustdoc": Generator(
        _says("rustdoc"),
        ("//section[@id='main-content']",),
        ("//a[@class='anchor' or contains(@class, 'src')]", _has("out-of-band"), _has("rightside")),
    ),
    "haddock": Generator(
        "//div[@id='package-header']",
        ("//div[@id='content']",),
        (
            "//div[@id='table-of-contents']",
            "//div[@id='synopsis']",
            "//a[@class='link' or @class='selflink']",
        ),
    ),
    "scaladoc": Generator(
        "//body//div[@id='definition']",
        (
            "//div[@id='definition']",
            "//h4[@id='signature']",
            "//div[@id='comment']",
            "//div[@id='template']",
        ),
        (_has("permalink"), _has("shortcomment")),
    ),
    "qdoc": Generator(
        "//div[contains(@class, 'mainContent')]",
        ("//h1[@class='title']", "//div[contains(@class, 'mainContent')]"),
        ("//div[@class='sidebar']", _has("toc"), _has("naviNextPrevious")),
    ),
    "pydata sphinx": Generator(
        "//div[contains(@class, 'bd-sidebar')]",
        ("//main//article",),
        (*SPHINX, "//div[contains(@class, 'prev-next')]"),
    ),
    "sphinx": Generator(_has("sphinxsidebar"), ("//div[@class='body']",), SPHINX),
    "sqlalchemy": Generator("//div[@id='docs-body']", ("//div[@id='docs-body']",), SPHINX),
    "django": Generator(
        "//div[@id='custom-doc']", ("//div[@id='bd']//div[@class='yui-g']",), SPHINX
    ),
    "publican": Generator(
        _says("publican"),
        ("//body",),
        ("//ul[contains(@class, 'docnav')]", _has("toc"), "//p[@id='title']"),
    ),
    "docbook": Generator(
        _says("DocBook"),
        ("//body",),
        (
            "//div[contains(@class, 'navheader') or contains(@class, 'navfooter')]",
            _has("toc"),
            _has("spirit-nav"),
            "//table[@width='100%']",
        ),
    ),
    "asciidoc": Generator(
        _says("AsciiDoc"),
        ("//div[@id='header']/h1", "//div[@id='content']"),
        ("//div[@id='toc']",),
    ),
    "erlang": Generator("//aside[@id='leftnav']", ("//div[@id='content']",), (_has("title_link"),)),
    "scribble": Generator(
        _has("maincolumn"),
        ("//div[@class='maincolumn']//div[@class='main']",),
        ("//div[contains(@class, 'navset')]", _has("versionbox")),
    ),
    "libreoffice": Generator(
        "//div[@id='DisplayArea']",
        ("//div[@id='DisplayArea']",),
        ("//*[contains(@class, 'debug')]",),
    ),
    "texi2html": Generator(
        _says("texi2html"),
        ("//div[@id='main']",),
        ("//*[contains(@class, 'nav_table')]", "//*[@id='languages']", "//*[@id='footer']"),
    ),
}
_APART = frozenset(
    "p div li td th tr dd dt h1 h2 h3 h4 h5 h6 pre section br ul ol dl table article main summary "
    "details hr caption figcaption blockquote".split()
)
_UNSEEN = frozenset(["script", "style", "template", "button", "svg", "noscript"])


def gold_text(source: bytes, generator: Generator) -> str:
    """Text of a page's content, empty where it has none of the generator's elements."""
    if (page := _tree(source)) is None:
        return ""
    for path in generator.without:
        for element in page.xpath(path):
            if element.getparent() is not None:
                element.drop_tree()
    found: list[lxml.html.HtmlElement] = []
    for path in generator.content:
        for element in page.xpath(path):
            if not any(other in found for other in [element, *element.iterancestors()]):
                found.append(element)
    return " ".join("".join(_runs(element)) for element in found)


def _tree(source: bytes) -> lxml.html.HtmlElement | None:
    try:
        return lxml.html.document_fromstring(source, parser=lxml.html.HTMLParser(encoding="utf-8"))
    except (ValueError, lxml.etree.ParserError):
        return None  # no page


def _runs(element: lxml.html.HtmlElement) -> Iterator[str]:
    if isinstance(element.tag, str) and element.tag not in _UNSEEN:
        around = " " if element.tag in _APART else ""
        yield around + (element.text or "")
        for child in element:
            yield from _runs(child)
            yield child.tail or ""
        yield around


def pages_of(site: Path) -> list[Path]:
    """Pages of a site in an order that says nothing of them."""
    pages = [p for p in site.rglob("*") if p.suffix in (".html", ".htm", ".xhtml") and p.is_file()]
    pages = [p for p in pages if p.stat().st_size <= PAGE_BYTES]
    return sorted(pages, key=lambda p: hashlib.sha1(str(p.relative_to(site)).encode()).digest())


def generator_of(pages: list[Path]) -> str:
    """Name of a site's generator, empty for none that is known."""
    trees = [tree for page in pages[:20] if (tree := _tree(page.read_bytes())) is not None]
    for name, generator in GENERATORS.items():
        if 2 * sum(bool(tree.xpath(generator.sign)) for tree in trees) > len(trees):
            return name
    return ""


@dataclass(frozen=True)
class Page:
    """A page of documentation."""

    site: str
    name: str  # in its site
    generator: str
    source: bytes
    gold: str


def documentation(folder: Path, per_site: int) -> Iterator[Page]:
    """Yield up to `per_site` pages of each site in a folder; print the sites that are left out."""
    for site in sorted(p for p in folder.iterdir() if p.is_dir()):
        pages = pages_of(site)
        name = generator_of(pages)
        if not name:
            print(f"{site.name}: left out, of no generator that is known", flush=True)
            continue
        yield from itertools.islice(_pages_with_gold(site, pages, name), per_site)


def _pages_with_gold(site: Path, pages: list[Path], generator: str) -> Iterator[Page]:
    for page in pages:
        source = page.read_bytes()
        gold = gold_text(source, GENERATORS[generator])
        if len(words_of(gold)) in WORDS:
            yield Page(site.name, str(page.relative_to(site)), generator, source, gold)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder of the set")
    parser.add_argument("--per-site", type=int, default=8)
    options = parser.parse_args()
    (options.output / "html").mkdir(parents=True, exist_ok=True)
    with (options.output / "gold.jsonl").open("w", encoding="utf-8") as file:
        for page in documentation(options.pages, options.per_site):
            key = hashlib.sha1(f"{page.site}/{page.name}".encode()).hexdigest()[:16]
            (options.output / "html" / f"{key}.html").write_bytes(page.source)
            row = {"id": key, "url": f"https://{page.site}.example/{page.name}", "site": page.site}
            row |= {"page_type": "documentation", "text": page.gold}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
