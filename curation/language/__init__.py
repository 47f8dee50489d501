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
    from curation.language.evidence import DECIMALS
    from curation.language.identifier import LanguageIdentifier, identify
    from curation.language.language_settings import UNKNOWN, LanguageSettings, default_settings

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
    "identifier": ("LanguageIdentifier", "identify"),
    "language_settings": ("UNKNOWN", "LanguageSettings", "default_settings"),
    "decide": ("decide",),
    "evidence": ("DECIMALS",),
}
lazily(__name__, _MODULES)
