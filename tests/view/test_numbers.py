"""Histograms."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.reading.sums import bins_for, histogram

_VALUES = st.lists(st.floats(-1e6, 1e9) | st.just(math.nan), max_size=60)


@given(_VALUES, st.integers(1, 40))
def test_every_measured_value_is_in_one_bin(values: list[float], count: int) -> None:
    column = np.array(values, float)
    groups = np.arange(len(values)) % 3
    bins = bins_for(column, count, (0.5,))
    counts = histogram(column, groups, 3, bins)
    known = ~np.isnan(column)
    assert counts.shape == (3, count)
    assert counts.sum(axis=1).tolist() == np.bincount(groups[known], minlength=3).tolist()
    assert (np.diff(bins.edges) > 0).all()


def test_bins_follow_the_edges() -> None:
    values = np.linspace(0, 9.999, 1000)
    bins = bins_for(values, 10)
    counts = histogram(values, np.zeros(1000, int), 1, bins)[0]
    plain = [((values >= a) & (values < b)).sum() for a, b in zip(bins.edges, bins.edges[1:])]  # noqa: B905
    assert np.abs(counts - plain).max() <= 2  # the first and the last take the tails


def test_long_tails_get_a_logarithm() -> None:
    assert bins_for(np.geomspace(1, 1e6, 500), 20).scale == "log"
    assert bins_for(np.linspace(0, 1, 500), 20).scale == "linear"
