"""Language identification.

>>> from curation.language import identify
>>> labels, scores = identify(["Der Hund schläft auf dem Sofa.", ""])
>>> labels
['de', 'und']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.language.decide import decide
    from curation.language.identifier import DECIMALS, UNKNOWN, LanguageIdentifier, identify
    from curation.language.language_settings import LanguageSettings, default_settings

__all__ = [
    "DECIMALS",
    "UNKNOWN",
    "LanguageIdentifier",
    "LanguageSettings",
    "decide",
    "default_settings",
    "identify",
]

_MODULES = {
    "identifier": ("DECIMALS", "UNKNOWN", "LanguageIdentifier", "identify"),
    "language_settings": ("LanguageSettings", "default_settings"),
    "decide": ("decide",),
}
lazily(__name__, _MODULES)
