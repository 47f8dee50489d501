"""Run the pending tasks of a step, on the local pool, Slurm or a Beam runner."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from curation.errors import ConfigError
from pipelines.runners.chain import Moves, Pass, write_chain
from pipelines.runners.progress import Quiet
from pipelines.runners.tasklist import write_task_list
from pipelines.runners.tasks import (
    Step,
    Task,
    commit_name,
    committed,
    record_name,
    record_place,
    records_of,
)
from pipelines.storage.files import Folder
from pipelines.storage.own import note_own

if TYPE_CHECKING:
    from pipelines.runners.jobs import Jobs
    from pipelines.runners.slurm import SlurmOptions

#: Names of Beam's Python direct runner, in lower case.
_DIRECT = {"directrunner", "direct", "fnapirunner"}


@dataclass(frozen=True)
class RunnerOptions:
    """Where a run executes: `workers` processes of the local pool or of Slurm, or a Beam runner.

    Beam's direct runner runs inside one process of the pool, or in this one without workers.
    """

    runner: str = "local"
    workers: int = 0
    beam_args: tuple[str, ...] = ()
    slurm: SlurmOptions | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is the pool of processes of this machine."""
        return self.runner.lower() == "local"

    @property
    def by_files(self) -> bool:
        """Whether rows move between shards as files, not by GroupByKey."""
        return self.is_local or self.slurm is not None

    @property
    def is_direct(self) -> bool:
        return self.runner.lower() in _DIRECT


def parse_beam_args(args: Sequence[str], workers: int | None) -> RunnerOptions:
    """Parse options after `--`: `--runner=NAME` and the options of that runner.

    Raises ConfigError for an unknown runner, one that can't be used here, or unknown options.
    """
    runner, rest = "local", []
    items = iter(args)
    for item in items:
        name, _, value = item.partition("=")
        if name == "--runner":
            runner = value or next(items, "")
            if not runner:
                raise ConfigError("--runner: expected `--runner=NAME`")
        else:
            rest.append(item)
    if runner.lower() == "slurm":
        from pipelines.runners.slurm import parse

        if workers is not None:
            raise ConfigError(f"--workers {workers}: for the local pool; Slurm takes --slurm_jobs")
        slurm = parse(rest)
        return RunnerOptions("slurm", slurm.processes, slurm=slurm)
    processes = workers if workers is not None else os.cpu_count() or 1
    options = RunnerOptions(runner, processes, tuple(rest))
    if options.is_local:
        if rest:
            raise ConfigError(
                f"{rest[0]}: not an option of the local pool, which takes --workers; name a runner "
                "first, for example `-- --runner=FlinkRunner --flink_master=...`"
            )
        return options
    if rest or not options.is_direct:  # otherwise only the process that runs pipelines needs Beam
        from pipelines.runners.jobs import check_runner

        check_runner(runner, rest)
    if options.is_direct:
        if workers and workers > 1:
            raise ConfigError(
                f"--workers {workers}: for the local pool; DirectRunner takes "
                f"`--direct_num_workers={workers} --direct_running_mode=multi_processing`"
            )
        return replace(options, workers=1 if workers is None else workers)
    return options


