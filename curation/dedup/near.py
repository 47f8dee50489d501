"""Find texts that are copies of one another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from curation.dedup.dedup_settings import DocumentDedupSettings, defaults
from curation.dedup.in_memory import cluster_ids
from curation.tables import as_given, known, texts_of


def near_duplicates(texts: Any, settings: DocumentDedupSettings | None = None) -> Any:
    """Return the cluster of every text: int64 [texts], the row of the cluster's first text.

    Texts with the same number are exact copies or near duplicates; a unique text has its own row.
    A list of texts gives an Arrow array, a pandas or polars frame or series a series.

    Args:
        texts: strings, or a table with a column `text` or `content`. With a column `language`,
            texts are compared within languages where the settings say so.
        settings: default: those of configs/defaults/dedup-documents.yaml.
    """
    given = as_given(texts)
    settings = settings or defaults(DocumentDedupSettings)
    languages = known(given.table, "language")
    if languages is None:
        settings = settings.model_copy(update={"per_language": False})
    found = cluster_ids(texts_of(given.table), settings, languages)
    return given.column("cluster", pa.array(found, pa.int64()))
