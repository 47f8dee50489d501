"""Slurm: workers on the nodes of a cluster that live as long as the run.

`sbatch --array` asks for them. Each element runs processes that do tasks like those of the local
pool. It gets its orders, some numbers of a task list, from files in a folder that the nodes share,
and answers in the same way:

    NAME/driver              the driver's sign of life, a number that grows
    NAME/workers/LIFE/       the orders of a worker: 1, 2, ...
    NAME/answers/LIFE~1      what became of its first order

A life is one start of an array element (job, element, restarts). What is done is known by commit
records, never by Slurm's states, which only say which workers are gone. What these have left goes
to others, and their folder is removed, upon which a worker ends that is still there, such as one on
a node that was cut off. Workers without a sign of life of their driver end, too.

Files are found by listing their folder: NFS remembers for half a minute that a name is not there,
but looks at a folder again when it is opened.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import pickle
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from curation.config import nearest
from curation.errors import ConfigError, CurationError, WorkerError, told
from pipelines.process import own_process, owner, stoppable, temporary_folder
from pipelines.runners.local import DEATHS, LocalPool, bundles
from pipelines.runners.progress import Quiet
from pipelines.runners.tasklist import TaskList
from pipelines.runners.tasks import is_committed, record_place, shown
from pipelines.storage.files import Folder
from pipelines.terminal import Warnings, tell

#: Where a run folder notes its jobs, so that another driver, or `curate cancel`, can end them.
NOTE = ".slurm/run.json"
_STOP = "stop"
#: Slurm's states of jobs that wait, and of those that run. All others have ended.
_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"}
_RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"}
#: Ends that say nothing against the documents that the worker had.
_INNOCENT = {*_WAITING, "COMPLETED", "TIMEOUT", "PREEMPTED", "DEADLINE", "NODE_FAIL"}
#: Seconds between two looks at files, at least and at most; at the queue; between signs of life.
_QUICK, _SLOW, _LOOK, _BEAT = 0.05, 1.0, 5.0, 5.0
#: Seconds without a sign of life after which the driver counts as dead; without an order after
#: which a worker ends; that workers have to end after a run; without an answer about the queue
#: after which a run without workers fails.
_PATIENCE, _IDLE, _LEAVE, _SILENCE = 60.0, 600.0, 5.0, 1800.0
#: How often jobs are asked for without anything getting done.
_TRIES = 3
#: What commands say while the controller does not answer.
_AWAY = re.compile("Unable to contact|timed out|Connection refused|Zero Bytes", re.I)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class SlurmOptions:
    """The options `--slurm_...`. Those with a name of sbatch's are passed to it as they are."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    time: str = ""
    cpus_per_task: int = 1
    mem_per_cpu: str = ""
    constraint: str = ""
    jobs: int = 8
    array_parallelism: int = 0
    setup: tuple[str, ...] = ()
    sbatch_args: tuple[str, ...] = ()
    python: str = sys.executable
    log_dir: str = ""

    @property
    def processes(self) -> int:
        """The most processes at the same time."""
        return min(self.jobs, self.array_parallelism or self.jobs) * self.cpus_per_task

    def base(self, output: Folder) -> Path:
        """Return the folder of logs and orders: on all nodes the same."""
        beside = output.path(".slurm") if output.is_local else ".slurm"
        return Path(self.log_dir or beside).absolute()

    def scripts(self, place: Path, jobs: int = 0) -> list[str]:
        """Return batch scripts of workers that take orders in a folder.

        Each is one array, of at most as many elements as the site allows. Raises WorkerError where
        there is no Slurm.
        """
        found = re.search(r"MaxArraySize\s*=\s*(\d+)", _slurm("scontrol", "show", "config"))
        arrays = self.arrays(jobs or self.jobs, int(found[1]) if found else 1001)
        return [self._script(place, array) for array in arrays]

    def _script(self, place: Path, array: str) -> str:
        flags = {"job-name": place.name, "array": array, "nodes": "1", "ntasks": "1"}
        flags |= {"output": str(place).replace("%", "%%") + "_%A_%a.log", "open-mode": "append"}
        for key in ("partition", "account", "qos", "time", "cpus_per_task", "mem_per_cpu"):
            flags[key.replace("_", "-")] = str(getattr(self, key))
        flags["constraint"] = self.constraint
        given = [f"--{key}={value}" for key, value in flags.items() if value]
        lines = [f"#SBATCH {shlex.quote(one)}" for one in (*given, "--requeue", *self.sbatch_args)]
        worker = shlex.join([self.python, "-m", "pipelines.runners.slurm", str(place)])
        return "\n".join(["#!/bin/bash", *lines, "set -e", *self.setup, f"exec {worker}"]) + "\n"

    def arrays(self, jobs: int, most: int) -> list[str]:
        """Return arrays of at most `most` elements, and at most `array_parallelism` at once."""
        count, limit = math.ceil(jobs / most), self.array_parallelism
        found = []
        for i in range(count):
            size, at_once = (n * (i + 1) // count - n * i // count for n in (jobs, limit))
            if at_once or not limit:
                found.append(f"0-{size - 1}" + (f"%{at_once}" if limit else ""))
        return found


def parse(arguments: Sequence[str]) -> SlurmOptions:
    """Parse options. Raises ConfigError for one that is unknown, and where Slurm can't be used."""
    kinds = {f"--slurm_{each.name}": each for each in fields(SlurmOptions)}
    found: dict[str, Any] = {}
    items = iter(arguments)
    for item in items:
        option, equals, value = item.partition("=")
        if option not in kinds:
            raise ConfigError(f"{option}: not an option of Slurm's runner{nearest(option, kinds)}")
        value, name = value if equals else next(items, ""), kinds[option].name
        kind: Any = type(kinds[option].default)
        if not value or (kind is int and not (value.isdecimal() and int(value))):
            raise ConfigError(
                f"{item}: expected {'a number above 0' if kind is int else 'a value'}"
            )
        found[name] = (*found.get(name, ()), value) if kind is tuple else kind(value)
    options = SlurmOptions(**found)
    try:
        for script in options.scripts(Path("curate").absolute())[:1]:
            _slurm("sbatch", "--test-only", script=script)
    except WorkerError as error:
        raise ConfigError(f"--runner=slurm: {error}") from None
    return options


def _slurm(*words: str, script: str = "", tries: int = 4) -> str:
    """Run a command of Slurm, again while the controller doesn't answer. Raises WorkerError."""
    for left in reversed(range(tries)):
        try:
            done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=120)
        except FileNotFoundError:
            raise WorkerError(f"no `{words[0]}` here; start the run on a login node") from None
        except subprocess.TimeoutExpired:
            said = "timed out"
        else:
            if not done.returncode:
                return done.stdout
            said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        if not left or not _AWAY.search(said):
            break
        time.sleep(2 ** (tries - left))
    said = re.sub(rf"^({words[0]}: |error: |allocation failure: )*", "", said)
    raise WorkerError(f"{words[0]}: {said}")


