"""Run a function in a child process: a crash costs one item, not the worker.

Python can't survive a segmentation fault or abort in a library, nor the kernel's OOM killer. The
guard sends items to a child process and receives one answer for each. When the child dies, the
current item is tried once more, alone in a new child: if that one dies too, the item is to blame;
if not, its answer counts. Either way an item's result depends only on the item.

Third-party extraction engines always run like this. Everything else does after a first failure:
tasks whose worker died, or ran out of memory, are rerun with `guarding`.
"""

import contextlib
import multiprocessing
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, TypeVar

from curation.errors import CurationError, WorkerError, told
from pipelines.process import await_ends

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_READY = "ready"

_guarded: ContextVar[bool] = ContextVar("guarded", default=False)


@contextlib.contextmanager
def guarding(on: bool) -> Iterator[None]:
    """Set whether functions of documents run in a guarded process inside this context."""
    token = _guarded.set(on)
    try:
        yield
    finally:
        _guarded.reset(token)


def is_guarded() -> bool:
    """Return whether functions of documents are to run in a guarded process."""
    return _guarded.get()


@dataclass(frozen=True)
class Crash:
    """An item that crashed its process or exceeded its memory."""

    detail: str
    memory: bool = False

    def reason(self, stage: str) -> str:
        """Return the removal reason for a stage: `crash.filter`, `memory.filter`."""
        return f"{'memory' if self.memory else 'crash'}.{stage.split('/')[0]}"


@dataclass(frozen=True)
class _Raised:
    """What the function raised on an item."""

    error: CurationError


class Guard(Generic[Item, Answer]):
    """Applies a picklable function to items in a child process; one at a time, from any thread.

    MemoryError is a crash, too. Any other exception ends the items that were given with it, as
    WorkerError if it isn't one of ours. The child is limited to `max_memory` bytes of address
    space and `max_seconds` of CPU time for an item (None: no limit); it ends when the guard is
    closed or its owner ends.
    """

    def __init__(
        self,
        function: Callable[[Item], Answer],
        max_memory: int | None = None,
        max_seconds: int | None = None,
    ) -> None:
        self._function, self._limits = function, (max_memory, max_seconds)
        self._lock = threading.Lock()
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    def map(self, items: Sequence[Item], again: bool = True) -> list[Answer | Crash]:
        """Return each item's answer, or the crash it caused.

        Without `again`, an item on which the child dies is not retried alone. Raises what the
        function raised on the first of the items, and WorkerError without a child.
        """
        answers: list[Answer | Crash | _Raised] = []
        with self._lock:
            while len(answers) < len(items):
                answers += self._answers(items[len(answers) :])
                if len(answers) < len(items):  # the child died on the next item
                    crash = self._cause_of_death()
                    alone = items[len(answers) : len(answers) + 1]
                    answers += (
                        list(self._answers(alone)) or [self._cause_of_death()] if again else [crash]
                    )
        return [_sound(answer) for answer in answers]

    def _answers(self, items: Sequence[Item]) -> Iterator[Answer | Crash | _Raised]:
        """Yield answers until the child dies or all items have one."""
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
            target=_work, args=(theirs, self._function, *self._limits), daemon=True
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
        """Return how the child ended, and clean it up."""
        process = self._process
        self.close()
        code = process.exitcode if process else None
        if code is not None and code < 0:
            with suppress(ValueError):
                # Only the OOM killer kills a process twice on the same item.
                name = signal.Signals(-code).name
                over = f", after {self._limits[1]} CPU seconds" if name == "SIGXCPU" else ""
                return Crash(f"ended its process by {name}{over}", memory=name == "SIGKILL")
        return Crash(f"ended its process with exit code {code}")

    def close(self) -> None:
        """End the child."""
        if self._connection:
            self._connection.close()
        if self._process:
            await_ends([self._process], 1)
        self._process = self._connection = None


def _sound(answer: Answer | Crash | _Raised) -> Answer | Crash:
    if isinstance(answer, _Raised):
        raise answer.error
    return answer


def _work(
    connection: Connection,
    function: Callable[[Any], Any],
    max_memory: int | None,
    max_seconds: int | None,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles Ctrl-C
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if max_memory is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = max_memory if hard == resource.RLIM_INFINITY else min(max_memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    with suppress(EOFError, OSError):
        connection.send(_READY)
        while True:
            for item in connection.recv():
                if max_seconds is not None:
                    most = int(time.process_time()) + 1 + max_seconds
                    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
                connection.send(_answer(function, item))


def _answer(function: Callable[[Any], Any], item: Any) -> Any:
    try:
        return function(item)
    except MemoryError as error:
        return Crash(f"MemoryError: {error}".rstrip(": "), memory=True)
    except CurationError as error:
        return _Raised(error)
    except BaseException as error:  # also one that code of the user's derives from it
        return _Raised(WorkerError(told(error)))
