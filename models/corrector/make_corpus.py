"""Gather texts in all languages that the corrector learns, and lists of words by frequency.

python models/corrector/make_corpus.py --data FOLDER CORPUS

FOLDER holds lid/, multilingual/ and words/. Texts are one file with label and source, lists
another. Labels that the first model has are as they are; all others become ISO 639-3 and script,
`xho_Latn`. The same data gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import lzma
import random
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import regex

from curation.config import read_yaml
from models.corrector import other_script

_SCRIPTS = read_yaml(Path(__file__).with_name("scripts.yaml"))
FILE, LISTS_FILE = "languages.jsonl.gz", "words.jsonl.gz"

#: Lines of a language and source that are kept, and lines made of a list of words.
PER_SOURCE, FROM_WORDS = 2000, 500
#: Words are drawn by their counts to this power, as many as one of these.
POWER, WORDS = 0.7, (1, 2, 3, 4, 6, 10)
_SHORTEST = 8

#: Codes of the sources that aren't ISO 639-3, or are of a dialect.
ISO_639_3 = {
    "ee": "ewe", "ff": "ful", "fuf": "ful", "fuv": "ful", "ha": "hau", "ha-ne": "hau", "hz": "her",
    "ki": "kik", "kj": "kua", "knc": "kau", "kr": "kau", "lg": "lug", "lgg-official": "lgg",
    "mi": "mri", "ng": "ndo", "nr": "nbl", "ny": "nya", "om": "gaz", "rw": "kin", "sn": "sna",
    "ss": "ssw", "st": "sot", "ti": "tir", "tn": "tsn", "ts": "tso", "aka": "twi", "fat": "twi",
    "tw-akua": "twi", "tw-asan": "twi", "ve": "ven", "xh": "xho", "zu": "zul",
}  # fmt: skip
#: Known only by a declaration that is Mandarin but for a few words: as labels they take Mandarin's.
LIKE_MANDARIN = {"cjy_Hani", "gan_Hani", "hak_Hani", "hsn_Hani", "nan_Hani"}
#: Languages of the lists of words that go by a country.
LISTS = {"pt_br": "pt", "zh_cn": "zh", "zh_tw": "zh"}
WITHOUT_WORDS = {"ze_en", "ze_zh", "th"}  # mixed languages; lines instead of words


def script(text: str) -> str:
    """Code of the script of most letters; `Zyyy` where there is none."""
    counts = {c: len(regex.findall(rf"\p{{Script={n}}}", text)) for n, c in _SCRIPTS.items()}
    return max(counts, key=counts.__getitem__) if any(counts.values()) else "Zyyy"


def make(data: Path, out: Path) -> Path:
    """Write the corpus into the folder `out` and return its path."""
    path = out / FILE
    out.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as file:
        texts = itertools.chain(_texts(data), _lines(data), _words(data))
        for label, source, text in _in_both_scripts(texts):
            row = {"lang": label, "source": source, "text": text}
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return path


def make_lists(data: Path, out: Path) -> Path:
    """Write the lists of words by frequency into the folder `out` and return the file's path."""
    path = out / LISTS_FILE
    out.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as file:
        for label, code, counts in _lists(data):
            row = {"lang": label, "source": f"opensubtitles:{code}", "words": counts}
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            if label == "sr":
                row["words"] = {other_script.cyrillic(word): n for word, n in counts.items()}
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return path


def _in_both_scripts(texts: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield the texts and, for languages of two scripts, every second one in the other script,
    too."""
    seen: Counter[str] = Counter()
    for label, source, text in texts:
        yield label, source, text
        if label in other_script.CONVERTED and (other := other_script.converted(label, text)):
            seen[label] += 1
            if seen[label] % 2:
                yield label, source, other


def _texts(data: Path) -> Iterator[tuple[str, str, str]]:
    """Texts in the languages of the first model and, named by language and script, in others."""
    with gzip.open(data / "lid" / "dev.jsonl.gz", "rt", encoding="utf-8") as file:
        own = [json.loads(line) for line in file]
    yield from ((row["lang"], row["source"], row["text"]) for row in own)
    known = {row["lang"] for row in own}
    by_language: defaultdict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for name in ("outofset-dev.jsonl.gz", "official-dev.jsonl.gz"):
        with gzip.open(data / "lid" / name, "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                language = ISO_639_3.get(row["lang"], row["lang"])
                by_language[language].setdefault(row["text"], row)
    by_language.pop("und")
    for language, found in sorted((name, [*rows.values()]) for name, rows in by_language.items()):
        of = [script(row["text"]) for row in found]
        usual = Counter(of)
        for row, code in zip(found, of, strict=True):
            if usual[code] >= 3:  # else a quotation, or a text without letters
                name = language if language in known else f"{language}_{code}"
                if name not in LIKE_MANDARIN:
                    yield name, row["source"], row["text"]


def _lines(data: Path) -> Iterator[tuple[str, str, str]]:
    """Lines of natural text in the written languages, at most `PER_SOURCE` of each source."""
    found = defaultdict(list)
    path = data / "multilingual" / "train.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            lines = [line for line in row["text"].split("\n") if len(line) >= _SHORTEST]
            found[row["lang"], row["source"].split("/")[0]] += lines
    for (language, source), lines in sorted(found.items()):
        picked = random.Random(f"{language} {source}")
        for line in picked.sample(lines, min(PER_SOURCE, len(lines))):
            yield language, source, line


def _lists(data: Path) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Label, code and counts of the words of every list."""
    archive = data / "words" / "opensubtitles-50k.tar.xz"
    with tarfile.open(archive) as lists:
        for member in sorted(lists.getmembers(), key=lambda m: m.name):
            code = Path(member.name).name.removesuffix("_50k.txt")
            content = lists.extractfile(member)
            if content is None or not member.name.endswith("_50k.txt") or code in WITHOUT_WORDS:
                continue
            pairs = [line.rsplit(" ", 1) for line in content.read().decode().splitlines()]
            yield LISTS.get(code, code), code, {word: int(count) for word, count in pairs}


def _words(data: Path) -> Iterator[tuple[str, str, str]]:
    """Words drawn by their frequency in subtitles: letters of speech, in no order."""
    for label, code, counts in _lists(data):
        sums = list(itertools.accumulate(count**POWER for count in counts.values()))
        words = list(counts)
        drawn = random.Random(code)
        for _ in range(FROM_WORDS):
            chosen = drawn.choices(words, cum_weights=sums, k=drawn.choice(WORDS))
            yield label, "opensubtitles", " ".join(chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("corpus", type=Path)
    options = parser.parse_args()
    print(make(options.data, options.corpus))
    print(make_lists(options.data, options.corpus))


if __name__ == "__main__":
    main()
