"""Rules over signals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import ConfigError
from curation.filters.rules import RuleBook
from curation.filters.settings import FilterSettings, default_settings
from curation.filters.signals import NAMES


def signals(**columns: list[float]) -> pa.StructArray:
    """Signals with the given columns; all others can't be measured."""
    rows = len(next(iter(columns.values())))
    nothing = [float("nan")] * rows
    return pa.StructArray.from_arrays(
        [pa.array(columns.get(n, nothing)) for n in NAMES], list(NAMES)
    )


def book(**changes: object) -> RuleBook:
    tree = default_settings().model_dump()
    tree |= {"rules": {}, "by_language": {}, "exempt": {}} | changes
    return RuleBook(FilterSettings.model_validate(tree))


WORDS = {"gopher": {"words": {"signal": "gopher_word_count", "min": 50, "max": 100}}}


def test_value_and_threshold_tell_why() -> None:
    verdicts = book(rules=WORDS).decide(signals(gopher_word_count=[49, 50, 100, 101, np.nan]), None)
    assert verdicts.reason.to_pylist() == ["gopher.words", None, None, "gopher.words", None]
    assert verdicts.value.to_pylist() == [49, None, None, 101, None]
    assert verdicts.threshold.to_pylist() == [50, None, None, 100, None]


def test_the_first_rule_in_the_recipe_wins() -> None:
    first = {"signal": "gopher_mean_word_length", "max": 5}
    rules = {"z": {"length": first}, **WORDS}
    found = signals(gopher_word_count=[1.0], gopher_mean_word_length=[9.0])
    assert book(rules=rules).decide(found, None).reason.to_pylist() == ["z.length"]


def test_languages_override_and_switch_off() -> None:
    by_language = {
        "de": {"gopher": {"words": {"signal": "gopher_word_count", "min": 10}}},
        "ja": {"gopher": {"words": None}},
        "th": {"gopher": None},
    }
    found = signals(gopher_word_count=[20.0, 20, 20, 20, 5, 20])
    languages = pa.array(["en", "de", "ja", "th", "de", None])
    verdicts = book(rules=WORDS, by_language=by_language).decide(found, languages)
    assert [r is not None for r in verdicts.reason.to_pylist()] == [
        True,
        False,
        False,
        False,
        True,
        True,
    ]
    assert verdicts.threshold.to_pylist()[4] == 10


def test_scopes_and_exemptions() -> None:
    rule = {"signal": "gopher_word_count", "min": 50}
    scoped = book(
        rules={"g": {"a": rule | {"languages": ["en"]}, "b": rule | {"except_languages": ["en"]}}}
    )
    found = signals(gopher_word_count=[1.0, 1.0])
    assert scoped.decide(found, pa.array(["en", "fr"])).reason.to_pylist() == ["g.a", "g.b"]
    exempt = {"code": {"signal": "code_line_ratio", "min": 0.5, "rules": ["gopher"]}}
    found = signals(gopher_word_count=[1.0, 1.0], code_line_ratio=[0.6, 0.4])
    verdicts = book(rules=WORDS, exempt=exempt).decide(found, None)
    assert verdicts.reason.to_pylist() == [None, "gopher.words"]


def test_languages_without_settings_are_named() -> None:
    rules = book(rules=WORDS, by_language={"de": {}})
    assert rules.without_settings(["en", "de", "de-AT", "xx", "yy", "xx"]) == ["xx", "yy"]


def test_an_unknown_signal_is_an_error() -> None:
    with pytest.raises(ConfigError, match="unknown signal 'gopher_word_cnt'") as caught:
        book(rules={"g": {"a": {"signal": "gopher_word_cnt", "min": 1}}})
    assert "filter.rules.g.a.signal: " in str(caught.value)
    assert "did you mean 'gopher_word_count'?" in str(caught.value)
