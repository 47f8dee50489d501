"""The last step of most stages: a shard of documents in, the shard of the same name out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.judging import Failure
from curation.schema import MENDED, Verdicts, aligned, recorded, split
from pipelines.engine.documents import Part, nothing, over_documents, set_aside_by
from pipelines.engine.stage import Shard, StageRun
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.files import FileRecord, Folder
from pipelines.storage.shards import TableWriter, Tally, read_batches

#: Folder of the tables, and the key of their count.
ERRORS = "errors"
#: Prefix of counts of documents that get no answer, before the column that it was for.
UNANSWERED = "unanswered."
#: Most errors listed in the manifest.
_TOLD = 20


@dataclass
class Outcome:
    """The result for one batch: the batch with its new columns, and a verdict per document."""

    batch: pa.RecordBatch
    verdicts: Verdicts
    edits: pa.RecordBatch | None = None
    extra: dict[str, int] = field(default_factory=dict)
    beside: dict[str, pa.RecordBatch] = field(default_factory=dict)  # tables of other schemas
    tables: dict[str, pa.RecordBatch] = field(default_factory=dict)  # further files, by kind


def with_errors(
    outcome: Outcome, batch: pa.RecordBatch, failures: Sequence[Failure], stage: str
) -> Outcome:
    """Return the outcome with the documents on which user code failed."""
    if failures:
        outcome.tables[ERRORS] = _errors_table(batch, failures, stage)
        outcome.extra[ERRORS] = len(failures)
    return outcome


def unanswered(columns: Mapping[str, pa.Array]) -> dict[str, int]:
    """Return counts of documents without an answer of the user's code, where there are any."""
    absent = {n: pc.sum(pc.is_null(v, nan_is_null=True)).as_py() for n, v in columns.items()}
    return {f"{UNANSWERED}{name}": count for name, count in absent.items() if count}


