"""Precision and recall of personal data by kind, and speed.

  python benchmarks/pii.py [--labelled synth_dataset_v2.json] [--texts FILE.jsonl.gz ...]

`--labelled` is a file in the form of presidio-research: sentences with spans of their entities. A
span counts as found where a span of the same kind overlaps it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

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


def labelled_spans(row: dict[str, Any]) -> list[tuple[str, int, int]]:
    """(kind, first byte, byte behind) of the labelled spans of a sentence."""
    text = row["full_text"]
    return [
        (
            KINDS[span["entity_type"]],
            len(text[: span["start_position"]].encode()),
            len(text[: span["end_position"]].encode()),
        )
        for span in row["spans"]
        if span["entity_type"] in KINDS
    ]


def score(rows: list[dict[str, Any]]) -> None:
    """Print a table: labelled, found, precision, recall."""
    texts = pa.array([row["full_text"] for row in rows], pa.large_string())
    offsets, _ = text_buffers(texts)
    found: list[list[tuple[str, int, int]]] = [[] for _ in rows]
    result = pii.find(texts, default_settings().pii)
    for document, start, end, kind in zip(*(f.tolist() for f in result), strict=True):
        base = int(offsets[document])
        found[document].append((pii.KINDS[kind], start - base, end - base))
    hits: Counter[str] = Counter()
    false: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for row, ours in zip(rows, found, strict=True):
        theirs = labelled_spans(row)
        for kind, a, b in ours:
            good = any(k == kind and a < d and c < b for k, c, d in theirs)
            (hits if good else false)[kind] += 1
        for kind, c, d in theirs:
            missed[kind] += not any(k == kind and a < d and c < b for k, a, b in ours)
    print(f"{'kind':10} {'labelled':>8} {'precision':>9} {'recall':>7}")
    for kind in KINDS.values():
        labelled = hits[kind] + missed[kind]
        if labelled:
            precision = hits[kind] / max(hits[kind] + false[kind], 1)
            print(f"{kind:10} {labelled:8} {precision:9.3f} {hits[kind] / labelled:7.3f}")


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
    parser.add_argument("--labelled", type=Path, default=DATA / "pii" / "synth_dataset_v2.json")
    parser.add_argument(
        "--texts",
        type=Path,
        nargs="*",
        default=[DATA / name / "dev.jsonl.gz" for name in ("quality", "lid", "domain")],
    )
    options = parser.parse_args()
    score(json.loads(options.labelled.read_text(encoding="utf-8")))
    for path in options.texts:
        speed(path)


if __name__ == "__main__":
    main()
