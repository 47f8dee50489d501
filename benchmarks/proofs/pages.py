"""Pages to train on and gold texts to measure with, by kind: no site is on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import xxhash
from resiliparse.extract.html2text import extract_plain_text
from yields.pages import UNSEEN, Label, Page, read_labels, read_pages
from yields.tables import GOOD

from curation.dedup import near_duplicates
from curation.language import identify
from curation.readers.charset import decode_html
from curation.readers.discover import discover
from curation.readers.read import read
from curation.readers.records import Page as Record
from curation.readers.settings import ReaderSettings
from curation.recipe import load

#: Sets that are only measured with. No model of the toolkit has learned from any of them.
HELD_OUT_SETS = (
    "l3s-gn1",
    "daniel",
    "crawl-to-the-future",
    "cleanportaleval",
    "mathcode-llmwebkit",
)
ARTICLES, DOCUMENTATION, OTHER_LANGUAGES = "articles", "documentation", "other languages"
#: Kinds of gold text by the readers' format; all other formats are articles.
KINDS = {
    "documentation": DOCUMENTATION,
    "data": DOCUMENTATION,
    **dict.fromkeys(("qa_forum", "comments", "support"), "forums"),
    **dict.fromkeys(("tutorial", "faq"), "instructions"),
}
#: Of the sites of all other sets, one in so many is only measured with: of kinds that are rare, more.
ONE_SITE_IN, ONE_RARE_SITE_IN = 5, 2
#: A page to train on shares no run of so many words with a gold text.
SHARED_WORDS = 20
#: Characters of a gold text: shorter ones are left out, longer ones cut.
LEAST, MOST = 200, 2_000
ENGLISH = 0.65


@dataclass(frozen=True)
class Gold:
    """A gold text to measure with."""

    key: str
    url: str
    kind: str  # ARTICLES, OTHER_LANGUAGES or one of KINDS
    text: str


def site_of(url: str) -> str:
    """Return the host of a URL without `www.`."""
    return (urlsplit(url).hostname or "").lower().removeprefix("www.")


def set_of(page: Page) -> str:
    return page.key.split("/")[0]


def unseen(page: Page) -> bool:
    """Return whether no model of the toolkit has learned from the set of a page."""
    return set_of(page) in (*UNSEEN, "warc")


def plain_text(page: Page) -> str:
    """Return all visible text of a page, as a WET file has it; nothing is taken for boilerplate."""
    if page.html is None:
        return page.text or ""
    return str(extract_plain_text(decode_html(page.html, None)[0], main_content=False))


def archived(folder: Path) -> Iterator[Page]:
    """Yield the HTML pages of all archives below a folder, damaged ones left out."""
    settings: ReaderSettings = load("llama3").readers
    for file in discover([str(folder)]):
        for event in read(file.path, settings, file.name):
            if isinstance(event, Record) and event.kind == "html" and event.status in (None, 200):
                yield Page(f"warc/{file.name}@{event.offset}", event.url, event.content, None, None)


def split(data: Path) -> tuple[list[Page], list[Gold]]:
    """Return distinct English pages to train on, and the gold texts of other sites and sets."""
    labels = read_labels()
    found = read_pages(data)
    gold = gold_of(found, labels)
    rest = [page for page in found if _english(labels.get(page.key))]
    rest = [*apart(rest, gold), *_in_english(apart(archived(data / "warc"), gold))]
    return distinct(rest, gold), gold


def _english(label: Label | None) -> bool:
    return label is not None and label.language == "en"


def _in_english(pages: list[Page]) -> list[Page]:
    labels, scores = identify([plain_text(page) for page in pages])
    return [
        page
        for page, label, score in zip(pages, labels, scores, strict=True)
        if str(label) == "en" and float(score) >= ENGLISH
    ]


def kind_of(label: Label) -> str:
    """Return the kind of gold text that a page is; pages about code are documentation."""
    if not _english(label):
        return OTHER_LANGUAGES
    return DOCUMENTATION if label.domain == "code" else KINDS.get(label.format, ARTICLES)


def _held_out(page: Page, label: Label) -> bool:
    """Return whether a page is only measured with. Pages without a site are trained on."""
    if set_of(page) in HELD_OUT_SETS:
        return True
    one_in = ONE_SITE_IN if kind_of(label) == ARTICLES else ONE_RARE_SITE_IN
    site = site_of(page.url)
    return not site.endswith(".example") and xxhash.xxh64_intdigest(site.encode()) % one_in == 0


def gold_of(pages: Sequence[Page], labels: Mapping[str, Label]) -> list[Gold]:
    """Return the gold texts of held-out pages that readers would keep."""
    return [
        Gold(page.key, page.url, kind_of(label), page.gold[:MOST])
        for page in pages
        if (label := labels.get(page.key))
        and _held_out(page, label)
        and label.grade >= GOOD
        and page.gold
        and len(page.gold) >= LEAST
    ]


def apart(pages: Iterable[Page], gold: Sequence[Gold]) -> list[Page]:
    """Return the pages to train on: of sets and sites without gold texts."""
    sites = {site_of(text.url) for text in gold}
    return [
        page
        for page in pages
        if set_of(page) not in HELD_OUT_SETS and site_of(page.url) not in sites
    ]


def distinct(pages: Sequence[Page], gold: Sequence[Gold]) -> list[Page]:
    """Return the first page of each kind, without those that share text with what is measured."""
    texts = [plain_text(page) for page in pages]
    clusters = near_duplicates([*(text.text for text in gold), *texts]).to_pylist()
    known = {run for text in gold for run in _runs(text.text)}
    seen = set(clusters[: len(gold)])
    kept = []
    for page, text, cluster in zip(pages, texts, clusters[len(gold) :], strict=True):
        if cluster not in seen and text.strip() and known.isdisjoint(_runs(text)):
            kept.append(page)
        seen.add(cluster)
    return kept


def _runs(text: str) -> Iterator[int]:
    words = text.lower().split()
    for first in range(len(words) - SHARED_WORDS + 1):
        yield xxhash.xxh64_intdigest(" ".join(words[first : first + SHARED_WORDS]).encode())
