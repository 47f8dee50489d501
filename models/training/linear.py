"""Fit linear models over hashed features: ridge regression on scaled buckets, then calibration.

Buckets are weighted by inverse document frequency (Salton and Buckley 1988) and dropped when rare.
The ridge solution is found by conjugate gradients (scikit-learn's sparse_cg). One thread, no
randomness.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from curation.classify.features import BITS, SHAPE, Features, measure
from curation.classify.linear import Kind, LinearModel, Varying, softmax, standardise
from curation.config import nearest
from curation.errors import ConfigError
from curation.text import characters as ch
from models.training.settings import LinearTraining

Floats = npt.NDArray[np.float64]
_WORD = re.compile(r"[^\W\d_]+")
_SOLVER_TOLERANCE = 1e-6
_SOLVER_STEPS = 5000
_LOG_TEMPERATURES = (-3.0, 6.0)
_SCALING_PENALTY = 0.002


def features_of(texts: list[str], settings: LinearTraining) -> Features:
    """Features of the training texts."""
    features = measure(texts, settings.max_bytes)
    return _words_of(features, texts, settings) if settings.words_only else features


def _words_of(features: Features, texts: list[str], settings: LinearTraining) -> Features:
    """Return the features in the buckets of words that occur in enough of the texts.

    In unspaced scripts, letters and pairs of letters are the words.
    """
    unspaced = (ch.properties() & ch.SINGLE) != 0
    documents: Counter[str] = Counter()
    for text in texts:
        found: set[str] = set()
        for run in _WORD.findall(text[: settings.max_bytes].lower()):
            if unspaced[ord(run[0])]:
                found.update(run[i : i + 2] for i in range(len(run)))
            else:
                found.add(run)
        documents.update(found)
    words = sorted(w for w, count in documents.items() if count >= settings.min_documents)
    wanted = np.zeros(1 << BITS, bool)
    wanted[measure(words, settings.max_bytes).ids] = True
    kept = wanted[features.ids]
    counts = np.concatenate([[0], np.cumsum(kept)])
    return Features(
        counts[features.starts], features.ids[kept], features.values[kept], features.shape
    )


def fit(
    features: Features, targets: Floats, weights: Floats | None, settings: LinearTraining
) -> LinearModel:
    """Ridge regression of targets [texts, k] on the features; outputs aren't calibrated yet."""
    matrix = _matrix(features)
    documents = matrix.shape[0]
    frequency = np.bincount(features.ids, minlength=1 << BITS)
    buckets = np.flatnonzero(frequency >= settings.min_documents).astype(np.int32)
    matrix = matrix[:, buckets]
    scale = np.log((1 + documents) / (1 + frequency[buckets])) + 1
    scales = np.zeros(0, np.float32)
    if settings.words_only:
        scales = scale.astype(np.float16).astype(np.float32)  # the precision of the file
        matrix, scale = _unit_length(matrix @ sp.diags(scales)), np.ones(len(buckets))
    else:
        squares = matrix.multiply(matrix) @ (scale * scale)
        scale = scale / np.sqrt(max(float(squares.mean()), 1e-12))
    mean = features.shape.mean(0, dtype=np.float64).astype(np.float32)
    deviation = features.shape.std(0, dtype=np.float64).astype(np.float32)
    deviation[deviation < 1e-6] = 1.0
    used = _used(settings)
    shape_scale = used * np.sqrt(settings.shape_share / max(int(used.sum()), 1))
    standard = standardise(features.shape, mean, deviation)
    design = sp.hstack([matrix @ sp.diags(scale), sp.csr_matrix(standard * shape_scale)]).tocsr()
    # Every feature once more, times each feature that weights vary with. One ridge over all of it
    # keeps the weights of different texts together (after "frustratingly easy domain adaptation",
    # Daume 2007).
    varying = np.array([_column("vary_with", name) for name in settings.vary_with], np.int32)
    factors = [sp.diags(standard[:, column] * settings.vary_share) for column in varying]
    design = sp.hstack([design, *(factor @ design for factor in factors)]).tocsr()
    with threadpool_limits(1):
        ridge = Ridge(
            alpha=settings.alpha,
            solver="sparse_cg",
            tol=_SOLVER_TOLERANCE,
            max_iter=_SOLVER_STEPS,
        )
        ridge.fit(design, targets, sample_weight=weights)
    coefficients = np.atleast_2d(ridge.coef_).T
    split, scales_of_all = len(buckets), np.concatenate([scale, shape_scale])[:, None]
    own, *slopes = (
        (part * scales_of_all).astype(np.float32)
        for part in np.split(coefficients, 1 + len(varying))
    )
    slope = np.hstack(slopes) * np.float32(settings.vary_share) if slopes else None
    return LinearModel(
        kind="scores",
        labels=("",) * targets.shape[1],
        max_bytes=settings.max_bytes,
        buckets=buckets,
        weights=own[:split],
        mean=mean,
        deviation=deviation,
        shape_weights=own[split:],
        intercept=np.atleast_1d(ridge.intercept_).astype(np.float32),
        scales=scales,
        varying=None if slope is None else Varying(varying, slope[:split], slope[split:]),
    )


