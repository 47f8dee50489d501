"""Real pages with their labels, and the files that `curate run` reads them from."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from extraction import rows_of, sets_in

LABELS = Path(__file__).parents[2] / "models" / "topic" / "labels.tsv"
#: Names of the packed inputs; the documents of a run are found again by file and row.
PAGES, GRADED = "pages.parquet", "graded.parquet"
#: Domains by their letter in the labels.
DOMAINS = {"g": "general", "c": "code", "m": "math"}
#: Sets whose licences let no shipped model learn from them; the classifiers have seen the others.
UNSEEN = (
    "mathcode-llmwebkit cleaneval cleanportaleval dragnet l3s-gn1 daniel crawl-to-the-future"
).split()


@dataclass(frozen=True)
class Page:
    """A page (`html`) or a text that was graded as it is (`text`), under a key that no tool makes.

    `key` is `<set>/<page>` of the extraction sets, or `quality/<id>`.
    """

    key: str
    url: str
    html: bytes | None
    text: str | None
    gold: str | None


@dataclass(frozen=True)
class Label:
    """How a reader judged the text of a page: grade from 0 to 5, domain, topic, format."""

    source: str
    grade: int
    domain: str
    topic: str
    format: str
    language: str


def read_labels(path: Path = LABELS) -> dict[str, Label]:
    """Return the labels by page key."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["page"]: Label(
                _source(row["page"].split("/")[0]),
                int(row["grade"]),
                DOMAINS[row["domain"]],
                row["topic"],
                row["format"],
                row["language"],
            )
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        }


def _source(name: str) -> str:
    if name == "quality":
        return "graded texts"
    return "sets that no model learned from" if name in UNSEEN else "sets that models learn from"


def read_pages(data: Path) -> list[Page]:
    """Return the pages of `data` in a fixed order: extraction sets by name, then graded texts.

    `data` has `extract/dev.tar.xz` (or the sets unpacked) and `quality/dev.jsonl.gz`. A page whose
    set states no URL gets one under the reserved domain `.example`.
    """
    return [*_extraction(data / "extract"), *_graded(data / "quality" / "dev.jsonl.gz")]


def _extraction(folder: Path) -> Iterator[Page]:
    with sets_in(folder) as sets:
        for name in sorted(path.parent.name for path in sets.glob("*/gold.jsonl")):
            for row, html in rows_of(sets, name):
                url = str(row.get("url") or "")
                if not url.startswith("http"):
                    url = f"https://{name}.example/{row['id']}"
                yield Page(f"{name}/{row['id']}", url, html, None, row.get("text"))


def _graded(path: Path) -> Iterator[Page]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            url = row.get("url") or f"https://quality.example/{row['id']}"
            yield Page(f"quality/{row['id']}", url, None, row["text"], None)


def pack(pages: list[Page], folder: Path) -> list[Path]:
    """Write the pages as Parquet that `curate run` reads; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {
        PAGES: [page for page in pages if page.html is not None],
        GRADED: [page for page in pages if page.html is None],
    }
    for name, members in kinds.items():
        content = "html" if name == PAGES else "text"
        table = pa.table(
            {
                "url": [page.url for page in members],
                content: [getattr(page, content) for page in members],
            }
        )
        pq.write_table(table, folder / name, row_group_size=200)
    return [folder / name for name in kinds]


def places(pages: list[Page]) -> dict[tuple[str, int], Page]:
    """Return the pages by packed file and row."""
    found: dict[tuple[str, int], Page] = {}
    counts = {PAGES: 0, GRADED: 0}
    for page in pages:
        name = GRADED if page.html is None else PAGES
        found[name, counts[name]] = page
        counts[name] += 1
    return found
