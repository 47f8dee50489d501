"""The local runner: a pool of long-lived processes that run tasks, without Beam.

Beam's own local runners start new processes for every pipeline, assign work statically and wait
forever when a worker dies. Here the processes live as long as the run, so that models and compiled
kernels load once; each takes the next bundle of tasks when it is free. A dead worker's remaining
tasks go to a new one, guarded (`documents.py`), so that a document that kills its worker is set
aside. Workers end when the driver dies.
"""

from __future__ import annotations

import functools
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.sharedctypes import RawArray
from typing import Any

from curation.errors import CurationError, WorkerError, told
from pipelines.process import Stopped, await_ends, end_with_parent, uninterrupted_children
from pipelines.runners.chain import Chain
from pipelines.runners.tasklist import TaskList
from pipelines.runners.tasks import (
    Task,
    cause,
    is_committed,
    perform,
    set_progress,
    shown,
)
from pipelines.terminal import Warnings, tell

#: Bundles per worker, for load balancing.
_BUNDLES_PER_WORKER = 4
#: Smallest useful bundle in bytes: a smaller one costs more than it gains in balance.
_BUNDLE_BYTES = 16 << 20
#: Workers that may die on a bundle before the run fails. Guarded ones die by chance alone.
DEATHS = 3

_beam_log = logging.getLogger("apache_beam")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bundle:
    """Tasks, by number, for one worker, and how many workers have died on them."""

    numbers: tuple[int, ...]
    deaths: int = 0
    arguments: tuple[str, ...] = ()  # of Beam, for a chain


def do_task(work: TaskList, number: int, again: bool, guarded: bool = False) -> None:
    """Run a task; on a retry (`again`), skip it if it is already committed."""
    step, task = work.step, work.tasks[number]
    if not (again and is_committed(work.folder, step, task)):
        perform(step, task, work.folder, guarded)


