"""Intervals of means and of their differences, over texts and seeds at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.ablate.experiment import Experiment
from models.ablate.windows import Measured

Floats = npt.NDArray[np.float64]

DRAWS = 4_000
CONFIDENCE = 0.95
_SEED = 20240723
_AT_ONCE = 1 << 24  # weights of resampled groups that are in memory together


@dataclass(frozen=True)
class Measure:
    """One figure of every run: a ratio of sums over units (texts or items)."""

    label: str
    unit: str
    lower_is_better: bool
    values: Floats  # [runs, seeds, units] numerators
    weights: Floats  # [units] denominators
    groups: npt.NDArray[np.int64]  # [units] resampled together


@dataclass(frozen=True)
class Interval:
    """A figure and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """Figures of all runs, and how all pairs differ."""

    runs: tuple[Interval, ...]
    seeds: Floats  # [runs, seeds] the figure of each seed
    differences: dict[tuple[int, int], Interval]  # the first's figure less the second's


BITS, ACCURACY, ANSWER = "bits per byte", "accuracy", "bits per byte of the answer"


def measures(experiment: Experiment, found: list[list[Measured]]) -> list[Measure]:
    """Return all figures; `found` has for each run what each seed measured."""
    result = []
    for texts in experiment.texts:
        bits = np.array([[one.texts[texts.label] for one in run] for run in found])
        sizes = texts.documents.sizes.astype(np.float64)
        result.append(Measure(texts.label, BITS, True, bits, sizes, texts.groups))
    for task in experiment.tasks:
        bits = np.array([[one.tasks[task.label] for one in run] for run in found])
        sizes = np.maximum(task.continuations.sizes, 1).astype(np.float64)
        items = np.arange(len(task.prompts), dtype=np.int64)
        right = np.flatnonzero(task.right)
        result.append(Measure(task.label, ANSWER, True, bits[:, :, right], sizes[right], items))
        if len(task.items) > len(items):
            chosen = _chosen(bits / sizes, task.items, len(items))
            hits = task.right[chosen].astype(np.float64)
            result.append(Measure(task.label, ACCURACY, False, hits, np.ones(len(items)), items))
    return result


def _chosen(costs: Floats, items: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the cheapest continuation of each item: [runs, seeds, items]; the first of equals."""
    chosen = np.zeros((*costs.shape[:2], count), np.int64)
    bounds = np.searchsorted(items, np.arange(count + 1))
    for item in range(count):
        first, end = bounds[item], bounds[item + 1]
        chosen[:, :, item] = first + costs[:, :, first:end].argmin(axis=2)
    return chosen


def estimate(measure: Measure) -> Estimate:
    """Resample groups of units and seeds with replacement, the same for all runs.

    Runs share units, seeds and orders, so that a difference is that of pairs, and its interval is
    narrower than those of the two figures.
    """
    ratios = _resampled(measure, DRAWS)  # [draws, runs]
    exact = measure.values.sum(2) / measure.weights.sum()  # [runs, seeds]
    means = exact.mean(1)
    runs = range(len(means))
    return Estimate(
        tuple(_interval(float(means[k]), ratios[:, k]) for k in runs),
        exact,
        {
            (a, b): _interval(float(means[a] - means[b]), ratios[:, a] - ratios[:, b])
            for a in runs
            for b in runs
            if a < b
        },
    )


def _interval(value: float, draws: Floats) -> Interval:
    edge = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(draws, [edge, 100 - edge])
    return Interval(value, float(low), float(high))


def _resampled(measure: Measure, draws: int) -> Floats:
    """Return the figures of all runs in each resampling: [draws, runs]."""
    random = np.random.default_rng(_SEED)
    values, weights = _by_group(measure)
    _, seeds, groups = values.shape
    found = []
    step = max(1, _AT_ONCE // groups)
    for first in range(0, draws, step):
        some = min(step, draws - first)
        times = random.multinomial(groups, np.full(groups, 1 / groups), some).astype(np.float64)
        shares = random.multinomial(seeds, np.full(seeds, 1 / seeds), some) / seeds
        sums = np.einsum("dg,rsg->drs", times, values, optimize=True)
        found.append(np.einsum("drs,ds->dr", sums, shares) / (times @ weights)[:, None])
    return np.concatenate(found)


def _by_group(measure: Measure) -> tuple[Floats, Floats]:
    """Return the sums of values [runs, seeds, groups] and weights [groups]."""
    _, places = np.unique(measure.groups, return_inverse=True)
    count = int(places.max()) + 1
    runs, seeds, _ = measure.values.shape
    values = np.zeros((runs, seeds, count))
    for run in range(runs):
        for seed in range(seeds):
            values[run, seed] = np.bincount(places, measure.values[run, seed], count)
    return values, np.bincount(places, measure.weights, count).astype(np.float64)
