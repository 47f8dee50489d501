"""Train the quality model: a regression of grades, and a probability of a good grade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.classify.linear import LinearModel, sigmoid
from curation.errors import InputError
from models.training import metrics as m
from models.training.heldout import folds_of, with_intervals
from models.training.inputs import Examples, read_labelled
from models.training.linear import (
    Floats,
    calibrated,
    features_of,
    fit,
    grade_calibration,
    out_of_fold,
)
from models.training.report import About, Report, write_card
from models.training.saving import save_linear
from models.training.settings import LinearTraining, default_settings


def train_quality(
    inputs: Sequence[Path | str],
    output: Path | str,
    about: About,
    settings: LinearTraining | None = None,
    positive: Sequence[Path | str] = (),
    negative: Sequence[Path | str] = (),
    name: str = "quality",
) -> Report:
    """Train on graded examples, or on files of good and of bad ones, and write model and card.

    Writes `quality.npz`, or by another `name`, and `card.yaml` into the folder `output`. With
    `others` in the settings the model has a second part, for other languages. Metrics are of
    predictions for groups (sites) that the model had not seen. Raises InputError when an example
    lacks its text or a numeric label, when all are good or all bad, or when good and bad files
    (labels 1 and 0) come next to graded ones whose `positive_grade` puts both on one side.
    """
    settings = settings or default_settings("quality", LinearTraining)
    examples = read_labelled(settings, inputs, positive, negative)
    least = settings.positive_grade if inputs else 1.0
    if least is None:
        raise InputError("training quality needs positive_grade")
    if inputs and ((positive and least > 1) or (negative and least <= 0)):
        raise InputError(
            f"files of good and bad examples count as labels 1 and 0, which positive_grade {least} "
            "doesn't tell apart: give them without graded examples, or change positive_grade"
        )
    grades = _grades(examples)
    good = grades >= least
    if good.all() or not good.any():
        raise InputError(f"every example is graded {'at least' if good.all() else 'below'} {least}")

    features = features_of(examples.texts, settings)
    targets = np.minimum(grades, settings.highest_grade or np.inf)[:, None]
    folds = folds_of(examples.groups, settings)
    files = np.array(examples.inputs)

    def part(
        settings: LinearTraining, by_file: Sequence[float] | None, judged: Sequence[int]
    ) -> tuple[LinearModel, dict[str, Any]]:
        """Return a model of the examples that weigh something, and how it judges some of the
        files."""
        weights = examples.weights(by_file)
        used = weights > 0
        splits = [(train[used[train]], test) for train, test in folds]
        scores = out_of_fold(features, targets, weights, splits, settings)
        rows = np.flatnonzero(np.isin(files, judged))
        slopes, offsets = grade_calibration(scores[rows], grades[rows], good[rows])
        kept = np.flatnonzero(used)
        fitted = fit(features.take(kept), targets[kept], weights[kept], settings)
        found = _judged(
            grades[rows], good[rows], scores[rows, 0], slopes[0, 1], offsets[1],
            [examples.groups[i] for i in rows], settings,
        )  # fmt: skip
        return calibrated(fitted, "quality", ("grade", "log_odds"), slopes, offsets), found

    first = range(settings.judged_files or len(examples.files))
    model, found = part(settings, settings.file_weights, first)
    if (others := settings.others) is not None:
        changed = {"vary_with": (), "min_documents": others.min_documents}
        own = settings.model_copy(update=changed)
        second, of_others = part(own, others.file_weights, others.judged)
        model = replace(model, languages=others.languages, others=second)
        found["other_languages"] = of_others
    path = Path(output) / f"{name}.npz"
    save_linear(model, path)
    metrics = {"good_from": least, **found}
    return write_card(path, "quality", about, examples.files, settings, metrics)


def _judged(
    grades: Floats,
    good: npt.NDArray[np.bool_],
    scores: Floats,
    slope: float,
    offset: float,
    groups: Sequence[str],
    settings: LinearTraining,
) -> dict[str, Any]:
    """Metrics of out-of-fold scores [documents], and of the probabilities that they mean."""
    judged = with_intervals(groups, settings)
    probability = sigmoid(scores * slope + offset)
    table = m.calibration(good, probability, settings.bins)
    return {
        "documents": len(grades),
        "groups": len(set(groups)),
        "spearman": judged(m.spearman, [grades, scores]),
        "auc_good": judged(m.auc, [good, scores]),
        "confusion_at_half": m.confusion(
            good.astype(np.int64), (probability >= 0.5).astype(np.int64), ("low", "good")
        ),
        "calibration_error": m.calibration_error(table),
        "calibration": table,
    }


def _grades(examples: Examples) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    try:
        return np.array([float(v) for v in examples.labels])
    except (TypeError, ValueError) as error:
        raise InputError(f"quality labels must be numbers: {error}") from None