def bundles(tasks: Sequence[Task], workers: int) -> list[list[int]]:
    """Divide tasks (by number) into bundles of similar size, the largest first."""
    total = sum(t.size for t in tasks)
    wanted = min(_BUNDLES_PER_WORKER * workers, max(workers, total // _BUNDLE_BYTES), len(tasks))
    filled: list[list[int]] = [[] for _ in range(wanted)]
    sizes = [0] * wanted
    for number in sorted(range(len(tasks)), key=lambda i: (-tasks[i].size, tasks[i].name)):
        smallest = min(range(wanted), key=lambda i: (sizes[i], i))
        filled[smallest].append(number)
        sizes[smallest] += tasks[number].size + 1
    return filled


class LocalPool:
    """Processes that run bundles of tasks. Use as a context manager, for a whole run.

    `workers=0` runs everything in the calling process (for debugging and tests).
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        # One per process: an executor whose process died can't be used again.
        self._executors: list[ProcessPoolExecutor | None] = [None] * workers
        # Sums of `Progress` since the step began: int64 [workers, 3].
        self._counters: Any = RawArray("q", 3 * max(1, workers))

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *others: Any) -> None:
        started = [executor for executor in self._executors if executor is not None]
        if kind is not None:
            for executor in started:
                for process in list((executor._processes or {}).values()):
                    process.terminate()
        # Wait for its thread after errors, too, or it may write to a closed pipe.
        interrupted = kind is not None and not issubclass(kind, Exception)
        processes = [p for e in started for p in (e._processes or {}).values()]
        for executor in started:
            executor.shutdown(wait=False, cancel_futures=True)
        if not interrupted:
            await_ends(processes)
            for executor in started:
                executor.shutdown(wait=True)
        self._executors = [None] * self.workers

    def counts(self) -> tuple[int, int, int]:
        """Return documents read and kept by the step under way, and bytes of its source's tasks."""
        read, kept, part = (sum(self._counters[i::3]) for i in range(3))
        return read, kept, part

    def run(
        self, work: TaskList, numbers: Sequence[int] | None = None, deaths: int = 0
    ) -> Iterator[int]:
        """Run all tasks, or those of these numbers, on which `deaths` workers have died.

        Yields the number of newly finished tasks as bundles end. Raises WorkerError when processes
        keep dying, or whatever a step raised.
        """
        chosen = range(len(work.tasks)) if numbers is None else numbers
        divided = bundles([work.tasks[n] for n in chosen], max(1, self.workers))
        return self._run(work, [Bundle(tuple(chosen[i] for i in part), deaths) for part in divided])

    def run_chain(self, chain: Chain, arguments: Sequence[str]) -> None:
        """Run a chain in one process, as a pipeline of Beam's direct runner with these options.

        Raises what `run` raises.
        """
        numbers = tuple(range(len(chain.tasks)))
        for _ in self._run(chain, [Bundle(numbers, arguments=tuple(arguments))]):
            pass

    def _run(self, work: TaskList | Chain, divided: Sequence[Bundle]) -> Iterator[int]:
        self._counters[:] = [0] * len(self._counters)
        waiting = deque(divided)
        if self.workers == 0:
            set_progress(functools.partial(_add, self._counters, 0))
            for bundle in waiting:
                _run_bundle(work, bundle)
                yield len(bundle.numbers)
            return
        free = list(range(self.workers))
        running: dict[Future[None], tuple[int, Bundle]] = {}
        while waiting or running:
            while waiting and free:
                slot, bundle = free.pop(0), waiting.popleft()
                running[self._submit(slot, work, bundle)] = slot, bundle
            done, _ = wait(running, return_when=FIRST_COMPLETED, timeout=0.25)
            if not done:
                yield 0
            for future in done:
                slot, bundle = running.pop(future)
                free.append(slot)
                try:
                    future.result()
                except BrokenProcessPool as error:
                    self._executors[slot] = None
                    waiting.appendleft(_once_more(work, bundle, error))
                else:
                    yield len(bundle.numbers)

    def _submit(self, slot: int, work: TaskList | Chain, bundle: Bundle) -> Future[None]:
        """Submit a bundle to a live process: an idle one may have died."""
        with uninterrupted_children():
            executor = self._executors[slot] or self._start(slot)
            try:
                return executor.submit(_run_bundle, work, bundle)
            except BrokenProcessPool:
                return self._start(slot).submit(_run_bundle, work, bundle)

    def _start(self, slot: int) -> ProcessPoolExecutor:
        executor = ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(self._counters, slot, _beam_log.getEffectiveLevel()),
        )
        self._executors[slot] = executor
        return executor


def _once_more(work: TaskList | Chain, bundle: Bundle, error: BrokenProcessPool) -> Bundle:
    """Return a dead worker's bundle for another try. Raises WorkerError if too many died."""
    names = [work.tasks[i].name for i in bundle.numbers]
    shown_names = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    message = (
        "a worker process died (killed, out of memory, or crashed in native code) during "
        f"{shown(work.step, work.folder)}, on one of {len(names)} shards: {shown_names}"
    )
    if bundle.deaths + 1 == DEATHS:
        hint = "Finished shards are safe: run the same command again to resume"
        raise WorkerError(f"{message}. {hint}") from error
    _log.warning("%s; retrying", message)
    return replace(bundle, deaths=bundle.deaths + 1)


def _start_worker(counters: Any, slot: int, log_level: int) -> None:
    set_progress(functools.partial(_add, counters, slot))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides
    logging.lastResort = Warnings(tell)
    _beam_log.setLevel(max(log_level, logging.ERROR))
    threading.excepthook = _end_if_lost
    end_with_parent()


def _end_if_lost(error: threading.ExceptHookArgs) -> None:
    """End this process when one that Beam's direct runner started has died: it waits forever."""
    if error.thread and error.thread.name == "run_worker":
        tell(f"Beam's worker ended: {error.exc_value}")
        os._exit(1)
    threading.__excepthook__(error)


def _add(counters: Any, slot: int, read: int, kept: int, part: int = 0) -> None:
    for i, count in enumerate((read, kept, part)):
        counters[3 * slot + i] += count


def _run_bundle(work: TaskList | Chain, bundle: Bundle) -> None:
    again = bundle.deaths > 0
    try:
        if isinstance(work, Chain):
            # Where they are installed, Beam imports these, too: as long as all the rest takes.
            unused = {"apitools", "boto3", "google.api_core", "pandas"} - sys.modules.keys()
            sys.modules.update(dict.fromkeys(unused))  # type: ignore[arg-type]
            from pipelines.runners.shuffle import run_here

            for name in unused:
                del sys.modules[name]
            return run_here(work, bundle.arguments, guarded=again)
        for number in bundle.numbers:
            do_task(work, number, again, guarded=again)
    except Stopped:  # this is the driver
        raise
    except BaseException as error:  # also one that code of the user's derives from it
        # Beam wraps errors of DoFns; only the line that names the task travels back.
        raise WorkerError(_innermost(error)) from None


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None and not isinstance(error, CurationError):
        error = error.__cause__
    text = str(error) if isinstance(error, CurationError) else cause(told(error, 1 << 20))
    return text.split(" [while running")[0]
