"""Find texts that are copies of one another."""

from typing import Any

import numpy as np
import pyarrow as pa

import curation
from curation.dedup.dedup_settings import DocumentDedupSettings, defaults
from curation.recipe import load
from curation.schema import DOCUMENTS, aligned
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
    numbers = np.arange(given.table.num_rows)
    ids = pa.array(numbers).cast(pa.string())
    columns = {"id": ids, "text": texts_of(given.table).fill_null("")}
    documents = aligned(pa.RecordBatch.from_pydict(columns), DOCUMENTS)
    if (languages := known(given.table, "language")) is None:
        settings = settings.model_copy(update={"per_language": False})
    else:
        documents = documents.append_column("language", languages)
    recipe = load("llama3").model_copy(update={"dedup_documents": settings})
    removed = curation.run(recipe, documents, stages=["dedup-documents"]).removed
    numbers[removed["id"].cast(pa.int64()).to_numpy()] = removed["kept_id"].cast(pa.int64())
    _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    return given.column("cluster", pa.array(first[place], pa.int64()))
