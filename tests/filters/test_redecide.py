"""Other thresholds on measured documents."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.filter_settings import FilterSettings, default_settings
from curation.filters.margins import WhatIf, redecide
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


def test_tallies_do_not_depend_on_batches() -> None:
    numbers = np.random.default_rng(1).integers(0, 100, 500).astype(float).tolist()
    rules = book(gopher={"word_count": {"min": 50}})
    recorded = rules.decide(signals(numbers), None).reason
    other = book(gopher={"word_count": {"min": 30}}, c4={"characters": {"max": 400}})

    def tally(size: int) -> WhatIf:
        held = WhatIf(other, samples=3)
        for a in range(0, len(numbers), size):
            held.add(signals(numbers[a : a + size]), None, recorded.slice(a, size), a)
        return held

    whole, parts = tally(500), tally(7)
    assert vars(whole) | {"_rules": 0} == vars(parts) | {"_rules": 0}
    assert whole.kept == sum(30 <= n <= 80 for n in numbers)
    assert whole.characters == 5 * whole.words == 5 * sum(n for n in numbers if 30 <= n <= 80)
    assert whole.gained() == sum(30 <= n < 50 for n in numbers)
    assert whole.lost() == sum(n > 80 for n in numbers)
    shown = whole.flips["kept", "c4.characters"].samples
    nearest = sorted(n for n in numbers if n > 80)[:3]  # 400 characters are 80 words
    assert [(numbers[place], value / 5) for _, place, value in shown] == [(n, n) for n in nearest]
    shown = whole.flips["gopher.word_count", "kept"].samples
    assert [value for _, _, value in shown] == sorted(n for n in numbers if 30 <= n < 50)[:3]


def test_documents_of_a_rule_that_is_off_have_no_value() -> None:
    recorded = book(gopher={"word_count": {"min": 50}}).decide(signals([10, 20, 60]), None).reason
    held = WhatIf(book(), samples=1)
    held.add(signals([10, 20, 60]), None, recorded, 7)
    ((far, place, value),) = held.flips["gopher.word_count", "kept"].samples
    assert (far, place) == (np.inf, 7) and np.isnan(value)


def test_the_same_rules_change_nothing() -> None:
    rules = book(gopher={"word_count": {"min": 50}})
    found = signals([10, 60, 70])
    recorded = rules.decide(found, None).reason
    held = WhatIf(rules)
    held.add(found, None, recorded, 0)
    assert (held.kept, held.flips) == (2, {})
    assert pc.is_null(recorded).to_pylist() == [False, True, True]
