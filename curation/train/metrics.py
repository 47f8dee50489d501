"""How good predictions are, with confidence intervals from resampled groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

Floats = npt.NDArray[np.float64]
_DECIMALS = 4


def spearman(truth: Floats, scores: Floats) -> float:
    """Rank correlation, with average ranks for ties."""
    a, b = rankdata(truth), rankdata(scores)
    if a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def auc(positive: npt.NDArray[np.bool_], scores: Floats) -> float:
    """Area under the ROC curve; NaN where one class is empty."""
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return float("nan")
    return float((rankdata(scores)[positive].sum() - n * (n + 1) / 2) / (n * m))


def accuracy(truth: npt.NDArray[np.int64], found: npt.NDArray[np.int64]) -> float:
    """Share of equal entries."""
    return float(np.mean(truth == found))


def macro_f1(truth: npt.NDArray[np.int64], found: npt.NDArray[np.int64]) -> float:
    """Mean F1 over the classes that the truth has."""
    classes = int(max(truth.max(), found.max())) + 1
    hits = np.bincount(truth[truth == found], minlength=classes)
    support = np.bincount(truth, minlength=classes)
    f1 = 2 * hits / np.maximum(support + np.bincount(found, minlength=classes), 1)
    return float(f1[support > 0].mean())


def with_interval(
    metric: Callable[..., float],
    columns: Sequence[npt.NDArray[Any]],
    groups: Sequence[str] | npt.NDArray[np.str_],
    resamplings: int,
    confidence: float,
    seed: int,
) -> dict[str, float]:
    """A metric and its percentile bootstrap interval, whole groups resampled together.

    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    _, codes = np.unique(np.asarray(groups), return_inverse=True)
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    random = np.random.default_rng(seed)
    values = []
    for _ in range(resamplings):
        rows = np.concatenate([members[i] for i in random.integers(0, len(members), len(members))])
        values.append(metric(*(c[rows] for c in columns)))
    low, high = np.nanquantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return {
        "value": round(metric(*columns), _DECIMALS),
        "low": round(float(low), _DECIMALS),
        "high": round(float(high), _DECIMALS),
    }


def confusion(
    truth: npt.NDArray[np.int64], found: npt.NDArray[np.int64], labels: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Counts by true label, then by found label; zeros are left out."""
    table = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(table, (truth, found), 1)
    return {
        labels[i]: {labels[j]: int(n) for j, n in enumerate(row) if n}
        for i, row in enumerate(table)
        if row.any()
    }


def by_class(
    truth: npt.NDArray[np.int64], found: npt.NDArray[np.int64], labels: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Precision, recall and support of every label that occurs."""
    table = {}
    for i, label in enumerate(labels):
        hits, support, given = (
            int(((truth == i) & (found == i)).sum()),
            int((truth == i).sum()),
            int((found == i).sum()),
        )
        if support or given:
            table[label] = {
                "precision": round(hits / max(given, 1), _DECIMALS),
                "recall": round(hits / max(support, 1), _DECIMALS),
                "documents": support,
            }
    return table


def calibration(
    correct: npt.NDArray[np.bool_], probabilities: Floats, bins: int
) -> list[dict[str, float]]:
    """Mean probability against the observed share, in bins of equal width; empty ones left out."""
    which = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    return [
        {
            "documents": int((which == b).sum()),
            "predicted": round(float(probabilities[which == b].mean()), _DECIMALS),
            "observed": round(float(correct[which == b].mean()), _DECIMALS),
        }
        for b in range(bins)
        if (which == b).any()
    ]


def calibration_error(table: Sequence[dict[str, float]]) -> float:
    """Expected calibration error: mean distance of the bins, weighted by their documents."""
    total = sum(row["documents"] for row in table)
    distance = sum(row["documents"] * abs(row["predicted"] - row["observed"]) for row in table)
    return round(distance / total, _DECIMALS)
