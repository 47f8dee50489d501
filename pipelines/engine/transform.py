"""The step that ends most stages: a shard of documents in, the shard of the same name out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from curation.schema import EDITS, Verdicts, conformed, split
from pipelines.engine.files import FileRecord, Folder
from pipelines.engine.shards import TableWriter, Tally, read_batches
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.tasks import Progress, Result, Task

_NO_EDITS = pa.RecordBatch.from_pylist([], schema=EDITS)


@dataclass
class Outcome:
    """What became of one batch: the batch with its new columns, and a verdict per document."""

    batch: pa.RecordBatch
    verdicts: Verdicts
    edits: pa.RecordBatch | None = None
    extra: dict[str, int] = field(default_factory=dict)
    beside: dict[str, pa.RecordBatch] = field(default_factory=dict)  # tables of other schemas
    tables: dict[str, pa.RecordBatch] = field(default_factory=dict)  # further files, by kind


class Transform(Protocol):
    """The function of a stage. Picklable; `open` loads models and lists once per shard."""

    def open(self, shard: str, folder: Folder) -> Transform: ...

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome: ...


@dataclass(frozen=True)
class TransformShards:
    """Apply a stage's function to every batch of a shard; write documents, removed and edits."""

    stage: str
    settings_key: str
    transform: Transform
    writes_edits: bool = False
    beside: dict[str, pa.Schema] = field(default_factory=dict)  # tables in folders of these names

    @property
    def name(self) -> str:
        return "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        transform = self.transform.open(shard.name, folder)
        tally = Tally()
        with ShardWriter(folder, shard.name, self.stage, tally) as writer:
            row = 0
            for batch in _at_least_one(shard):
                outcome = transform.apply(batch, row)
                row += batch.num_rows
                tally.add_in(batch)
                for name, amount in sorted(outcome.extra.items()):
                    tally.add(name, amount)
                kept = writer.write(outcome.batch, outcome.verdicts)
                if self.writes_edits:
                    writer.write_to("edits", outcome.edits or _NO_EDITS)
                for name, schema in self.beside.items():
                    nothing = pa.RecordBatch.from_pylist([], schema=schema)
                    writer.write_to(name, outcome.beside.get(name, nothing))
                for kind, table in outcome.tables.items():
                    writer.write_to(kind, table)
                progress(batch.num_rows, kept)
        return Result(writer.files, tally.counts())


class ShardWriter:
    """The output files of one shard, by kind: documents, removed, edits, set aside."""

    def __init__(self, folder: Folder, shard: str, stage: str, tally: Tally) -> None:
        self._folder, self._shard, self._stage, self._tally = folder, shard, stage, tally
        self._stack = contextlib.ExitStack()
        self._writers: dict[str, TableWriter] = {}

    def write(self, batch: pa.RecordBatch, verdicts: Verdicts) -> int:
        """Write each document to `documents` or `removed`; return how many were kept."""
        kept, removed = split(batch, verdicts, self._stage)
        self._tally.add_kept(kept)
        self._tally.add_removed(removed)
        self.write_to("documents", kept)
        self.write_to("removed", removed)
        return int(kept.num_rows)

    def write_to(self, kind: str, batch: pa.RecordBatch) -> None:
        if kind not in self._writers:
            name = f"{kind}/{self._shard}.parquet"
            writer = TableWriter(self._folder, name, batch.schema)
            self._writers[kind] = self._stack.enter_context(writer)
        self._writers[kind].write(batch)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    @property
    def files(self) -> dict[str, FileRecord]:
        """Only after closing."""
        return {w.name: w.record for w in self._writers.values()}


def _at_least_one(shard: Shard) -> Iterator[pa.RecordBatch]:
    """The shard's batches; one empty batch for an empty shard, so that the files still appear."""
    seen = False
    for batch in read_batches(shard.folder, shard.file):
        seen = True
        yield batch
    if not seen:
        yield conformed(pa.RecordBatch.from_pylist([], schema=_schema(shard)))


def column_names(shard: Shard) -> list[str]:
    """Columns that a shard has."""
    return list(_schema(shard).names)


def _schema(shard: Shard) -> pa.Schema:
    with shard.folder.open(shard.file) as file:
        return pq.read_schema(file)


def shard_tasks(shards: Sequence[Shard], extra: dict[str, str] | None = None) -> list[Task]:
    """One task per shard; `extra` holds a further fingerprint by shard name."""
    tasks = []
    for shard in shards:
        inputs = [(shard.name, shard.fingerprint)]
        if extra is not None:
            inputs.append(("verdicts", extra[shard.name]))
        tasks.append(Task(shard.name, tuple(inputs), shard.bytes, shard))
    return tasks


def run_transform(
    run: StageRun,
    transform: Transform,
    writes_edits: bool = False,
    beside: dict[str, pa.Schema] | None = None,
    notes: Callable[[], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A stage that decides every document by itself: one step, one task per shard.

    `notes` is asked for the manifest's notes when all shards are written.
    """
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    step = TransformShards(run.stage, run.settings_key, transform, writes_edits, beside or {})
    tasks = shard_tasks(run.inputs)
    run.run(step, tasks)
    return run.finish(tasks, inputs, {"notes": notes()} if notes else None)
