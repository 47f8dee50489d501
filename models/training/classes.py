"""Train models that separate classes: domains, topics and formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from curation.classify.classifier import GENERAL
from curation.classify.linear import softmax
from curation.columns import BY_CONTENT
from curation.errors import InputError
from models.training.heldout import Folds, class_metrics, folds_of
from models.training.inputs import Examples, read_labelled
from models.training.linear import (
    calibrated,
    class_scaling,
    features_of,
    fit,
    out_of_fold,
    temperature,
)
from models.training.report import About, Report, write_card
from models.training.saving import save_linear
from models.training.settings import LinearTraining, default_settings

ClassTask = Literal["domain", "topic", "format"]
Floats = npt.NDArray[np.float64]

#: What is decided by content.
DOMAINS = (GENERAL, *BY_CONTENT)
#: Other names under which data sets know the domains; null: examples that are no domain of content.
DOMAIN_ALIASES: Mapping[str, str | None] = {"math": "math_reasoning", "multilingual": None}


def train_classes(
    task: ClassTask,
    inputs: Sequence[Path | str],
    output: Path | str,
    about: About,
    settings: LinearTraining | None = None,
) -> Report:
    """Train a model of domains, topics or formats and write `<task>.npz` and `card.yaml`.

    Topics and formats are whatever the labels name. Domains are general, math_reasoning (or `math`)
    and code; examples labelled `multilingual` are left out, since that domain is decided by
    language. Raises InputError on other domains, and where all examples have the same label.
    """
    settings = settings or default_settings(task, LinearTraining)
    examples = read_labelled(settings, inputs)
    examples = _renamed(examples, DOMAIN_ALIASES if task == "domain" else {})
    names = DOMAINS if task == "domain" else tuple(sorted(set(examples.labels)))
    unknown = sorted(set(examples.labels) - set(names))
    if unknown:
        raise InputError(f"unknown {task} {unknown[0]!r}; known: {', '.join(names)}")
    if len(set(examples.labels)) < 2:
        raise InputError(f"all examples have the same {task}")

    truth = np.array([names.index(v) for v in examples.labels], np.int64)
    weights = examples.weights(settings.file_weights)
    weights = balance(truth, weights, len(names), settings.balanced)
    targets = np.eye(len(names))[truth]
    features = features_of(examples.texts, settings)
    rows = np.flatnonzero(
        np.array(examples.inputs) < (settings.judged_files or len(examples.files))
    )
    others = np.setdiff1d(np.arange(len(truth)), rows)
    judged = examples.select(rows.tolist())
    splits = folds_of(judged.groups, settings, truth[rows])
    folds = [(np.concatenate([rows[train], others]), rows[test]) for train, test in splits]
    scores = out_of_fold(features, targets, weights, folds, settings)[rows]
    slopes, offsets = calibration(scores, truth[rows], weights[rows], settings)
    fitted = fit(features, targets, weights, settings)
    model = calibrated(fitted, "classes", names, slopes, offsets)
    path = Path(output) / f"{task}.npz"
    save_linear(model, path)

    probabilities = _judged(scores, truth[rows], weights[rows], splits, settings)
    found = probabilities.argmax(1)
    metrics = class_metrics(truth[rows], found, probabilities.max(1), judged, names, settings)
    return write_card(path, task, about, examples.files, settings, metrics)


def calibration(
    scores: Floats, truth: npt.NDArray[np.int64], weights: Floats, settings: LinearTraining
) -> tuple[Floats, Floats]:
    """Slopes [k, k] and offsets [k] of out-of-fold scores."""
    classes = scores.shape[1]
    if settings.scale_classes is None:
        return np.eye(classes) * temperature(scores, truth, weights), np.zeros(classes)
    even = np.ones(len(truth))
    return class_scaling(scores, truth, balance(truth, even, classes, settings.scale_classes))


def _judged(
    scores: Floats,
    truth: npt.NDArray[np.int64],
    weights: Floats,
    splits: Folds,
    settings: LinearTraining,
) -> Floats:
    """Probabilities of out-of-fold scores; slopes per class are those of the other folds' scores.

    One slope for all changes no decision and is fitted to all scores.
    """
    if settings.scale_classes is None:
        slopes, _ = calibration(scores, truth, weights, settings)
        return softmax(scores @ slopes)
    out = np.zeros(scores.shape)
    for train, test in splits:
        slopes, offsets = calibration(scores[train], truth[train], weights[train], settings)
        out[test] = softmax(scores[test] @ slopes + offsets)
    return out


def balance(truth: npt.NDArray[np.int64], weights: Floats, classes: int, power: float) -> Floats:
    """Weights with those of a class divided by a power of their sum; their mean is 1."""
    if not power:
        return weights
    sums = np.bincount(truth, weights, classes)
    balanced = weights * np.where(sums > 0, sums, 1.0)[truth] ** -power
    return balanced / balanced.mean()


def _renamed(examples: Examples, aliases: Mapping[str, str | None]) -> Examples:
    renamed = [aliases.get(v, v) for v in map(str, examples.labels)]
    rows = [i for i, v in enumerate(renamed) if v is not None]
    return replace(examples.select(rows), labels=[renamed[i] for i in rows])
