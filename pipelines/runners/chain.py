"""Steps of a stage of which each reads what those before it wrote.

With the exchange by files they run one after the other. By Beam (clusters) they are one job
(`shuffle.py`): rows that only later steps read go straight into a GroupByKey and never into a file.
Commit records are the same either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from pipelines.runners.tasklist import TaskList, write_task_list
from pipelines.runners.tasks import Step, Task, output_fingerprint
from pipelines.storage.exchange import is_of_kinds
from pipelines.storage.files import Folder

#: What commit records call the fingerprint of that which a task reads of other steps.
_SOURCE = "verdicts"


@runtime_checkable
class Gathers(Protocol):
    """A step whose tasks each read a range of keys from the same runs."""

    def runs(self) -> Sequence[str]:
        """Files inside the stage folder, written by `write_run` or sorted by `key` likewise."""
        ...

    def key_range(self, task: Task) -> tuple[int, int]:
        """Lowest and highest key that a task reads. Ranges of two tasks don't overlap."""
        ...


@dataclass(frozen=True)
class Pass:
    """A step with its tasks, and which steps before it decide what they write."""

    step: Step
    tasks: Sequence[Task]
    folder: Folder | None = None  # the stage's, unless it is another
    after: tuple[str, ...] = ()  # names of steps: all that they write decides about every task
    beside: str = ""  # name of a step: its task of the same name decides

    @property
    def place(self) -> Folder:
        assert self.folder is not None
        return self.folder

    def planned(self, records: Mapping[str, Sequence[dict[str, Any]]]) -> list[Task]:
        """The tasks with the fingerprint of what they read, by the records of the steps before."""
        if self.beside:
            sources = {r["task"]: output_fingerprint([r]) for r in records[self.beside]}
            return [with_source(task, sources[task.name]) for task in self.tasks]
        if not self.after:
            return list(self.tasks)
        found = [r for name in records if name in self.after for r in records[name]]
        source = output_fingerprint(found)
        return [with_source(task, source) for task in self.tasks]

    def planned_in_job(self, records: Mapping[str, Sequence[dict[str, Any]]]) -> list[Task]:
        """As one job knows the tasks: it has no fingerprint of rows under way."""
        return list(self.tasks) if isinstance(self.step, Gathers) else self.planned(records)


def with_source(task: Task, source: str) -> Task:
    return replace(task, inputs=(*task.inputs, (_SOURCE, source)))


def sends(step: Step) -> tuple[str, ...]:
    """Kinds of files that later steps of a chain gather, or that steps beside it read."""
    return getattr(step, "sends", ())


def moved(step: Step, passes: Sequence[Pass]) -> tuple[str, ...]:
    """Kinds of files of a step that move between the workers of one job of these passes."""
    if any(p.beside == step.name for p in passes):
        return sends(step)
    runs = [n for p in passes if isinstance(p.step, Gathers) for n in p.step.runs()]
    return tuple(kind for kind in sends(step) if any(is_of_kinds(n, [kind]) for n in runs))


def unwritten(step: Step, passes: Sequence[Pass]) -> tuple[str, ...]:
    """Kinds of these that are no files; others are read as files as well."""
    kept = getattr(step, "keeps", ())
    return tuple(kind for kind in moved(step, passes) if kind not in kept)


def always_done(step: Step, passes: Sequence[Pass]) -> bool:
    """Whether a job of these passes does it in any case: rows lie nowhere."""
    return bool(moved(step, passes)) or isinstance(step, Gathers)


@dataclass(frozen=True)
class Leg:
    """A pass as a job knows it, with those whose tasks follow its own in the same worker."""

    work: TaskList
    after: tuple[int, ...]  # legs
    always_done: bool
    unwritten: tuple[str, ...]  # kinds of files
    followers: tuple[TaskList, ...]


@dataclass(frozen=True)
class Chain:
    """Passes that are one job."""

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


def write_chain(passes: Sequence[Pass]) -> Chain:
    """Write what the workers will read."""
    works = [write_task_list(p.place, p.step, p.tasks) for p in passes]
    leading = [(p, work) for p, work in zip(passes, works, strict=True) if not p.beside]
    names = [p.step.name for p, _ in leading]
    legs = []
    for p, work in leading:
        found = zip(passes, works, strict=True)
        followers = tuple(w for other, w in found if other.beside == p.step.name)
        after = tuple(names.index(name) for name in p.after)
        facts = always_done(p.step, passes), unwritten(p.step, passes)
        legs.append(Leg(work, after, *facts, followers))
    return Chain(tuple(legs))
