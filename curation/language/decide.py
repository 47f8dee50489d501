"""Which documents stay, by language."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, large_strings
from curation.columns import MATH_PATH, PROSE_PATH, document_paths
from curation.language.language_settings import UNKNOWN, LanguageSettings
from curation.schema import Verdicts

NOT_SELECTED = "language.not_selected"
LOW_SCORE = "language.low_score"

#: Marks of mathematics per character from which a text is mostly formulas.
MOSTLY_FORMULAS = 0.01
# Letters that formulas don't have, and the most of them, per character, that mostly formulas have.
_IN_NO_FORMULA, _MOST_LETTERS = "[\xc0-\xd6\xd8-\xf6\xf8-\u02af\u0400-\u1fff\u2e80-\ud7ff]", 0.1

#: The entry of `thresholds` for languages that have none.
DEFAULT = "default"


def decide(
    labels: pa.Array,
    scores: pa.Array,
    settings: LanguageSettings,
    texts: Texts | None = None,
) -> Verdicts:
    """Remove other languages than the selected, and scores below the language's threshold.

    A low score is looked at first, so that `not_selected` means a language known with confidence.
    Of `texts`, those that are code or mathematics under `settings.paths` need no score: identifiers
    and formulas are of no language. The words around formulas are, so that of mathematics in an
    unknown language only texts with hardly any words need none.
    """
    encoded = labels.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    default = settings.thresholds.get(DEFAULT, 0.0)
    thresholds = np.array([settings.thresholds.get(n, default) for n in names] or [0.0])[codes]
    # compared as they are written: a score of 0.65 passes a threshold of 0.65
    values = scores.to_numpy(zero_copy_only=False)
    low = values < thresholds.astype(np.float32)
    if settings.paths and texts is not None and low.any():
        from curation.text.structure import structure  # compiled kernels, for few documents

        rows = np.flatnonzero(low)
        some = large_strings(texts).take(pa.array(rows))
        found = structure(some)
        paths = document_paths(found)
        letters = np.asarray(pc.count_substring_regex(some, _IN_NO_FORMULA))
        lettered = letters > _MOST_LETTERS * np.asarray(pc.utf8_length(some))
        wordy = (paths == MATH_PATH) & ((found.math_ratio < MOSTLY_FORMULAS) | lettered)
        unknown = pc.equal(labels, UNKNOWN).to_numpy(zero_copy_only=False)[rows]
        low[rows] = (paths == PROSE_PATH) | (wordy & unknown)
    verdicts = Verdicts(
        pa.array(np.full(len(low), LOW_SCORE, object), pa.string(), mask=~low),
        pa.array(values.astype(np.float64), mask=~low),
        pa.array(thresholds.astype(np.float64), mask=~low),
    )
    if settings.languages is None:
        return verdicts
    selected = np.array([n in settings.languages for n in names] or [True], bool)[codes]
    return verdicts.otherwise(Verdicts.where(~selected, NOT_SELECTED))
