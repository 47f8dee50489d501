"""The free version: a trigram model in place of a transformer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from models.ablate.experiment import Corpus, Experiment, TaskSet, TextSet
from models.ablate.order import length, stream
from models.ablate.training import Training
from models.ablate.trigrams import Trigrams
from models.ablate.windows import Measured, curve_bytes, curve_windows

DISCOUNT = 0.75  # the usual value for absolute discounting
PIECE = Training.context  # tokens; of all documents, so that the place of a text says nothing
#: Written by benchmarks/proof.py --calibrate.
CALIBRATION = Path(__file__).with_name("calibration.json")


def accuracy() -> str:
    """Return how often such models order corpora of which the better one is known."""
    known = json.loads(CALIBRATION.read_text(encoding="utf-8"))
    cells = [
        f"{named} of {pairs} by {f'less than {below}' if below else 'more'}"
        for below, named, pairs in known["difference below, named, pairs"]
    ]
    return (
        "Of pairs whose better run is known, n-grams name it by their difference in bits per byte: "
        f"{', '.join(cells)}. Draws of the same pages differ by up to "
        f"{known['two draws of the same pages']}."
    )


def measure(
    experiment: Experiment, corpus: Corpus, tokens: int, seed: int, points: int = 6
) -> Measured:
    """Count `tokens` tokens of a run and measure; the seed decides which come first.

    A run that has no more is counted once, as it is: to a model of counts a repeat tells nothing.
    """
    mark = experiment.vocabulary_size
    ids = _read(corpus, tokens, seed, mark)
    model = Trigrams(mark, len(ids), DISCOUNT)
    return _measured(model, experiment, list(_train(model, experiment, ids, points)))


def exchange(experiment: Experiment, seeds: Sequence[int]) -> list[list[Measured]]:
    """Measure the first corpus, then it with parts exchanged for each other corpus in turn.

    As many tokens go as come; the seed decides which. Counts are added and subtracted, so that the
    first corpus is counted once. Returns [corpora][seeds].
    """
    mark = experiment.vocabulary_size
    first, *others = experiment.corpora
    whole = length(first, PIECE)
    model = Trigrams(mark, 2 * whole + sum(length(one, PIECE) for one in others), DISCOUNT)
    model.train(_read(first, whole, 0, mark))
    found = [[_measured(model, experiment, [])] * len(seeds)]
    for other in others:
        found.append([])
        for seed in seeds:
            comes = _read(other, whole, seed, mark)
            goes = _read(first, len(comes), seed, mark)
            model.train(comes)
            model.forget(goes)
            found[-1].append(_measured(model, experiment, []))
            model.train(goes)
            model.forget(comes)
    return found


def _read(corpus: Corpus, tokens: int, seed: int, mark: int) -> npt.NDArray[np.uint32]:
    """Return `tokens` tokens of a corpus, or all that it has, in pieces."""
    tokens = min(tokens, length(corpus, PIECE))
    return stream(corpus, tokens, seed, mark, PIECE).astype(np.uint32)


def _measured(model: Trigrams, experiment: Experiment, curve: list[tuple[int, float]]) -> Measured:
    mark = experiment.vocabulary_size
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
