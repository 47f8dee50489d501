"""Scores of a table of documents."""

from __future__ import annotations

from typing import Any

from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings, default_settings
from curation.tables import as_given, known, texts_of


def score(texts: Any, settings: ClassifySettings | None = None) -> Any:
    """Return a table with one row per text: `quality`, `domain`, `topic` and `format`.

    `quality` is float32, the probability of a high grade; the others are strings. Arrow comes
    back, or pandas or polars where that went in.

    Args:
        texts: strings, or a table with a column `text` or `content`. A column `language` decides
            what is multilingual; without it a document is general, mathematics or code.
        settings: default: those of configs/defaults/classify.yaml.

    Raises ConfigError when a model is absent, InputError for a table without texts.
    """
    given = as_given(texts)
    languages = known(given.table, "language")
    found = Classifier(settings or default_settings()).apply(texts_of(given.table), languages)
    names = ("quality", "domain", "topic", "format")
    return given.result({name: getattr(found, name) for name in names})
