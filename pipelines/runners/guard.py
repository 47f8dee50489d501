"""A function in a process of its own: what ends that process costs one item, not the worker.

Python can't survive a segmentation fault or an abort of a library, nor the kernel's answer to a
process that takes all memory. The guard sends items to a child process and takes one answer for
each. When the child dies, the item it was at is tried once more, alone in a new child: if it ends
that one too, it is to blame; if not, its answer counts. Either way what becomes of an item depends
on the item alone.

Extraction engines of others always work like this. Everything else does after a first failure:
tasks whose worker died, or ran out of memory, are done again with `guarding`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, TypeVar

from curation.errors import WorkerError

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_READY = "ready"

_guarded: ContextVar[bool] = ContextVar("guarded", default=False)


@contextlib.contextmanager
def guarding(on: bool) -> Iterator[None]:
    """Whether functions of documents work in a guarded process meanwhile."""
    token = _guarded.set(on)
    try:
        yield
    finally:
        _guarded.reset(token)


def is_guarded() -> bool:
    """Whether functions of documents are to work in a guarded process."""
    return _guarded.get()


@dataclass(frozen=True)
class Crash:
    """An item that ended the process that worked on it, or that no memory was left for."""

    detail: str
    memory: bool = False

    def reason(self, stage: str) -> str:
        """Why a document of the stage is removed: `crash.filter`, `memory.filter`."""
        return f"{'memory' if self.memory else 'crash'}.{stage.split('/')[0]}"


class Guard(Generic[Item, Answer]):
    """Apply a picklable function to items in a child process; one at a time, from any thread.

    The function must raise nothing but MemoryError. The child may take `max_memory` bytes of
    address space (None: any); it ends when the guard is closed, or its owner ends.
    """

    def __init__(self, function: Callable[[Item], Answer], max_memory: int | None = None) -> None:
        self._function, self._max_memory = function, max_memory
        self._lock = threading.Lock()
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    def map(self, items: Sequence[Item], again: bool = True) -> list[Answer | Crash]:
        """The answer to each item, or the crash it caused. Raises WorkerError without a child.

        Without `again`, an item over which the child dies is not tried alone.
        """
        answers: list[Answer | Crash] = []
        with self._lock:
            while len(answers) < len(items):
                answers += self._answers(items[len(answers) :])
                if len(answers) < len(items):  # the child died over the next item
                    crash = self._cause_of_death()
                    alone = items[len(answers) : len(answers) + 1]
                    answers += (
                        list(self._answers(alone)) or [self._cause_of_death()] if again else [crash]
                    )
        return answers

    def _answers(self, items: Sequence[Item]) -> Iterator[Answer | Crash]:
        """Answers until the child dies or all items have one."""
        connection = self._connection or self._start()
        try:
            connection.send(list(items))
            for _ in items:
                yield connection.recv()
        except (EOFError, OSError):
            return

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, self._function, self._max_memory), daemon=True
        )
        process.start()
        theirs.close()
        self._process, self._connection = process, mine
        try:
            mine.recv()
        except (EOFError, OSError):
            raise WorkerError(
                f"a guarded process did not start: {self._cause_of_death().detail}"
            ) from None
        return mine

    def _cause_of_death(self) -> Crash:
        """How the child ended; it is cleared away."""
        process = self._process
        self.close()
        code = process.exitcode if process else None
        if code is not None and code < 0:
            with suppress(ValueError):
                # Nobody but the kernel, out of memory, kills a process twice over one item.
                name = signal.Signals(-code).name
                return Crash(f"ended its process by {name}", memory=name == "SIGKILL")
        return Crash(f"ended its process with exit code {code}")

    def close(self) -> None:
        """End the child."""
        if self._connection:
            self._connection.close()
        if self._process:
            self._process.join(timeout=1)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
        self._process = self._connection = None


def _work(connection: Connection, function: Callable[[Any], Any], max_memory: int | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if max_memory is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = max_memory if hard == resource.RLIM_INFINITY else min(max_memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    with suppress(EOFError, OSError):
        connection.send(_READY)
        while True:
            for item in connection.recv():
                connection.send(_answer(function, item))


def _answer(function: Callable[[Any], Any], item: Any) -> Any:
    try:
        return function(item)
    except MemoryError as error:
        return Crash(f"MemoryError: {error}".rstrip(": "), memory=True)
