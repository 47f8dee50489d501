"""A chain of steps as one Beam pipeline, for clusters.

Each step is a ParDo over its tasks. Rows that it sends go by key to the tasks of later steps which
read these ranges, in one GroupByKey for each step that gathers. They come in any order and are
sorted by run, so that a step sees what it would have read from files, and its results are the same
bytes. A step that gathers no rows but reads files of others waits for these by a GroupByKey, too,
which brings the fingerprint of what they wrote.

No PCollection has two consumers: Flink's and Spark's runners don't take one that a Flatten and a
GroupByKey share (https://github.com/apache/beam/issues/34647).
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from curation.errors import WorkerError
from pipelines.runners.chain import Chain, Gathers, with_source
from pipelines.runners.tasklist import TaskList
from pipelines.runners.tasks import (
    Step,
    Task,
    files_fingerprint,
    is_committed,
    joint_fingerprint,
    output_fingerprint,
    perform,
    read_record,
    record_name,
    shown,
)
from pipelines.storage.exchange import decoded, encoded, with_rows
from pipelines.storage.files import Folder
from pipelines.storage.runs import read_batches_of

#: Rows of a run for a task: number of the run, of the piece inside it, of the part of that, and the
#: part of an Arrow stream. Of a task that waits for others: which leg, which task, 0, and the
#: fingerprint of what that wrote.
Piece = tuple[int, int, int, bytes]
Sent = tuple[int, Piece]  # number of a task first
#: Begins a task's own entry, so that tasks whose range is empty are done, too; ends with the
#: fingerprint of what was waited for.
_OWN = -1
#: Flink sorts nothing longer than its sort buffer, of which each GroupByKey of a job has a share.
_PART_BYTES = 1 << 20


class Routes:
    """Which tasks of a step that gathers read which rows."""

    def __init__(self, work: TaskList) -> None:
        step, tasks = work.step, work.tasks
        assert isinstance(step, Gathers)
        self.runs = {name: number for number, name in enumerate(step.runs())}
        ranges = np.array([step.key_range(t) for t in tasks], np.uint64).reshape(-1, 2)
        self.order = np.argsort(ranges[:, 0], kind="stable")
        self._low, self._high = ranges[self.order].T

    def of(self, folder: Any, name: str) -> Iterator[Sent]:
        """Yield the rows of a run, each with the task that reads it."""
        for piece, batch in enumerate(read_batches_of(folder, name)):
            for task, rows in self._divide(batch):
                data = encoded(rows)
                for part, start in enumerate(range(0, len(data), _PART_BYTES)):
                    yield task, (self.runs[name], piece, part, data[start : start + _PART_BYTES])

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
                yield int(self.order[i]), batch.slice(a, b - a)


class PerformPass(beam.DoFn):
    """Runs a task with its gathered rows, and the tasks that follow it; sends what others wait for.

    A task that moves no rows is skipped if it is already committed.
    """

    def __init__(
        self, chain: Chain, number: int, targets: Sequence[int], guarded: bool = False
    ) -> None:
        self.chain, self.number, self.targets = chain, number, tuple(targets)
        self.guarded = guarded

    def _prepare(self) -> None:
        """Read what the tasks are; not in `setup`: if that fails, runners wait for minutes."""
        leg, legs = self.chain.legs[self.number], self.chain.legs
        step = leg.work.step
        self._runs = step.runs() if leg.gathers and isinstance(step, Gathers) else None
        self._routes = {_tag(t): Routes(legs[t].work) for t in self.targets if legs[t].gathers}
        self._waiting = [_tag(t) for t in self.targets if not legs[t].gathers]
        earlier = {t for n in range(self.number) for t in _targets(self.chain, n)}
        self._begins = [t for t in self.targets if legs[t].gathers and t not in earlier]
        self._leg, self._work = leg, leg.work

    # Any: of a bare TaggedOutput Beam warns at each start.
    def process(self, element: tuple[int, Iterable[Piece]]) -> Iterator[Any]:
        if not hasattr(self, "_work"):
            self._prepare()
        number, pieces = element
        task, folder = self._work.tasks[number], self._folder(pieces)
        if self._runs is None and (source := _source(pieces)):
            task = with_source(task, source)
        record = self._done(self._work.step, task, folder, self._leg.always_done)
        for work in self._leg.followers:
            following = with_source(work.tasks[number], output_fingerprint([record]))
            self._done(work.step, following, folder, always=False)
        for target in self._begins if number == 0 else ():
            for other in range(len(self.chain.legs[target].work.tasks)):
                yield TaggedOutput(_tag(target), (other, _own()))
        for tag, routes in self._routes.items():
            for name in sorted(record["files"].keys() & routes.runs.keys()):
                yield from (TaggedOutput(tag, sent) for sent in routes.of(folder, name))
        for tag in self._waiting:
            yield TaggedOutput(tag, (0, (self.number, number, 0, files_fingerprint(record))))

    def _folder(self, pieces: Iterable[Piece]) -> Folder:
        """Return the stage's folder with the gathered rows."""
        folder, kinds = self._work.folder, self._leg.unwritten
        if self._runs is None:
            return with_rows(folder, None, kinds)
        rows: dict[str, list[pa.RecordBatch]] = {}
        sorted_pieces = sorted(pieces, key=lambda p: p[:3])
        for (run, _), parts in itertools.groupby(sorted_pieces, lambda p: p[:2]):
            if run != _OWN:
                batch = decoded(b"".join(part[-1] for part in parts))
                rows.setdefault(self._runs[run], []).append(batch)
        return with_rows(folder, rows, kinds)

    def _done(self, step: Step, task: Task, folder: Folder, always: bool) -> dict[str, Any]:
        """Run the task and return its commit record."""
        place = self._work.folder  # this folder object caches the digests of its files
        if not always:
            if is_committed(place, step, task):
                return read_record(place, record_name(step, task))
            place.remove(record_name(step, task))  # of files that will be replaced
        record = perform(step, task, folder, self.guarded)
        if record is None:
            raise WorkerError(f"{shown(step, place)}, shard {task.name}: its input is damaged")
        return record


