"""Identify languages with a fastText model, over whole batches."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import Texts
from curation.language.fasttext import FastText, load_fasttext
from curation.language.settings import LanguageSettings
from curation.language.windows import Windows, cut
from curation.models import ModelFile, locate

UNKNOWN = "und"

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
        probabilities = average(model.probabilities(windows.texts), windows)
        return self._decide(probabilities, model.labels)

    def _decide(
        self, probabilities: npt.NDArray[np.float64], labels: tuple[str, ...]
    ) -> tuple[pa.Array, pa.Array]:
        """Best label of every document; of equal scores the one that the model lists first."""
        rounded = np.minimum(probabilities.round(DECIMALS), 1.0)
        best = rounded.argmax(1)
        scores = rounded[np.arange(len(rounded)), best]
        known = (scores > 0) & (scores >= self.settings.unknown_below)
        names = np.array([*labels, UNKNOWN], object)
        found = names[np.where(known, best, len(labels))]
        return pa.array(found, pa.string()), pa.array(scores, pa.float32())


@functools.cache
def _load(model: ModelFile) -> FastText:
    path, _ = locate(model)
    return load_fasttext(path, model.path)


def average(windows: npt.NDArray[np.float32], of: Windows) -> npt.NDArray[np.float64]:
    """Probabilities [documents, labels] from those of their windows, weighted by letters.

    All are 0 for a document without windows.
    """
    documents = len(of.firsts) - 1
    out = np.zeros((documents, windows.shape[1]))
    if not len(windows):
        return out
    weighted = windows.astype(np.float64) * of.letters[:, None]
    filled = np.flatnonzero(np.diff(of.firsts))  # reduceat takes an empty span for its first row
    out[filled] = np.add.reduceat(weighted, of.firsts[filled])
    out[filled] /= np.add.reduceat(of.letters, of.firsts[filled])[:, None]
    return out
