"""The limits of a stage beside what was measured of one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curation.classify.decide import LOW_RANK, LOW_SCORE
from curation.filters.rules import NamedRule
from curation.language.decide import DEFAULT
from curation.language.decide import LOW_SCORE as LOW_LANGUAGE_SCORE

Limit = dict[str, Any]


def limits_of(stage: str, settings: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Limit]:
    """The rules of a stage that compare a number: rule, value, `min` and `max`.

    `settings` are those of its manifest. The filter's rules depend on the language: `rules_of`.
    """
    if stage == "extract":
        characters = len(row["text"])
        yield _limit("extract.empty", characters, min=max(1, settings["min_characters"]))
        yield _limit("extract.too_long", characters, max=settings["max_characters"])
    elif stage == "identify-language":
        thresholds = settings["thresholds"]
        least = thresholds.get(row["language"], thresholds.get(DEFAULT))
        if least is not None:
            yield _limit(LOW_LANGUAGE_SCORE, row["language_score"], min=least)
    elif stage == "classify":
        for rule, column, key in (
            (LOW_SCORE, "quality", "min_quality"),
            (LOW_RANK, "quality_rank", "min_rank"),
        ):
            least = settings[key].get(row["domain"])
            # What is code or formulas from end to end may be below: it is not judged by quality.
            if least is not None and row.get(column) is not None and row[column] >= least:
                yield _limit(rule, row[column], min=least)


def rules_of(rules: list[NamedRule], signals: Mapping[str, float]) -> Iterator[Limit]:
    """The filter's rules for a document's language with its values."""
    for _, reason, rule in rules:
        yield _limit(reason, signals.get(rule.signal), min=rule.min, max=rule.max)


def _limit(rule: str, value: float | None, **ends: float | None) -> Limit:
    return {"rule": rule, "value": value} | {k: v for k, v in ends.items() if v is not None}
