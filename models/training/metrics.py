"""How good predictions are, with confidence intervals from resampled groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from sklearn.metrics import f1_score, precision_recall_fscore_support, roc_auc_score

Floats = npt.NDArray[np.float64]
_DECIMALS = 4


def spearman(truth: Floats, scores: Floats) -> float:
    """Rank correlation, with average ranks for ties; NaN where all of one are equal."""
    if not np.ptp(truth) or not np.ptp(scores):
        return float("nan")
    return float(spearmanr(truth, scores).statistic)


def auc(positive: npt.NDArray[np.bool_], scores: Floats) -> float:
    """Area under the ROC curve; NaN where one class is empty."""
    if positive.all() or not positive.any():
        return float("nan")
    return float(roc_auc_score(positive, scores))


def accuracy(truth: npt.NDArray[np.int64], found: npt.NDArray[np.int64]) -> float:
    """Share of equal entries."""
    return float(np.mean(truth == found))


def macro_f1(truth: npt.NDArray[np.int64], found: npt.NDArray[np.int64]) -> float:
    """Mean F1 over the classes that the truth has."""
    classes = np.unique(truth)
    return float(f1_score(truth, found, labels=classes, average="macro", zero_division=0))


def with_interval(
    metric: Callable[..., float],
    columns: Sequence[npt.NDArray[Any]],
    groups: Sequence[str] | npt.NDArray[np.str_],
    resamplings: int,
    confidence: float,
    seed: int,
) -> dict[str, float]:
    """Return a metric and its percentile bootstrap interval, whole groups resampled together.

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
    precision, recall, _, support = precision_recall_fscore_support(
        truth, found, labels=range(len(labels)), zero_division=0
    )
    return {
        label: {
            "precision": round(float(precision[i]), _DECIMALS),
            "recall": round(float(recall[i]), _DECIMALS),
            "documents": int(support[i]),
        }
        for i, label in enumerate(labels)
        if support[i] or (found == i).any()
    }


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
