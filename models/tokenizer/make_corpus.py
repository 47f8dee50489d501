#!/usr/bin/env python3
"""Gather the text that curation-128k was trained on: Debian's translated documentation.

  python models/tokenizer/make_corpus.py --out CORPUS [--texts dev.jsonl.gz ...] [--debs CACHE]

Writes one `<language>.jsonl.gz` per language with `text`, `language` and `source` (the kind of
package), each paragraph once per language; what stands in more than three languages' files was
never translated and is left out. `--texts` adds JSON lines that have `text` and `lang`;
of these, one in ten (by hash) goes to `held-out/texts.jsonl.gz` instead.
Needs a Debian system: `apt-get download` (no root) and `dpkg-deb`. Deterministic for the same
package versions.
"""

from __future__ import annotations

import argparse
import collections
import gettext
import gzip
import html
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import xxhash

FAMILIES = [
    "libreoffice-help",
    "libreoffice-l10n",
    "gimp-help",
    "manpages",
    "debian-faq",
    "debian-reference",
    "developers-reference",
    "maint-guide",
    "aptitude-doc",
    "fortunes",
]
OTHERS = ["gnome-user-docs", "installation-guide-amd64", "debian-handbook", "wesnoth-1.16-data"]
NAME = re.compile(
    rf"^({'|'.join(FAMILIES)})-(?!dev)([a-z]{{2,3}})(-(?!dev$|min$|bin$)[a-z]+)?(-dev)?$"
)
SHARED = 3  # languages that may have a paragraph in common
ENGLISH = re.compile(r"^en")
FOLDER = re.compile(r"/(?:help|html|locale|amd64|translations)/([a-z]{2,3})([_@-][A-Za-z@]+)?/")
# What a language is called where its translations use another code than the texts.
SAME = {"nb": "no", "zh-cn": "zh", "zh-tw": "zh", "cn": "zh", "br": "pt"}
TAG = re.compile(r"<(script|style|head|nav)\b.*?</\1>|<!--.*?-->", re.S | re.I)
BLOCK = re.compile(r"</?(p|div|h\d|li|td|th|dt|dd|title|para|item|note|br)\b[^>]*>", re.I)
ANY = re.compile(r"<[^>]*>")
ROFF = re.compile(r"\\f\(?.|\\[&%|^:]|\\s[-+]?\d|\\\*\(..|\\-|\\\(..|^\.[A-Za-z]+ ?|^'.*$", re.M)
MARKUP = re.compile(r"~|%[A-Z_]+|\$\([^)]*\)|&\w+;|%\w")


def packages(families: list[str]) -> list[str]:
    """Names of the packages of some families, in order, and of those that hold all languages."""
    names = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True)
    found = [m for m in map(NAME.match, names.stdout.split()) if m and not ENGLISH.match(m[2])]
    return sorted(m[0] for m in found if m[1] in families) + OTHERS


def download(package: str, cache: Path) -> Path | None:
    """The package file, from the cache or from Debian; None where Debian has none."""
    have = sorted(cache.glob(f"{package}_*.deb"))
    if not have:
        subprocess.run(
            ["apt-get", "download", package], cwd=cache, capture_output=True, check=False
        )
        have = sorted(cache.glob(f"{package}_*.deb"))
    return have[-1] if have else None


