"""Train the built-in reference distributions.

  python models/reference/train.py --multilingual train.jsonl.xz --words opensubtitles-50k.tar.xz
      [--texts domain/dev.jsonl.gz pages.parquet ...]

`--multilingual` and `--words` are corpora as the card names them; `--texts` adds web pages
and other documents, of which mathematics and code are left out and `language` or `lang` names the
language. Languages with fewer characters of text than `--least` get no reference.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models.training.by_language import CARD
from models.training.inputs import rows
from models.training.reference import default_reference, train_reference_files
from models.training.report import About

ABOUT = About(
    version="2",
    licence="CC-BY-SA-4.0",
    source="Counts, no text: sentences and documentation in 57 languages from public repositories "
    "(CC0, CC BY, CC BY-SA, MIT, MPL), word frequencies of "
    "OpenSubtitles 2018 by hermitdave/FrequencyWords (CC BY-SA 4.0), WCXB articles (CC BY 4.0), "
    "OpenStax textbooks (CC BY 4.0), Leipzig sentences (CC BY), and main "
    "texts of web pages of the extractor's sets that may train models.",
    command="python models/reference/train.py --multilingual multilingual/train.jsonl.xz "
    "--words words/opensubtitles-50k.tar.xz --texts domain/dev.jsonl.gz pages.parquet",
)
#: Word lists whose name is not the language's code; both lists of Chinese are one.
LISTS = {"zh_cn": "zh", "zh_tw": "zh", "pt_br": None, "ze_en": None, "ze_zh": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--multilingual", type=Path, required=True)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--texts", type=Path, nargs="*", default=[])
    parser.add_argument("--least", type=int, default=150_000, help="characters of a language")
    parser.add_argument("--languages", nargs="*", help="train these only")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    if not options.languages:
        for old in [options.output / CARD, *options.output.glob("*.npz")]:
            old.unlink(missing_ok=True)
    texts: dict[str, list[str]] = defaultdict(list)
    for path in [*options.texts, options.multilingual]:
        for row in records(path):
            if is_prose(row):
                texts[row.get("language") or row.get("lang") or ""].append(row["text"])
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        lists = word_lists(options.words, folder)
        for language, own in sorted(texts.items()):
            if sum(map(len, own)) < options.least or (
                options.languages and language not in options.languages
            ):
                continue
            path = folder / f"{language}.jsonl"
            with path.open("w", encoding="utf-8") as file:
                for text in own:
                    file.write(json.dumps({"text": text, "lang": language}) + "\n")
            settings = default_reference().model_copy(
                update={"word_list": str(lists[language]) if language in lists else None}
            )
            print(train_reference_files([path], language, options.output, ABOUT, settings))


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSONL (also .gz, .xz) or Parquet file."""
    if path.suffix != ".xz":
        yield from (row for _, row in rows(path))
        return
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def is_prose(row: dict[str, Any]) -> bool:
    """Return whether a row's labels, where it has any, leave it among prose."""
    if str(row.get("source")).startswith("xquad"):
        return False  # kept back: for measuring
    return row.get("label") not in ("math", "code") and bool(row.get("text"))


def word_lists(archive: Path, folder: Path) -> dict[str, Path]:
    """Unpack the lists; return the file of each language."""
    found: dict[str, Path] = {}
    with tarfile.open(archive) as held:
        for member in held:
            name = Path(member.name).name.removesuffix("_50k.txt")
            language = LISTS.get(name, name)
            file = held.extractfile(member)
            if not member.name.endswith("_50k.txt") or language is None or file is None:
                continue
            path = folder / f"{language}.txt"
            with path.open("ab") as out:
                out.write(file.read())
            found[language] = path
    return found


if __name__ == "__main__":
    main()
