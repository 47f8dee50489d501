"""Intervals against a plain bootstrap, verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from models.ablate.results import verdict
from models.ablate.statistics import ACCURACY, BITS, Interval, Measure, estimate


def _measure(gap: float, unit: str = BITS, seeds: int = 3) -> Measure:
    dice = np.random.default_rng(5)
    sizes = dice.integers(100, 900, 80).astype(float)
    base = sizes * (2 + dice.normal(0, 0.3, 80))
    values = np.array(
        [[base + sizes * (g + dice.normal(0, 0.01, 80)) for _ in range(seeds)] for g in (0, gap)]
    )
    return Measure("gold", unit, unit == BITS, values, sizes, np.arange(80) // 4)


def test_intervals_are_those_of_a_plain_bootstrap() -> None:
    measure = _measure(0.02)
    dice = np.random.default_rng(9)
    plain = []
    for _ in range(4000):
        groups = dice.integers(0, 20, 20)
        rows = np.concatenate([np.flatnonzero(measure.groups == g) for g in groups])
        picked = measure.values[:, dice.integers(0, 3, 3)][:, :, rows]
        ratios = picked.sum(2) / measure.weights[rows].sum()
        plain.append([*ratios.mean(1), ratios[0].mean() - ratios[1].mean()])
    found = estimate(measure)
    for k, interval in enumerate([*found.runs, found.differences[0, 1]]):
        low, high = np.percentile(np.array(plain)[:, k], [2.5, 97.5])
        width = high - low
        assert interval.low == pytest.approx(low, abs=0.1 * width)
        assert interval.high == pytest.approx(high, abs=0.1 * width)


def test_a_difference_of_pairs_is_seen_where_intervals_overlap() -> None:
    found = estimate(_measure(0.02))
    a, b = found.runs
    assert a.high > b.low
    assert found.differences[0, 1].high < 0


def test_equal_runs_differ_by_nothing() -> None:
    measure = _measure(0)
    same = Measure(**{**vars(measure), "values": measure.values[:1].repeat(2, 0)})
    assert estimate(same).differences[0, 1] == Interval(0, 0, 0)


@pytest.mark.parametrize(
    ("unit", "gap", "words"),
    [
        (BITS, Interval(-0.02, -0.03, -0.01), "a is better than b by 0.0200 (0.0100 to 0.0300)"),
        (BITS, Interval(0.02, 0.01, 0.03), "b is better than a by 0.0200 (0.0100 to 0.0300)"),
        (ACCURACY, Interval(0.02, 0.01, 0.03), "a is better than b"),
        (
            BITS,
            Interval(0.01, -0.01, 0.03),
            "no difference shown between a and b: it may be up to 0.0300",
        ),
    ],
)
def test_verdicts(unit: str, gap: Interval, words: str) -> None:
    assert verdict(_measure(0, unit), ["a", "b"], 0, 1, gap).startswith(words)
