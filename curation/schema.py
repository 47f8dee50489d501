"""Columns of documents, removed documents and edits, and the verdicts that move a document.

A document keeps its columns through every stage; stages add columns or replace `text`. Every input
document of a stage ends in exactly one of `documents` and `removed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import storable, stored
from curation.columns import DOMAINS as DOMAINS
from curation.columns import LABEL_COLUMNS
from curation.columns import Domain as Domain
from curation.errors import InputError

SOURCE = pa.struct([("file", pa.string()), ("offset", pa.int64())])

#: Rights signals of the page's site, its HTTP headers and the page itself (docs/rights.md).
SIGNAL = pa.struct([(name, pa.string()) for name in ("kind", "place", "agent", "value")])
#: List items are named as in Parquet, so that read and created data have the same type.
RIGHTS = pa.struct([("licence", pa.string()), ("signals", pa.list_(pa.field("element", SIGNAL)))])
#: HTTP metadata of a page, and the language declared in its headers or HTML.
RESPONSE = pa.struct(
    [
        ("status", pa.int16()),
        ("content_type", pa.string()),
        ("last_modified", pa.string()),
        ("language", pa.string()),
    ]
)
#: HTTP header lines in order: names in lower case, possibly repeated.
HEADERS = pa.map_(pa.string(), pa.string())

DOCUMENTS = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("date", pa.timestamp("us", tz="UTC")),
        ("text", pa.large_string()),
        ("title", pa.string()),
        ("source", SOURCE),
    ]
)

#: Documents as written by `extract`; those from tables may lack the last four columns.
#: `content_score` is the mean probability of the text's characters to be main content, `link_share`
#: the share of them in blocks (headings, items, cells) that are links. Both are null where no
#: blocks were judged: texts, other engines.
EXTRACTED = pa.schema(
    [
        *DOCUMENTS,
        ("rights", RIGHTS),
        ("response", RESPONSE),
        ("content_score", pa.float32()),
        ("link_share", pa.float32()),
    ]
)

#: Types in which stages read columns, by name.
COLUMN_TYPES: dict[str, pa.DataType] = {
    **{field.name: field.type for field in EXTRACTED},
    **dict.fromkeys(LABEL_COLUMNS, pa.string()),
}

REMOVED_FIELDS = [
    pa.field("stage", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("value", pa.float64()),
    pa.field("threshold", pa.float64()),
    pa.field("kept_id", pa.string()),
]

#: Columns that only some stages add to removed documents: the value where it is a text, and the
#: size of a duplicate's cluster.
VALUE_TEXT, CLUSTER_SIZE = "value_text", "cluster_size"
#: Every column that a verdict can add.
VERDICT_COLUMNS = (*(field.name for field in REMOVED_FIELDS), VALUE_TEXT, CLUSTER_SIZE)

#: Column with the place in training of each copy of a document, list<uint64>, if a mix has phases.
PLACES = "places"

#: Names reserved in documents, which a table's own columns can't have: columns always present,
#: those added to removed documents, and those that decide what a later stage does.
RESERVED = frozenset(
    {*DOCUMENTS.names, *VERDICT_COLUMNS}
    | {"path", PLACES, "repeats", "signals", "tokens", "verdicts"}
)

#: Columns made by the toolkit; all others come from the input table or user code.
MADE = frozenset({*RESERVED, *COLUMN_TYPES} | {"language_score", "overruled", "quality"})

#: Column with the verdicts of a run that only measures, in the order of the stages.
VERDICTS = pa.list_(pa.field("element", pa.struct(REMOVED_FIELDS[:4])))

#: Cuts that a stage made in kept documents: one row per cut.
EDITS = pa.schema(
    [
        ("id", pa.string()),
        ("reason", pa.string()),
        ("position", pa.int64()),  # byte offset in the text before this stage
        ("text", pa.large_string()),
    ]
)

#: Records that could not be read, and pages on which the extractor failed. Such a file can be an
#: input of `extract`, which retries the whole pages and sets the other rows aside again.
SET_ASIDE = pa.schema(
    [
        ("id", pa.string()),  # id of the page's document
        ("url", pa.string()),
        ("date", pa.timestamp("us", tz="UTC")),
        ("html", pa.binary()),  # the whole page, where it was read and is HTML
        ("text", pa.binary()),  # the same where it is plain text
        ("charset", pa.string()),  # that came with the page
        ("mended", pa.string()),  # what was wrong with the page's record
        ("status", pa.int16()),  # HTTP status, and the header lines kept
        ("headers", HEADERS),
        ("raw", pa.binary()),  # first bytes of an unreadable place
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("source", SOURCE),
    ],
    metadata={"curation": "set_aside"},
)

#: Problems of documents: repaired records, which contain what could be recovered, and documents on
#: which user code failed.
MENDED = pa.schema([SET_ASIDE.field(name) for name in ("id", "url", "reason", "detail", "source")])


#: What all verdicts have.
_ALWAYS = ("reason", "value", "threshold", "kept_id")


@dataclass(frozen=True)
class Verdicts:
    """A stage's decisions on the documents of a batch; a null reason means kept.

    All arrays have one entry per document. Values, thresholds and ids that are not given are null.
    """

    reason: pa.Array  # string
    value: pa.Array = None  # float64
    threshold: pa.Array = None  # float64
    kept_id: pa.Array = None  # string
    cluster_size: pa.Array | None = None  # int64, from the stage that forms clusters
    value_text: pa.Array | None = None  # string, from stages whose values are texts

    def __post_init__(self) -> None:
        number = pa.float64()
        for name, kind in (("value", number), ("threshold", number), ("kept_id", pa.string())):
            if getattr(self, name) is None:
                object.__setattr__(self, name, pa.nulls(len(self.reason), kind))

    @classmethod
    def keep_all(cls, rows: int) -> Verdicts:
        return cls(pa.nulls(rows, pa.string()))

    @classmethod
    def where(
        cls,
        removed: npt.NDArray[np.bool_],
        reason: str,
        value: npt.NDArray[np.float64] | None = None,
        threshold: float | None = None,
    ) -> Verdicts:
        """Remove the documents where `removed` is true, all for one reason."""
        rows = len(removed)
        keep = ~np.asarray(removed, bool)
        values = None if value is None else np.asarray(value, np.float64)
        limits = None if threshold is None else np.full(rows, threshold, np.float64)
        return cls(
            pa.array(np.full(rows, reason, object), pa.string(), mask=keep),
            *(None if n is None else pa.array(n, mask=keep) for n in (values, limits)),
        )

    @classmethod
    def of_texts(cls, reasons: pa.Array, values: pa.Array) -> Verdicts:
        """Return verdicts whose values are texts: both string, null for documents kept."""
        return cls(reasons, value_text=values)

    def otherwise(self, later: Verdicts) -> Verdicts:
        """Keep the verdicts that remove a document; take `later` for all others."""
        pairs = ((getattr(later, name), getattr(self, name)) for name in _ALWAYS)
        return Verdicts(*(pc.if_else(self.kept, theirs, ours) for theirs, ours in pairs))

    @classmethod
    def concatenated(cls, parts: Sequence[Verdicts]) -> Verdicts:
        """Concatenate the verdicts of batches."""
        return cls(*(pa.concat_arrays([getattr(p, name) for p in parts]) for name in _ALWAYS))

    def placed(self, rows: npt.NDArray[np.int64], size: int) -> Verdicts:
        """Return verdicts on `size` documents: these on the documents in `rows`, else none."""
        place = np.full(size, -1, np.int64)
        place[rows] = np.arange(len(rows))
        return self.take(pa.array(place, mask=place < 0))

    def take(self, rows: pa.Array) -> Verdicts:
        """Return the verdicts of these rows; null where a row is null."""
        return self._each(lambda array: array.take(rows))

    def filter(self, wanted: pa.Array) -> Verdicts:
        """Return the verdicts of the rows selected by a mask."""
        return self._each(lambda array: array.filter(wanted))

    def _each(self, change: Callable[[pa.Array], pa.Array]) -> Verdicts:
        arrays = (getattr(self, name) for name in (*_ALWAYS, CLUSTER_SIZE, VALUE_TEXT))
        return Verdicts(*(None if array is None else change(array) for array in arrays))

    @property
    def kept(self) -> pa.Array:
        return pc.is_null(self.reason)


def split(
    batch: pa.RecordBatch, verdicts: Verdicts, stage: str
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Divide a batch into kept documents and removed ones with the verdict columns."""
    kept = verdicts.kept
    lost = pc.invert(kept)
    removed = _chosen(batch, lost)
    why = verdicts.filter(lost)
    stages = pa.array([stage] * removed.num_rows, pa.string())
    columns = [stages, why.reason, why.value, why.threshold, why.kept_id]
    fields = [*batch.schema, *REMOVED_FIELDS]
    for name, column in ((CLUSTER_SIZE, why.cluster_size), (VALUE_TEXT, why.value_text)):
        if column is not None:
            columns.append(column)
            fields.append(pa.field(name, column.type))
    removed = pa.RecordBatch.from_arrays([*removed.columns, *columns], schema=pa.schema(fields))
    return _chosen(batch, kept), removed