class Begin(beam.DoFn):
    """Begins the tasks of a step, once those that it waits for are done."""

    def __init__(self, tasks: int, grouped: bool) -> None:
        self.tasks, self.grouped = tasks, grouped

    def process(self, element: Any) -> Iterator[Any]:
        piece = _own(_source(element[1]) if element else "")
        for number in range(self.tasks):
            yield number, piece if self.grouped else (piece,)


def _source(pieces: Iterable[Piece]) -> str:
    """Return the fingerprint of what a task waited for; empty if for nothing."""
    ordered = sorted(pieces)
    if not ordered or ordered[0][0] == _OWN:
        return b"".join(piece[-1] for piece in ordered).decode()
    return joint_fingerprint(piece[-1] for piece in ordered)


def _tag(leg: int) -> str:
    return f"to-{leg}"


def _own(source: str = "") -> Piece:
    return _OWN, 0, 0, source.encode()


def build_chain(pipeline: beam.Pipeline, chain: Chain, guarded: bool = False) -> None:
    """Build all steps of a chain, from the numbers of the tasks to the last commit record.

    Each transform costs Beam some 20 ms, whatever goes through it: so there are few.
    """
    arriving: list[list[Any]] = [[] for _ in chain.legs]
    for number, leg in enumerate(chain.legs):
        name, targets = leg.work.step.name, _targets(chain, number)
        tasks = _begun(pipeline, chain, number, arriving[number])
        perform = beam.ParDo(PerformPass(chain, number, targets, guarded))
        tags = [_tag(target) for target in targets]
        typed = perform.with_output_types(Any, **dict.fromkeys(tags, Sent))
        done = tasks | f"PerformTask {name}" >> typed.with_outputs(*tags)
        for target in targets:
            arriving[target].append(done[_tag(target)])


class _Options(PipelineOptions):
    """Options that parse each kind of themselves once; Beam's do so at every look, 50 of a job."""

    def view_as(self, kind: Any) -> Any:
        views = self.__dict__.setdefault("views", {})
        return views[kind] if kind in views else views.setdefault(kind, super().view_as(kind))


def run_here(chain: Chain, arguments: Sequence[str], guarded: bool) -> None:
    """Run a chain on Beam's direct runner with these options.

    That is FnApiRunner. Beam's class `DirectRunner` would switch to Prism, and download it.
    """
    options = _Options([*arguments], pipeline_type_check=False)
    with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
        build_chain(pipeline, chain, guarded)


def _targets(chain: Chain, number: int) -> list[int]:
    """Return the legs that read rows of this one, or wait for it."""
    kinds, found = chain.legs[number].sends, []
    for other, leg in enumerate(chain.legs[number + 1 :], number + 1):
        waits = not leg.gathers and number in leg.after
        if waits or not set(kinds).isdisjoint(leg.gathers):
            found.append(other)
    return found


def _begun(pipeline: beam.Pipeline, chain: Chain, number: int, arriving: Sequence[Any]) -> Any:
    """Return tasks with their gathered rows, once earlier tasks are done."""
    leg = chain.legs[number]
    name, count = leg.work.step.name, len(leg.work.tasks)
    if arriving:
        sent = arriving[0] if len(arriving) == 1 else arriving | f"Flat {name}" >> beam.Flatten()
        before = sent | f"Gather {name}" >> beam.GroupByKey()
        if leg.gathers or count == 1:
            return before
    else:
        before = pipeline | f"Impulse {name}" >> beam.Impulse()
    # Engines give each worker as many elements as another, but keys by their hashes.
    grouped = bool(arriving) or (count > 1 and isinstance(pipeline.runner, FnApiRunner))
    begin = beam.ParDo(Begin(count, grouped)).with_output_types(Sent if grouped else Any)
    begun = before | f"Begin {name}" >> begin
    if grouped:
        return begun | f"Divide {name}" >> beam.GroupByKey()
    return begun | f"Spread {name}" >> beam.Reshuffle() if count > 1 else begun
