"""Code shared by stages that compare documents across shards: survivors, verdicts, removal.

The steps: a map step writes keys as runs; a reduce step finds, in each range of keys, which
documents to remove and which to keep instead; a verdict step turns that, for each shard, into rows
with reason and values; the last step applies them. Only the last one reads text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.audit import SOURCES, losses_by_source
from curation.dedup.dedup_settings import DocumentDedupSettings, LineDedupSettings
from curation.errors import InputError
from curation.schema import Verdicts
from pipelines.engine.documents import set_aside_by
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.transform import Applied, Outcome, Transform, TransformShards, shard_tasks
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Step, Task
from pipelines.storage.exchange import (
    MOST_RANGES,
    RANGE_BYTES,
    UInt64,
    concatenated,
    key_ranges,
    numbers_of_shard,
    read_columns,
    read_range,
    row_of,
    scratch,
    write_columns,
)
from pipelines.storage.files import Folder

VERDICTS = pa.schema(
    [
        ("row", pa.int64()),
        ("reason", pa.string()),
        ("value", pa.float64()),
        ("threshold", pa.float64()),
        ("kept_id", pa.string()),
    ]
)
#: Folder of what documents lost, by language, host and source file.
AUDIT = "audit"
#: Additional verdict column of stages that form clusters.
CLUSTER_SIZE = pa.field("cluster_size", pa.int64())


def check_languages(
    batch: pa.RecordBatch, settings: DocumentDedupSettings | LineDedupSettings, stage: str
) -> None:
    """Raise InputError if documents are to be compared by language but have none."""
    if settings.per_language and "language" not in batch.schema.names:
        raise InputError(
            "no column 'language'; run identify-language first, or compare all languages "
            f"together with {stage}.per_language=false"
        )


def numbered_tasks(shards: Sequence[Shard]) -> list[Task]:
    """Return one task per shard whose output has document numbers, and so depends on its index."""
    return [
        Task(s.name, ((s.name, s.fingerprint), ("index", str(i))), s.bytes, (i, s))
        for i, s in enumerate(shards)
    ]


class OverRanges:
    """A step whose tasks are those of `range_tasks`."""

    def key_range(self, task: Task) -> tuple[int, int]:
        return task.payload  # type: ignore[no-any-return]


def range_tasks(size: int, range_bytes: int | None = None, source: str = "") -> list[Task]:
    """Return reduce tasks over key ranges, as many as about `size` bytes of rows need.

    A task's payload is only the range: what all tasks share, such as the names of thousands of
    runs, belongs to the step, which is sent once.
    """
    count = max(1, -(-size // (range_bytes or RANGE_BYTES)))
    ranges = key_ranges(min(count, MOST_RANGES))
    inputs = (("runs", source),) if source else ()
    return [
        Task(
            f"range-{i:05d}-of-{len(ranges):05d}",
            (*inputs, ("range", f"{low:016x}-{high:016x}")),
            size // len(ranges),
            (low, high),
        )
        for i, (low, high) in enumerate(ranges)
    ]


def read_key_range(
    folder: Folder, kind: str, shards: Sequence[str], low: int, high: int
) -> pa.RecordBatch | None:
    """Return the rows of all runs of a kind with `key` in the range; None if there are none."""
    batches = list(read_range(folder, [scratch(kind, s) for s in shards], "key", low, high))
    return concatenated(batches) if batches else None


@dataclass(frozen=True)
class OfShard:
    """A step whose tasks gather, for the documents of a shard each, the rows that others sent."""

    settings_key: str
    senders: tuple[str, ...]  # names of the tasks that sent them
    gathers: ClassVar[str]

    def runs(self) -> list[str]:
        return [scratch(self.gathers, s) for s in self.senders]

    def key_range(self, task: Task) -> tuple[int, int]:
        return numbers_of_shard(task.payload[0])

    def rows(self, task: Task, folder: Folder) -> pa.RecordBatch | None:
        return read_key_range(folder, self.gathers, self.senders, *self.key_range(task))


def verdict_rows(
    numbers: UInt64,
    reason: Sequence[str],
    value: Any,
    threshold: Any,
    kept_id: pa.Array,
    cluster_size: Any = None,
) -> pa.RecordBatch:
    """Return verdicts on documents by number: rows of VERDICTS, with CLUSTER_SIZE if given."""
    columns = {
        "row": pa.array(row_of(numbers), pa.int64()),
        "reason": pa.array(list(reason), pa.string()),
        "value": pa.array(value, pa.float64(), from_pandas=True),
        "threshold": pa.array(threshold, pa.float64(), from_pandas=True),
        "kept_id": kept_id.cast(pa.string()),
    }
    if cluster_size is not None:
        columns[CLUSTER_SIZE.name] = pa.array(cluster_size, pa.int64())
    return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class WriteVerdicts(OfShard):
    """For each shard, write which rows to remove, why, and what is kept instead."""

    read_by: ClassVar[tuple[str, ...]]  # steps that may have set documents aside
    clusters: ClassVar[bool] = False  # whether verdicts have CLUSTER_SIZE
    sends: ClassVar[tuple[str, ...]] = ("verdicts",)

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the verdicts on documents that others sent, as `verdict_rows` does."""
        raise NotImplementedError

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        """Write verdicts in the order of rows; what was set aside is removed for that alone."""
        rows, aside = self.rows(task, folder), dict[int, str]()
        for step in self.read_by:
            aside |= set_aside_by(folder, step, task.name)
        schema = VERDICTS.append(CLUSTER_SIZE) if self.clusters else VERDICTS
        verdicts = pa.RecordBatch.from_pylist([], schema) if rows is None else self.of(rows)
        if aside:
            others = ~np.isin(verdicts.column("row").to_numpy(), list(aside))
            lost = [{"row": row, "reason": why} for row, why in aside.items()]
            more = pa.RecordBatch.from_pylist(lost, verdicts.schema)
            verdicts = concatenated([verdicts.filter(pa.array(others)), more])
        order = np.argsort(verdicts.column("row").to_numpy(), kind="stable")
        name = scratch("verdicts", task.name)
        return Result({name: write_columns(folder, name, verdicts.take(pa.array(order)))})


