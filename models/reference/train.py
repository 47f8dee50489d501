"""Train the built-in reference distributions.

  python models/reference/train.py --corpus CORPUS [--texts dev.jsonl.gz ...]

CORPUS holds `<language>.jsonl.gz` as models/tokenizer/make_corpus.py writes them (Debian's
translated documentation, and labelled texts given to it); `--texts` adds labelled web texts, of
which mathematics, code and low grades are left out. Languages with fewer bytes than `--least` get
no reference.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from pathlib import Path

from curation.language import identify
from curation.train import About
from curation.train.by_language import CARD
from curation.train.reference import train_reference_files

GOOD = 3  # grade from which a web page counts as prose to compare with
ABOUT = About(
    version="1",
    licence="Apache-2.0",
    source="Counts of words, no text: Debian's translated documentation (as for the tokenizer), "
    "graded web pages, WCXB articles (CC BY 4.0), OpenStax textbooks (CC BY 4.0), XQuAD (CC BY-SA "
    "4.0), Leipzig sentences (CC BY). Documentation weighs heavily: compare documents of one "
    "language with each other rather than with a fixed threshold.",
    command="python models/reference/train.py --corpus CORPUS "
    "--texts domain/dev.jsonl.gz quality/dev.jsonl.gz",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--texts", type=Path, nargs="*", default=[])
    parser.add_argument("--least", type=int, default=1_000_000, help="bytes of text of a language")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    for old in [options.output / CARD, *options.output.glob("*.npz")]:
        old.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        good = [prose(path, Path(folder) / str(i)) for i, path in enumerate(options.texts)]
        for path in sorted(options.corpus.glob("*.jsonl.gz")):
            language = path.name.split(".")[0]
            with gzip.open(path, "rt", encoding="utf-8") as file:
                size = sum(len(json.loads(line)["text"].encode()) for line in file)
            if size >= options.least or language == "en":  # translations have no English
                print(train_reference_files([path, *good], language, options.output, ABOUT))


def prose(path: Path, folder: Path) -> Path:
    """The rows of a file that are prose of some quality, with their language, as a plain file."""
    folder.mkdir()
    with gzip.open(path, "rt", encoding="utf-8") as source:
        rows = [json.loads(line) for line in source]
    rows = [
        r
        for r in rows
        if r.get("label") not in ("math", "code")
        and r.get("domain") not in ("math_reasoning", "code")
        and r.get("quality", GOOD) >= GOOD
    ]
    labels, _ = identify([r["text"] for r in rows])
    target = folder / path.name.removesuffix(".gz")
    with target.open("w", encoding="utf-8") as file:
        for row, label in zip(rows, labels, strict=True):
            file.write(json.dumps({"text": row["text"], "lang": row.get("lang", label)}) + "\n")
    return target


if __name__ == "__main__":
    main()
