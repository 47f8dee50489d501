"""Precision and recall of every filter rule on labelled pages, alone and within the chain.

    python benchmarks/rules.py --data DIR --output runs/rules

Runs the recipe up to its filter stage without removing anything by quality, so that the rules see
all pages, and compares what fires with the grades in models/topic/labels.tsv. A rule is right about
rubbish (grades 0 and 1) and wrong about good pages (3 to 5); grade 2 is arguable.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from yields import runs
from yields.pages import Label, pack, places, read_labels, read_pages
from yields.tables import ARGUABLE, GOOD, percent, table

from curation.filters.filter_settings import FilterSettings
from curation.filters.rules import NamedRule, RuleBook
from curation.recipe import load as load_recipe

#: All pages reach the rules, and what rules say is not overruled.
_OPEN = (
    *(f"classify.min_quality.{d}=0" for d in ("general", "multilingual", "math_reasoning", "code")),
    "filter.overrule=null",
)


class Page:
    """A labelled document with its signals."""

    def __init__(self, label: Label, row: dict[str, Any]) -> None:
        self.label, self.row = label, row

    @property
    def kind(self) -> str:
        return (
            "good"
            if self.label.grade >= GOOD
            else "arguable"
            if self.label.grade == ARGUABLE
            else "rubbish"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="extract/ and quality/ below it")
    parser.add_argument("--recipe", default="llama3")
    parser.add_argument("--output", type=Path, help="run folder; default: a temporary one")
    parser.add_argument(
        "--least", type=int, default=5, help="firings of a rule to be shown by group"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        output = options.output or Path(scratch) / "run"
        pages = read_pages(options.data)
        runs.run(options.recipe, pack(pages, Path(scratch) / "pages"), output, _OPEN)
        found = places(pages)
        labels = read_labels()
        judged = [
            Page(label, row)
            for row in _measured(output)
            if (page := found.get((Path(row["source"]["file"]).name, row["source"]["offset"])))
            and (label := labels.get(page.key))
        ]
    kinds = Counter(page.kind for page in judged)
    print(f"{len(judged)} labelled pages: " + ", ".join(f"{n} {k}" for k, n in kinds.items()))
    settings = load_recipe(options.recipe, ["filter.overrule=null"]).filter
    fired = _fired(judged, settings)
    _alone(judged, fired, kinds)
    _in_chain(judged, load_recipe(options.recipe).filter, kinds)
    for title, group in (
        ("language", lambda page: page.row["language"]),
        ("format", lambda page: page.label.format),
    ):
        _by_group(title, judged, fired, group, options.least)


def _measured(output: Path) -> Iterator[dict[str, Any]]:
    columns = ["id", "source", "language", "signals", "quality"]
    for kind in ("documents", "removed"):
        for file in sorted((output / "filter" / kind).glob("*.parquet")):
            yield from pq.read_table(file, columns=columns).to_pylist()


def _fired(judged: list[Page], settings: FilterSettings) -> dict[str, list[int]]:
    """Rows on which each rule fires, whatever the others say."""
    book = RuleBook(settings)
    by_reason: dict[str, list[int]] = defaultdict(list)
    for row, page in enumerate(judged):
        for rule in book.of(page.row["language"]):
            if _fails(rule, page.row["signals"]):
                by_reason[rule.reason].append(row)
    return by_reason


def _fails(rule: NamedRule, signals: dict[str, float]) -> bool:
    value = signals[rule.rule.signal]
    low = rule.rule.min is not None and value < rule.rule.min
    return low or (rule.rule.max is not None and value > rule.rule.max)


def _alone(judged: list[Page], fired: dict[str, list[int]], kinds: Counter[str]) -> None:
    rows = []
    for reason, members in sorted(fired.items(), key=lambda item: -len(item[1])):
        n = Counter(judged[row].kind for row in members)
        sure = n["good"] + n["rubbish"]
        rows.append(
            (
                reason,
                len(members),
                n["good"],
                n["arguable"],
                n["rubbish"],
                percent(n["rubbish"], sure),
                percent(n["rubbish"], kinds["rubbish"]),
                _auc(judged, members),
            )
        )
    header = ("rule", "fires", "good", "arguable", "rubbish", "precision", "recall", "quality AUC")
    table(
        "Each rule alone (quality AUC: does quality tell its right from its wrong hits?)",
        header,
        rows,
    )


def _auc(judged: list[Page], members: list[int]) -> str:
    """Probability that a good page among the hits has higher quality than a page of rubbish."""
    good = [judged[r].row["quality"] for r in members if judged[r].kind == "good"]
    rubbish = [judged[r].row["quality"] for r in members if judged[r].kind == "rubbish"]
    if not good or not rubbish:
        return "-"
    wins = np.mean(np.subtract.outer(good, rubbish) > 0)
    return f"{wins:.2f}"


def _in_chain(judged: list[Page], settings: FilterSettings, kinds: Counter[str]) -> None:
    """What the recipe's rules remove together, the first that fires taking the blame."""
    signals = [{**page.row["signals"], "quality": page.row["quality"]} for page in judged]
    languages = pa.array([page.row["language"] for page in judged])
    verdicts = RuleBook(settings).judge(pa.array(signals), languages)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for page, removed, overruled in zip(
        judged,
        verdicts.verdicts.reason.to_pylist(),
        verdicts.overruled.to_pylist(),
        strict=True,
    ):
        if removed is not None:
            counts[removed][page.kind] += 1
            counts["**all**"][page.kind] += 1
        elif overruled is not None:
            counts[f"{overruled}, overruled: kept"][page.kind] += 1
            counts["**overruled: kept**"][page.kind] += 1
    rows = [
        (
            reason,
            n.total(),
            n["good"],
            n["arguable"],
            n["rubbish"],
            percent(n["good"], kinds["good"]),
            percent(n["rubbish"], kinds["rubbish"]),
        )
        for reason, n in sorted(counts.items(), key=lambda item: -item[1].total())
    ]
    header = ("rule", "documents", "good", "arguable", "rubbish", "of all good", "of all rubbish")
    table("Within the chain, without what quality removes before", header, rows)


def _by_group(
    title: str, judged: list[Page], fired: dict[str, list[int]], group: Any, least: int
) -> None:
    rows = []
    for reason, members in sorted(fired.items()):
        groups: dict[str, Counter[str]] = defaultdict(Counter)
        for row in members:
            groups[str(group(judged[row]))][judged[row].kind] += 1
        for name, n in sorted(groups.items(), key=lambda item: -item[1].total()):
            if n.total() >= least:
                sure = n["good"] + n["rubbish"]
                share = percent(n["rubbish"], sure)
                rows.append((reason, name, n["good"], n["arguable"], n["rubbish"], share))
    header = ("rule", title, "good", "arguable", "rubbish", "precision")
    table(f"By {title}: rules that fire on {least} pages or more", header, rows)


if __name__ == "__main__":
    main()