@dataclass(frozen=True)
class ApplyVerdicts(Transform):
    """The transform that removes what the verdict step decided, and audits it if asked to."""

    audits: bool = False

    def open(self, shard: str, folder: Folder) -> Applied:
        return partial(self._remove, read_columns(folder, scratch("verdicts", shard)))

    def _remove(self, verdicts: pa.RecordBatch, batch: pa.RecordBatch, first_row: int) -> Outcome:
        rows = verdicts.column("row").to_numpy()  # ascending
        start, end = np.searchsorted(rows, [first_row, first_row + batch.num_rows])
        found = Verdicts(*verdicts.slice(start, end - start).columns[1:])
        found = found.placed(rows[start:end] - first_row, batch.num_rows)
        if not self.audits:
            return Outcome(batch, found)
        gone = pc.is_valid(found.kept_id).to_numpy(zero_copy_only=False).astype(np.int64)
        return Outcome(batch, found, beside={AUDIT: losses_by_source(batch, gone)})


def verdict_passes(run: StageRun, step: Step, after: str, audits: bool = False) -> list[Pass]:
    """Return the last passes of a stage: write verdicts, then apply them to each shard.

    A shard whose verdicts are unchanged is not written again.

    Args:
        step: writes verdicts, one task per shard.
        after: name of the step whose output decides the verdicts.
        audits: whether to write what was lost, by language, host and source file.
    """
    tasks = [
        Task(shard.name, (("index", str(i)),), 0, (i, shard.name))
        for i, shard in enumerate(run.inputs)
    ]
    beside = {AUDIT: SOURCES} if audits else {}
    apply = TransformShards(run.stage, run.settings_key, ApplyVerdicts(audits), beside=beside)
    return [
        Pass(step, tasks, after=(after,)),
        Pass(apply, shard_tasks(run.inputs), beside=step.name),
    ]
