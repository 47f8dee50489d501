"""What a cluster's workers must know of a step, in a file beside its data.

A job carries the file's name and plain numbers, so that it stays small for any number of shards:
Dataflow refuses a job of more than 10 MB, and the description of 90,000 tasks is more.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipelines.engine.files import SCRATCH, Folder
from pipelines.engine.tasks import Step, Task


@dataclass(frozen=True)
class TaskList:
    """A step and its tasks, by the file that holds them."""

    folder: Folder
    file: str

    @property
    def step(self) -> Step:
        return _load(self)[0]

    @property
    def tasks(self) -> list[Task]:
        return _load(self)[1]


def write_task_list(folder: Folder, step: Step, tasks: Sequence[Task]) -> TaskList:
    """Write what the workers will read. The name follows from the content."""
    data = pickle.dumps((step, list(tasks)), protocol=5)
    digest = hashlib.sha256(data).hexdigest()[:24]
    file = f"{SCRATCH}/tasks/{step.name}-{digest}.pickle"
    folder.write_bytes(file, data)
    return TaskList(folder, file)


@lru_cache(maxsize=2)  # once per process and step, however many tasks it gets
def _load(tasks: TaskList) -> tuple[Step, list[Task]]:
    step, found = pickle.loads(tasks.folder.read_bytes(tasks.file))
    return step, found
