"""Columns of documents, removed documents and edits, and the verdicts that move a document.

A document keeps its columns through every stage; stages add columns or replace `text`. Every input
document of a stage ends in exactly one of `documents` and `removed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.columns import LABEL_COLUMNS
from curation.domains import DOMAINS as DOMAINS
from curation.domains import Domain as Domain
from curation.errors import InputError

SOURCE = pa.struct([("file", pa.string()), ("offset", pa.int64())])

#: What a page's site, its HTTP head and the page itself say of its rights (docs/rights.md).
SIGNAL = pa.struct(
    [
        ("kind", pa.string()),
        ("place", pa.string()),
        ("agent", pa.string()),
        ("value", pa.string()),
    ]
)
#: Items are called as in Parquet, so that what was read and what is made are of one type.
RIGHTS = pa.struct([("licence", pa.string()), ("signals", pa.list_(pa.field("element", SIGNAL)))])
#: What the HTTP head says of a page, and the language that head or page declare.
RESPONSE = pa.struct(
    [
        ("status", pa.int16()),
        ("content_type", pa.string()),
        ("last_modified", pa.string()),
        ("language", pa.string()),
    ]
)
#: Lines of an HTTP head: names in lower case, in order, one several times if need be.
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

#: Documents as `extract` makes them; those of tables need not have the last two.
EXTRACTED = pa.schema([*DOCUMENTS, ("rights", RIGHTS), ("response", RESPONSE)])

#: Columns that stages read, by name, with the types in which they read them.
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

#: Where each copy of a document comes in training, list<uint64>, from a mix with phases.
PLACES = "places"

#: Names that a table's own columns can't have in documents: those of columns that are always there,
#: that are added to removed documents, or that decide what a later stage does.
RESERVED = frozenset(
    {*DOCUMENTS.names, *(field.name for field in REMOVED_FIELDS)}
    | {"cluster_size", "path", PLACES, "repeats", "signals", "tokens", "verdicts"}
)

#: Columns of documents that the toolkit makes; all others came with a table, or from own code.
MADE = frozenset({*RESERVED, *COLUMN_TYPES, "language_score", "quality"})

#: What stages would have removed a document for, where a run only measures; the first comes first.
VERDICTS = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("stage", pa.string()),
                pa.field("reason", pa.string()),
                pa.field("value", pa.float64()),
                pa.field("threshold", pa.float64()),
            ]
        ),
    )
)

#: What a stage cut out of documents that it kept: one row per cut.
EDITS = pa.schema(
    [
        ("id", pa.string()),
        ("reason", pa.string()),
        ("position", pa.int64()),  # byte offset in the text before this stage
        ("text", pa.large_string()),
    ]
)

#: Records that could not be read, and pages on which the extractor failed. The file is itself an
#: input of `extract`, which tries the whole pages again and sets the other rows aside once more.
SET_ASIDE = pa.schema(
    [
        ("id", pa.string()),  # that the page's document has, or would have
        ("url", pa.string()),
        ("date", pa.timestamp("us", tz="UTC")),
        ("html", pa.binary()),  # the whole page, where it was read and is HTML
        ("text", pa.binary()),  # the same where it is plain text
        ("charset", pa.string()),  # that came with the page
        ("mended", pa.string()),  # what was wrong with the page's record
        ("status", pa.int16()),  # of HTTP, and the lines kept of its head
        ("headers", HEADERS),
        ("raw", pa.binary()),  # first bytes of what could not be read
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("source", SOURCE),
    ],
    metadata={"curation": "set_aside"},
)

#: What was wrong with documents: of broken records, which hold what could be saved of them, and of
#: those on which code of the user's own failed.
MENDED = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("source", SOURCE),
    ]
)


@dataclass(frozen=True)
class Verdicts:
    """What a stage decided on each document of a batch; a null reason means kept.

    All arrays have one entry per document.
    """

    reason: pa.Array  # string
    value: pa.Array  # float64
    threshold: pa.Array  # float64
    kept_id: pa.Array  # string
    cluster_size: pa.Array | None = None  # int64, from the stage that forms clusters

    @classmethod
    def keep_all(cls, rows: int) -> Verdicts:
        return cls(
            pa.nulls(rows, pa.string()),
            pa.nulls(rows, pa.float64()),
            pa.nulls(rows, pa.float64()),
            pa.nulls(rows, pa.string()),
        )

    @classmethod
    def where(
        cls,
        removed: npt.NDArray[np.bool_],
        reason: str,
        value: npt.NDArray[np.float64] | None = None,
        threshold: float | None = None,
    ) -> Verdicts:
        """Remove the documents where `removed` holds, all for one reason."""
        rows = len(removed)
        keep = ~np.asarray(removed, bool)
        return cls(
            pa.array(np.full(rows, reason, object), pa.string(), mask=keep),
            pa.nulls(rows, pa.float64())
            if value is None
            else pa.array(np.asarray(value, np.float64), mask=keep),
            pa.nulls(rows, pa.float64())
            if threshold is None
            else pa.array(np.full(rows, threshold, np.float64), mask=keep),
            pa.nulls(rows, pa.string()),
        )

    def otherwise(self, later: Verdicts) -> Verdicts:
        """The first verdict that removes a document stands; later ones fill the rest."""
        kept = self.kept
        return Verdicts(
            pc.if_else(kept, later.reason, self.reason),
            pc.if_else(kept, later.value, self.value),
            pc.if_else(kept, later.threshold, self.threshold),
            pc.if_else(kept, later.kept_id, self.kept_id),
        )

    @classmethod
    def concatenated(cls, parts: Sequence[Verdicts]) -> Verdicts:
        """The verdicts of batches one after the other."""
        return cls(
            *(
                pa.concat_arrays([getattr(part, name) for part in parts])
                for name in ("reason", "value", "threshold", "kept_id")
            )
        )

    def take(self, rows: pa.Array) -> Verdicts:
        """The verdicts of these rows; null where a row is null."""
        return self._each(lambda array: array.take(rows))

    def filter(self, wanted: pa.Array) -> Verdicts:
        """The verdicts of the rows that are wanted."""
        return self._each(lambda array: array.filter(wanted))

    def _each(self, change: Callable[[pa.Array], pa.Array]) -> Verdicts:
        arrays = (self.reason, self.value, self.threshold, self.kept_id, self.cluster_size)
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
    if why.cluster_size is not None:
        columns.append(why.cluster_size)
        fields.append(pa.field("cluster_size", pa.int64()))
    removed = pa.RecordBatch.from_arrays([*removed.columns, *columns], schema=pa.schema(fields))
    return _chosen(batch, kept), removed


def _chosen(batch: pa.RecordBatch, wanted: pa.Array) -> pa.RecordBatch:
    """The rows that are wanted; of a single one, which may be large, no copy."""
    if batch.num_rows == 1:
        return batch.slice(0, int(wanted[0].as_py()))
    return batch.filter(wanted)


def fits(name: str, kind: pa.DataType) -> bool:
    """Whether a column of the name, held as this type, can be read by `conformed`.

    Strings may be binary or dictionaries and ids integers; dates need a unit, so they may be any
    timestamps or dates, but no numbers or strings.
    """
    if name == "quality":
        return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
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
    if pa.types.is_integer(kind):
        return numbered or bool(pa.types.is_integer(target))
    strings = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())
    return kind in strings and not pa.types.is_integer(target)


def conformed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Documents with the columns of COLUMN_TYPES in these types, whatever wrote them.

    Timestamps without a zone are in UTC; digits beyond microseconds are cut. Raises InputError,
    naming the column, for a value that the type can't hold.
    """
    for i, field in enumerate(batch.schema):
        target = COLUMN_TYPES.get(field.name, field.type)
        if field.type != target:
            try:
                column = _cast(batch.column(i), target)
            except pa.ArrowException as error:
                raise InputError(f"column {field.name!r}, {field.type}: {error}") from None
            batch = batch.set_column(i, field.name, column)
    return batch


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_struct(target) and pa.types.is_struct(column.type):
        parts = [_cast(pc.struct_field(column, field.name), field.type) for field in target]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=column.is_null())
    return pc.cast(column, options=pc.CastOptions(target, allow_time_truncate=True))