def _chosen(batch: pa.RecordBatch, wanted: pa.Array) -> pa.RecordBatch:
    """Return the selected rows; all of them, which may be one large, are not copied."""
    if wanted.true_count in (0, batch.num_rows):
        return batch.slice(0, wanted.true_count)
    return batch.filter(wanted)


def taken(batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Return rows of a batch. Large lists are of numbers, none of them null.

    These are copied whole: `take` would first make an index of all that is in them.
    """
    index = pa.array(rows)
    columns = [
        _lists_taken(column, rows) if pa.types.is_large_list(column.type) else column.take(index)
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _lists_taken(lists: pa.LargeListArray, rows: npt.NDArray[np.int64]) -> pa.LargeListArray:
    ends, values = lists.offsets.to_numpy(), lists.values.to_numpy()
    parts = [values[:0], *(values[ends[row] : ends[row + 1]] for row in rows)]
    return pa.LargeListArray.from_arrays(np.cumsum([*map(len, parts)]), np.concatenate(parts))


def fits(name: str, kind: pa.DataType) -> bool:
    """Return whether `conformed` can read a column of this name and type.

    Strings may be binary or dictionaries, ids may be integers; dates need a unit, so they may be
    any timestamps or dates, but not numbers or strings.
    """
    if name == "quality":
        return bool(pa.types.is_floating(kind))  # a probability; whole numbers are other grades
    return name not in COLUMN_TYPES or _fits(kind, COLUMN_TYPES[name], name == "id")


def _fits(kind: pa.DataType, target: pa.DataType, numbered: bool = False) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return True
    if pa.types.is_struct(target):
        held = {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}
        return all(f.name in held and _fits(held[f.name], f.type) for f in target)
    if pa.types.is_list(target):
        lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        return lists and _fits(kind.value_type, target.value_type)
    if pa.types.is_timestamp(target):
        return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
    if pa.types.is_floating(target):
        return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
    if pa.types.is_integer(kind):
        return numbered or bool(pa.types.is_integer(target))
    strings = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())
    return kind in strings and not pa.types.is_integer(target)


def conformed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast the columns of COLUMN_TYPES to their types, whatever wrote the documents, and others to
    types that all stages can handle (`curation.arrow.storable`).

    Timestamps without a zone are in UTC and truncated to microseconds. Raises InputError, naming
    the column, for a value that does not fit the type.
    """
    for i, field in enumerate(batch.schema):
        target = COLUMN_TYPES.get(field.name) or storable(field.type)
        if field.type != target:
            try:
                cast = _cast if field.name in COLUMN_TYPES else stored
                column = cast(batch.column(i), target)
            except pa.ArrowException as error:
                raise InputError(f"column {field.name!r}, {field.type}: {error}") from None
            batch = batch.set_column(i, field.name, column)
    return batch


def check_quality(values: pa.Array) -> None:
    """Raise InputError unless all values are from 0 to 1, as the stages read `quality`."""
    found = pc.min_max(values).as_py()
    for value in (found["min"], found["max"]):
        if value is not None and (value < 0 or value > 1):  # NaN is as good as null
            raise InputError(
                f"column 'quality' has {value:g}, but stages read it as a probability from 0 to 1: "
                "rename it, or --set read-tables.kept_beside=[quality]"
            )


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_struct(target) and pa.types.is_struct(column.type):
        parts = [_cast(pc.struct_field(column, field.name), field.type) for field in target]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=column.is_null())
    return pc.cast(column, options=pc.CastOptions(target, allow_time_truncate=True))


