"""Precision and recall of personal data by kind and language, and speed.

  python benchmarks/pii.py [--labelled FILE ...] [--texts FILE.jsonl.gz ...]

Labelled are sentences with spans: in the form of presidio-research (.json), or marked, as in
benchmarks/pii.tsv, which has as many numbers of versions, sections and enzymes as addresses. A span
counts as found where a span of the same kind overlaps it.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from curation.arrow import text_buffers
from curation.filters import pii
from curation.filters.filter_settings import default_settings

KINDS = {
    "EMAIL_ADDRESS": "email",
    "IP_ADDRESS": "ip",
    "PHONE_NUMBER": "phone",
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "US_SSN": "us_ssn",
}
DATA = Path(__file__).parents[2] / "shared" / "data"


MARKED = re.compile(r"⟦(\w+)\|(.*?)⟧")


class Sentence(NamedTuple):
    """A text with its labelled spans: (kind, first byte, byte behind)."""

    language: str
    text: str
    spans: list[tuple[str, int, int]]


def of_presidio(path: Path) -> list[Sentence]:
    """Return the sentences of a file in the form of presidio-research: English all of them."""
    found = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        text = row["full_text"]
        spans = [
            (
                KINDS[span["entity_type"]],
                len(text[: span["start_position"]].encode()),
                len(text[: span["end_position"]].encode()),
            )
            for span in row["spans"]
            if span["entity_type"] in KINDS
        ]
        found.append(Sentence("en", text, spans))
    return found


def marked(path: Path) -> list[Sentence]:
    """Return the sentences of a file of languages and texts: `de<tab>Tel. ⟦phone|030 / 90 18⟧`."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        language, _, text = line.partition("\t")
        spans, plain, at = [], "", 0
        for match in MARKED.finditer(text):
            plain += text[at : match.start()]
            begin = len(plain.encode())
            plain += match[2]
            spans.append((match[1], begin, len(plain.encode())))
            at = match.end()
        found.append(Sentence(language, plain + text[at:], spans))
    return found


def score(sentences: list[Sentence]) -> None:
    """Print a table: language, kind, labelled, precision, recall; first of all languages."""
    texts = pa.array([sentence.text for sentence in sentences], pa.large_string())
    offsets, _ = text_buffers(texts)
    found: list[list[tuple[str, int, int]]] = [[] for _ in sentences]
    result = pii.find(texts, default_settings().pii)
    for document, start, end, kind in zip(*(f.tolist() for f in result), strict=True):
        base = int(offsets[document])
        found[document].append((pii.KINDS[kind], start - base, end - base))
    counts: Counter[tuple[str, str, str]] = Counter()  # by language, kind and what it is
    for sentence, ours in zip(sentences, found, strict=True):
        for language in ("all", sentence.language):
            for kind, a, b in ours:
                good = any(k == kind and a < d and c < b for k, c, d in sentence.spans)
                counts[language, kind, "right" if good else "wrong"] += 1
            for kind, c, d in sentence.spans:
                counts[language, kind, "labelled"] += 1
                counts[language, kind, "hit"] += any(
                    k == kind and a < d and c < b for k, a, b in ours
                )
    print(f"{'language':8} {'kind':12} {'labelled':>8} {'precision':>9} {'recall':>7}")
    languages = sorted({language for language, _, _ in counts}, key=lambda n: (n != "all", n))
    for language, kind in itertools.product(languages, pii.KINDS):
        right, wrong, labelled, hit = (
            counts[language, kind, what] for what in ("right", "wrong", "labelled", "hit")
        )
        if right + wrong + labelled:
            precision = f"{right / (right + wrong):9.3f}" if right + wrong else f"{'-':>9}"
            recall = f"{hit / labelled:7.3f}" if labelled else f"{'-':>7}"
            print(f"{language:8} {kind:12} {labelled:8} {precision} {recall}")


def speed(path: Path) -> None:
    """Print characters per CPU second of redaction and what was found."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = pa.array([json.loads(line)["text"] for line in file], pa.large_string())
    settings = default_settings().pii
    pii.redact(texts[:2], settings)  # compile
    began = time.process_time()
    _, counts = pii.redact(texts, settings)
    seconds = time.process_time() - began
    characters = sum(map(len, texts.to_pylist()))
    totals = {kind: int(n.sum()) for kind, n in counts.items() if n.any()}
    name = f"{path.parent.name}/{path.name}"
    print(f"{name}: {characters / seconds / 1e6:.1f} M characters per CPU second, {totals}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--labelled",
        type=Path,
        nargs="*",
        default=[DATA / "pii" / "synth_dataset_v2.json", Path(__file__).with_suffix(".tsv")],
    )
    parser.add_argument(
        "--texts",
        type=Path,
        nargs="*",
        default=[DATA / name / "dev.jsonl.gz" for name in ("quality", "lid", "domain")],
    )
    options = parser.parse_args()
    for path in options.labelled:
        print(path.name)
        score(of_presidio(path) if path.suffix == ".json" else marked(path))
    for path in options.texts:
        speed(path)


if __name__ == "__main__":
    main()
