"""The Beam pipeline of a step: numbers of tasks in, names of committed tasks out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam

from pipelines.engine.files import Folder
from pipelines.engine.tasklist import TaskList
from pipelines.engine.tasks import is_committed, perform, progress_here


class PerformTask(beam.DoFn):
    """Does tasks by number. One that is committed already is left where the runner tries again.

    They are `guarded` where a worker died over some of them.
    """

    def __init__(self, work: TaskList, tries_again: bool, guarded: bool = False) -> None:
        self.work, self.tries_again, self.guarded = work, tries_again, guarded

    def process(self, element: int) -> Iterator[str]:
        yield from self.perform(element, self.work.folder)

    def perform(self, number: int, folder: Folder) -> Iterator[str]:
        step, task = self.work.step, self.work.tasks[number]
        if not (self.tries_again and is_committed(self.work.folder, step, task)):
            perform(step, task, folder, progress_here(), self.guarded)
        yield task.name


def build(
    pipeline: beam.Pipeline,
    work: TaskList,
    numbers: Sequence[int],
    tries_again: bool,
    guarded: bool = False,
) -> Any:
    """Each task reads what it needs from files: nothing but numbers travels."""
    return (
        pipeline
        | "PendingTasks" >> beam.Create(list(numbers))
        | "PerformTask" >> beam.ParDo(PerformTask(work, tries_again, guarded))
    )