def _unit_length(matrix: Any) -> Any:
    """Return the rows of a sparse matrix, scaled to unit length; empty ones stay."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    return sp.diags(1 / np.where(lengths > 0, lengths, 1.0)) @ matrix


def _used(settings: LinearTraining) -> npt.NDArray[np.bool_]:
    """Return which dense features the settings name: [len(SHAPE)]."""
    if settings.shape_features is None:
        return np.ones(len(SHAPE), bool)
    used = np.zeros(len(SHAPE), bool)
    used[[_column("shape_features", name) for name in settings.shape_features]] = True
    return used


def _column(setting: str, name: str) -> int:
    """Return the place of a dense feature that a setting names. Raises ConfigError for others."""
    if name not in SHAPE:
        raise ConfigError(f"{setting}: no feature {name!r}{nearest(name, SHAPE)}")
    return SHAPE.index(name)


def out_of_fold(
    features: Features,
    targets: Floats,
    weights: Floats | None,
    folds: list[tuple[Any, Any]],
    settings: LinearTraining,
) -> Floats:
    """Scores of every text by a model that saw none of its group: [texts, k]."""
    scores = np.zeros(targets.shape)
    for train, test in folds:
        fitted = fit(
            features.take(train),
            targets[train],
            None if weights is None else weights[train],
            settings,
        )
        scores[test] = fitted.outputs(features.take(test))
    return scores


def grade_calibration(
    scores: Floats, grades: Floats, positive: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Slopes [1, 2] and offsets [2]: to the grade (least squares), to log odds (Platt 1999)."""
    line = LinearRegression().fit(scores, grades)
    with threadpool_limits(1):
        odds = LogisticRegression(C=np.inf).fit(scores, positive)
    return (
        np.array([[line.coef_[0], odds.coef_[0, 0]]]),
        np.array([line.intercept_, odds.intercept_[0]]),
    )


def temperature(scores: Floats, labels: npt.NDArray[np.int64], weights: Floats | None) -> float:
    """Factor of the scores whose softmax is most likely (Guo et al. 2017)."""
    rows = np.arange(len(labels))

    def loss(log_factor: float) -> float:
        likely = softmax(scores * np.exp(log_factor))[rows, labels]
        return float(np.average(-np.log(np.maximum(likely, 1e-12)), weights=weights))

    found = minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded")
    return float(np.exp(found.x))


def class_scaling(
    scores: Floats, labels: npt.NDArray[np.int64], weights: Floats
) -> tuple[Floats, Floats]:
    """Slopes [k, k] (diagonal) and offsets [k] whose softmax is most likely.

    Vector scaling (Guo et al. 2017), with a small penalty on slopes that differ and on offsets.
    """
    classes = scores.shape[1]
    rows = np.arange(len(labels))
    share = weights / weights.sum()
    start = 1 / scores.std()
    targets = np.eye(classes)[labels]

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logs, offsets = parameters[:classes], parameters[classes:]
        factors = start * np.exp(logs)
        likely = softmax(scores * factors + offsets)
        uneven = logs - logs.mean()
        value = -float(share @ np.log(np.maximum(likely[rows, labels], 1e-12)))
        value += _SCALING_PENALTY * float(uneven @ uneven + offsets @ offsets / 3)
        error = (likely - targets) * share[:, None]
        slopes = (error * scores).sum(0) * factors + 2 * _SCALING_PENALTY * uneven
        return value, np.concatenate([slopes, error.sum(0) + 2 * _SCALING_PENALTY * offsets / 3])

    with threadpool_limits(1):
        found = minimize(loss, np.zeros(2 * classes), jac=True, method="L-BFGS-B").x
    return np.diag(start * np.exp(found[:classes])), found[classes:]


def _matrix(features: Features) -> Any:
    shape = (len(features), 1 << BITS)
    return sp.csr_matrix((features.values.astype(np.float64), features.ids, features.starts), shape)


def calibrated(
    model: LinearModel, kind: Kind, labels: tuple[str, ...], slopes: Floats, offsets: Floats
) -> LinearModel:
    """Return the model whose outputs are those of this one @ slopes + offsets, in the precision
    of its file."""

    def scaled(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        parts = np.split(weights, weights.shape[1] // len(slopes), axis=1)
        return np.hstack([part @ slopes for part in parts]).astype(np.float32)

    def in_file(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return scaled(weights).astype(np.float16).astype(np.float32)

    varying = model.varying
    if varying is not None:
        varying = Varying(varying.columns, in_file(varying.weights), scaled(varying.shape_weights))
    return replace(
        model,
        kind=kind,
        labels=labels,
        weights=in_file(model.weights),
        shape_weights=scaled(model.shape_weights),
        intercept=(model.intercept @ slopes + offsets).astype(np.float32),
        varying=varying,
    )