@dataclass
class Executor:
    """Runs the steps of a run. Use as a context manager.

    Beam is imported only when there is a task to run.
    """

    options: RunnerOptions
    display: Quiet = field(default_factory=Quiet)
    output: Folder | None = None  # of the run
    jobs: int = 0  # pipelines that Beam has run
    #: Stages of the run, whose kernels are compiled before the first task.
    stages: Sequence[str] = ()
    #: What changes the folder of the run besides the stages that it does. It waits until one
    #: begins, or all are complete: a stage may refuse its settings before.
    later: list[Callable[[], None]] = field(default_factory=list)
    #: Whether the pool's workers are on this machine.
    is_here: ClassVar[bool] = True

    def __enter__(self) -> Executor:
        self._open = contextlib.ExitStack()
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.__exit__(*exception)  # type: ignore[arg-type]

    @property
    def _sends_jobs(self) -> bool:
        return not self.options.by_files and not self.options.is_direct

    def check(self, folder: Folder) -> None:
        """Raise ConfigError if the runner can't work on a folder with its options."""
        if self._sends_jobs:
            self._jobs.check(folder)

    def prepare(self) -> None:
        """Start the runner's job server before anything is changed. Raises ConfigError."""
        if self._sends_jobs:
            self._jobs.endpoint()

    def settle(self) -> None:
        """Do what had to wait."""
        for change in self.later:
            change()
        self.later.clear()

    def compile(self) -> None:
        """Compile the kernels of the run's stages that are not compiled yet, on all cores."""
        from pipelines.runners.compilation import compile_kernels

        if self.options.workers:
            processes = os.cpu_count() or 1 if self.options.is_direct else self.options.workers
            compile_kernels(self.stages, processes, self.display.compiling)

    @functools.cached_property
    def _pool(self) -> Any:
        """`LocalPool`, or what takes its place."""
        if self.options.slurm:
            from pipelines.runners.slurm import SlurmPool

            assert self.output is not None
            slurm = SlurmPool(self.options.slurm, self.output, self.stages, self.display)
            return self._open.enter_context(slurm)
        from pipelines.runners.local import LocalPool

        self.compile()
        return self._open.enter_context(LocalPool(self.options.workers))

    @functools.cached_property
    def _jobs(self) -> Jobs:
        from pipelines.runners.jobs import Jobs

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
        """Run every task of a step that is not committed; return the number run.

        `documents`: total documents of the tasks, if known, for the progress display. Records and
        outputs of tasks that are no longer planned are removed.
        """
        if not self.options.by_files:
            return self.run_chain(stage, [Pass(step, tasks, folder)])
        names = {t.name for t in tasks}
        if len(names) != len(tasks):
            raise ValueError(f"{stage}/{step.name}: two tasks share a name")
        complete = committed(folder, step, tasks, (folder / record_place(step)).sizes())
        pending = [t for t in tasks if t.name not in complete]
        _forget(step, folder, tasks, pending)
        if not pending:
            return 0
        done = before = len(tasks) - len(pending)
        if done:
            self.display.resumed(stage, done, len(tasks))
        note_own(folder, tasks=names)
        here = self.is_here and self.options.slurm is None
        work = write_task_list(folder, step, pending, local=here)
        size = sum(task.size for task in pending) or 1
        for finished in self._pool.run(work):
            done += finished
            read, kept, part = self._pool.counts()
            whole = documents if read and len(pending) == len(tasks) else 0
            # Of few large files none may be done for minutes.
            so_far = max(done, before + round(len(pending) * min(1.0, part / size), 2))
            self.display.step(
                stage, step.name, read if whole else so_far, whole or len(tasks), read, kept
            )
        return len(pending)

    def run_chain(self, stage: str, passes: Sequence[Pass]) -> int:
        """Run all uncommitted tasks of all passes in one job; return the number run.

        Nothing runs if all are committed. Otherwise tasks that send or gather rows run again, since
        rows are not stored; any other task whose record matches is skipped.
        """
        moves = Moves(passes)
        if _is_done(passes, moves):
            return 0
        for p in passes:
            _forget(p.step, p.place, p.tasks, p.tasks if moves.always_done(p.step) else ())
            note_own(p.place, tasks=[t.name for t in p.tasks])
        self._run_job(stage, passes)
        return sum(len(p.tasks) for p in passes)

    def _run_job(self, stage: str, passes: Sequence[Pass]) -> None:
        chain = write_chain(passes, self.options.is_local or self.options.is_direct)
        self.jobs += 1
        finished = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(stage, passes, finished), daemon=True)
        watcher.start()
        try:
            if self.options.is_direct:
                self._pool.run_chain(chain, self.options.beam_args)
            else:
                self._jobs.run(chain, f"{stage}-{chain.step.name}".replace("/", "-"))
        finally:
            finished.set()
            watcher.join()

    def _watch(self, stage: str, passes: Sequence[Pass], finished: threading.Event) -> None:
        # Commit records are the progress bar of every runner.
        waiting, pause = deque(passes), 2.0
        while not finished.wait(pause):
            started = time.monotonic()
            done = len((waiting[0].place / record_place(waiting[0].step)).sizes())
            total = len(waiting[0].tasks)
            self.display.step(stage, waiting[0].step.name, min(done, total), total, 0, 0)
            if done >= total and len(waiting) > 1:
                waiting.popleft()
            # Listing a hundred thousand records in an object store takes a while.
            pause = max(2.0, 20 * (time.monotonic() - started))


def _forget(step: Step, folder: Folder, tasks: Sequence[Task], again: Sequence[Task]) -> None:
    """Remove records of tasks to rerun, and records and files of tasks no longer planned."""
    present = set((folder / record_place(step)).sizes())
    planned = {commit_name(t) for t in tasks}
    gone = (name for name in sorted(present - planned) if name.endswith(".json"))
    paths = [f"{record_place(step)}/{name}" for name in gone]
    for path, record in zip(paths, folder.each(folder.read_own_json, paths), strict=True):
        if "files" in record:
            folder.each(folder.remove, record["files"])
            folder.remove(path)
    # These belong to files that will be replaced.
    folder.each(folder.remove, [record_name(step, t) for t in again if commit_name(t) in present])


def _is_done(passes: Sequence[Pass], moves: Moves) -> bool:
    """Return whether all tasks are committed as one job leaves them, without moved rows."""
    records: dict[str, list[dict[str, Any]]] = {}
    for p in passes:
        present = (p.place / record_place(p.step)).sizes()
        if any(commit_name(t) not in present for t in p.tasks):
            return False
        tasks, absent = moves.planned(p, records), moves.unwritten(p.step)
        if len(committed(p.place, p.step, tasks, present, absent)) < len(tasks):
            return False
        records[p.step.name] = records_of(p.place, p.step, tasks)
    return True
