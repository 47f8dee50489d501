"""Quality, domain, topic and format of documents, by linear models over hashed words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.classify.classifier import Classifier, ClassifyResult
    from curation.classify.scoring import score
    from curation.classify.settings import ClassifySettings, default_settings
    from curation.classify.verdicts import decide

__all__ = [
    "Classifier",
    "ClassifyResult",
    "ClassifySettings",
    "decide",
    "default_settings",
    "score",
]

__getattr__ = lazily(
    __name__,
    {
        "Classifier": "curation.classify.classifier",
        "ClassifyResult": "curation.classify.classifier",
        "ClassifySettings": "curation.classify.settings",
        "decide": "curation.classify.verdicts",
        "default_settings": "curation.classify.settings",
        "score": "curation.classify.scoring",
    },
)