def column_of(batch: pa.RecordBatch, name: str, kind: pa.DataType | None = None) -> pa.Array:
    """Return a column, or nulls of a type (strings, if none is given) where there is none."""
    if name in batch.schema.names:
        return batch.column(name)
    return pa.nulls(batch.num_rows, pa.string() if kind is None else kind)


def aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of a schema, in its order and types; those that are absent are null."""
    columns = [column_of(batch, field.name, field.type).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def edits_of(
    ids: pa.Array, rows: Any, reasons: pa.Array | str, positions: Any, texts: pa.Array
) -> pa.RecordBatch:
    """Return what was cut out of documents with these ids, by row: EDITS."""
    if isinstance(reasons, str):
        reasons = pa.array([reasons] * len(rows), pa.string())
    columns = [ids.take(pa.array(rows)), reasons, pa.array(positions, pa.int64()), texts]
    return pa.RecordBatch.from_arrays(columns, schema=EDITS)


def with_column(batch: Any, name: str, values: pa.Array) -> Any:
    """Replace the column of that name in a batch or table, or add it at the end."""
    index = batch.schema.get_field_index(name)
    if index >= 0:
        return batch.set_column(index, name, values)
    return batch.append_column(name, values)


#: Prefix of reasons of documents that could not be measured because user code failed on them.
_NOT_MEASURED = "error."


def recorded(
    batch: pa.RecordBatch, verdicts: Verdicts, stage: str
) -> tuple[pa.RecordBatch, Verdicts]:
    """Append a stage's verdicts to the column `verdicts`, and keep the documents.

    Documents that could not be measured are removed nevertheless.
    """
    failed = pc.fill_null(pc.starts_with(verdicts.reason, _NOT_MEASURED), False)
    judged = pc.if_else(failed, None, verdicts.reason)
    found = [list(v or ()) for v in column_of(batch, "verdicts", VERDICTS).to_pylist()]
    places = np.flatnonzero(judged.is_valid().to_numpy(zero_copy_only=False))
    values, thresholds = verdicts.value.to_pylist(), verdicts.threshold.to_pylist()
    for place in places.tolist():
        entry = {"stage": stage, "reason": judged[place].as_py()}
        found[place].append(entry | {"value": values[place], "threshold": thresholds[place]})
    left = Verdicts(pc.if_else(failed, verdicts.reason, None))
    return with_column(batch, "verdicts", pa.array(found, VERDICTS)), left
