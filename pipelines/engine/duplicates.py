"""What stages that compare documents across shards share: survivors by key, verdicts, removal.

The way of a duplicate: a map step writes keys as runs; a reduce step finds, in each range of keys,
which documents go and which stay in their place; a verdict step turns that, for each shard, into
rows with reason and values; the last step applies them. Only the last one touches text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from curation.schema import Verdicts
from pipelines.engine.exchange import (
    RANGE_BYTES,
    UInt64,
    concatenated,
    key_ranges,
    read_columns,
    read_range,
    row_of,
    write_columns,
)
from pipelines.engine.files import SCRATCH, FileRecord, Folder
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.tasks import Step, Task, record_name
from pipelines.engine.transform import Outcome, TransformShards, shard_tasks

VERDICTS = pa.schema(
    [
        ("row", pa.int64()),
        ("reason", pa.string()),
        ("value", pa.float64()),
        ("threshold", pa.float64()),
        ("kept_id", pa.string()),
    ]
)


def scratch(step: str, name: str) -> str:
    """Place of a file that only the stage itself reads."""
    return f"{SCRATCH}/data/{step}/{name}.arrow"


def numbered_tasks(shards: Sequence[Shard]) -> list[Task]:
    """One task per shard whose output holds document numbers, and so depends on its index."""
    return [
        Task(s.name, ((s.name, s.fingerprint), ("index", str(i))), s.bytes, (i, s))
        for i, s in enumerate(shards)
    ]


def files_of(folder: Folder, step: Step, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Commit records of finished tasks, in the order of the tasks."""
    return [folder.read_json(record_name(step, t)) for t in tasks]


def output_fingerprint(records: Sequence[dict[str, Any]]) -> str:
    """One fingerprint for all files of the given commit records."""
    digest = xxhash.xxh3_128()
    for record in records:
        for name, file in sorted(record["files"].items()):
            digest.update(f"{name} {file['sha256']}\n".encode())
    return digest.hexdigest()


def range_tasks(records: Sequence[dict[str, Any]], kind: str, payload: Any) -> list[Task]:
    """Reduce tasks over ranges of keys; their number follows from the bytes of the runs."""
    size = sum(f["bytes"] for r in records for n, f in r["files"].items() if f"/{kind}/" in n)
    ranges = key_ranges(max(1, -(-size // RANGE_BYTES)))
    source = output_fingerprint(records)
    return [
        Task(
            f"range-{i:05d}-of-{len(ranges):05d}",
            (("runs", source), ("range", f"{low:016x}-{high:016x}")),
            size // len(ranges),
            (low, high, payload),
        )
        for i, (low, high) in enumerate(ranges)
    ]


def read_key_range(
    folder: Folder, kind: str, shards: Sequence[str], low: int, high: int
) -> pa.RecordBatch | None:
    """Rows of all runs of a kind whose `key` lies in the range; None when there are none."""
    batches = list(read_range(folder, [scratch(kind, s) for s in shards], "key", low, high))
    return concatenated(batches) if batches else None


def removals_of_shard(
    folder: Folder, kind: str, ranges: Sequence[str], index: int
) -> pa.RecordBatch | None:
    """Rows of the removal runs (sorted by document number `key`) that concern one shard."""
    low, high = index << 32, (index << 32) | 0xFFFFFFFF
    batches = list(read_range(folder, [scratch(kind, r) for r in ranges], "key", low, high))
    return concatenated(batches) if batches else None


def write_verdicts(
    folder: Folder,
    shard: str,
    numbers: UInt64,
    reason: Sequence[str],
    value: Any,
    threshold: Any,
    kept_id: pa.Array,
) -> FileRecord:
    """Write a shard's verdicts in the order of its rows."""
    order = np.argsort(numbers, kind="stable")
    take = pa.array(order)
    columns = {
        "row": pa.array(row_of(numbers)[order], pa.int64()),
        "reason": pa.array(list(reason), pa.string()).take(take),
        "value": pa.array(value, pa.float64(), from_pandas=True).take(take),
        "threshold": pa.array(threshold, pa.float64(), from_pandas=True).take(take),
        "kept_id": kept_id.cast(pa.string()).take(take),
    }
    return write_columns(folder, scratch("verdicts", shard), columns)


def no_verdicts(folder: Folder, shard: str) -> FileRecord:
    """Write that a shard loses nothing."""
    empty = {f.name: pa.array([], f.type) for f in VERDICTS}
    return write_columns(folder, scratch("verdicts", shard), empty)


@dataclass(frozen=True)
class ApplyVerdicts:
    """The transform that removes what the verdict step decided."""

    rows: Any = None  # int64 [verdicts], ascending
    verdicts: pa.RecordBatch | None = None

    def open(self, shard: str, folder: Folder) -> ApplyVerdicts:
        batch = read_columns(folder, scratch("verdicts", shard))
        return ApplyVerdicts(batch.column("row").to_numpy(), batch)

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        assert self.verdicts is not None
        start, end = np.searchsorted(self.rows, [first_row, first_row + batch.num_rows])
        part = self.verdicts.slice(start, end - start)
        place = np.full(batch.num_rows, -1, np.int64)
        place[self.rows[start:end] - first_row] = np.arange(end - start)
        take = pa.array(place, mask=place < 0)
        return Outcome(
            batch,
            Verdicts(
                *(part.column(n).take(take) for n in ("reason", "value", "threshold", "kept_id"))
            ),
        )


def run_verdicts(
    run: StageRun,
    step: Step,
    source: str,
    payloads: Sequence[Any],
    notes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """End a stage that compares documents: a verdict step per shard, then the removal.

    `source` fingerprints what the verdicts follow from; `payloads` has one entry per shard. A shard
    whose verdicts stay the same is not written again.
    """
    verdict_tasks = [
        Task(shard.name, (("found", source), ("index", str(i))), 0, payload)
        for i, (shard, payload) in enumerate(zip(run.inputs, payloads, strict=True))
    ]
    run.run(step, verdict_tasks)
    records = files_of(run.folder, step, verdict_tasks)
    same = {t.name: output_fingerprint([r]) for t, r in zip(verdict_tasks, records, strict=True)}
    tasks = shard_tasks(run.inputs, same)
    run.run(TransformShards(run.stage, run.settings_key, ApplyVerdicts()), tasks)
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    return run.finish(tasks, inputs, {"notes": notes} if notes else None)