def never_answered(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each code of the user's own that gave nothing but null and NaN."""
    given = counts.get("documents_in")
    for name, count in counts.items():
        if name.startswith(UNANSWERED) and count == given:
            code = name.removeprefix(UNANSWERED)
            yield f"the code for {code} gave no answer for any of {given:,} documents"


class Transform:
    """The function of a stage, as a dataclass that can be described as JSON."""

    def open(self, shard: str, folder: Folder) -> Applied:
        """Return the function for a shard, with what it needs from earlier steps."""
        return self

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        raise NotImplementedError

    def __call__(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        return self.apply(batch, first_row)


#: A function of a batch, and of the number of its first row in the shard.
Applied = Callable[[pa.RecordBatch, int], Outcome]


@dataclass(frozen=True)
class TransformShards:
    """Apply a stage's function to every batch of a shard; write documents, removed and edits."""

    stage: str
    settings_key: str
    transform: Transform
    beside: dict[str, pa.Schema] = field(default_factory=dict)  # tables in folders of these names
    #: An earlier step on the same documents, with its folder: what it set aside is removed.
    counted: tuple[Folder, str] | None = None
    measures: bool = False  # verdicts are recorded, and no document is removed
    name: ClassVar[str] = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        apply = _Opened(self.transform, shard.name, folder)
        known = set_aside_by(*self.counted, shard.name) if self.counted else {}
        tally = Tally()
        with ShardWriter(folder, shard.name, self.stage, tally) as writer:
            for part in over_documents(self.stage, shard, apply, None, nothing, known):
                tally.add_in(part.batch)
                kept = self._write(writer, part, tally)
                progress(part.batch.num_rows, kept)
                del part  # free a large document before the next is read
        return Result(writer.files, tally.counts())

    def _write(self, writer: ShardWriter, part: Part[Outcome], tally: Tally) -> int:
        outcome, whole = part.answer, part.ends_batch
        for name, amount in sorted(outcome.extra.items()):
            tally.add(name, amount)
        batch, verdicts = outcome.batch, outcome.verdicts
        if self.measures:
            batch, verdicts = recorded(batch, verdicts, self.stage)
        kept = writer.write(batch, verdicts, whole)
        if part.reason is not None:
            texts = verdicts.value_text is not None
            writer.write_lost(part.batch, batch.schema, part.reason, texts)
        if outcome.edits is not None:
            writer.write_to("edits", outcome.edits, whole)
        for name, schema in self.beside.items():
            none = pa.RecordBatch.from_pylist([], schema=schema)
            writer.write_to(name, outcome.beside.get(name, none), whole)
        for kind, table in outcome.tables.items():
            writer.write_to(kind, table, whole)
        return kept


@dataclass
class _Opened:
    """A transform as a function of batches, opened in the process that calls it."""

    transform: Transform
    shard: str
    folder: Folder

    _open: Applied | None = None

    def __call__(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        if self._open is None:  # before Python 3.12 cached_property has one lock for all shards
            self._open = self.transform.open(self.shard, self.folder)
        return self._open(batch, first_row)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": None}


class ShardWriter(contextlib.ExitStack):
    """The output files of one shard, by kind: documents, removed, edits, set aside."""

    def __init__(self, folder: Folder, shard: str, stage: str, tally: Tally) -> None:
        super().__init__()
        self._folder, self._shard, self._stage, self._tally = folder, shard, stage, tally
        self._writers: dict[str, TableWriter] = {}

    def write(self, batch: pa.RecordBatch, verdicts: Verdicts, whole: bool = True) -> int:
        """Write each document to `documents` or `removed`; return the number kept.

        `whole`: as in `TableWriter.write`.
        """
        kept, removed = split(batch, verdicts, self._stage)
        self._tally.add_kept(kept)
        self._tally.add_removed(removed)
        self.write_to("documents", kept, whole)
        self.write_to("removed", removed, whole)
        return int(kept.num_rows)

    def write_lost(
        self,
        documents: pa.RecordBatch,
        schema: pa.Schema,
        reason: str,
        values_are_texts: bool = False,
    ) -> None:
        """Write documents that the stage could not judge; `schema` is that of the others."""
        rows = documents.num_rows
        lost = Verdicts.where(np.ones(rows, bool), reason)
        if values_are_texts:
            lost = Verdicts.of_texts(lost.reason, pa.nulls(rows, pa.string()))
        _, removed = split(aligned(documents, schema), lost, self._stage)
        self._tally.add_removed(removed)
        self.write_to("removed", removed, whole=False)

    def write_to(self, kind: str, batch: pa.RecordBatch, whole: bool = True) -> None:
        if kind not in self._writers:
            name = f"{kind}/{self._shard}.parquet"
            writer = TableWriter(self._folder, name, batch.schema)
            self._writers[kind] = self.enter_context(writer)
        self._writers[kind].write(batch, whole)

    @property
    def files(self) -> dict[str, FileRecord]:
        """Records of the files written; only valid after closing."""
        return {w.name: w.record for w in self._writers.values()}


def shard_tasks(shards: Sequence[Shard]) -> list[Task]:
    """Return one task per shard."""
    return [Task(s.name, ((s.name, s.fingerprint),), s.bytes, s) for s in shards]


def batches_beside(run: StageRun, kind: str) -> Iterator[pa.RecordBatch]:
    """Yield a further table of a stage, shard by shard.

    Files are found by the shards' names: a store's listing may be late, or fail and look empty.
    """
    for file in sorted(f"{kind}/{shard.name}.parquet" for shard in run.inputs):
        if kind != ERRORS or run.folder.exists(file):  # which only shards with errors have
            yield from read_batches(run.folder, file)


def _errors_table(batch: pa.RecordBatch, failures: Sequence[Failure], stage: str) -> pa.RecordBatch:
    """Return the documents of a batch on which user code failed, as rows of MENDED."""
    named = batch.select([n for n in ("id", "url", "source") if n in batch.schema.names])
    rows = named.take(pa.array([failure.row for failure in failures], pa.int64())).to_pylist()
    failures = [
        row | {"reason": f"error.{stage}", "detail": failure.detail}
        for row, failure in zip(rows, failures, strict=True)
    ]
    return pa.RecordBatch.from_pylist(failures, MENDED)


def _errors_of(run: StageRun) -> dict[str, Any]:
    """Return notes for the manifest: an alarm and the first errors; empty if there are none."""
    count, failures = 0, list[dict[str, Any]]()
    for batch in batches_beside(run, ERRORS):
        count += batch.num_rows
        failures += batch.slice(0, _TOLD - len(failures)).to_pylist()
    if not failures:
        return {}
    source = failures[0]["source"]
    where = f"{failures[0]['id']} ({source['file']} at offset {source['offset']})"
    what = f"own code failed on {count:,} documents; on {where}: {failures[0]['detail']}"
    return {"alarms": [{"alarm": what}], "errors": failures}


def run_transform(
    run: StageRun,
    transform: Transform,
    beside: dict[str, pa.Schema] | None = None,
    notes: Callable[[], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Run a stage that decides every document on its own: one step, one task per shard.

    `notes` returns the manifest's notes once all shards are written.
    """
    run.begin()
    step = TransformShards(
        run.stage, run.settings_key, transform, beside or {}, measures=run.measures
    )
    tasks = shard_tasks(run.inputs)
    run.run(step, tasks)
    facts = _errors_of(run) | (notes() if notes else {})
    return run.finish(tasks, run.read, {"notes": facts} if facts else None)
