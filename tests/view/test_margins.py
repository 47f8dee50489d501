"""Margins say what the rules say, for any rules, signals, languages and thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.config import assign
from curation.filters.filter_settings import FilterSettings, default_settings
from curation.filters.margins import Judges, Limit, Margin, fixed, redecide
from curation.filters.names import NAMES
from curation.filters.rules import RuleBook

_SIGNALS = ("gopher_word_count", "fineweb_line_punct", "quality", "math_ratio")
_LANGUAGES = ("en", "de", "zh", "zh-Hant", None)
_RULES = {
    "gopher": {"word_count": {"min": 30, "max": 80}},
    "fineweb": {"line_punct": {"min": 40}},
}
_BY_LANGUAGE = {
    "de": {"gopher": {"word_count": {"min": 50}}},
    "zh": {"fineweb": None},
    "zh-Hant": {"gopher": {"word_count": {"min": 10}}},
}


def tree() -> dict[str, Any]:
    held = default_settings().model_dump()
    model = {"path": "builtin:models/quality/quality.npz", "sha256": None}
    return held | {
        "rules": _RULES,
        "by_language": _BY_LANGUAGE,
        "exempt": {"math": {"signal": "math_ratio", "min": 60, "unless": {}, "rules": ["fineweb"]}},
        "overrule": {"quality": 0.7, "rules": ["gopher.word_count"], "model": model},
    }


def documents(seed: int, size: int) -> tuple[pa.StructArray, pa.Array, pa.Array]:
    """(signals, languages, recorded reasons) as a run under the rules would have them."""
    dice = np.random.default_rng(seed)
    columns: dict[str, npt.NDArray[np.float64]] = {n: np.full(size, np.nan) for n in NAMES}
    for name in _SIGNALS:
        columns[name] = dice.integers(0, 100, size).astype(float)
        if name != "gopher_word_count":  # of every text that a rule judges
            columns[name][dice.random(size) < 0.05] = np.nan
    columns["quality"] /= 100
    columns["c4_characters"] = dice.integers(0, 1000, size).astype(float)
    signals = pa.StructArray.from_arrays([pa.array(c) for c in columns.values()], list(columns))
    languages = pa.array([_LANGUAGES[i] for i in dice.integers(0, len(_LANGUAGES), size)])
    others = pa.array([["blocklist.adult", "pii.card", None][i] for i in dice.integers(0, 3, size)])
    fresh = RuleBook(FilterSettings.model_validate(tree())).decide(signals, languages).reason
    blocked = pc.fill_null(pc.equal(others, "blocklist.adult"), False)
    return signals, languages, pc.if_else(blocked, others, pc.coalesce(fresh, others))


def margin_of(
    judges: Judges, number: int, signals: pa.StructArray, languages: pa.Array, recorded: pa.Array
) -> Margin:
    fails = [judges.fails(i, signals, languages) for i in range(len(judges.limits))]
    failing = np.sum([f for f, _ in fails], axis=0) + fixed(recorded)
    mine, could = fails[number]
    places = np.flatnonzero((failing - mine == 0) & could)
    limit = judges.limits[number]
    return Margin(
        limit.side,
        signals.field(limit.signal).to_numpy(zero_copy_only=False)[places],
        places,
        pc.is_null(recorded).to_numpy(zero_copy_only=False)[places],
        signals.field("c4_characters").to_numpy().astype(np.int64)[places],
    )


def changed(limit: Limit, threshold: float) -> FilterSettings:
    whole = {"filter": FilterSettings.model_validate(tree()).model_dump()}
    assign(whole, f"{limit.key}={threshold}")
    return FilterSettings.model_validate(whole["filter"])


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(0, 4), st.integers(-5, 105))
def test_any_threshold_changes_what_the_rules_say(seed: int, number: int, threshold: int) -> None:
    signals, languages, recorded = documents(seed, 200)
    judges = Judges(FilterSettings.model_validate(tree()))
    limit = judges.limits[number % len(judges.limits)]
    if limit.key.startswith("filter.rules.gopher"):  # its two ends may not cross
        threshold = min(threshold, 80) if limit.side == "min" else max(threshold, 30)
    margin = margin_of(judges, number % len(judges.limits), signals, languages, recorded)
    rules = RuleBook(changed(limit, threshold))
    found = margin.change(threshold)
    now = pc.is_null(redecide(rules, signals, languages, recorded))
    was = pc.is_null(recorded)
    gained, lost = pc.and_not(now, was), pc.and_not(was, now)
    assert (found.gained, found.lost) == (pc.sum(gained).as_py(), pc.sum(lost).as_py())
    flipped = np.flatnonzero(pc.not_equal(now, was).to_numpy(zero_copy_only=False))
    assert sorted(margin.flipped(threshold).tolist()) == flipped.tolist()
    sizes = signals.field("c4_characters")
    before, after = (pc.sum(sizes.filter(kept)).as_py() or 0 for kept in (was, now))
    assert before + found.gained_weight - found.lost_weight == after


def test_the_runs_own_threshold_changes_nothing() -> None:
    signals, languages, recorded = documents(1, 500)
    judges = Judges(FilterSettings.model_validate(tree()))
    for number, limit in enumerate(judges.limits):
        margin = margin_of(judges, number, signals, languages, recorded)
        assert margin.change(limit.threshold) == (0, 0, 0, 0)
        assert len(margin.values)


def test_limits_and_the_languages_that_they_judge() -> None:
    judges = Judges(FilterSettings.model_validate(tree()))
    heard = judges.languages(["en", "de", "zh", "zh-Hant", ""])
    found = {limit.key: names for limit, names in zip(judges.limits, heard, strict=True)}
    assert found == {
        "filter.rules.gopher.word_count.min": ["", "en", "zh"],
        "filter.rules.gopher.word_count.max": ["", "en", "zh"],
        "filter.rules.fineweb.line_punct.min": ["", "de", "en", "zh-Hant"],
        "filter.by_language.de.gopher.word_count.min": ["de"],
        "filter.by_language.zh-Hant.gopher.word_count.min": ["zh-Hant"],
    }


@pytest.mark.parametrize(("side", "below"), [("min", [2, 1]), ("max", [3, 2])])
def test_the_nearest_documents_of_each_side(side: Any, below: list[int]) -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    every = np.ones(5, bool)
    margin = Margin(side, values, np.arange(1, 6), every, np.ones(5, np.int64))
    assert margin.nearest(3.0, 2)[0] == below
