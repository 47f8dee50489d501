"""Columns of documents, removed documents and edits, and the verdicts that move a document.

A document keeps its columns through every stage; stages add columns or replace `text`. Every input
document of a stage ends in exactly one of `documents` and `removed`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SOURCE = pa.struct([("file", pa.string()), ("offset", pa.int64())])

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

REMOVED_FIELDS = [
    pa.field("stage", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("value", pa.float64()),
    pa.field("threshold", pa.float64()),
    pa.field("kept_id", pa.string()),
]

#: What a stage cut out of documents that it kept: one row per cut.
EDITS = pa.schema(
    [
        ("id", pa.string()),
        ("reason", pa.string()),
        ("position", pa.int64()),  # byte offset in the text before this stage
        ("text", pa.large_string()),
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
        kept_id: pa.Array | None = None,
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
            pa.nulls(rows, pa.string()) if kept_id is None else kept_id,
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

    @property
    def kept(self) -> pa.Array:
        return pc.is_null(self.reason)


def split(
    batch: pa.RecordBatch, verdicts: Verdicts, stage: str
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Divide a batch into kept documents and removed ones with the verdict columns."""
    kept = verdicts.kept
    lost = pc.invert(kept)
    removed = batch.filter(lost)
    columns = [
        pa.array([stage] * removed.num_rows, pa.string()),
        verdicts.reason.filter(lost),
        verdicts.value.filter(lost),
        verdicts.threshold.filter(lost),
        verdicts.kept_id.filter(lost),
    ]
    fields = [*batch.schema, *REMOVED_FIELDS]
    if verdicts.cluster_size is not None:
        columns.append(verdicts.cluster_size.filter(lost))
        fields.append(pa.field("cluster_size", pa.int64()))
    removed = pa.RecordBatch.from_arrays([*removed.columns, *columns], schema=pa.schema(fields))
    return batch.filter(kept), removed


def with_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Replace the column of that name, or add it at the end."""
    index = batch.schema.get_field_index(name)
    if index >= 0:
        return batch.set_column(index, name, values)
    return batch.append_column(name, values)