def end(output: Folder) -> bool:
    """End the jobs of the run that is noted in a folder, and its driver; return if there is one.

    Only their logs are left. Raises WorkerError if Slurm can't be reached.
    """
    place = Path(output.read_own_json(NOTE).get("place", ""))
    if place.name:
        _slurm("scancel", f"--name={place.name}")
        shutil.rmtree(place, ignore_errors=True)
        output.remove(NOTE)
    return bool(place.name)


@dataclass
class _Order:
    """Tasks by number, and how many workers have died on them; none: compile kernels."""

    numbers: Sequence[int] = ()
    deaths: int = 0


@dataclass
class _Worker:
    """What the driver knows of a worker."""

    place: Path
    met: float
    given: int = 0
    orders: dict[int, _Order] = field(default_factory=dict)  # under way
    warm: bool = False  # has compiled kernels


class SlurmPool:
    """The workers of a run. Takes the place of `LocalPool`."""

    def __init__(
        self, options: SlurmOptions, output: Folder, stages: Sequence[str], display: Quiet
    ) -> None:
        self.options, self._output, self._display = options, output, display
        self._stages = list(stages)
        label = re.sub("[^A-Za-z0-9_.-]+", "", output.url.rpartition("/")[2])[-40:]
        self._base = options.base(output)
        self._place = self._base / f"curate-{label}-{uuid.uuid4().hex[:8]}"
        self._over = threading.Event()
        self._workers: dict[str, _Worker] = {}
        self._waiting: deque[_Order] = deque()
        #: State and reason by element, and when Slurm was asked for them, and for jobs.
        self._states: dict[str, tuple[str, str]] = {}
        self._looked = self._asked = self._checked = self._told = 0.0
        self._latest: list[str] = []  # arrays asked for last
        self._fruitless = 0  # times that jobs were asked for since something got done

    def __enter__(self) -> SlurmPool:
        end(self._output)
        self._base.mkdir(parents=True, exist_ok=True)
        for place in (self._place, self._place / "workers", self._place / "answers"):
            place.mkdir(mode=0o700)
        self._output.write_own_json(NOTE, {"place": str(self._place), "driver": owner()})
        atexit.register(end, self._output)
        for each in (self._beat, self._watch):
            threading.Thread(target=each, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *others: object) -> None:
        self._over.set()
        until = time.monotonic() + _LEAVE * (kind is None)
        with contextlib.suppress(OSError, WorkerError):  # then they miss their driver
            _put(self._place / "driver", _STOP)
            # Those that end by themselves are COMPLETED in the eyes of Slurm.
            at_work = ("squeue", "-h", "-t", "RUNNING,COMPLETING", f"--name={self._place.name}")
            while time.monotonic() < until and _slurm(*at_work, tries=1):
                time.sleep(_QUICK)
            end(self._output)
        atexit.unregister(end)

    def counts(self) -> tuple[int, int, int]:
        """Return what is known of tasks under way: nothing."""
        return 0, 0, 0

    @property
    def _under_way(self) -> list[_Order]:
        orders = [order for worker in self._workers.values() for order in worker.orders.values()]
        return [order for order in orders if order.numbers]

    def run(self, work: TaskList) -> Iterator[int]:
        """Run all tasks; yield the number of newly finished tasks.

        Raises WorkerError when workers keep dying, or for what a step raised.
        """
        divided = bundles(work.tasks, self.options.processes)
        self._waiting = deque(_Order(numbers) for numbers in divided)
        records = work.folder / record_place(work.step)
        done, counted, pause = len(records.sizes()), time.monotonic(), 2.0
        while self._waiting or self._under_way:
            self._attend(work)
            fresh = 0
            if (now := time.monotonic()) > counted + pause:
                fresh = len(records.sizes()) - done
                counted = time.monotonic()
                done, pause = done + fresh, max(2.0, 20 * (counted - now))
                self._fruitless = 0 if fresh else self._fruitless
            yield fresh
            time.sleep(_QUICK)
        yield len(records.sizes()) - done

    def _attend(self, work: TaskList) -> None:
        now = time.monotonic()
        present = _names(self._place / "workers")
        for life in sorted(present - self._workers.keys()):
            for other in [each for each in self._workers if _element(each) == _element(life)]:
                self._lose(other, work)  # requeued
            self._workers[life] = _Worker(self._place / "workers" / life, now)
        for life in self._workers.keys() - present:
            self._lose(life, work)  # ended, since it had nothing to do
        self._hear()
        if now > self._checked + _SLOW:
            self._checked = now
            if not self._place.exists():
                raise WorkerError("cancelled by `curate cancel`")
            for life in [life for life, w in self._workers.items() if w.met < self._looked]:
                state, _ = self._states.get(_element(life), ("COMPLETED", ""))
                if state not in _RUNNING:
                    self._lose(life, work, state)
            self._ask(now)
        self._give(work)

    def _hear(self) -> None:
        """Take the answers."""
        for name in sorted(_names(self._place / "answers")):
            path = self._place / "answers" / name
            error = pickle.loads(path.read_bytes())
            path.unlink()
            life, _, number = name.partition("~")
            worker = self._workers.get(life)
            if worker is None or int(number) not in worker.orders:
                continue  # given to another in the meantime
            if error:
                raise WorkerError(error)
            worker.warm = True
            self._fruitless = 0 if worker.orders.pop(int(number)).numbers else self._fruitless

    def _lose(self, life: str, work: TaskList, state: str = "COMPLETED") -> None:
        """Forget a worker; what it has left of its orders is done by others."""
        worker, tasks = self._workers.pop(life), work.tasks
        shutil.rmtree(worker.place, ignore_errors=True)
        for order in worker.orders.values():
            left = [n for n in order.numbers if not is_committed(work.folder, work.step, tasks[n])]
            deaths = order.deaths + (state not in _INNOCENT)
            self._fruitless = 0 if len(left) < len(order.numbers) else self._fruitless
            if left and deaths == DEATHS:
                raise WorkerError(
                    f"Slurm jobs keep ending ({state}) during {shown(work.step, work.folder)}, on "
                    f"one of {len(left)} shards: {tasks[left[0]].name}, ...; --slurm_mem_per_cpu "
                    f"gives more memory; log: {self._place}_{_element(life)}.log"
                )
            if left:
                self._waiting.appendleft(_Order(left, deaths))

    def _ask(self, now: float) -> None:
        """Ask for as many jobs as there is work for; also in place of those that have ended.

        Raises WorkerError if all have ended without anything having got done.
        """
        if self._asked and self._looked <= self._asked:  # the queue isn't known as it is now
            if not self._workers and now > self._asked + _SILENCE:
                raise WorkerError("squeue has not answered for half an hour, and no job is at work")
            return
        states = [(s, why) for s, why in self._states.values() if s in _WAITING | _RUNNING]
        if states and not self._workers and now > self._told + _PATIENCE / 2:
            self._told = now
            words = ", ".join(sorted({f"{state} ({why})" for state, why in states}))
            self._display.message(f"slurm: no job is at work yet: {words}")
        if not states and self._fruitless:
            self._check_ends()
        orders = len(self._waiting) + len(self._under_way)
        wanted = min(self.options.jobs, math.ceil(orders / self.options.cpus_per_task))
        if len(states) < wanted and self._fruitless < _TRIES:
            self._submit(wanted - len(states), bool(states))

    def _check_ends(self) -> None:
        """Raise WorkerError if it makes no sense to ask again for jobs that have ended."""
        ended = [s for e, (s, _) in self._states.items() if e.partition("_")[0] in self._latest]
        late = {*ended} == {"TIMEOUT"}
        if not late and self._fruitless < _TRIES:
            return
        logs = sorted(self._base.glob(f"{self._place.name}_*.log"), key=os.path.getmtime)
        lines = logs[-1].read_text(errors="replace").split("\n") if logs else []
        said = [f"{logs[-1]}: {line}" for line in lines if line.strip()] or [str(self._base)]
        found = ", ".join(sorted({*ended})) or "gone"
        hint = "; give them longer with --slurm_time" if late else ""
        raise WorkerError(f"Slurm jobs finished no task ({found}){hint}; log: {said[-1]}")

    def _submit(self, jobs: int, others: bool) -> None:
        """Ask for jobs. Raises WorkerError if that fails and there are no others."""
        self._fruitless += 1
        try:
            scripts = self.options.scripts(self._place, jobs)
            sent = [_slurm("sbatch", "--parsable", script=script) for script in scripts]
            self._latest = [answer.strip().partition(";")[0] for answer in sent]
        except WorkerError as error:
            if not others:
                raise
            _LOG.warning("%s; going on with the jobs there are", error)
        self._asked = self._told = time.monotonic()

    def _give(self, work: TaskList) -> None:
        """Give orders; first to those that had most, which look for them most often."""
        heated = any(worker.warm for worker in self._workers.values())
        for worker in sorted(self._workers.values(), key=lambda w: -w.given):
            if not worker.warm and not worker.orders:
                # One compiles; the others find it done, or do it for another kind of machine.
                if heated or not any(other.orders for other in self._workers.values()):
                    self._send(worker, _Order(), self._stages)
            while worker.warm and self._waiting and len(worker.orders) < self.options.cpus_per_task:
                if not self._send(worker, self._waiting[0], work):
                    break
                self._waiting.popleft()

    def _send(self, worker: _Worker, order: _Order, what: TaskList | list[str]) -> bool:
        """Write an order; return whether the worker is still there."""
        try:
            _put(worker.place / str(worker.given + 1), (what, order.numbers, order.deaths))
        except FileNotFoundError:
            return False
        worker.given += 1
        worker.orders[worker.given] = order
        return True

    def _beat(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                _put(self._place / "driver", time.monotonic_ns())
            self._over.wait(_BEAT)

    def _watch(self) -> None:
        """Keep the states; while the controller is away, the last ones count."""
        words = ("-h", "-r", "-t", "all", f"--name={self._place.name}", "-o", "%F_%K|%T|%r")
        while not self._over.is_set():
            began = time.monotonic()
            try:
                rows = [line.split("|") for line in _slurm("squeue", *words, tries=1).splitlines()]
                self._states = {element: (state, why) for element, state, why in rows}
                self._looked = began
            except (WorkerError, ValueError) as error:
                _LOG.warning("%s; asked again", error)
            self._over.wait(_LOOK)


def _element(life: str) -> str:
    """Return job and element of a worker, without its restarts."""
    return life.rpartition("_")[0]


def _names(place: Path) -> set[str]:
    """Return the names in a folder, without those of unfinished files; none if it is gone."""
    with contextlib.suppress(FileNotFoundError):
        return {name for name in os.listdir(place) if not name.startswith(".")}
    return set()


def _put(path: Path, value: Any) -> None:
    """Pickle a value into a file that is whole when it appears."""
    part = path.with_name(f".{path.name}")
    part.write_bytes(pickle.dumps(value))
    part.replace(path)


class _Work:
    """A worker on a node, until the driver has no more work for it, or gives no sign of life."""

    def __init__(self, place: Path) -> None:
        facts = place.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:  # what lies there is code
            raise ConfigError(f"{place}: must belong to this user alone")
        ids = ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT")
        self._life = "_".join(os.environ.get(name) or "0" for name in ids)
        self._place, self._own = place, place / "workers" / self._life
        self._processes = int(os.environ.get("SLURM_CPUS_PER_TASK") or 1)
        self._free: list[LocalPool] = []
        self._over = threading.Event()

    def serve(self) -> None:
        """Take orders, as many at a time as there are processes."""
        self._own.mkdir()
        with contextlib.ExitStack() as stack:
            self._free += [stack.enter_context(LocalPool(1)) for _ in range(self._processes)]
            hands = stack.enter_context(ThreadPoolExecutor(self._processes))
            stack.callback(self._over.set)
            threading.Thread(target=self._listen, daemon=True).start()
            number, pause, until = 1, _QUICK, time.monotonic() + _IDLE
            while not self._over.is_set() and time.monotonic() < until:
                if str(number) in _names(self._own):
                    order = pickle.loads((self._own / str(number)).read_bytes())
                    hands.submit(self._do, number, *order)
                    number, pause = number + 1, _QUICK
                if len(self._free) < self._processes:
                    until = time.monotonic() + _IDLE
                pause = min(1.1 * pause, _SLOW)
                self._over.wait(pause)
            with contextlib.suppress(OSError):  # a driver that has just given an order notices
                shutil.rmtree(self._own.rename(self._own.with_name(f".{self._life}")))

    def _do(
        self, number: int, what: TaskList | list[str], numbers: Sequence[int], deaths: int
    ) -> None:
        pool, error = self._free.pop(), ""
        try:
            if isinstance(what, list):
                from pipelines.runners.compilation import compile_kernels

                compile_kernels(what, self._processes, lambda *_: None)
            else:
                for _ in pool.run(what, numbers, min(1, deaths)):
                    if self._over.is_set():
                        return
        except Exception as failure:
            text = str(failure) if isinstance(failure, CurationError) else told(failure)
            error = f"on {socket.gethostname()}: {text}"
        finally:
            self._free.append(pool)
        if self._own.exists():
            _put(self._place / "answers" / f"{self._life}~{number}", error)

    def _listen(self) -> None:
        """Watch for signs of the driver's life, by this machine's clock alone."""
        sign, heard = None, time.monotonic()
        while not self._over.wait(_SLOW):
            with contextlib.suppress(OSError, EOFError):
                now = pickle.loads((self._place / "driver").read_bytes())
                if now != sign:
                    sign, heard = now, time.monotonic()
            dismissed = not self._own.exists()
            if dismissed or sign == _STOP or time.monotonic() > heard + _PATIENCE:
                break
        self._over.set()


def main() -> None:
    """Run a worker: what an element of the array calls, with the folder of the run's orders."""
    own_process()
    logging.lastResort = Warnings(tell)
    with stoppable(), temporary_folder():
        _Work(Path(sys.argv[1])).serve()


if __name__ == "__main__":
    main()
