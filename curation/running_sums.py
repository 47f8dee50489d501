"""Sums over many batches by key, in memory for twice the keys at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

_WAITING = 1 << 18  # rows


def summed(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    keys: Sequence[str],
    sums: Sequence[str],
    least: Sequence[str] = (),
) -> pa.Table:
    """Return a row of `schema` for each key, in the order in which keys come.

    It has the sums of the columns `sums` and the least values of the columns `least`.
    """
    wanted = [*((name, "min") for name in least), *((name, "sum") for name in sums)]

    def added(held: pa.Table, more: list[pa.RecordBatch]) -> pa.Table:
        table = pa.concat_tables([held, pa.Table.from_batches(more, schema)])
        found = table.group_by([*keys], use_threads=False).aggregate(wanted)
        names = [name.removesuffix("_min").removesuffix("_sum") for name in found.column_names]
        return found.rename_columns(names).select(schema.names).cast(schema)

    held, waiting, rows = schema.empty_table(), list[pa.RecordBatch](), 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows > max(_WAITING, held.num_rows):  # sums of doubling size: linear in all
            held, waiting, rows = added(held, waiting), [], 0
    return added(held, waiting)
