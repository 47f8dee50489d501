"""The exchange by Beam's GroupByKey, for clusters: each run is read once, from start to end.

As files, runs are read in part by every reduce task: with M runs and N tasks that is M x N small
reads, which local disks do well and object stores badly. Here a task per run reads it and sends
each range's rows to the task that wants them. Rows come in any order and are sorted by run, so that
a step sees what it would have read, and its results are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import apache_beam as beam
import numpy as np
import pyarrow as pa

from pipelines.engine.damage import DamagedError, note
from pipelines.engine.exchange import GatheredFolder
from pipelines.engine.pipeline import PerformTask
from pipelines.engine.runs import read_batches_of
from pipelines.engine.tasklist import TaskList
from pipelines.engine.tasks import Task

#: Rows of one run for one task: number of the run, of the piece inside it, Arrow stream.
Piece = tuple[int, int, bytes]
#: A task's own entry, so that tasks whose range is empty are done, too.
_NOTHING: Piece = (-1, 0, b"")


@runtime_checkable
class Gathers(Protocol):
    """A step whose tasks each read a range of keys from the same runs."""

    def runs(self) -> Sequence[str]:
        """Files inside the stage folder, written by `write_run` or sorted by `key` likewise."""
        ...

    def key_range(self, task: Task) -> tuple[int, int]:
        """Lowest and highest key that a task reads. Ranges of two tasks don't overlap."""
        ...


class Scatter(beam.DoFn):
    """Sends the rows of a run to the tasks that read them, or a task its own entry.

    Elements are numbers: of tasks first, then of runs.
    """

    def __init__(self, work: TaskList) -> None:
        self.work = work

    def setup(self) -> None:
        step, tasks = self.work.step, self.work.tasks
        assert isinstance(step, Gathers)
        self._runs = step.runs()
        ranges = np.array([step.key_range(t) for t in tasks], np.uint64).reshape(-1, 2)
        self._order = np.argsort(ranges[:, 0], kind="stable")
        self._low, self._high = ranges[self._order].T

    def process(self, element: int) -> Iterator[tuple[int, Piece]]:
        if element < len(self._order):
            yield element, _NOTHING
            return
        run = element - len(self._order)
        try:
            for piece, batch in enumerate(read_batches_of(self.work.folder, self._runs[run])):
                for task, rows in self._divide(batch):
                    yield task, (run, piece, _encoded(rows))
        except DamagedError as error:
            note(self.work.folder, error)
            raise

    def _divide(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        keys = batch.column("key").to_numpy()
        if not len(keys):
            return
        first = int(np.searchsorted(self._high, keys[0], side="left"))
        end = int(np.searchsorted(self._low, keys[-1], side="right"))
        starts = np.searchsorted(keys, self._low[first:end], side="left").tolist()
        ends = np.searchsorted(keys, self._high[first:end], side="right").tolist()
        for i, (a, b) in enumerate(zip(starts, ends, strict=True), first):
            if b > a:
                yield int(self._order[i]), batch.slice(a, b - a)


def _encoded(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


class PerformGathered(PerformTask):
    """A task with its rows at hand."""

    def setup(self) -> None:
        step = self.work.step
        assert isinstance(step, Gathers)
        self._runs = step.runs()

    def process(self, element: tuple[int, Iterable[Piece]]) -> Iterator[str]:  # type: ignore[override]
        number, pieces = element
        rows: dict[str, list[pa.RecordBatch]] = {}
        for run, _, data in sorted(pieces, key=lambda p: p[:2]):
            if run >= 0:
                batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
                rows.setdefault(self._runs[run], []).append(batch)
        folder = self.work.folder
        yield from self.perform(number, GatheredFolder(folder.url, folder.sync, rows))


def build_gathered(pipeline: beam.Pipeline, work: TaskList, tries_again: bool) -> Any:
    """Rows of all runs to all tasks of a step that gathers; then the tasks."""
    step = work.step
    assert isinstance(step, Gathers)
    return (
        pipeline
        | "TasksAndRuns" >> beam.Create(list(range(len(work.tasks) + len(step.runs()))))
        | "Scatter" >> beam.ParDo(Scatter(work)).with_output_types(tuple[int, Piece])
        | "Gather" >> beam.GroupByKey()
        | "PerformTask" >> beam.ParDo(PerformGathered(work, tries_again))
    )
