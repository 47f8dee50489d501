"""What an experiment found, as a table of values and as words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.ablate.experiment import Experiment
from models.ablate.statistics import (
    ACCURACY,
    CONFIDENCE,
    DRAWS,
    Estimate,
    Interval,
    Measure,
    estimate,
    measures,
)
from models.ablate.windows import Measured

RESULTS = ("results.json", "results.md")
_DIGITS = 5


@dataclass(frozen=True)
class Outcome:
    """Everything that the files say."""

    experiment: Experiment
    model: dict[str, Any]  # what learned, and how
    tokens: int  # that each model read
    seeds: Sequence[int]
    found: list[list[Measured]]  # [runs][seeds]

    @property
    def names(self) -> list[str]:
        """Names of the runs."""
        return [corpus.name for corpus in self.experiment.corpora]


def summary(outcome: Outcome) -> dict[str, Any]:
    """Return all figures; rounded, so that they are the same wherever the bits are."""
    estimates = [(m, estimate(m)) for m in measures(outcome.experiment, outcome.found)]
    return {
        "model": outcome.model,
        "vocabulary": [outcome.experiment.vocabulary, outcome.experiment.vocabulary_size],
        "tokens": outcome.tokens,
        "seeds": list(outcome.seeds),
        "confidence": CONFIDENCE,
        "resamplings": DRAWS,
        "notes": list(outcome.experiment.notes),
        "runs": [_run(outcome, k) for k in range(len(outcome.names))],
        "measures": [_measure(outcome, m, e) for m, e in estimates],
    }


def _run(outcome: Outcome, number: int) -> dict[str, Any]:
    corpus = outcome.experiment.corpora[number]
    curves = [found.curve for found in outcome.found[number]]
    return {
        "name": corpus.name,
        "documents": len(corpus.documents),
        "bytes": int(corpus.documents.sizes.sum()),
        "tokens": corpus.tokens,
        "epochs": round(outcome.tokens / corpus.tokens, 3),
        "curves": [[[tokens, round(bits, _DIGITS)] for tokens, bits in curve] for curve in curves],
    }


def _measure(outcome: Outcome, measure: Measure, found: Estimate) -> dict[str, Any]:
    names = outcome.names
    return {
        "label": measure.label,
        "unit": measure.unit,
        "units": len(measure.weights),
        "groups": len(set(measure.groups.tolist())),
        "runs": {
            name: {**_values(found.runs[k]), "seeds": found.seeds[k].round(_DIGITS).tolist()}
            for k, name in enumerate(names)
        },
        "differences": [
            {
                "a": names[a],
                "b": names[b],
                **_values(gap),
                "verdict": verdict(measure, names, a, b, gap),
            }
            for (a, b), gap in found.differences.items()
        ],
    }


def _values(interval: Interval) -> dict[str, float]:
    return {
        "value": round(interval.value, _DIGITS),
        "low": round(interval.low, _DIGITS),
        "high": round(interval.high, _DIGITS),
    }


def verdict(measure: Measure, names: Sequence[str], a: int, b: int, gap: Interval) -> str:
    """Return in words which of two runs is better, if the interval lets anyone say so."""
    if gap.low <= 0 <= gap.high:
        reach = max(abs(gap.low), abs(gap.high))
        return (
            f"no difference shown between {names[a]} and {names[b]}: it may be up to {reach:.4f} "
            "either way"
        )
    first_is_better = (gap.value < 0) == measure.lower_is_better
    better, worse = (a, b) if first_is_better else (b, a)
    low, high = sorted((abs(gap.low), abs(gap.high)))
    return (
        f"{names[better]} is better than {names[worse]} by {abs(gap.value):.4f} "
        f"({low:.4f} to {high:.4f})"
    )


def markdown(content: dict[str, Any]) -> str:
    """Return the figures as tables, and the verdicts."""
    lines = ["# Ablation", "", *_setup(content), ""]
    header = ("run", "documents", "MB of text", "tokens", "read, times over")
    rows = [
        (r["name"], f"{r['documents']:,}", f"{r['bytes'] / 1e6:.2f}", f"{r['tokens']:,}",
         f"{r['epochs']:.2f}")
        for r in content["runs"]
    ]  # fmt: skip
    lines += _table(header, rows)
    for measure in content["measures"]:
        lines += _section(measure)
    return "\n".join(lines) + "\n"


def _section(measure: dict[str, Any]) -> list[str]:
    better = "higher" if measure["unit"] == ACCURACY else "lower"
    grouped = f", {measure['groups']} groups" if measure["groups"] < measure["units"] else ""
    rows = [
        (name, f"{v['value']:.4f}", f"{v['low']:.4f} to {v['high']:.4f}",
         ", ".join(f"{s:.4f}" for s in v["seeds"]))
        for name, v in measure["runs"].items()
    ]  # fmt: skip
    return [
        "",
        f"## {measure['label']}: {measure['unit']} ({better} is better)",
        "",
        f"{measure['units']} texts or items{grouped}.",
        "",
        *_table(("run", "mean", "interval", "each seed"), rows),
        "",
        *(f"- {gap['verdict']}" for gap in measure["differences"]),
    ]


def _setup(content: dict[str, Any]) -> list[str]:
    model = ", ".join(f"{name} {value}" for name, value in content["model"].items())
    name, size = content["vocabulary"]
    return [
        f"Each run: {content['tokens']:,} tokens, {len(content['seeds'])} seeds; {model}.",
        f"Texts are cut by the first {size:,} tokens of {name}; bits count per byte of text.",
        f"Intervals: {content['confidence']:.0%}, {content['resamplings']:,} resamplings of texts "
        "and seeds; of a difference, the same for both runs.",
        *content["notes"],
    ]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def write(outcome: Outcome, folder: Path) -> dict[str, Any]:
    """Write `results.json` and `results.md`; return what the first has."""
    content = summary(outcome)
    folder.mkdir(parents=True, exist_ok=True)
    values, words = (folder / name for name in RESULTS)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    values.write_text(text, encoding="utf-8")
    words.write_text(markdown(content), encoding="utf-8")
    return content
