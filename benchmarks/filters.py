"""Speed of the filter's parts, and the share of good documents that the default rules keep.

  python benchmarks/filters.py [--data FOLDER] [--repeat 3] [--kept]

FOLDER holds quality/dev.jsonl.gz (graded pages), domain/dev.jsonl.gz (labelled by domain) and
lid/dev.jsonl.gz (labelled by language). Speed is the best of the repetitions on one core, in
characters per CPU second, on the graded pages. Kept shares are by grade, by domain, and by
language: short texts of a language are joined to documents of `--characters`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.filters import Filter, pii
from curation.filters.content import content_signals
from curation.filters.settings import default_settings
from curation.filters.signals import Meter
from curation.language import identify
from curation.text.words import words

DATA = Path(__file__).parents[2] / "shared" / "data"
LEAST = 3  # documents of a group that are worth a line


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def batch(texts: list[str], languages: list[str]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "id": [str(i) for i in range(len(texts))],
            "url": [""] * len(texts),
            "text": pa.array(texts, pa.large_string()),
            "language": languages,
        }
    )


def speed(texts: list[str], languages: list[str], repeat: int) -> None:
    """Print characters per CPU second of the parts and of the whole filter."""
    held = batch(texts, languages)
    column, labels = held.column("text"), held.column("language")
    meters = {
        dialect: Meter(
            default_settings(
                signals={"gopher": {"dialect": dialect}, "repetition": {"dialect": dialect}}
            ).signals
        )
        for dialect in ("datatrove", "dolma", "dclm")
    }
    whole = Filter(default_settings())
    usual = Meter(default_settings().signals)
    parts: dict[str, Callable[[], object]] = {
        "words": lambda: words(column),
        "all signals, default": lambda: usual.measure(column, labels),
        **{
            f"all signals, {dialect}": lambda m=meter: m.measure(column, labels)  # type: ignore[misc]
            for dialect, meter in meters.items()
        },
        "content signals": lambda: content_signals(column),
        "personal data": lambda: pii.redact(column, default_settings().pii),
        "whole filter": lambda: whole.apply(held),
    }
    characters = sum(map(len, texts))
    print(f"{len(texts)} documents, {characters} characters")
    for name, run in parts.items():
        run()  # compile, load
        best = min(timed(run) for _ in range(repeat))
        print(f"  {name:24} {characters / best / 1e6:7.1f} M characters per CPU second")


def timed(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def kept(groups: dict[str, list[tuple[str, str]]]) -> None:
    """Print the share of each group's (text, language) that the default filter keeps, and why."""
    held = Filter(default_settings())
    for name in sorted(groups):
        members = groups[name]
        if len(members) < LEAST:
            continue
        texts, languages = map(list, zip(*members, strict=True))
        reasons = held.apply(batch(texts, languages)).verdicts.reason.to_pylist()
        lost = Counter(reason for reason in reasons if reason)
        share = 1 - lost.total() / len(members)
        told = ", ".join(f"{reason} {n}" for reason, n in lost.most_common(3))
        print(f"  {name:36} {len(members):5} {share:6.3f}  {told}")


def joined(found: list[dict[str, Any]], characters: int) -> dict[str, list[tuple[str, str]]]:
    """Texts of a language, joined to documents of at least so many characters."""
    documents: dict[str, list[tuple[str, str]]] = defaultdict(list)
    parts: dict[str, list[str]] = defaultdict(list)
    for row in found:
        label = row["lang"]
        parts[label].append(row["text"])
        if sum(map(len, parts[label])) >= characters:
            documents[label].append(("\n".join(parts.pop(label)), label))
    return documents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--characters", type=int, default=1500)
    options = parser.parse_args()
    graded = rows(options.data / "quality" / "dev.jsonl.gz")
    labels, _ = identify([row["text"] for row in graded])
    if not options.kept:
        speed([row["text"] for row in graded], labels, options.repeat)
        return
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row, label in zip(graded, labels, strict=True):
        groups[f"grade {int(row['quality'])}, {row['domain']}"].append((row["text"], label))
        if row["quality"] >= 3:
            groups[f"grade 3 and more, {label}"].append((row["text"], label))
    for row in rows(options.data / "domain" / "dev.jsonl.gz"):
        source = row["source"].split("(")[0]
        name = row["lang"] if row["label"] == "multilingual" else source
        groups[f"{row['label']}, {name}"].append((row["text"], row["lang"]))
    print("kept, graded and labelled pages")
    kept(groups)
    print(f"kept, texts joined to {options.characters} characters")
    kept(joined(rows(options.data / "lid" / "dev.jsonl.gz"), options.characters))


if __name__ == "__main__":
    main()
