"""What a chain does to code, formulas, tables and lists between extraction and its last stage."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields

import lxml.html  # type: ignore[import-untyped]

from curation.readers.charset import decode_html
from yields.pages import Label, Page
from yields.runs import Fate
from yields.tables import GOOD, percent, table

#: Sets whose gold text is Markdown with fenced code.
FENCED_SETS = ("mathcode-llmwebkit", "webmainbench-sample")
LEAST_LINES = 2  # lines of a listing that are not blank

_FENCE = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.S | re.M)
_BREAK = re.compile(r"<br\s*/?>", re.I)
_FORMULA = re.compile(
    r"\$\$.+?\$\$|\\\(.+?\\\)|\\\[.+?\\\]"
    r"|(?<![\\$\d])\$(?=[^$\n]{0,300}[\\^_={}<>])[^$\n]{1,300}(?<!\\)\$",
    re.S,
)
_COMMAND = re.compile(r"\\[A-Za-z]{2,}")
_ITEM = re.compile(r"^[ \t]*(?:[-*\u2022]|\d{1,3}[.)])[ \t]+\S.*$", re.M)
_ROW = re.compile(r"^.*\S \| \S.*$", re.M)
#: What is counted before and after, and how it is found.
PARTS = {
    "formulas": _FORMULA,
    "TeX commands": _COMMAND,
    "table rows": _ROW,
    "list items": _ITEM,
    "lines": re.compile(r"^.*\S.*$", re.M),
}


@dataclass
class Listings:
    """Counts of the listings of pages."""

    on_pages: int = 0
    extracted: int = 0
    extracted_kept: int = 0
    intact: int = 0
    python: int = 0
    python_kept: int = 0
    python_after: int = 0

    def __add__(self, other: Listings) -> Listings:
        return Listings(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Listings)))


def pages_structure(documents: Iterable[tuple[Page, Label, Fate]]) -> None:
    """Print how many listings, formulas, table rows and list items of pages survive the chain.

    Listings count on all labelled pages; the rest on pages that readers would keep.
    """
    found = Listings()
    kept: dict[str, list[int]] = {name: [0, 0, 0, 0] for name in PARTS}
    same = [0, 0]
    for page, label, fate in documents:
        found += listings_of(page, fate)
        if label.grade < GOOD:
            continue
        if fate.after is not None:
            same[0] += fate.before == fate.after
            same[1] += 1
        for name, pattern in PARTS.items():
            before = Counter(pattern.findall(fate.before))
            after = Counter(pattern.findall(fate.after or ""))
            shared = (before & after).total()
            kept[name][0] += before.total()
            kept[name][1] += shared
            if fate.after is not None:
                kept[name][2] += before.total()
                kept[name][3] += shared
    print_listings(found)
    rows: list[tuple[object, ...]] = [
        (name, whole, percent(left, whole), inside, percent(inside_left, inside))
        for name, (whole, left, inside, inside_left) in kept.items()
    ]
    rows.append(("texts unchanged to the last byte", "", "", same[1], percent(*same)))
    header = ("good documents", "extracted", "left", "extracted, document kept", "left in kept")
    table(
        "Formulas, tables, lists of good documents, from extraction to the last stage", header, rows
    )


def print_listings(found: Listings) -> None:
    """Print the table of listings."""
    rows = [
        ("on the pages", found.on_pages, ""),
        ("whole after extraction", found.extracted, percent(found.extracted, found.on_pages)),
        ("of these in kept documents", found.extracted_kept,
         percent(found.extracted_kept, found.extracted)),
        ("unchanged at the end", found.intact, percent(found.intact, found.extracted)),
        ("unchanged at the end, of those in kept documents", found.intact,
         percent(found.intact, found.extracted_kept)),
        ("Python that parses after extraction", found.python, ""),
        ("of these in kept documents", found.python_kept,
         percent(found.python_kept, found.python)),
        ("that still parse at the end, of those in kept documents", found.python_after,
         percent(found.python_after, found.python_kept)),
    ]  # fmt: skip
    table("Listings of pages", ("listings", "count", "share"), rows)


def listings_of(page: Page, fate: Fate) -> Listings:
    """Count the listings of one page before and after."""
    counts = Listings()
    text = fate.before.split("\n")
    bare = [(i, _bare(line)) for i, line in enumerate(text) if line.strip()]
    for listing in _listings(page):
        counts.on_pages += 1
        if (span := _locate(listing, bare)) is None:
            continue
        first, end = span
        block = "\n".join(text[first:end])
        python = parses(block)
        counts.extracted += 1
        counts.python += python
        if fate.after is None:
            continue
        counts.extracted_kept += 1
        counts.python_kept += python
        intact = f"\n{block}\n" in f"\n{fate.after}\n"
        counts.intact += intact
        if python:
            counts.python_after += intact or parses(_survivors(text, fate.after, first, end))
    return counts


def _listings(page: Page) -> list[tuple[str, ...]]:
    """Return the distinct listings of a page as lines without white space, blank ones left out."""
    sources: list[str] = []
    if page.html is not None and b"<pre" in page.html.lower():
        tree = lxml.html.document_fromstring(
            _BREAK.sub("\n", decode_html(page.html, None)[0]).encode(),
            parser=lxml.html.HTMLParser(encoding="utf-8", huge_tree=True),
        )
        sources += [str(pre.text_content()) for pre in tree.xpath("//pre[not(ancestor::pre)]")]
    if page.gold and page.key.startswith(FENCED_SETS):
        sources += _FENCE.findall(page.gold)
    found = (
        tuple(bare for line in source.split("\n") if (bare := _bare(line))) for source in sources
    )
    return list(dict.fromkeys(lines for lines in found if len(lines) >= LEAST_LINES))


def _bare(line: str) -> str:
    return "".join(line.split())


def _locate(listing: tuple[str, ...], text: list[tuple[int, str]]) -> tuple[int, int] | None:
    """Return the lines of the text that are the listing, white space aside; None: not whole."""
    for at, (_, line) in enumerate(text[: max(0, len(text) - len(listing) + 1)]):
        if line == listing[0]:
            if all(text[at + k][1] == wanted for k, wanted in enumerate(listing)):
                return text[at][0], text[at + len(listing) - 1][0] + 1
    return None


def _survivors(before: list[str], after: str, first: int, end: int) -> str:
    """Return what is left at the end of the lines from `first` to `end`."""
    lines = after.split("\n")
    matcher = difflib.SequenceMatcher(None, before, lines, autojunk=False)
    left: list[str] = []
    for _, a, b, c, d in matcher.get_opcodes():
        begin, stop = max(a, first), min(b, end)
        if begin < stop and b - a == d - c:  # equal, or replaced line by line
            left += lines[c + begin - a : c + stop - a]
        elif begin < stop:
            left += lines[c:d]
    return "\n".join(left)


def parses(code: str) -> bool:
    """Return whether a text is Python with at least one statement that words are not."""
    tree = parsed(textwrap.dedent(code))
    return tree is not None and any(
        not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in tree.body
    )


def parsed(code: str) -> ast.Module | None:
    """Return the syntax tree of Python code; None where it is not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
