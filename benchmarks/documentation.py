"""Extraction of software documentation, by the containers that its generators put content in.

    for p in libvisp-doc openjdk-17-doc ghc-doc rust-doc; do apt-get download $p; done
    for p in *.deb; do dpkg-deb -x $p pages/${p%%_*}; done
    python benchmarks/documentation.py --pages pages [--engines curation trafilatura resiliparse]

Each subfolder of --pages is a site. Documentation needs no labels: a generator marks what it made
the page for. Gold text is what lies in the elements of GENERATORS, without permalinks, line
numbers, navigation and tables of contents inside them. A site's generator is the one whose sign is
on most of its pages; sites of none are named and left out. Pages of 40 to 4,000 words
are drawn by name, the same for every engine. Scores are those of benchmarks/extraction.py (sh4),
the mean of a generator's pages; the macro mean weighs generators alike.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lxml import html  # noqa: E402

from benchmarks.extraction import extractor, f1, precision_recall, using, words  # noqa: E402
from curation.extract import default_settings  # noqa: E402
from curation.extract.model import read_model  # noqa: E402

WORDS = range(40, 4001)
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
    "doxygen": Generator(_says("Doxygen"), 
        (_has("headertitle"), "//div[@class='contents']"),
        (_has("ttc"), _has("lineno"), _has("permalink"), _has("toc"), _has("qindex"), _has("mlabels"),
         "//div[@class='levels']"),
    ),
    "javadoc": Generator(_says("javadoc"), 
        ("//main",), ("//*[contains(@class, 'sub-nav')]", "//div[@class='copy']")
    ),
    "rustdoc": Generator(_says("rustdoc"), 
        ("//section[@id='main-content']",),
        ("//a[@class='anchor' or contains(@class, 'src')]", _has("out-of-band"), _has("rightside")),
    ),
    "haddock": Generator("//div[@id='package-header']", 
        ("//div[@id='content']",),
        ("//div[@id='table-of-contents']", "//div[@id='synopsis']",
         "//a[@class='link' or @class='selflink']"),
    ),
    "scaladoc": Generator("//body//div[@id='definition']", 
        ("//div[@id='definition']", "//h4[@id='signature']", "//div[@id='comment']", "//div[@id='template']"),
        (_has("permalink"), _has("shortcomment")),
    ),
    "qdoc": Generator("//div[contains(@class, 'mainContent')]", 
        ("//h1[@class='title']", "//div[contains(@class, 'mainContent')]"),
        ("//div[@class='sidebar']", _has("toc"), _has("naviNextPrevious")),
    ),
    "pydata sphinx": Generator("//div[contains(@class, 'bd-sidebar')]", ("//main//article",), (*SPHINX, "//div[contains(@class, 'prev-next')]")),
    "sphinx": Generator(_has("sphinxsidebar"), ("//div[@class='body']",), SPHINX),
    "sqlalchemy": Generator("//div[@id='docs-body']", ("//div[@id='docs-body']",), SPHINX),
    "django": Generator("//div[@id='custom-doc']", ("//div[@id='bd']//div[@class='yui-g']",), SPHINX),
    "publican": Generator(_says("publican"), 
        ("//body",),
        ("//ul[contains(@class, 'docnav')]", _has("toc"), "//p[@id='title']"),
    ),
    "docbook": Generator(_says("DocBook"), 
        ("//body",),
        ("//div[contains(@class, 'navheader') or contains(@class, 'navfooter')]", _has("toc"),
         _has("spirit-nav"), "//table[@width='100%']"),
    ),
    "asciidoc": Generator(_says("AsciiDoc"), 
        ("//div[@id='header']/h1", "//div[@id='content']"),
        ("//div[@id='toc']",),
    ),
    "erlang": Generator("//aside[@id='leftnav']", ("//div[@id='content']",), (_has("title_link"),)),
    "scribble": Generator(_has("maincolumn"), 
        ("//div[@class='maincolumn']//div[@class='main']",),
        ("//div[contains(@class, 'navset')]", _has("versionbox")),
    ),
    "libreoffice": Generator("//div[@id='DisplayArea']", ("//div[@id='DisplayArea']",), ("//*[contains(@class, 'debug')]",)),
    "texi2html": Generator(_says("texi2html"), 
        ("//div[@id='main']",),
        ("//*[contains(@class, 'nav_table')]", "//*[@id='languages']", "//*[@id='footer']"),
    ),
}  # fmt: skip
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
    found: list[html.HtmlElement] = []
    for path in generator.content:
        for element in page.xpath(path):
            if not any(other in found for other in [element, *element.iterancestors()]):
                found.append(element)
    return " ".join("".join(_runs(element)) for element in found)


def _runs(element: html.HtmlElement) -> Iterator[str]:
    if isinstance(element.tag, str) and element.tag not in _UNSEEN:
        around = " " if element.tag in _APART else ""
        yield around + (element.text or "")
        for child in element:
            yield from _runs(child)
            yield child.tail or ""
        yield around


def _drawn(site: Path) -> list[Path]:
    """Pages of a site in an order that says nothing of them."""
    pages = [p for p in site.rglob("*") if p.suffix in (".html", ".htm", ".xhtml") and p.is_file()]
    return sorted(pages, key=lambda p: hashlib.sha1(str(p.relative_to(site)).encode()).digest())


def generator_of(pages: list[Path]) -> str:
    """Name of the generator, empty for none that is known."""
    trees = [tree for page in pages[:20] if (tree := _tree(page.read_bytes())) is not None]
    for name, generator in GENERATORS.items():
        if 2 * sum(bool(tree.xpath(generator.sign)) for tree in trees) > len(trees):
            return name
    return ""


def _tree(source: bytes) -> html.HtmlElement | None:
    try:
        return html.document_fromstring(source, parser=html.HTMLParser(encoding="utf-8"))
    except (ValueError, html.etree.ParserError):
        return None  # no page


def sample(site: Path, generator: Generator, count: int) -> Iterator[tuple[bytes, str]]:
    """Yield up to `count` pages with their gold texts."""
    for page in _drawn(site):
        if count == 0:
            return
        if page.stat().st_size <= PAGE_BYTES:
            source = page.read_bytes()
            gold = gold_text(source, generator)
            if len(words(gold)) in WORDS:
                count -= 1
                yield source, gold


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--engines", nargs="+", default=["curation"])
    parser.add_argument("--model", type=Path, help="blocks.npz instead of the recipe's")
    parser.add_argument("--per-site", type=int, default=14)
    options = parser.parse_args()
    pages: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
    sites: dict[str, int] = defaultdict(int)
    for site in sorted(p for p in options.pages.iterdir() if p.is_dir()):
        name = generator_of(_drawn(site))
        if name:
            found = list(sample(site, GENERATORS[name], options.per_site))
            pages[name] += found
            sites[name] += bool(found)
        else:
            print(f"{site.name}: left out, of no generator that is known")
    settings = default_settings()
    print(f"{'':18}{'sites':>6}{'pages':>6}" + "".join(f"{e:>30}" for e in options.engines))
    table: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for engine in options.engines:
        with using(read_model(options.model)) if options.model else contextlib.nullcontext():
            text_of = extractor(settings, engine)
            for name, found in pages.items():
                scores = [precision_recall(gold, text_of(source)) for source, gold in found]
                table[name][engine] = [
                    statistics.mean(p for p, _ in scores),
                    statistics.mean(r for _, r in scores),
                    statistics.mean(f1(p, r) for p, r in scores),
                ]
    for name in sorted(pages):
        cells = "".join(_cell(table[name][engine]) for engine in options.engines)
        print(f"{name:18}{sites[name]:6}{len(pages[name]):6}{cells}")
    whole = {e: [statistics.mean(row[e][i] for row in table.values()) for i in range(3)]
             for e in options.engines}  # fmt: skip
    print(f"{'macro':30}" + "".join(_cell(whole[engine]) for engine in options.engines))


def _cell(values: list[float]) -> str:
    precision, recall, score = values
    return f"    F1 {score:.4f} P {precision:.3f} R {recall:.3f}"


if __name__ == "__main__":
    main()
