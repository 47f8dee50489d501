"""What each pipeline makes of the same pages, as Parquet files that `curate ablate` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from yields.pages import Page, pack, places
from yields.runs import Fate, fates, run
from yields.theirs import datatrove

from proofs.pages import OTHER_LANGUAGES, plain_text, site_of, split, unseen

#: What is compared, in the order of the tables: file name and what it has.
CORPORA = {
    "plain-text": "all visible text of the pages",
    "trafilatura": "trafilatura's extraction alone, as datatrove's FineWeb pipeline calls it",
    "datatrove-fineweb": "datatrove's FineWeb pipeline",
    "extraction": "our extraction alone",
    "fineweb": "our recipe fineweb",
    "llama3": "our recipe llama3",
}
PLAIN_TEXT, THEIRS = "plain-text", "datatrove-fineweb"
GOLD = "gold.parquet"
Texts = Mapping[str, str]  # by page key


def make(data: Path, python: Path, folder: Path) -> None:
    """Write `<corpus>.parquet` of every pipeline and `gold.parquet`, of English texts.

    `python` is an interpreter with datatrove. The runs stay in `folder/runs`, and go on from there.
    """
    pages, gold = split(data)
    work = folder / "runs"
    inputs = pack(pages, work / "input")
    found: dict[str, dict[str, Fate]] = {}
    by_place = places(pages)
    for recipe in ("llama3", "fineweb"):
        run(recipe, inputs, work / recipe, ())
        found[recipe] = {by_place[p].key: fate for p, fate in fates(work / recipe).items()}
    theirs = datatrove(python, pages, work)
    copies = {key for key, fate in found["llama3"].items() if fate.duplicate}
    pages = [page for page in pages if page.key not in copies]
    texts: dict[str, Texts] = {
        "plain-text": {page.key: plain_text(page) for page in pages},
        "trafilatura": _before(theirs),
        "datatrove-fineweb": _after(theirs),
        "extraction": _before(found["llama3"]),
        "fineweb": _after(found["fineweb"]),
        "llama3": _after(found["llama3"]),
    }
    for name, kept in texts.items():
        _write(pages, kept, folder / f"{name}.parquet")
    rows = pa.Table.from_pylist([asdict(text) for text in gold if text.kind != OTHER_LANGUAGES])
    pq.write_table(rows, folder / GOLD, compression="zstd", compression_level=19)


def _before(fates: Mapping[str, Fate]) -> Texts:
    return {key: fate.before for key, fate in fates.items() if fate.before}


def _after(fates: Mapping[str, Fate]) -> Texts:
    return {key: fate.after for key, fate in fates.items() if fate.after}


def _write(pages: Sequence[Page], texts: Texts, path: Path) -> None:
    kept = [page for page in pages if page.key in texts]
    columns = {
        "id": [page.key for page in kept],
        "url": [page.url for page in kept],
        "text": [texts[page.key] for page in kept],
        "site": [site_of(page.url) for page in kept],
        "unseen": [unseen(page) for page in kept],
    }
    pq.write_table(pa.table(columns), path, compression="zstd", compression_level=19)
