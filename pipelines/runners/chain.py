"""Chains of steps of a stage, each reading what earlier steps wrote.

With the file exchange they run one after the other. With Beam (clusters) they are one job
(`shuffle.py`): rows that only later steps read go straight into a GroupByKey, never to a file,
unless they have too few keys for that (`Moves`). Output of earlier jobs is read from its files.
Commit records are the same either way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from pipelines.runners.tasklist import TaskList, write_task_list
from pipelines.runners.tasks import Step, Task, output_fingerprint
from pipelines.storage.exchange import kind_of
from pipelines.storage.files import Folder

#: Name in commit records for the fingerprint of what a task reads from other steps.
_SOURCE = "verdicts"


@runtime_checkable
class Gathers(Protocol):
    """A step whose tasks each read a key range from the same runs."""

    def runs(self) -> Sequence[str]:
        """Return the runs: files in the stage folder, sorted by `key` as by `write_run`."""
        ...

    def key_range(self, task: Task) -> tuple[int, int]:
        """Return the lowest and highest key that a task reads. Ranges don't overlap."""
        ...


@dataclass(frozen=True)
class Pass:
    """A step with its tasks, and the earlier steps that decide their output."""

    step: Step
    tasks: Sequence[Task]
    folder: Folder | None = None  # if not the stage's own folder
    after: tuple[str, ...] = ()  # names of steps: all that they write decides about every task
    beside: str = ""  # name of a step: its task of the same name decides

    @property
    def place(self) -> Folder:
        assert self.folder is not None
        return self.folder

    def planned(self, records: Mapping[str, Sequence[dict[str, Any]]]) -> list[Task]:
        """Return the tasks with the fingerprints of what they read, from earlier steps' records."""
        if self.beside:
            sources = {r["task"]: output_fingerprint([r]) for r in records[self.beside]}
            return [with_source(task, sources[task.name]) for task in self.tasks]
        if not self.after:
            return list(self.tasks)
        found = [r for name in records if name in self.after for r in records[name]]
        source = output_fingerprint(found)
        return [with_source(task, source) for task in self.tasks]


def with_source(task: Task, source: str) -> Task:
    return replace(task, inputs=(*task.inputs, (_SOURCE, source)))


#: Before Flink sends rows, it makes one record of all that a worker has for a key, and can't sort a
#: record longer than a part of its memory. So rows for few tasks, a key each, go by files unless
#: they are small.
FEWEST_KEYS, SMALL_BYTES = 8, 1 << 20


class Moves:
    """Which rows move between the workers of one job: those of files that later passes gather.

    A step lists in `sends` the kinds of files that only other steps of its stage read, and in
    `keeps` those of them that are written to files nevertheless.
    """

    def __init__(self, passes: Sequence[Pass]) -> None:
        self._led = {p.beside for p in passes}
        few = {kind for p in passes if not _spread(p) for kind in _kinds_read(p.step)}
        self._read = {kind for p in passes for kind in _kinds_read(p.step)} - few
        self._sent = {kind for p in passes for kind in _kinds_sent(p.step)} - few

    def sent(self, step: Step) -> tuple[str, ...]:
        """Return the kinds of a step's files that other steps of the job gather."""
        return tuple(kind for kind in _kinds_sent(step) if kind in self._read)

    def gathered(self, step: Step) -> tuple[str, ...]:
        """Return the kinds of files that a step gathers from other steps of the same job."""
        kinds = _kinds_read(step)
        assert kinds <= self._sent or kinds.isdisjoint(self._sent)
        return tuple(sorted(kinds & self._sent))

    def unwritten(self, step: Step) -> tuple[str, ...]:
        """Return the kinds of its files that are never written: no other job reads them."""
        kinds = self._sent if step.name in self._led else self._read
        kept = getattr(step, "keeps", ())
        return tuple(k for k in _kinds_sent(step) if k in kinds and k not in kept)

    def always_done(self, step: Step) -> bool:
        """Return whether a job always runs it, as rows that it sends or gathers are not stored."""
        return bool(self.sent(step) or self.unwritten(step) or self.gathered(step))

    def planned(self, p: Pass, records: Mapping[str, Sequence[dict[str, Any]]]) -> list[Task]:
        """Return a pass's tasks as one job plans them: without fingerprints of moving rows."""
        return list(p.tasks) if self.gathered(p.step) else p.planned(records)


def _spread(p: Pass) -> bool:
    """Return whether no key of a pass's tasks may have most of the rows, or all are small."""
    return len(p.tasks) >= FEWEST_KEYS or all(t.size <= SMALL_BYTES for t in p.tasks)


def _kinds_sent(step: Step) -> tuple[str, ...]:
    return getattr(step, "sends", ())


def _kinds_read(step: Step) -> set[str]:
    return {kind_of(name) for name in step.runs()} if isinstance(step, Gathers) else set()


@dataclass(frozen=True)
class Leg:
    """A pass of a job, with the passes whose tasks follow its own in the same worker."""

    work: TaskList
    after: tuple[int, ...]  # legs
    sends: tuple[str, ...]  # kinds of files
    unwritten: tuple[str, ...]  # the same
    gathers: tuple[str, ...]  # the same, of legs before it
    always_done: bool
    followers: tuple[TaskList, ...]  # whose tasks are in the order of its own


@dataclass(frozen=True)
class Chain:
    """Passes that form one job."""

    legs: tuple[Leg, ...]

    @property
    def folder(self) -> Folder:
        return self.legs[0].work.folder

    @property
    def step(self) -> Step:
        return self.legs[0].work.step

    @property
    def tasks(self) -> list[Task]:
        return self.legs[0].work.tasks


def write_chain(passes: Sequence[Pass], local: bool = False) -> Chain:
    """Write the description that the workers read; `local` as in `write_task_list`."""
    moves = Moves(passes)
    works = [(p, write_task_list(p.place, p.step, p.tasks, local)) for p in passes]
    leading = [(p, work) for p, work in works if not p.beside]
    names = [p.step.name for p, _ in leading]
    legs = []
    for p, work in leading:
        step, after = p.step, tuple(names.index(name) for name in p.after)
        beside = [(other, w) for other, w in works if other.beside == step.name]
        assert all([t.name for t in o.tasks] == [t.name for t in p.tasks] for o, _ in beside)
        followers = tuple(w for _, w in beside)
        kinds = moves.sent(step), moves.unwritten(step), moves.gathered(step)
        legs.append(Leg(work, after, *kinds, moves.always_done(step), followers))
    return Chain(tuple(legs))
