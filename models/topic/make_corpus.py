"""Write the examples for the quality, topic and format models.

  python models/topic/make_corpus.py --data FOLDER OUT

Writes four files to OUT, JSON lines:

- pages.jsonl.gz: real web pages with `text`, `url`, `quality` (grade 0 to 5), `topic`, `format` and
  `language`:
  FOLDER/quality/dev.jsonl.gz, and the pages of FOLDER/extract/dev.tar.xz whose sets may train a
  shipped model, as our extractor reads them. Pages whose address is also in the first file, and
  pages without a label, are left out. `labels.tsv` has our labels (TAXONOMY.md); the grades of the
  first file are its own.
- written.jsonl.gz: pages in English and German written for this purpose by a language model
  (`written.jsonl.gz` in this folder, free to use), with `text`, `language`, `topic`, `format` and
  `source`, but no grades.
- others.jsonl.gz: the same in other languages, for topics only: with so few, a format would be
  told by its language.
- lexicon.jsonl.gz: words typical of each topic in several languages (`lexicon.tsv`), as texts with
  `topic` and `source`: the only examples of most topics in some languages.

The labels of the other sets of FOLDER/extract are for evaluation; those pages are never written.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from curation.extract.extractor import extract
from models.training.inputs import rows

HERE = Path(__file__).parent
GRADED = "quality"  # the set of FOLDER/quality/dev.jsonl.gz in labels.tsv
#: Sets of FOLDER/extract that may train a shipped model (DATASETS.md), in the order of the output.
WEB = (
    "magichtml-article magichtml-forum readability scrapinghub trafilatura-eval wcxb "
    "webmainbench-sample"
).split()
PAGES, WRITTEN, OTHERS, LEXICON = (
    f"{name}.jsonl.gz" for name in ("pages", "written", "others", "lexicon")
)

#: Languages of most of the real pages.
LANGUAGES = {"en", "de"}

Rows = Iterator[dict[str, Any]]


class Label(NamedTuple):
    grade: float
    domain: str  # c: code, m: mathematics, g: general
    topic: str
    format: str
    language: str


def read_labels(path: Path = HERE / "labels.tsv") -> dict[str, Label]:
    """Labels by page, `set/page` or `quality/id`."""
    labels = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        page, grade, domain, topic, kind, language, *_ = line.split("\t")
        labels[page] = Label(float(grade), domain, topic, kind, language)
    return labels


def pages(data: Path) -> Rows:
    """Labelled real pages that may train a shipped model."""
    labels = read_labels()
    known = set()
    for _, row in rows(data / "quality" / "dev.jsonl.gz"):
        known.add(row.get("url"))
        label = labels.get(f"{GRADED}/{row['id']}")
        if label is not None:
            yield _row(row["text"], row.get("url") or row["id"], row["quality"], label)
    for page, html, url in saved_pages(data, WEB):
        label = labels.get(page)
        if label is not None and url not in known:
            yield _row(extract(html, url=url).text, url or page, label.grade, label)


def written(others: bool = False) -> Rows:
    """Pages written for this purpose, in the languages of most real pages or in the others."""
    for number, (_, row) in enumerate(rows(HERE / WRITTEN)):
        if (row["language"] not in LANGUAGES) == others:
            yield {**row, "source": f"written:{number}"}


def lexicon() -> Rows:
    """Words of the topics, one text per topic and language."""
    for line in (HERE / "lexicon.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        topic, language, words = line.split("\t")
        yield {"text": words, "topic": topic, "source": f"lexicon:{language}:{topic}"}


def saved_pages(data: Path, sets: Iterable[str]) -> Iterator[tuple[str, bytes, str | None]]:
    """Name (`set/page`), HTML and URL of every page of some sets, in the order of their lists."""
    wanted = list(sets)
    with tarfile.open(data / "extract" / "dev.tar.xz") as tar:
        files = {}
        for member in tar:
            name = member.name.removeprefix("./").removeprefix("data/")
            file = tar.extractfile(member) if member.isfile() else None
            if file is not None and name.split("/")[0] in wanted:
                files[name] = file.read()
    for part in wanted:
        for line in files[f"{part}/gold.jsonl"].splitlines():
            row = json.loads(line)
            url = row.get("url") or None
            yield f"{part}/{row['id']}", files[f"{part}/html/{row['id']}.html"], url


def write(path: Path, found: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines; the same rows give the same bytes."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as out,
    ):
        for row in found:
            out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def make(data: Path, out: Path) -> tuple[Path, Path, Path, Path]:
    """Write the files to the folder `out`; return their paths in the order of the module's head."""
    out.mkdir(parents=True, exist_ok=True)
    write(out / PAGES, pages(data))
    write(out / WRITTEN, written())
    write(out / OTHERS, written(others=True))
    write(out / LEXICON, lexicon())
    return out / PAGES, out / WRITTEN, out / OTHERS, out / LEXICON


def _row(text: str, url: str, grade: float, label: Label) -> dict[str, Any]:
    return {
        "text": text,
        "url": url,
        "quality": grade,
        "topic": label.topic,
        "format": label.format,
        "language": label.language,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    make(options.data, options.out)


if __name__ == "__main__":
    main()
