"""Texts and tasks as windows of a context, and what models say of them put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.ablate.experiment import Documents, Experiment, TaskSet

Ids = npt.NDArray[np.uint16]
#: Texts of each label by which a curve is measured.
_CURVE_TEXTS = 32


@dataclass(frozen=True)
class Window:
    """A piece of a text to predict: of `ids` the last `scored`, each from those before it."""

    owner: int  # which text
    ids: Ids  # [2 to context + 1]
    scored: int


@dataclass(frozen=True)
class Measured:
    """Bits that one model needs, after one training."""

    texts: dict[str, npt.NDArray[np.float64]]  # by label: [documents]
    tasks: dict[str, npt.NDArray[np.float64]]  # by label: [continuations]
    curve: list[tuple[int, float]]  # tokens read, bits per byte over a part of all texts


def text_windows(documents: Documents, mark: int, context: int) -> Iterator[Window]:
    """Yield all texts, cut where they are longer than a context; every token is scored once."""
    for owner in range(len(documents)):
        ids = np.concatenate([np.array([mark], np.uint16), documents.ids(owner)])
        for first in range(0, len(ids) - 1, context):
            piece = ids[first : first + context + 1]
            yield Window(owner, piece, len(piece) - 1)


def task_windows(task: TaskSet, mark: int, context: int) -> Iterator[Window]:
    """Yield every continuation after its question, of which the beginning is cut where need be."""
    for owner, item in enumerate(task.items.tolist()):
        continuation = task.continuations.ids(owner)[:context]
        before = np.concatenate([np.array([mark], np.uint16), task.prompts.ids(item)])
        room = context + 1 - len(continuation)
        if len(continuation):
            yield Window(owner, np.concatenate([before[-room:], continuation]), len(continuation))


def curve_windows(experiment: Experiment, context: int) -> list[Window]:
    """Return the windows of the first texts of each label."""
    found: list[Window] = []
    mark = experiment.vocabulary_size
    for texts in experiment.texts:
        found += [w for w in text_windows(texts.documents, mark, context) if w.owner < _CURVE_TEXTS]
    return found


def curve_bytes(experiment: Experiment) -> int:
    """Return the bytes of what `curve_windows` measures."""
    return sum(int(texts.documents.sizes[:_CURVE_TEXTS].sum()) for texts in experiment.texts)
