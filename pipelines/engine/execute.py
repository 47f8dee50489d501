"""Run the pending tasks of a step, on the local pool or on the Beam runner that the user names."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from curation.errors import ConfigError
from pipelines.engine.files import Folder
from pipelines.engine.own import note_own
from pipelines.engine.progress import Quiet
from pipelines.engine.tasklist import write_task_list
from pipelines.engine.tasks import Step, Task, commit_name, committed, record_name, record_place

if TYPE_CHECKING:
    from pipelines.engine.jobs import Jobs
    from pipelines.engine.local import LocalPool

#: Runner names that mean this machine. Beam's DirectRunner may switch to another runner (and fetch
#: it from the network), so it is never used under that name.
_LOCAL = {"", "local", "directrunner", "fnapirunner"}


@dataclass(frozen=True)
class RunnerOptions:
    """Where a run executes: `workers` local processes, or a Beam runner with its own options."""

    runner: str = ""
    workers: int = 0
    beam_args: tuple[str, ...] = ()
    exchange: str = "auto"  # files, beam, or what suits the runner

    @property
    def is_local(self) -> bool:
        return self.runner.lower() in _LOCAL

    @property
    def gathers(self) -> bool:
        """Whether rows travel between shards by GroupByKey."""
        return self.exchange == "beam" or (self.exchange == "auto" and not self.is_local)


def parse_beam_args(
    args: Sequence[str], workers: int | None, exchange: str = "auto"
) -> RunnerOptions:
    """Read the options after `--`. The local runner takes `--direct_num_workers`; others take all.

    Raises ConfigError for an option that the local runner doesn't know.
    """
    runner, own, rest = "", workers, []
    items = iter(args)
    for item in items:
        name, _, value = item.partition("=")
        if name == "--runner":
            runner = value or next(items, "")
            if not runner:
                raise ConfigError("--runner: expected the name of a runner, as in `--runner=NAME`")
        elif name == "--direct_num_workers":
            own = _processes(value or next(items, "0"))
        else:
            rest.append(item)
    processes = own if own is not None else os.cpu_count() or 1
    options = RunnerOptions(runner, processes, tuple(rest), exchange)
    if options.is_local and rest and not all(r.startswith("--direct_running_mode") for r in rest):
        raise ConfigError(
            f"{rest[0]}: unknown option for the local runner; name a runner first, for example "
            "`-- --runner=FlinkRunner --flink_master=...`"
        )
    if not options.is_local:
        from pipelines.engine.jobs import check_runner

        check_runner(runner, rest)
    return options


def _processes(value: str) -> int | None:
    """The value of `--direct_num_workers`; None stands for 0, all cores."""
    if not value.isdecimal():
        raise ConfigError(f"--direct_num_workers: expected a number of processes (got {value!r})")
    return int(value) or None


@dataclass
class Executor:
    """Runs steps for the length of a run. Use as a context manager.

    Beam is imported with the first task to do: a finished run has none.
    """

    options: RunnerOptions
    display: Quiet = field(default_factory=Quiet)
    #: Stages of the run, whose kernels are compiled before the first task.
    stages: Sequence[str] = ()

    def __enter__(self) -> Executor:
        self._open = contextlib.ExitStack()
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.__exit__(*exception)  # type: ignore[arg-type]

    @functools.cached_property
    def _pool(self) -> LocalPool:
        from pipelines.engine.compilation import compile_kernels
        from pipelines.engine.local import LocalPool

        if self.options.workers:
            compile_kernels(self.stages, self.options.workers, self.display.compiling)
        return self._open.enter_context(LocalPool(self.options.workers))

    @functools.cached_property
    def _jobs(self) -> Jobs:
        from pipelines.engine.jobs import Jobs

        jobs = Jobs(self.options.runner, self.options.beam_args)
        self._open.callback(jobs.close)
        return jobs

    def run(
        self,
        stage: str,
        step: Step,
        folder: Folder,
        tasks: Sequence[Task],
        documents: int = 0,
    ) -> int:
        """Bring every task of a step to its commit record; return how many had to be done.

        `documents` is how many documents the tasks hold in all, where known, for the display.
        Records and outputs of tasks that are no longer planned are removed.
        """
        names = {t.name for t in tasks}
        if len(names) != len(tasks):
            raise ValueError(f"{stage}/{step.name}: two tasks share a name")
        present = (folder / record_place(step)).sizes()
        complete = committed(folder, step, tasks, present)
        pending = [t for t in tasks if t.name not in complete]
        self._forget(step, folder, present, {commit_name(t) for t in tasks})
        if not pending:
            return 0
        # Records of tasks to be done are of files that are going to be others.
        left = [record_name(step, t) for t in pending if commit_name(t) in present]
        folder.each(folder.remove, left)
        done = len(tasks) - len(pending)
        note_own(folder, tasks=names)
        work = write_task_list(folder, step, pending)
        gathered = self.options.gathers and _gathers(step)
        if not self.options.is_local:
            with self._watched(stage, step, folder, len(pending)):
                self._jobs.run(work, gathered, f"{stage}-{step.name}".replace("/", "-"))
            return len(pending)
        for finished in self._pool.run(work, gathered):
            done += finished
            read, kept = self._pool.counts()
            whole = documents if documents and len(pending) == len(tasks) else 0
            self.display.step(
                stage, step.name, read if whole else done, whole or len(tasks), read, kept
            )
        return len(pending)

    @contextlib.contextmanager
    def _watched(self, stage: str, step: Step, folder: Folder, total: int) -> Iterator[None]:
        finished = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(stage, step, folder, total, finished), daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()

    def _watch(
        self, stage: str, step: Step, folder: Folder, total: int, finished: threading.Event
    ) -> None:
        # Commit records are the progress bar of every runner.
        records = folder / record_place(step)
        before, pause = len(records.sizes()), 2.0
        while not finished.wait(pause):
            started = time.monotonic()
            self.display.step(stage, step.name, len(records.sizes()) - before, total, 0, 0)
            # A hundred thousand records in an object store take a while to list.
            pause = max(2.0, 20 * (time.monotonic() - started))

    def _forget(
        self, step: Step, folder: Folder, present: dict[str, int], wanted: set[str]
    ) -> None:
        gone = (name for name in sorted(set(present) - wanted) if name.endswith(".json"))
        paths = [f"{record_place(step)}/{name}" for name in gone]
        for path, record in zip(paths, folder.each(folder.read_own_json, paths), strict=True):
            if "files" in record:
                folder.each(folder.remove, record["files"])
                folder.remove(path)


def _gathers(step: Step) -> bool:
    from pipelines.engine.shuffle import Gathers

    return isinstance(step, Gathers)
