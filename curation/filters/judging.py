"""Signals and verdicts of a table of documents, by the rules of a recipe."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from curation.filters.apply import load_filter
from curation.language.verdicts import with_language
from curation.recipe import Recipe, load
from curation.schema import conformed
from curation.tables import Given, as_given, known, texts_of

#: Documents that are judged at a time.
BATCH_ROWS = 512


def judge(table_or_texts: Any, recipe: str | Recipe = "llama3") -> Any:
    """Return a table with one row per document: why it is removed, and all its signals.

    Columns: `reason` (null: kept), `value`, `threshold`, `path` (prose, code or mathematics),
    `overruled` (the rule that quality overruled, where the recipe lets it), then one float64
    column per signal. Signals are of the text after the recipe's edits; the texts themselves stay
    as they are. Arrow comes back, or pandas or polars where that went in.

    Args:
        table_or_texts: texts, or a table with a text column (`text`, `content`, or as the recipe's
            `readers.text_columns` say). Columns `language`, `quality` and `url` are used where
            they are. The language of texts that have none is identified.
        recipe: name or path of a recipe.

    Raises ConfigError for a recipe that does not exist, InputError for a table without texts.
    """
    given = as_given(table_or_texts)
    loaded = load(recipe) if isinstance(recipe, str) else recipe
    documents, held = _documents(given, loaded), load_filter(loaded.filter)
    parts = [_judged(held.apply(batch)) for batch in documents.to_batches(BATCH_ROWS)]
    if not parts:
        parts = [_judged(held.apply(pa.RecordBatch.from_pylist([], schema=documents.schema)))]
    joined = pa.concat_tables(parts)
    return given.result({name: joined[name] for name in joined.column_names})


def _documents(given: Given, recipe: Recipe) -> pa.Table:
    table, texts = given.table, texts_of(given.table, recipe.readers.text_columns).fill_null("")
    nothing = pa.array([""] * len(texts), pa.string())
    columns = {"id": nothing, "url": nothing, "text": texts}
    for name in ("url", "language", "quality"):
        if (column := known(table, name)) is not None:
            columns[name] = column
    (batch,) = pa.table(columns).combine_chunks().to_batches() or [None]
    if not batch:
        return pa.table(columns)
    return pa.Table.from_batches([with_language(conformed(batch), recipe.identify_language)])


def _judged(result: Any) -> pa.Table:
    verdicts = result.verdicts
    columns = {"reason": verdicts.reason, "value": verdicts.value, "threshold": verdicts.threshold}
    columns["path"] = result.paths
    if result.overruled is not None:
        columns["overruled"] = result.overruled
    signals = zip(result.signals.type, result.signals.flatten(), strict=True)
    return pa.table(columns | {field.name: values for field, values in signals})
