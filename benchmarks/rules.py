"""Precision and recall of every filter rule on labelled pages, and what it buys a model.

    python benchmarks/rules.py --data DIR --output runs/rules

Runs the recipe up to its filter stage without removing anything by quality, so that the rules see
all pages, and compares what fires with the grades in models/topic/labels.tsv. A rule is right about
rubbish (grades 0 and 1) and wrong about good pages (3 to 5); grade 2 is arguable.

What a rule buys is measured by n-grams: thousandths of a bit per byte of gold texts that the
recipe's output saves against the same amount of it in which as much text is exchanged for what the
rule removes. Counts are added and subtracted, so that the output is counted once.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from proofs.pages import OTHER_LANGUAGES, Gold, apart, distinct, gold_of
from yields import runs
from yields.pages import Label, pack, places, read_labels, read_pages
from yields.tables import ARGUABLE, GOOD, percent, table

from curation.classify.decide import LOW_SCORE
from curation.filters.filter_settings import FilterSettings
from curation.filters.rules import NamedRule, RuleBook
from curation.recipe import load as load_recipe
from curation.tokenize import load_tokenizer
from models.ablate.instant import exchange
from models.ablate.prepare import Text, experiment, smaller
from models.ablate.statistics import Interval, estimate, measures

#: All pages reach the rules, and what rules say is not overruled.
_OPEN = (
    *(f"classify.min_quality.{d}=0" for d in ("general", "multilingual", "math_reasoning", "code")),
    "filter.overrule=null",
)


_KEPT = "kept"
_VOCABULARY, _SEEDS = 16_384, (1, 2, 3)


class Page:
    """A labelled document with its signals."""

    def __init__(self, key: str, label: Label, row: dict[str, Any]) -> None:
        self.key, self.label, self.row = key, label, row

    @property
    def kind(self) -> str:
        return (
            "good"
            if self.label.grade >= GOOD
            else "arguable"
            if self.label.grade == ARGUABLE
            else "rubbish"
        )


Verdict = tuple[Page, str | None, str | None]  # removed by, overruled


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
            Page(page.key, label, row)
            for row in _measured(output)
            if (page := found.get((Path(row["source"]["file"]).name, row["source"]["offset"])))
            and (label := labels.get(page.key))
        ]
    kinds = Counter(page.kind for page in judged)
    print(f"{len(judged)} labelled pages: " + ", ".join(f"{n} {k}" for k, n in kinds.items()))
    settings = load_recipe(options.recipe, ["filter.overrule=null"]).filter
    fired = _fired(judged, settings)
    _alone(judged, fired, kinds)
    verdicts = _verdicts(judged, load_recipe(options.recipe).filter)
    _in_chain(judged, verdicts, kinds)
    gold = gold_of(pages, labels)
    known = {page.key for page in distinct(apart(pages, gold), gold)}
    verdicts = [one for one in verdicts if one[0].key in known]
    minima = load_recipe(options.recipe).classify.min_quality
    for english in (True, False):
        some = [one for one in verdicts if (one[0].label.language == "en") == english]
        texts = [text for text in gold if (text.kind != OTHER_LANGUAGES) == english]
        _bought(_outputs(some, minima, options.least), texts)
    for title, group in (
        ("language", lambda page: page.row["language"]),
        ("format", lambda page: page.label.format),
    ):
        _by_group(title, judged, fired, group, options.least)


def _measured(output: Path) -> Iterator[dict[str, Any]]:
    columns = ["id", "url", "text", "source", "language", "signals", "quality", "domain", "path"]
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


def _verdicts(judged: list[Page], settings: FilterSettings) -> list[Verdict]:
    """Return by which rule each page is removed, and which rule its quality overrules."""
    signals = [{**page.row["signals"], "quality": page.row["quality"]} for page in judged]
    languages = pa.array([page.row["language"] for page in judged])
    found = RuleBook(settings).judge(pa.array(signals), languages)
    reasons = found.verdicts.reason.to_pylist(), found.overruled.to_pylist()
    return list(zip(judged, *reasons, strict=True))


def _in_chain(judged: list[Page], verdicts: list[Verdict], kinds: Counter[str]) -> None:
    """What the recipe's rules remove together, the first that fires taking the blame."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for page, removed, overruled in verdicts:
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


def _outputs(
    verdicts: list[Verdict], minima: Mapping[str, float], least: int
) -> list[tuple[str, list[Text]]]:
    """Return what is kept, then what each rule removes, and the quality score of the rest."""
    found: dict[str, list[Text]] = defaultdict(list)
    for page, reason, _ in verdicts:
        row = page.row
        low = row["path"] == "prose" and row["quality"] < minima[row["domain"]]
        text = Text(row["text"], row["url"]).one_line()
        found[reason or (LOW_SCORE if low else _KEPT)].append(text)
    kept = found.pop(_KEPT)
    removed = [(reason, texts) for reason, texts in found.items() if len(texts) >= least]
    return [(_KEPT, kept), *sorted(removed, key=lambda item: -len(item[1]))]


def _bought(outputs: list[tuple[str, list[Text]]], gold: Sequence[Gold]) -> None:
    """Print what removing each output but the first saves, by kind of gold text."""
    kinds = [*dict.fromkeys(text.kind for text in gold)]
    sets = [(k, [Text(g.text, g.url).one_line() for g in gold if g.kind == k]) for k in kinds]
    tokenizer = smaller(load_tokenizer("curation-128k"), _VOCABULARY)
    found = experiment(tokenizer, outputs, sets, [])
    estimates = [estimate(m) for m in measures(found, exchange(found, _SEEDS))]
    rows = [
        (
            corpus.name,
            len(corpus.documents),
            f"{corpus.documents.sizes.sum() / 1e6:.2f}",
            *(_saved(one.differences[0, number]) for one in estimates),
        )
        for number, corpus in enumerate(found.corpora[1:], 1)
    ]
    kept = f"{found.corpora[0].documents.sizes.sum() / 1e6:.1f} MB"
    title = f"What each rule buys of {kept} kept: thousandths of a bit per byte, + where it helps"
    table(title, ("rule", "documents", "MB", *kinds), rows)


def _saved(gap: Interval) -> str:
    return f"{-1e3 * gap.value:+.1f} ({-1e3 * gap.high:+.1f} to {-1e3 * gap.low:+.1f})"


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
