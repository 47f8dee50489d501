"""The free version: a trigram model in place of a transformer."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from models.ablate.experiment import Corpus, Experiment, TaskSet, TextSet
from models.ablate.order import stream
from models.ablate.training import Training
from models.ablate.trigrams import Trigrams
from models.ablate.windows import Measured, curve_bytes, curve_windows

DISCOUNT = 0.75  # the usual value for absolute discounting


def measure(
    experiment: Experiment, corpus: Corpus, tokens: int, seed: int, points: int = 6
) -> Measured:
    """Count `tokens` tokens of a run and measure; the seed decides which come first.

    A run that has no more is counted once, as it is: to a model of counts a repeat tells nothing.
    """
    mark = experiment.vocabulary_size
    piece = Training.context if tokens < corpus.tokens else None
    ids = stream(corpus, min(tokens, corpus.tokens), seed, mark, piece).astype(np.uint32)
    model = Trigrams(mark, len(ids), DISCOUNT)
    curve = list(_train(model, experiment, ids, points))
    texts = {
        found.label: np.array([_bits(model, text) for text in _each(found, mark)])
        for found in experiment.texts
    }
    tasks = {task.label: _task(model, task, mark) for task in experiment.tasks}
    return Measured(texts, tasks, curve)


def _train(
    model: Trigrams, experiment: Experiment, ids: npt.NDArray[np.uint32], points: int
) -> Iterator[tuple[int, float]]:
    """Count part after part; yield tokens read and bits per byte of some texts."""
    whole = curve_bytes(experiment)
    texts = [window.ids.astype(np.uint32) for window in curve_windows(experiment, 1 << 30)]
    ends = [round(len(ids) * (k + 1) / points) for k in range(points)]
    for first, end in zip([0, *ends], ends, strict=False):
        model.train(ids[first:end])
        if texts:
            yield end, sum(_bits(model, text) for text in texts) / whole


def _each(texts: TextSet, mark: int) -> Iterator[npt.NDArray[np.uint32]]:
    documents = texts.documents
    return (_begun(documents.ids(k), mark) for k in range(len(documents)))


def _task(model: Trigrams, task: TaskSet, mark: int) -> npt.NDArray[np.float64]:
    """Return the bits of every continuation after its question."""
    found = np.zeros(len(task.items))
    for k, item in enumerate(task.items.tolist()):
        prompt = _begun(task.prompts.ids(item), mark)
        whole = np.concatenate([prompt, task.continuations.ids(k).astype(np.uint32)])
        found[k] = _bits(model, whole) - _bits(model, prompt)
    return found


def _begun(ids: npt.NDArray[np.uint16], mark: int) -> npt.NDArray[np.uint32]:
    return np.concatenate([np.array([mark], np.uint32), ids.astype(np.uint32)])


def _bits(model: Trigrams, ids: npt.NDArray[np.uint32]) -> float:
    """Return the bits of a text that begins with the mark, which costs nothing."""
    return model.loss(ids) * (len(ids) - 1) / math.log(2)
