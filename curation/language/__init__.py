"""Language identification.

>>> from curation.language import identify
>>> labels, scores = identify(["Der Hund schläft auf dem Sofa.", ""])
>>> labels
['de', 'und']
"""

from __future__ import annotations

import pyarrow as pa

from curation.arrow import Texts
from curation.language.decide import decide
from curation.language.identifier import DECIMALS, UNKNOWN, LanguageIdentifier
from curation.language.settings import LanguageSettings, default_settings

__all__ = [
    "UNKNOWN",
    "LanguageIdentifier",
    "LanguageSettings",
    "decide",
    "default_settings",
    "identify",
]


def identify(
    texts: Texts, settings: LanguageSettings | None = None
) -> tuple[list[str], list[float]]:
    """Language and score (0 to 1) of every text; `und` where none is found.

    Texts are strings or an Arrow array (null counts as empty). Labels are the model's codes, with
    the default model ISO 639-1 where there is one, else 639-3. Raises ConfigError when the model
    is absent or another one than its checksum says.
    """
    labels, scores = LanguageIdentifier(settings or default_settings()).apply(texts)
    return labels.to_pylist(), scores.cast(pa.float64()).to_numpy().round(DECIMALS).tolist()
