"""Convert a caller's table to documents, and documents back to rows of the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from curation.arrow import stored
from curation.errors import InputError
from curation.readers.headers import any_date
from curation.recipe import Recipe
from curation.schema import DOCUMENTS, SOURCE, conformed, fits
from curation.tables import Given, combined, first_column, known, texts_of

#: Columns that a caller may give and a later stage reads, with the stage that makes them.
_MADE_BY = {
    "content_score": "extract",
    "link_share": "extract",
    "language": "identify-language",
    "quality": "classify",
    "domain": "classify",
    "topic": "classify",
    "format": "classify",
}
_SOURCE_NAME = "table"


def documents_of(given: Given, recipe: Recipe, stages: Sequence[str]) -> pa.RecordBatch:
    """Return document columns, plus given columns that none of the stages will make.

    Raises InputError for a table without texts, or for rows without text if no stage extracts.
    """
    table, readers, rows = given.table, recipe.readers, given.table.num_rows
    texts = pa.nulls(rows, pa.large_string())
    has_texts = first_column(table, readers.text_columns) is not None
    if has_texts or first_column(table, readers.html_columns) is None:
        texts = texts_of(table, readers.text_columns)
    if "extract" not in stages and texts.null_count:
        place = pc.index(pc.is_null(texts), True).as_py()
        raise InputError(f"row {place}: no text")
    columns: dict[str, pa.Array] = {
        "id": _ids(table),
        "url": _strings(table, readers.url_columns),
        "date": _dates(table, readers.date_columns),
        "text": texts.fill_null(""),
        "title": _strings(table, ("title",)),
        "source": _sources(table),
    }
    for name, stage in _MADE_BY.items():
        if stage not in stages and (column := known(table, name)) is not None:
            columns[name] = column
    return conformed(pa.RecordBatch.from_pydict(columns))


def _ids(table: pa.Table) -> pa.Array:
    """Return the given ids, or ids made from the row numbers."""
    own = known(table, "id")
    if own is not None:
        if own.null_count:
            raise InputError(f"row {pc.index(pc.is_null(own), True).as_py()}: no 'id'")
        return own.cast(pa.string())
    names = (f"{_SOURCE_NAME}\0{row}\0" for row in range(table.num_rows))
    return pa.array([xxhash.xxh3_128_hexdigest(n.encode()) for n in names], pa.string())


def _strings(table: pa.Table, names: Sequence[str]) -> pa.Array:
    name = first_column(table, names)
    if name is None or not fits("url", table.schema.field(name).type):
        return pa.array([""] * table.num_rows, pa.string())
    return stored(combined(table, name), pa.string()).fill_null("")


def _dates(table: pa.Table, names: Sequence[str]) -> pa.Array:
    """Return dates, or strings with dates; null if there are none."""
    kind = DOCUMENTS.field("date").type
    name = first_column(table, names)
    if name is None:
        return pa.nulls(table.num_rows, kind)
    column = combined(table, name)
    if fits("date", column.type):
        return column
    if fits("url", column.type):
        return pa.array([any_date(v) for v in column.to_pylist()], kind)
    raise InputError(f"column {name!r} is {column.type}, not dates")


def _sources(table: pa.Table) -> pa.Array:
    own = known(table, "source")
    if own is not None and own.type == SOURCE:
        return own
    rows = table.num_rows
    files = pa.array([_SOURCE_NAME] * rows, pa.string())
    places = pa.array(np.arange(rows), pa.int64())
    return pa.StructArray.from_arrays([files, places], fields=list(SOURCE))


def written(
    given: Given,
    recipe: Recipe,
    first: pa.RecordBatch,
    rows: npt.NDArray[np.int64],
    batch: pa.RecordBatch,
) -> dict[str, pa.Array]:
    """Return the columns that a stage made or changed, by their names in the table.

    Args:
        first: all documents, as `documents_of` made them.
        rows: numbers of those in `batch`.
        batch: these documents after the stages.
    """
    own, columns = given.table, {}
    name = first_column(own, recipe.readers.text_columns)
    texts = batch.column("text")
    if name is None:
        columns["text"] = texts
    elif not texts.equals(first.column("text").take(pa.array(rows))):
        columns[name] = _as_given(texts, combined(own, name).take(pa.array(rows)))
    if "title" not in own.column_names and pc.any(pc.not_equal(batch.column("title"), "")).as_py():
        columns["title"] = batch.column("title")
    if "id" not in own.column_names:
        columns["id"] = batch.column("id")
    gaps = {n for n in _MADE_BY if n in first.schema.names and first.column(n).null_count}
    made = [n for n in batch.schema.names if n not in first.schema.names or n in gaps]
    return columns | {n: batch.column(n) for n in made}


def _as_given(texts: pa.Array, own: pa.Array) -> pa.Array:
    """Return texts in the type of the table's column; null where there never was a text."""
    if not pa.types.is_dictionary(own.type):
        texts = texts.cast(own.type)
    nothing = pc.and_(pc.is_null(own), pc.equal(pc.binary_length(texts), 0))
    return pc.if_else(nothing, None, texts)
