"""Turn rows of tables into documents, keeping every other column with its type."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar
from uuid import UUID

import pyarrow as pa
import xxhash

from curation.arrow import as_text, storable
from curation.credentials import without_userinfo
from curation.language.codes import labelled
from curation.readers.formats import format_of, is_table
from curation.readers.raw import RawFile
from curation.readers.read import read
from curation.readers.records import Event, Page
from curation.readers.rows import format_of_rows
from curation.readers.settings import ReaderSettings
from curation.readers.tables import distinct, open_arrow, open_parquet
from curation.schema import DOCUMENTS, RESERVED, check_quality, conformed, fits, with_column

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` items, in order; the last may be shorter."""
    rest = iter(items)
    while some := [*itertools.islice(rest, size)]:
        yield some


#: Rows converted at a time.
ROWS = 512
#: Type of a column with values of several types, each stored as JSON.
_MIXED = pa.string()
#: Other columns of a shard, at most.
_MOST_COLUMNS = 1000
#: The column of PDF.
_OF_PDF = {"page_starts": pa.list_(pa.field("element", pa.int64()))}
#: Key, and name, of the column with all others: JSON.
FURTHER, _FURTHER_NAME = "\0", "further_columns"
Row = dict[str, Any]
#: Fields of the other columns, by their names in the table.
Others = dict[str, pa.Field]


def document_row(name: str, page: Page, text: str = "") -> tuple[Row, Row]:
    """Return a page of the file `name` as a document, and the other columns of its row.

    A table's `id` and `title` are the document's where they are strings, or UUIDs.
    """
    others = dict(page.fields or {})
    stated = (others.get("id"), others.get("title"))
    own, title = ("" if v is None else str(v) if isinstance(v, UUID) else v for v in stated)
    for column, value in (("id", own), ("title", title)):
        if isinstance(value, str):
            others.pop(column, None)
    return (
        {
            "id": own if isinstance(own, str) and own else document_id(name, page),
            "url": without_userinfo(page.url),
            "date": page.date,
            "text": text,
            "title": title if isinstance(title, str) else "",
            "source": {"file": name, "offset": page.offset},
        },
        others,
    )


def document_id(name: str, page: Page) -> str:
    """Return a 128-bit hex id, from the unique place in the input and the record's own id."""
    return xxhash.xxh3_128_hexdigest(f"{name}\0{page.offset}\0{page.record_id}".encode())


def others_of(
    path: str, name: str, settings: ReaderSettings, events: Iterable[Event] | None = None
) -> dict[str, pa.DataType]:
    """Return the types of a table's other columns, in the order in which they first occur.

    A file that is not a table has none, but that of PDF where that is read. Those of Parquet and
    Arrow are its own. In other tables, of which `events` may be a part, a column whose values have
    no common type is a string: JSON. Raises InputError where the file can't be read.
    """
    with RawFile.open(path) as raw:
        rows = format_of_rows(raw, name, settings)
        if rows is not None and rows.columns is not None:
            return {**rows.columns}
        if rows is None:
            if not is_table(raw, name, settings):
                return dict(_OF_PDF) if settings.pdf else {}
            kind = format_of(raw, name)
            try:
                if kind == "parquet":
                    return _other_types(open_parquet(raw)[1], settings)
                if kind == "arrow":
                    return _other_types(open_arrow(raw).schema, settings)
            except (pa.ArrowException, OSError):
                return {}  # no row of it can be read
    return others_in(name, read(path, settings, name) if events is None else events)


def others_in(name: str, events: Iterable[Event]) -> dict[str, pa.DataType]:
    """Return the types of other columns by a table's rows alone, as `others_of` does."""
    return _inferred(document_row(name, e)[1] for e in events if isinstance(e, Page))


def _other_types(schema: pa.Schema, settings: ReaderSettings) -> dict[str, pa.DataType]:
    if schema.metadata and b"curation" in schema.metadata:
        return {}  # rows that were set aside
    types = dict(zip(distinct(schema.names), schema.types, strict=True))
    groups = (settings.contents, settings.date_columns, settings.url_columns, ("id",), ("title",))
    used = [found for group in groups for found in [n for n in group if n in types][:1]]
    strings = (*settings.url_columns, "id", "title")  # other values of theirs stay in a column
    used = [n for n in used if n not in strings or _is_string(types[n])]
    return {n: storable(k, settled=False) or _MIXED for n, k in types.items() if n not in used}


