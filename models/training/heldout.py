"""Held-out metrics of models that tell classes apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from curation.errors import InputError
from models.training import metrics as m
from models.training.inputs import Examples
from models.training.settings import TrainingSettings

Folds = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def folds_of(
    groups: Sequence[str], settings: TrainingSettings, truth: npt.NDArray[np.int64] | None = None
) -> Folds:
    """Return rows to train on and rows to judge, for each fold; no group is on both sides.

    With `truth` the classes are spread over the folds as evenly as their groups allow. Raises
    InputError when there are fewer groups than folds.
    """
    found = len(set(groups))
    if found < settings.folds:
        raise InputError(
            f"the examples are of {found} groups, too few for {settings.folds} folds "
            f"(group_columns: {', '.join(settings.group_columns) or 'none'})"
        )
    kind = GroupKFold if truth is None else StratifiedGroupKFold
    splitter = kind(settings.folds, shuffle=True, random_state=settings.seed)
    with warnings.catch_warnings():  # classes of fewer groups than folds are usual
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros(len(groups)), truth, groups))


def with_intervals(
    groups: Sequence[str], settings: TrainingSettings
) -> Callable[..., dict[str, Any]]:
    """Return `metrics.with_interval` for these groups and settings."""
    return partial(
        m.with_interval,
        groups=groups,
        resamplings=settings.bootstrap,
        confidence=settings.confidence,
        seed=settings.seed,
    )


def class_metrics(
    truth: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
    examples: Examples,
    names: Sequence[str],
    settings: TrainingSettings,
) -> dict[str, Any]:
    """Accuracy, macro-F1, classes by file, confusion and calibration of out-of-fold predictions.

    `truth` and `found` [examples] index `names`; `scores` [examples] are probabilities of `found`.
    """
    judged = with_intervals(examples.groups, settings)
    table = m.calibration(found == truth, scores, settings.bins)
    of_file = np.array(examples.inputs)
    return {
        "documents": len(examples),
        "groups": len(set(examples.groups)),
        "accuracy": judged(m.accuracy, [truth, found]),
        "macro_f1": judged(m.macro_f1, [truth, found]),
        "by_file": {
            file["file"] + f" ({number})": {
                "accuracy": round(m.accuracy(truth[rows], found[rows]), 4),
                "macro_f1": round(m.macro_f1(truth[rows], found[rows]), 4),
                "by_class": {
                    name: row
                    for name, row in m.by_class(truth[rows], found[rows], names).items()
                    if row["documents"]
                },
            }
            for number, file in enumerate(examples.files)
            if (rows := of_file == number).any()
        },
        "confusion": m.confusion(truth, found, names),
        "calibration_error": m.calibration_error(table),
        "calibration": table,
    }
