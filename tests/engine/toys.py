"""Small steps for tests of the engine, and `curate`, to be forked.

In a module, so that other processes can import them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass

from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.damage import check_content
from pipelines.storage.files import Folder


@dataclass(frozen=True)
class WriteName:
    """Writes the task's name, or words, into a file and counts its runs in a log."""

    settings_key: str = "1"
    name: str = "shards"
    words: str = ""

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        with open(folder.path(".log.txt"), "a") as log:
            log.write(task.name + "\n")
        text = (self.words or task.name).encode()
        record = folder.write_bytes(f"documents/{task.name}.txt", text)
        progress(2, 1)
        return Result({f"documents/{task.name}.txt": record}, {"documents_in": 2})


@dataclass(frozen=True)
class ReadShard:
    """Looks whether the input shard is what the plan says."""

    settings_key: str = "1"
    name: str = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        check_content(task.payload.folder, task.payload.file, task.payload.fingerprint)
        return Result({}, {"documents_in": 1})


@dataclass(frozen=True)
class Fail:
    settings_key: str = "1"
    name: str = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        raise ValueError("the reason")


@dataclass(frozen=True)
class Die:
    """Kills its own process, as the kernel does to one that takes too much memory."""

    settings_key: str = "1"
    name: str = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        if task.name == "b":
            os.kill(os.getpid(), signal.SIGKILL)
        return Result()


@dataclass(frozen=True)
class Sleep:
    """Takes some seconds."""

    seconds: float
    settings_key: str = "1"
    name: str = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        time.sleep(self.seconds)
        return Result()


@dataclass(frozen=True)
class KillJob:
    """Kills its process and all of its group the first `times`, as the end of a node does."""

    times: int
    settings_key: str = "1"
    name: str = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        with open(folder.path(".log.txt"), "a+") as log:
            log.seek(0)
            deaths = log.read().count("b")
            log.write(task.name + "\n")
        if task.name == "b" and deaths < self.times:
            os.killpg(0, signal.SIGKILL)
        return Result()


def fork_children() -> None:
    """Let this process fork where it would start Pythons, which take seconds to import all."""
    fork = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda _: fork  # type: ignore[assignment, misc]


def be_curate(arguments: list[str]) -> None:
    """Run a command of `curate` in a process that was forked for it."""
    from pipelines.cli import main

    fork_children()
    sys.exit(main(arguments))
