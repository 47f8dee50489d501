"""Scores of a table of documents."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings, default_settings
from curation.language.language_settings import default_settings as language_defaults
from curation.language.verdicts import with_language
from curation.schema import conformed
from curation.tables import as_given, known, texts_of


def score(texts: Any, settings: ClassifySettings | None = None) -> Any:
    """Return a table with one row per text: `quality`, `domain`, `topic` and `format`.

    `quality` is float32, the probability of a high grade; the others are strings. Arrow comes
    back, or pandas or polars where that went in.

    Args:
        texts: strings, or a table with a column `text` or `content`. The language, which decides
            what is multilingual, is the column `language`, and identified where there is none.
        settings: default: those of configs/defaults/classify.yaml.

    Raises ConfigError when a model is absent, InputError for a table without texts.
    """
    given = as_given(texts)
    columns = {"text": texts_of(given.table).fill_null("")}
    for name in ("language", "link_share"):
        if (column := known(given.table, name)) is not None:
            columns[name] = column
    batch = conformed(pa.RecordBatch.from_pydict(columns))
    batch = with_language(batch, language_defaults())
    found = Classifier(settings or default_settings()).apply_to(batch)
    names = ("quality", "domain", "topic", "format")
    return given.result({name: getattr(found, name) for name in names})
