"""The local runner: a pool of long-lived processes, each running in-memory Beam pipelines.

Beam's own local runners start new processes for every pipeline, assign work statically and wait for
ever when a worker dies. Here the processes live as long as the run, so that models and compiled
kernels load once; each takes the next bundle of tasks when it is free; a dead worker ends the run
with an error at once, and a dead driver ends its workers.
"""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.process
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from multiprocessing.sharedctypes import RawArray
from types import TracebackType
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from curation.errors import CurationError, WorkerError
from pipelines.engine.pipeline import build
from pipelines.engine.shuffle import build_gathered
from pipelines.engine.tasklist import TaskList
from pipelines.engine.tasks import FRAMEWORK, Task, noted_cpu, set_progress, shown, write_seconds

#: Bundles per worker: enough for balance, few enough that pipeline start-up stays small.
_BUNDLES_PER_WORKER = 4
#: Below this many bytes a further bundle costs more than it balances.
_BUNDLE_BYTES = 16 << 20

_log = logging.getLogger("apache_beam")

_counters: Any = None  # shared int64 [workers, 2]: documents read and kept since the step began
_slot = 0


def run_in_memory(work: TaskList, bundle: Sequence[int], gathered: bool = False) -> None:
    """Run a step's pipeline in this process. FnApiRunner is named: `DirectRunner` would switch."""
    options = PipelineOptions(flags=[], pipeline_type_check=False)
    with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
        if gathered:
            build_gathered(pipeline, work, tries_again=False)
        else:
            build(pipeline, work, bundle, tries_again=False)


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
        self._executor: ProcessPoolExecutor | None = None
        self._counters: Any = RawArray("q", 2 * max(1, workers))

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._executor is None:
            return
        processes = list((self._executor._processes or {}).values())
        if kind is not None:
            for process in processes:
                process.terminate()
        self._executor.shutdown(wait=kind is None, cancel_futures=True)
        self._executor = None

    def counts(self) -> tuple[int, int]:
        """Documents (read, kept) by the step under way."""
        return sum(self._counters[::2]), sum(self._counters[1::2])

    def run(self, work: TaskList, gathered: bool = False) -> Iterator[int]:
        """Run all tasks; yield how many more are finished as bundles end.

        With `gathered`, rows travel by GroupByKey, all tasks in one pipeline of one process.
        Raises WorkerError when a process dies, or what a step raised.
        """
        self._counters[:] = [0] * len(self._counters)
        tasks = work.tasks
        divided = bundles(tasks, max(1, self.workers))
        if gathered:
            divided = [list(range(len(tasks)))]
        if self.workers == 0:
            set_progress(self._count_here)
            for bundle in divided:
                _run_bundle(work, bundle, gathered)
                yield len(bundle)
            return
        executor = self._start()
        try:
            pending: dict[Future[None], list[int]] = {
                executor.submit(_run_bundle, work, bundle, gathered): bundle for bundle in divided
            }
        except BrokenProcessPool as error:
            raise self._died(work, tasks) from error
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED, timeout=0.25)
            if not done:
                yield 0
            for future in done:
                bundle = pending.pop(future)
                try:
                    future.result()
                except BrokenProcessPool as error:
                    left = [*bundle, *(i for b in pending.values() for i in b)]
                    raise self._died(work, [tasks[i] for i in left]) from error
                yield len(bundle)

    def _died(self, work: TaskList, tasks: Sequence[Task]) -> WorkerError:
        names = ", ".join(t.name for t in tasks[:3]) + (", ..." if len(tasks) > 3 else "")
        return WorkerError(
            f"a worker process died (killed, out of memory, or crashed in native code) during "
            f"{shown(work.step, work.folder)}, with {len(tasks)} shards unfinished: {names}. "
            "Finished shards are safe: the same command goes on from here"
        )

    def _start(self) -> ProcessPoolExecutor:
        if self._executor is None:
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(
                self.workers,
                mp_context=context,
                initializer=_start_worker,
                initargs=(self._counters, context.Value("i", 0), _log.getEffectiveLevel()),
            )
        return self._executor

    def _count_here(self, read: int, kept: int) -> None:
        self._counters[0] += read
        self._counters[1] += kept


def _start_worker(counters: Any, next_slot: Any, log_level: int) -> None:
    global _counters, _slot
    _counters = counters
    with next_slot.get_lock():
        _slot = next_slot.value
        next_slot.value += 1
    set_progress(_count)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides
    _log.setLevel(max(log_level, logging.ERROR))
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.process.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _count(read: int, kept: int) -> None:
    _counters[2 * _slot] += read
    _counters[2 * _slot + 1] += kept


def _run_bundle(work: TaskList, bundle: list[int], gathered: bool) -> None:
    wall, cpu, noted = time.perf_counter(), time.process_time(), noted_cpu()
    try:
        run_in_memory(work, bundle, gathered)
        # What the pipeline took beyond its steps is the framework's share.
        beam_cpu = time.process_time() - cpu - (noted_cpu() - noted)
        beam_wall = time.perf_counter() - wall
        name = f"{work.step.name}~{work.tasks[bundle[0]].name}"
        write_seconds(work.folder, FRAMEWORK, name, beam_wall, beam_cpu)
    except Exception as error:
        # Beam decorates errors of DoFns; what travels back is the one line that names the task.
        raise WorkerError(_innermost(error)) from None


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None and not isinstance(error, CurationError):
        error = error.__cause__
    return str(error).split(" [while running")[0]
