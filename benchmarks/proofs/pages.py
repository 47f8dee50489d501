"""English pages to train on and gold texts to measure with: no site is on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
#: Gold texts of these sets are also measured apart.
KINDS = {"news": ("l3s-gn1", "daniel"), "formulas-and-code": ("mathcode-llmwebkit",)}
#: Of the sites of all other sets, one in so many is only measured with.
ONE_SITE_IN = 5
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
    held_out: str  # "other sites" or "other sets"
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
    pages = [page for page in read_pages(data) if _english(labels.get(page.key))]
    gold = [text for page in pages if (text := _gold(page, labels[page.key]))]
    sites = {site_of(page.url) for page in pages if _held_out(page)}
    rest = [page for page in pages if not _held_out(page) and site_of(page.url) not in sites]
    found = [page for page in archived(data / "warc") if site_of(page.url) not in sites]
    rest += _in_english(found)
    return _distinct(rest, gold), gold


def _english(label: Label | None) -> bool:
    return label is not None and label.language == "en"


def _in_english(pages: list[Page]) -> list[Page]:
    labels, scores = identify([plain_text(page) for page in pages])
    return [
        page
        for page, label, score in zip(pages, labels, scores, strict=True)
        if str(label) == "en" and float(score) >= ENGLISH
    ]


def _held_out(page: Page) -> str:
    """Return how a page is held out; empty: to train on. Pages without a site are trained on."""
    if set_of(page) in HELD_OUT_SETS:
        return "other sets"
    site = site_of(page.url)
    made_up = site.endswith(".example")
    return "" if made_up or xxhash.xxh64_intdigest(site.encode()) % ONE_SITE_IN else "other sites"


def _gold(page: Page, label: Label) -> Gold | None:
    """Return the gold text of a held-out page that readers would keep."""
    held_out = _held_out(page)
    if not held_out or label.grade < GOOD or not page.gold or len(page.gold) < LEAST:
        return None
    return Gold(page.key, page.url, held_out, page.gold[:MOST])


def _distinct(pages: Sequence[Page], gold: Sequence[Gold]) -> list[Page]:
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
