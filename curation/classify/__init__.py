"""Quality, domain, topic and format of documents, by linear models over hashed words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.classify.classifier import Classifier, ClassifyResult, score
    from curation.classify.classify_settings import ClassifySettings, default_settings
    from curation.classify.decide import decide

__all__ = [
    "Classifier",
    "ClassifyResult",
    "ClassifySettings",
    "decide",
    "default_settings",
    "score",
]

_MODULES = {
    "classifier": ("Classifier", "ClassifyResult", "score"),
    "classify_settings": ("ClassifySettings", "default_settings"),
    "decide": ("decide",),
}
lazily(__name__, _MODULES)
