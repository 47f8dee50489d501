"""Task lists: what a cluster's workers need to know about a step, in a file.

A job carries the file's name and plain numbers, so that it stays small for any number of shards:
Dataflow refuses a job of more than 10 MB, and the description of 90,000 tasks is more.

The output folder may be open to more people than the workers are. So the file is data and no code,
and counts only with the hash and for the classes that the job names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from curation.errors import InputError
from pipelines.named_files import send
from pipelines.runners.description import describe, restore
from pipelines.runners.tasks import Step, Task
from pipelines.storage.files import SCRATCH, Folder


@dataclass(frozen=True)
class TaskList:
    """A step and its tasks, by the file that holds them."""

    folder: Folder
    file: str
    sha256: str
    classes: tuple[type, ...]  # of which step and tasks are made

    @property
    def step(self) -> Step:
        return _load(self)[0]

    @property
    def tasks(self) -> list[Task]:
        return _load(self)[1]


def write_task_list(
    folder: Folder, step: Step, tasks: Sequence[Task], local: bool = False
) -> TaskList:
    """Write what the workers will read. The name follows from the content.

    Unless all workers are on this machine, they get copies of the files that the settings name.
    """
    if not local:
        send(step, folder)
    classes: dict[str, type] = {}
    described = describe([step, list(tasks)], classes)
    data = json.dumps(described, separators=(",", ":")).encode()
    digest = hashlib.sha256(data).hexdigest()
    file = f"{SCRATCH}/tasks/{step.name}-{digest[:24]}.json"
    folder.write_bytes(file, data)
    return TaskList(folder, file, digest, tuple(classes[name] for name in sorted(classes)))


@lru_cache(maxsize=8)  # once per process and step of a job, however many tasks it gets
def _load(tasks: TaskList) -> tuple[Step, list[Task]]:
    """Raises InputError where the file is not the one that the driver wrote."""
    data = tasks.folder.read_bytes(tasks.file)
    if hashlib.sha256(data).hexdigest() != tasks.sha256:
        raise InputError(
            f"{tasks.folder.url_of(tasks.file)}: changed since the run wrote it; "
            "the same command writes it again"
        )
    step, found = restore(json.loads(data), tasks.classes)
    return step, found