def with_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Replace the column of that name, or add it at the end."""
    index = batch.schema.get_field_index(name)
    if index >= 0:
        return batch.set_column(index, name, values)
    return batch.append_column(name, values)


#: Reasons of documents that could not be measured, because code of the user's own failed on them.
_NOT_MEASURED = "error."


def recorded(
    batch: pa.RecordBatch, verdicts: Verdicts, stage: str
) -> tuple[pa.RecordBatch, Verdicts]:
    """Add what a stage would remove documents for to their column `verdicts`, and keep them.

    Documents that could not be measured are removed all the same.
    """
    failed = pc.fill_null(pc.starts_with(verdicts.reason, _NOT_MEASURED), False)
    judged = pc.if_else(failed, None, verdicts.reason)
    rows = batch.num_rows
    known = batch.column("verdicts").to_pylist() if "verdicts" in batch.schema.names else None
    found = [list(v or ()) for v in known] if known else [[] for _ in range(rows)]
    places = np.flatnonzero(judged.is_valid().to_numpy(zero_copy_only=False))
    values, thresholds = verdicts.value.to_pylist(), verdicts.threshold.to_pylist()
    for place in places.tolist():
        entry = {"stage": stage, "reason": judged[place].as_py()}
        found[place].append(entry | {"value": values[place], "threshold": thresholds[place]})
    left = replace(Verdicts.keep_all(rows), reason=pc.if_else(failed, verdicts.reason, None))
    return with_column(batch, "verdicts", pa.array(found, VERDICTS)), left
