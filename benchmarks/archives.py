"""Judge a run of crawl files by the grades in models/quality/archives.tsv.

    curate run llama3 --input 'WARC/**/*.warc*' 'WARC/**/*.arc*' --output RUN
    python benchmarks/archives.py --run RUN

WARC holds the test files of libraries for web archives. Their 238 documents, after deduplication,
were graded by one reader (0 to 5) and labelled c (code), g (not code) or - (robots.txt and data in
XML, which don't count). Printed are good documents (grade 3 and more) removed, poor ones (0 and 1)
kept, and the documents that `classify` took for code. No model is trained on them.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from yields.runs import LAST, order
from yields.tables import ARGUABLE, GOOD, table

LABELS = Path(__file__).parents[1] / "models" / "quality" / "archives.tsv"
COLUMNS = ["id", "source", "domain"]
CODE, NEITHER = "c", "-"


def read_labels(path: Path = LABELS) -> dict[tuple[str, int], dict[str, str]]:
    """Return the labels by file and offset."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(row["file"], int(row["offset"])): row for row in rows}


def documents(folder: Path, columns: list[str]) -> list[dict[str, Any]]:
    """Return columns of all documents of a folder."""
    files = sorted(folder.glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file, columns=columns).to_pylist()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True)
    output = parser.parse_args().run
    labels = read_labels()
    stages = [stage for stage in order(output) if stage not in LAST]
    reasons = {
        row["id"]: f"{stage}: {row['reason']}"
        for stage in stages
        for row in documents(output / stage / "removed", ["id", "reason"])
    }
    judged = [
        (label, row)
        for kind in ("documents", "removed")
        for row in documents(output / "classify" / kind, COLUMNS)
        if (label := labels.get((row["source"]["file"], row["source"]["offset"])))
    ]
    print(f"{len(judged)} of {len(labels)} labelled documents reach `classify`")
    good = [row for label, row in judged if int(label["grade"]) >= GOOD]
    poor = [row for label, row in judged if int(label["grade"]) < ARGUABLE]
    counted = [(label, row) for label, row in judged if label["domain"] != NEITHER]
    taken = [(label, row) for label, row in counted if row["domain"] == "code"]
    right = [row for label, row in taken if label["domain"] == CODE]
    kept = [row for _, row in taken if row["id"] not in reasons]
    table(
        "Crawl files",
        ("documents", "count", "of"),
        [
            ("good, removed", sum(row["id"] in reasons for row in good), len(good)),
            ("poor, kept", sum(row["id"] not in reasons for row in poor), len(poor)),
            ("taken for code, rightly", len(right), len(taken)),
            ("of these kept, rightly", sum(row in right for row in kept), len(kept)),
            ("code, found", len(right), sum(label["domain"] == CODE for label, _ in counted)),
        ],
    )
    lost = Counter(reasons[row["id"]] for row in good if row["id"] in reasons)
    table("Why good ones go", ("stage: rule", "documents"), lost.most_common())


if __name__ == "__main__":
    main()
