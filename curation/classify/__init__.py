"""Quality, domain, topic and format of documents, by linear models over hashed words."""

from __future__ import annotations

from curation.classify.classifier import Classifier, ClassifyResult
from curation.classify.decide import decide
from curation.classify.settings import ClassifySettings, default_settings

__all__ = ["Classifier", "ClassifyResult", "ClassifySettings", "decide", "default_settings"]
