"""Identify languages with a fastText model, over whole batches."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import fasttext
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import Texts
from curation.errors import ConfigError
from curation.language.settings import LanguageSettings
from curation.language.windows import cut
from curation.models import ModelFile, locate

UNKNOWN = "und"

PREFIX = "__label__"
#: Scores are rounded, so that bytes of outputs do not depend on the last bits of a sum.
DECIMALS = 4


@dataclass(frozen=True)
class LanguageIdentifier:
    """Identifies languages; cheap to make, as the model is loaded once per process."""

    settings: LanguageSettings

    def apply(self, texts: Texts) -> tuple[pa.Array, pa.Array]:
        """Language (string, the model's code or `und`) and score (float32, 0 to 1) of every text.

        The score is the label's probability averaged over the windows, weighted by their letters;
        that of a text without letters is 0, that of `und` the best label's.
        """
        model = _load(self.settings.model)
        windows = cut(texts, self.settings.windows, self.settings.characters)
        ids, probabilities = model.predict(windows.texts.to_pylist(), self.settings.candidates)
        best, scores = _combine(
            ids, probabilities, windows.letters, windows.firsts, len(model.labels)
        )
        known = (best >= 0) & (scores >= self.settings.unknown_below)
        names = np.array([*model.labels, UNKNOWN], object)
        labels = names[np.where(known, best, len(model.labels))]
        return pa.array(labels, pa.string()), pa.array(scores, pa.float32())


@dataclass(frozen=True)
class FastText:
    """A loaded fastText classifier and its labels, without their prefix."""

    labels: tuple[str, ...]
    index: dict[str, int]
    native: Any

    def predict(
        self, lines: list[str], k: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Best k labels of every line: ids [lines, k], -1 where there are fewer, probabilities.

        A line holds no line feed. Calls the compiled model, whose Python wrapper copies in a way
        that NumPy 2 refuses.
        """
        ids = np.full((len(lines), k), -1, np.int64)
        probabilities = np.zeros((len(lines), k))
        if not lines:
            return ids, probabilities
        labels, scores = self.native.multilinePredict(lines, k, 0.0, "strict")
        for row, (names, values) in enumerate(zip(labels, scores, strict=True)):
            ids[row, : len(names)] = [self.index[name] for name in names]
            probabilities[row, : len(names)] = values
        return ids, probabilities


@functools.cache
def _load(model: ModelFile) -> FastText:
    path, _ = locate(model)
    return load_fasttext(str(path), model.path)


def load_fasttext(path: str, name: str) -> FastText:
    """Load a supervised fastText model; ConfigError names it when it is none."""
    try:
        native = fasttext.load_model(path).f
        names, _ = native.getLabels("strict")
    except Exception as error:  # the binding raises several kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigError(f"{name}: not a fastText model: {reason}") from None
    if not names or not all(n.startswith(PREFIX) for n in names):
        raise ConfigError(f"{name}: not a supervised fastText model: its labels lack {PREFIX}")
    labels = tuple(n.removeprefix(PREFIX) for n in names)
    return FastText(labels, {n: i for i, n in enumerate(names)}, native)


def _combine(
    ids: npt.NDArray[np.int64],
    probabilities: npt.NDArray[np.float64],
    weights: npt.NDArray[np.int64],
    firsts: npt.NDArray[np.int64],
    labels: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Best label id (-1: none) and rounded score of every document from those of its windows.

    Of equal scores the label that the model lists first wins.
    """
    documents = len(firsts) - 1
    owner = np.repeat(np.arange(documents), np.diff(firsts))
    totals = np.zeros(documents)
    np.add.at(totals, owner, weights)
    found = ids >= 0
    rows = np.broadcast_to(owner[:, None], ids.shape)[found]
    shares = (probabilities * weights[:, None])[found] / totals[rows]
    keys, inverse = np.unique(rows * labels + ids[found], return_inverse=True)
    sums = np.bincount(inverse, shares, len(keys)).round(DECIMALS)
    order = np.lexsort((keys % labels, -sums, keys // labels))
    rows = keys[order] // labels
    first = np.ones(len(rows), bool)
    first[1:] = rows[1:] != rows[:-1]
    best = np.full(documents, -1, np.int64)
    scores = np.zeros(documents)
    best[rows[first]] = keys[order][first] % labels
    scores[rows[first]] = np.minimum(sums[order][first], 1.0)
    return best, scores