def _is_string(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    texts = (pa.string(), pa.large_string(), pa.string_view(), pa.null())
    return kind in (*texts, pa.uuid(), pa.binary(16))


def _inferred(rows: Iterator[Row]) -> dict[str, pa.DataType]:
    kinds: dict[str, pa.DataType] = {}
    for batch in batched(rows, ROWS):
        values: dict[str, list[Any]] = {}
        for row in batch:
            for name, value in row.items():
                values.setdefault(name, []).append(value)
        for name, some in values.items():
            kinds[name] = _common(kinds.get(name, pa.null()), _kind(some))
    return kinds


def joined(
    kinds: Sequence[dict[str, pa.DataType]],
    only: Sequence[str] | None = None,
    taken: Sequence[str] = (),
) -> Others:
    """Return the fields for tables whose documents are written together.

    A column of a name that means something else in documents, or that is `taken`, gets `own_`
    before its name. `only` names the columns wanted; None: all. Of all, those after the first 1,000
    share one column, as rows of JSON may each have a key of their own.
    """
    found: dict[str, pa.DataType] = {}
    for one in kinds:
        for name, kind in one.items():
            found[name] = _common(found.get(name, pa.null()), kind)
    wanted = [name for name in found if only is None or name in only]
    named = wanted if only is not None else wanted[:_MOST_COLUMNS]
    fields = {
        name: pa.field(
            _own_name(name, kind, taken),
            pa.string() if pa.types.is_null(kind) else storable(kind),
        )
        for name, kind in ((name, found[name]) for name in named)
    }
    if len(wanted) > len(named):
        given = {field.name for field in fields.values()}
        names = ("own_" * n + _FURTHER_NAME for n in itertools.count())
        fields[FURTHER] = pa.field(next(n for n in names if n not in given), pa.string())
    return fields


def _own_name(name: str, kind: pa.DataType, taken: Sequence[str]) -> str:
    if name in RESERVED or name in taken or not fits(name, kind):
        return f"own_{name}"
    return name or "unnamed"


def _kind(values: Sequence[Any]) -> pa.DataType:
    try:
        return storable(pa.array(values).type, settled=False) or _MIXED
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


def documents_batch(
    rows: Sequence[Row], own: Sequence[Row], others: Others, schema: pa.Schema = DOCUMENTS
) -> pa.RecordBatch:
    """Return documents with the other columns of their rows."""
    documents = pa.RecordBatch.from_pylist(list(rows), schema)
    return with_own(documents, own_columns(own, others))


def own_columns(own: Sequence[Row], others: Others) -> pa.StructArray:
    """Return the other columns of rows, as fields of their names in documents."""
    columns = [
        _further(own, others) if n == FURTHER else _column([row.get(n) for row in own], f.type)
        for n, f in others.items()
    ]
    nothing = pa.array([{}] * len(own), pa.struct([]))
    return pa.StructArray.from_arrays(columns, fields=[*others.values()]) if columns else nothing


def _further(own: Sequence[Row], others: Others) -> pa.Array:
    rests = ({n: v for n, v in row.items() if n not in others} for row in own)
    return pa.array([as_text(rest or None) for rest in rests], pa.string())


def with_own(documents: pa.RecordBatch, own: pa.StructArray) -> pa.RecordBatch:
    """Return documents with the columns that `own_columns` made, languages by their labels.

    Raises InputError for values of `quality` that are no probabilities.
    """
    schema = pa.schema([*documents.schema, *own.type])
    columns = [*documents.columns, *own.flatten()]
    batch = conformed(pa.RecordBatch.from_arrays(columns, schema=schema))
    if "quality" in own.type.names:
        check_quality(batch.column("quality"))
    if "language" not in batch.schema.names:
        return batch
    return with_column(batch, "language", labelled(batch.column("language")))


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return Python values and Arrow's scalars as one column."""
    try:
        return pa.array([_cast(value, kind) for value in values], kind)
    except (pa.ArrowException, TypeError):
        if kind == _MIXED:
            return pa.array([as_text(value) for value in values], _MIXED)
    try:  # pyarrow makes no array of scalars that have a null inside
        return pa.concat_arrays([_cell(value, kind) for value in values])
    except pa.ArrowException:  # nor does it always repeat them right
        cells = [v.as_py() if isinstance(v, pa.Scalar) else v for v in values]
        return pa.array(cells, kind)


def _cast(value: Any, kind: pa.DataType) -> Any:
    """Return a scalar of Arrow in this type; any other value as it is."""
    if not isinstance(value, pa.Scalar) or not value.is_valid:
        return None if isinstance(value, pa.Scalar) else value
    return value if value.type == kind else value.cast(kind)


def _cell(value: Any, kind: pa.DataType) -> pa.Array:
    is_scalar = isinstance(value, pa.Scalar) and value.is_valid
    return pa.repeat(value, 1).cast(kind) if is_scalar else pa.array([_cast(value, kind)], kind)
