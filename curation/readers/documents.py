"""Rows of tables as documents: the text byte for byte, and every other column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from curation.credentials import without_userinfo
from curation.errors import InputError
from curation.readers.formats import PARQUET_MAGIC
from curation.readers.raw import RawFile
from curation.readers.read import read
from curation.readers.records import Damage, Page
from curation.readers.settings import ReaderSettings
from curation.readers.tables import row_event
from curation.schema import DOCUMENTS, conformed, fits

#: Rows that are converted together.
ROWS = 512
#: A column in which values of several kinds occur: each as JSON.
_MIXED = pa.string()
Row = dict[str, Any]


def rows_of_file(
    path: str, name: str, settings: ReaderSettings
) -> Iterator[tuple[Row, Row] | Damage]:
    """Yield each row of a table as a document and its other columns, or why it is none.

    Rows without text come as Damage, as do those that can't be read.
    """
    for event in _events(path, name, settings):
        if isinstance(event, Page) and event.kind == "text":
            others = dict(event.fields or {})
            own, title = others.pop("id", None), others.pop("title", None)
            yield (
                {
                    "id": own if isinstance(own, str) and own else _id(name, event.offset),
                    "url": without_userinfo(event.url),
                    "date": event.date,
                    "text": event.content.decode("utf-8", "replace"),
                    "title": title if isinstance(title, str) else "",
                    "source": {"file": name, "offset": event.offset},
                },
                others,
            )
        elif isinstance(event, Damage):
            yield event
        elif isinstance(event, Page):
            detail = f"no text in any of: {', '.join(settings.text_columns)}"
            yield Damage(event.offset, "table.no_text", detail, event.url or None, b"")


def _events(path: str, name: str, settings: ReaderSettings) -> Iterator[Any]:
    with RawFile.open(path) as raw:
        if raw.fetch(0, len(PARQUET_MAGIC)) == PARQUET_MAGIC:
            yield from _parquet(raw, settings)
            return
    yield from read(path, settings, name)


def _parquet(raw: RawFile, settings: ReaderSettings) -> Iterator[Page | Damage]:
    try:
        file = pq.ParquetFile(pa.PythonFile(raw.handle, mode="r"))
    except (pa.ArrowException, OSError) as error:
        yield Damage(0, "parquet.corrupt", str(error), None, b"")
        return
    names = file.schema_arrow.names
    if not {*settings.text_columns} & {*names}:
        raise InputError(
            f"{raw.name}: has none of the columns {', '.join(settings.text_columns)} "
            f"(readers.text_columns), but {', '.join(names)}"
        )
    row = 0
    try:
        for batch in file.iter_batches(ROWS, use_threads=False):
            for values in batch.to_pylist():
                yield row_event(values, row, settings, "table")
                row += 1
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        yield Damage(row, "parquet.corrupt", f"from row {row}: {error}", None, b"")


def _id(name: str, row: int) -> str:
    """The same as `extract` gives a row without an id."""
    return xxhash.xxh3_128_hexdigest(f"{name}\0{row}\0".encode())


#: Fields of the other columns, by their names in the table.
Others = dict[str, pa.Field]


def others_of(
    path: str, name: str, settings: ReaderSettings, only: Sequence[str] | None
) -> dict[str, pa.DataType]:
    """Return the types of a table's other columns, in the order in which they first occur.

    Those of Parquet are its own. In other tables, a column whose values have no common type is a
    string: JSON. `only` names the columns wanted; None: all.
    """
    with RawFile.open(path) as raw:
        if raw.fetch(0, len(PARQUET_MAGIC)) == PARQUET_MAGIC:
            try:
                schema = pq.ParquetFile(pa.PythonFile(raw.handle, mode="r")).schema_arrow
            except (pa.ArrowException, OSError):
                return {}  # no row of it can be read
            used = {*_used(schema.names, settings), "id", "title"}
            kinds = {f.name: f.type for f in schema if f.name not in used}
        else:
            kinds = _inferred(rows_of_file(path, name, settings))
    return {n: k for n, k in kinds.items() if only is None or n in only}


def _used(names: Sequence[str], settings: ReaderSettings) -> set[str]:
    """Columns that are text, address and date of documents."""
    groups = (settings.text_columns, settings.url_columns, settings.date_columns)
    return {found for group in groups for found in [n for n in group if n in names][:1]}


def _inferred(rows: Iterator[tuple[Row, Row] | Damage]) -> dict[str, pa.DataType]:
    kinds: dict[str, pa.DataType] = {}
    for batch in _batched(others for _, others in _documents(rows)):
        for name in dict.fromkeys(key for row in batch for key in row):
            kind = _kind([row.get(name) for row in batch])
            kinds[name] = _common(kinds.get(name, pa.null()), kind)
    return kinds


def joined(kinds: Sequence[dict[str, pa.DataType]]) -> Others:
    """Return the fields for tables whose documents are written together.

    A column of a name that means something else in documents gets `own_` before its name.
    """
    found: dict[str, pa.DataType] = {}
    for one in kinds:
        for name, kind in one.items():
            found[name] = _common(found.get(name, pa.null()), kind)
    return {
        name: pa.field(_own_name(name, kind), pa.string() if pa.types.is_null(kind) else kind)
        for name, kind in found.items()
    }


def _own_name(name: str, kind: pa.DataType) -> str:
    clashes = name in DOCUMENTS.names or not fits(name, kind)
    return f"own_{name}" if clashes else name


def _documents(rows: Iterator[tuple[Row, Row] | Damage]) -> Iterator[tuple[Row, Row]]:
    return (row for row in rows if not isinstance(row, Damage))


def _batched(rows: Iterator[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _kind(values: Sequence[Any]) -> pa.DataType:
    try:
        return pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return _MIXED


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    schemas = [pa.schema([("x", one)]), pa.schema([("x", other)])]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("x").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return _MIXED


def documents_batch(rows: Sequence[tuple[Row, Row]], others: Others) -> pa.RecordBatch:
    """Return documents with the other columns."""
    documents = pa.RecordBatch.from_pylist([document for document, _ in rows], DOCUMENTS)
    columns = [_column([own.get(n) for _, own in rows], f.type) for n, f in others.items()]
    schema = pa.schema([*DOCUMENTS, *others.values()])
    return conformed(pa.RecordBatch.from_arrays([*documents.columns, *columns], schema=schema))


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = [
            v
            if v is None or isinstance(v, str)
            else json.dumps(v, ensure_ascii=False, sort_keys=True, default=str)
            for v in values
        ]
        return pc.cast(pa.array(texts, pa.string()), kind)
