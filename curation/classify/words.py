"""Any fastText classifier as the judge of quality: ours of citable pages, or DCLM's, by path."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts
from curation.classify.classify_settings import FastTextQuality
from curation.errors import ConfigError
from curation.language.fasttext import FastText, load_fasttext
from curation.language.windows import cut
from curation.models import locate


def scores(texts: Texts, settings: FastTextQuality) -> npt.NDArray[np.float64]:
    """Probability of the label for every text: [texts]; 0 for a text without letters."""
    model = load(settings)
    windows = cut(texts, 1, settings.characters)
    found = np.zeros(len(windows.firsts) - 1)
    column = model.labels.index(settings.label)
    found[np.flatnonzero(np.diff(windows.firsts))] = model.probabilities(windows.texts)[:, column]
    return np.minimum(found, 1.0)


@functools.cache
def load(settings: FastTextQuality) -> FastText:
    """Load the model, once per process. Raises ConfigError when it is none or lacks the label."""
    path, _ = locate(settings.model)
    model = load_fasttext(path, settings.model.path)
    if settings.label not in model.labels:
        known = ", ".join(model.labels[:5])
        raise ConfigError(f"{settings.model.path}: no label {settings.label!r}; it has {known}")
    return model
