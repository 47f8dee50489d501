#!/usr/bin/env python3
"""Gather what the built-in vocabularies are trained on: natural text, and frequencies of words.

  pip install --no-deps wordfreq==3.1.1 msgpack
  python models/tokenizer/make_corpus.py --out CORPUS --texts train.jsonl.xz \\
      --words opensubtitles-50k.tar.xz --messages dev.jsonl.gz

Writes one `<language>.jsonl.gz` per language with `text`, `language`, `source` and, for words,
`count`. Sources are named after their kind: `natural` (sentences gathered for reading aloud,
treebanks, reviews, social media, government news), `documentation` (handbooks, web sites of
software, messages of programs), `written-words` and `spoken-words`. `--without PREFIX` leaves
sources out, to measure on them. The same input gives the same bytes.

English is left out, since the base has its words. A vocabulary without a base needs it
(`--english`) and code: `--code FOLDER ...` adds `code.jsonl.gz` with files of source code and
technical prose, kinds `python`, `go` and so on.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import hashlib
import importlib.util
import io
import json
import lzma
import os
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FORMS = 30_000  # most frequent forms of words kept of a list
CAPITALIZED = 12  # of 100 occurrences of a word: begins of sentences, titles, names
# What a language is called here where a list has another code.
SAME = {"pt_br": "pt", "nb": "no", "fil": "tl"}
# Lists that don't have words as text has them between spaces: Chinese, Japanese and Thai, where
# there are none, Korean morphemes, mixed subtitles.
UNUSABLE = {
    "opensubtitles": {"zh_cn", "zh_tw", "th", "ze_en", "ze_zh"},
    "wordfreq": {"zh", "ja", "ko"},
}
NATURAL = ("mozilla/common-voice", "UniversalDependencies", "e9t", "PyThaiNLP")
# Sources of the language-identification texts that train; the others only measure.
MESSAGES = {
    "mediawiki-i18n": "documentation",
    "wordpress": "documentation",
    "pratham-books": "natural",
    "african-storybook": "natural",
    "ud": "natural",
}
# Kinds of files that `--code` reads, by their endings, and megabytes of each at most.
CODE = {
    "python": (25, "py"),
    "go": (12, "go"),
    "c": (12, "c h cc cpp hpp"),
    "javascript": (12, "js mjs ts"),
    "prose": (8, "md rst"),
    "perl": (3, "pl pm"),
    "html": (3, "html xml"),
    "data": (3, "json yaml yml toml"),
    "shell": (3, "sh"),
    "css": (3, "css"),
    "sql": (3, "sql"),
}
FILE_BYTES = (200, 200_000)  # smaller files say nothing, larger ones are data


@dataclass(frozen=True)
class Row:
    """A text, or a word and how often it occurs."""

    language: str
    source: str
    text: str
    count: int | None = None


def json_lines(path: Path) -> Iterator[dict[str, str]]:
    """Objects of a compressed file of JSON lines."""
    opened = lzma.open if path.suffix == ".xz" else gzip.open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def texts(path: Path) -> Iterator[Row]:
    """Natural text and documentation, with the repository that it comes from."""
    for row in json_lines(path):
        repository = "/".join(row["source"].split("/")[:2])
        kind = "natural" if repository.startswith(NATURAL) else "documentation"
        yield Row(row["lang"], f"{kind}/{repository}", row["text"])


def messages(path: Path) -> Iterator[Row]:
    """Texts of languages that have little else."""
    for row in json_lines(path):
        source = row["source"].split("(")[0].split(":")[0]
        if source in MESSAGES:
            yield Row(row["lang"], f"{MESSAGES[source]}/{source}", row["text"])


def forms(language: str, words: Iterable[tuple[str, int]], source: str) -> Iterator[Row]:
    """Yield the most frequent forms of words as text has them: after a space, some capitalized."""
    counts: collections.Counter[str] = collections.Counter()
    for word, count in words:
        counts[f" {word}"] += count * (100 - CAPITALIZED)
        counts[f" {word[:1].upper()}{word[1:]}"] += count * CAPITALIZED
    best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:FORMS]
    for form, count in best:
        if count > 0:
            yield Row(language, source, form, count)


def opensubtitles(path: Path) -> Iterator[Row]:
    """Words of film subtitles: an archive of lists, one `word count` a line."""
    lists: dict[str, list[tuple[str, int]]] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = Path(member.name).name.removesuffix("_50k.txt")
            stream = archive.extractfile(member)
            if stream is None or name in UNUSABLE["opensubtitles"]:
                continue
            for line in stream.read().decode("utf-8").splitlines():
                word, _, count = line.rpartition(" ")
                if word:
                    lists.setdefault(SAME.get(name, name), []).append((word, int(count)))
    for language in sorted(lists):
        yield from forms(language, lists[language], "spoken-words/opensubtitles")


def wordfreq() -> Iterator[Row]:
    """Words of the package wordfreq: buckets by frequency in hundredths of a power of ten."""
    import msgpack  # type: ignore[import-not-found]

    found = importlib.util.find_spec("wordfreq")
    if found is None or found.submodule_search_locations is None:
        raise SystemExit("wordfreq is not installed: pip install --no-deps wordfreq==3.1.1 msgpack")
    folder = Path(next(iter(found.submodule_search_locations))) / "data"
    best = {path.name.split("_")[1].split(".")[0]: path for path in folder.glob("small_*")}
    best |= {path.name.split("_")[1].split(".")[0]: path for path in folder.glob("large_*")}
    for name in sorted(best):
        if name in UNUSABLE["wordfreq"]:
            continue
        with gzip.open(best[name]) as file:
            buckets = msgpack.unpackb(file.read(), raw=False)[1:]
        words = [
            (word, round(10 ** (9 - place / 100)))
            for place, bucket in enumerate(buckets)
            for word in bucket
        ]
        yield from forms(SAME.get(name, name), words, "written-words/wordfreq")


def code(folders: Iterable[Path]) -> Iterator[Row]:
    """Distinct files of source code below the folders, of each kind those of the lowest hashes."""
    kinds = {ending: kind for kind, (_, endings) in CODE.items() for ending in endings.split()}
    found: dict[str, dict[bytes, str]] = {kind: {} for kind in CODE}
    for path in (
        Path(at, name) for folder in folders for at, _, names in os.walk(folder) for name in names
    ):
        kind = kinds.get(path.suffix.removeprefix(".").lower())
        if kind is None or ".min." in path.name or path.is_symlink():
            continue
        if FILE_BYTES[0] < path.stat().st_size < FILE_BYTES[1]:
            content = path.read_bytes()
            try:
                found[kind][hashlib.sha256(content).digest()] = content.decode()
            except UnicodeDecodeError:
                continue  # in an old encoding
    for kind, files in found.items():
        left = CODE[kind][0] * 1_000_000
        for _, text in sorted(files.items()):
            if left > 0:
                yield Row("code", f"{kind}/files", text)
            left -= len(text)


def compressed(path: Path) -> io.TextIOWrapper:
    """Return a new gzip text file whose bytes depend on its content alone."""
    raw = gzip.GzipFile(filename="", mode="wb", fileobj=path.open("wb"), mtime=0, compresslevel=3)
    return io.TextIOWrapper(raw, encoding="utf-8")


def write(rows: Iterable[Row], out: Path, without: tuple[str, ...], english: bool) -> None:
    """Write rows to the file of their language."""
    files: dict[str, io.TextIOWrapper] = {}
    for row in rows:
        if (row.language == "en" and not english) or (without and row.source.startswith(without)):
            continue
        if row.language not in files:
            files[row.language] = compressed(out / f"{row.language}.jsonl.gz")
        values = {key: value for key, value in vars(row).items() if value is not None}
        files[row.language].write(json.dumps(values, ensure_ascii=False) + "\n")
    for file in files.values():
        file.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True, help="JSON lines: text, lang, source")
    parser.add_argument("--words", type=Path, required=True, help="archive of OpenSubtitles' lists")
    parser.add_argument(
        "--messages", type=Path, required=True, help="JSON lines: text, lang, source"
    )
    parser.add_argument(
        "--without", nargs="*", default=[], help="beginnings of sources to leave out"
    )
    parser.add_argument("--english", action="store_true", help="for vocabularies without a base")
    parser.add_argument(
        "--code", type=Path, nargs="*", default=[], help="folders of source code, for the same"
    )
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)

    def rows() -> Iterator[Row]:
        yield from texts(options.texts)
        yield from messages(options.messages)
        yield from opensubtitles(options.words)
        yield from wordfreq()
        yield from code(options.code)

    write(rows(), options.out, tuple(options.without), options.english)


if __name__ == "__main__":
    main()