def members(deb: Path) -> Iterator[tuple[str, bytes]]:
    """Path and content of every documentation file of a package, decompressed."""
    wanted = re.compile(r"\.(x?html?(\.\w+)?|page|docbook|mo|txt)(\.gz)?$|/man/|/games/fortunes/")
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as tar,
        tarfile.open(fileobj=tar.stdout, mode="r|") as files,
    ):
        for member in files:
            if member.isfile() and wanted.search(member.name):
                stream = files.extractfile(member)
                data = stream.read() if stream else b""
                yield member.name, gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def paragraphs(path: str, data: bytes) -> Iterator[str]:
    """Plain paragraphs of a page, a manual page, a message catalogue or a text file."""
    if path.endswith(".mo"):
        try:
            catalogue = gettext.GNUTranslations(io.BytesIO(data))._catalog
        except (OSError, UnicodeDecodeError, ValueError):
            return
        for key, value in catalogue.items():
            if key and isinstance(value, str) and value != key:
                yield MARKUP.sub("", ANY.sub("", value))
        return
    text = data.decode("utf-8", errors="ignore")
    if "/man/" in path:
        text = ROFF.sub("", text)
        parts = re.split(r"\n{2,}|^\s*\.", text, flags=re.M)
    elif re.search(r"\.(x?html?(\.\w+)?|page|docbook)(\.gz)?$", path):
        text = BLOCK.sub("\n\n", TAG.sub(" ", text))
        parts = [html.unescape(ANY.sub("", part)) for part in re.split(r"\n{2,}", text)]
    else:
        parts = re.split(r"\n{2,}|^%$", text, flags=re.M)
    for part in parts:
        yield re.sub(r"[ \t\n]+", " ", part).strip()


def language_of(package: str, path: str) -> str | None:
    """Two- or three-letter code, from the package's name or the file's folder."""
    named = NAME.match(package)
    folder = FOLDER.search(path)
    suffix = re.search(r"\.([a-z]{2})\.(?:html|txt)(\.gz)?$", path)
    code = named[2] if named else folder[1] if folder else suffix[1] if suffix else None
    if code is None or ENGLISH.match(code) or code == "C":
        return None
    return SAME.get(code, code)


def compressed(path: Path) -> io.TextIOWrapper:
    """A new gzip text file whose bytes depend on its content alone."""
    raw = gzip.GzipFile(filename="", mode="wb", fileobj=path.open("wb"), mtime=0, compresslevel=3)
    return io.TextIOWrapper(raw, encoding="utf-8")


class Corpus:
    """One growing file per language, each paragraph once; `close` drops what many share."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.files: dict[str, io.TextIOBase] = {}
        self.seen: dict[str, set[int]] = collections.defaultdict(set)
        self.languages: collections.Counter[int] = collections.Counter()

    def add(self, language: str, source: str, text: str) -> None:
        key = xxhash.xxh64_intdigest(text.encode())
        if len(text) < 12 or key in self.seen[language]:
            return
        self.seen[language].add(key)
        self.languages[key] += 1
        self.write(language, {"text": text, "language": language, "source": source})

    def write(self, name: str, row: dict[str, str]) -> None:
        if name not in self.files:
            self.files[name] = compressed(self.out / f"{name}.jsonl.gz")
        self.files[name].write(json.dumps(row, ensure_ascii=False) + "\n")

    def close(self) -> None:
        for name, file in self.files.items():
            file.close()
            if name in self.seen:
                self.drop_shared(self.out / f"{name}.jsonl.gz")

    def drop_shared(self, path: Path) -> None:
        part = path.with_suffix(".part")
        with gzip.open(path, "rt", encoding="utf-8") as lines, compressed(part) as out:
            for line in lines:
                key = xxhash.xxh64_intdigest(json.loads(line)["text"].encode())
                if self.languages[key] <= SHARED:
                    out.write(line)
        part.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--debs", type=Path, default=Path("debs"), help="cache of package files")
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="JSON lines: text, lang")
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=FAMILIES)
    options = parser.parse_args()
    (options.out / "held-out").mkdir(parents=True, exist_ok=True)
    options.debs.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(options.out)
    for file in options.texts:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if xxhash.xxh64_intdigest(row["text"].encode()) % 10 == 0:
                    corpus.write("held-out/texts", {"text": row["text"], "language": row["lang"]})
                else:
                    corpus.add(row["lang"], "texts", row["text"])
    for package in packages(options.families):
        deb = download(package, options.debs)
        if deb is None:
            print(f"{package}: not in this Debian release")
            continue
        family = NAME.match(package)
        for path, data in members(deb):
            language = language_of(package, path)
            if language:
                for text in paragraphs(path, data):
                    corpus.add(language, family[1] if family else package, text)
        print(deb.name, flush=True)
    corpus.close()


if __name__ == "__main__":
    main()
