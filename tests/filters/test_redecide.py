"""Other thresholds on measured documents."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from curation.filters.filter_settings import FilterSettings, default_settings
from curation.filters.margins import redecide
from curation.filters.names import NAMES
from curation.filters.rules import RuleBook


def book(**rules: object) -> RuleBook:
    tree = default_settings().model_dump()
    tree |= {"rules": rules, "by_language": {}, "exempt": {}}
    return RuleBook(FilterSettings.model_validate(tree))


def signals(words: list[float]) -> pa.StructArray:
    columns = {n: np.full(len(words), np.nan) for n in NAMES}
    columns["gopher_word_count"] = np.array(words)
    columns["c4_characters"] = 5 * np.array(words)
    return pa.StructArray.from_arrays([pa.array(c) for c in columns.values()], list(columns))


def test_verdicts_from_texts_stand() -> None:
    rules = book(gopher={"word_count": {"min": 50}})
    recorded = pa.array(["blocklist.adult", "pii.card", "pii.card", "gopher.word_count", None])
    found = redecide(rules, signals([90, 90, 10, 90, 10]), None, recorded)
    assert found.to_pylist() == [
        "blocklist.adult", "pii.card", "gopher.word_count", None, "gopher.word_count",
    ]  # fmt: skip
