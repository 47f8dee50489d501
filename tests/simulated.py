"""A file system and a store that fail as told, for runs of the real engine in one process.

A `World` counts the calls that the engine makes: on local disks those of Python and of Arrow to
paths below a folder, in a store those of fsspec. Before each it asks a plan what goes wrong. Where
several workers do the same task, a call is also where one hands over to another, in an order drawn
from a seed: every interleaving of calls can be had again.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import random
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import fsspec
import pyarrow as pa
from fsspec.spec import AbstractFileSystem

from curation import stores
from curation.stores import persist
from pipelines.runners import tasklist
from pipelines.runners.execute import Executor, RunnerOptions
from pipelines.runners.local import do_task
from pipelines.runners.tasklist import TaskList
from pipelines.runners.tasks import no_progress, set_progress
from pipelines.storage import runs

#: What may go wrong with a call. A lost call is carried out, and its answer is an error.
LOCAL = ("eio", "enospc", "short", "death")
STORE = ("busy", "lost", "short", "stale", "refused", "death")
#: Faults that end a run when the engine does not try again.
_ERRNO = {"eio": errno.EIO, "enospc": errno.ENOSPC}


class DiedError(BaseException):
    """The process is no more, or hangs: nothing that it does from here on has an effect."""


#: (kind of call, its number, random numbers) -> what goes wrong, or nothing
Fault = Callable[[str, int, random.Random], str]


@dataclass
class World:
    """What one run sees."""

    fault: Fault
    seed: int = 0
    most_calls: int = 20_000
    calls: int = 0
    log: list[str] = field(default_factory=list)
    dead: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.turn = threading.Condition()
        self.workers: list[int] = []  # that take turns, and their number by thread
        self.names: dict[int, int] = {}
        self.current: int | None = None
        #: Those that hand over right now. A finalizer may call in the middle of it: its notice
        #: would be for the turn that is being waited for.
        self.between: set[int] = set()

    def call(self, kind: str, place: str, possible: Sequence[str]) -> str:
        """Count a call; the fault that it meets, or an empty string. Raises DiedError."""
        self._hand_over()
        if self.dead:
            raise DiedError
        self.calls += 1
        if self.calls > self.most_calls:
            self.dead = True
            raise DiedError
        fault = self.fault(kind, self.calls, self.random)
        if fault not in possible:
            return ""
        self.log.append(f"call {self.calls}, {kind} {os.path.basename(place)}: {fault}")
        if fault == "death":
            self.dead = True
            raise DiedError
        return fault

    def _hand_over(self) -> None:
        me = self.names.get(threading.get_ident())
        if me is None or me in self.between:
            return
        self.between.add(me)
        try:
            with self.turn:
                self.current = self.random.choice(self.workers)
                self.turn.notify_all()
                self.turn.wait_for(lambda: self.current == me)
        finally:
            self.between.discard(me)

    def together(self, actions: Sequence[Callable[[], None]]) -> list[BaseException]:
        """Do things in threads that take turns at their calls; what they raised."""
        raised: list[BaseException] = []
        self.workers, self.current = list(range(len(actions))), 0
        begun = threading.Barrier(len(actions))

        def one(me: int) -> None:
            self.names[threading.get_ident()] = me
            begun.wait()
            try:
                with self.turn:
                    self.turn.wait_for(lambda: self.current == me)
                actions[me]()
            except BaseException as error:
                raised.append(error)
            finally:
                with self.turn:
                    del self.names[threading.get_ident()]
                    self.workers.remove(me)
                    self.current = self.workers[0] if self.workers else None
                    self.turn.notify_all()

        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(actions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return raised


# -------------------------------------------------------------------------------- local disks


class _File:
    """A local file whose reads and writes may fail."""

    def __init__(self, file: Any, path: str, world: World) -> None:
        self._file, self._path, self._world = file, path, world

    def read(self, size: int = -1) -> Any:
        fault = _local(self._world, "read", self._path, ("eio", "short", "death"))
        data = self._file.read(size)
        return data[: max(1, len(data) // 2)] if fault == "short" and size > 0 else data

    def readinto(self, buffer: Any) -> int:
        _local(self._world, "read", self._path, ("eio", "death"))
        return int(self._file.readinto(buffer))

    def write(self, data: Any) -> int:
        try:
            _local(self._world, "write", self._path, ("eio", "enospc", "death"))
        except OSError:
            self._file.write(memoryview(data)[: memoryview(data).nbytes // 2])
            raise
        return int(self._file.write(data))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _local(world: World, kind: str, path: str, possible: Sequence[str]) -> str:
    fault = world.call(kind, path, possible)
    if fault in _ERRNO:
        number = _ERRNO[fault]
        raise OSError(number, os.strerror(number), path)
    return fault


#: Functions of `os` by the kind of call that they are, and what can go wrong.
_OS = {
    "replace": ("rename", ("eio", "enospc", "death")),
    "rename": ("rename", ("eio", "enospc", "death")),
    "unlink": ("delete", ("eio", "death")),
    "remove": ("delete", ("eio", "death")),
    "rmdir": ("delete", ("eio", "death")),
    "mkdir": ("create", ("eio", "enospc", "death")),
    "scandir": ("list", ("eio", "death")),
    "listdir": ("list", ("eio", "death")),
    "stat": ("stat", ("eio", "death")),
    "fsync": ("sync", ("eio", "enospc", "death")),
}


@contextlib.contextmanager
def local_faults(world: World, root: str) -> Iterator[None]:
    """Let calls to paths below a folder go by way of the world."""

    def below(path: Any) -> bool:
        return isinstance(path, str) and path.startswith(root)

    def wrapped(function: Callable[..., Any], kind: str, possible: Sequence[str]) -> Any:
        def call(path: Any = ".", *arguments: Any, **named: Any) -> Any:
            if kind == "sync" or below(path):
                _local(world, kind, str(path), possible)
            return function(path, *arguments, **named)

        return call

    def opened(path: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if not below(path):
            return plain(path, mode, *arguments, **named)
        _local(world, "open", path, ("eio", "enospc", "death") if "w" in mode else ("eio", "death"))
        file = plain(path, mode, *arguments, **named)
        return _File(file, path, world) if "b" in mode else file

    def tree_removed(path: Any, *arguments: Any, **named: Any) -> Any:
        if below(path):
            try:
                _local(world, "delete", path, ("eio", "death"))
            except BaseException:
                for name in sorted(os.listdir(path))[:1]:  # some of it is gone
                    with contextlib.suppress(OSError):
                        real_remove(os.path.join(path, name))
                raise
        return rmtree(path, *arguments, **named)

    plain, rmtree, real_remove = builtins.open, shutil.rmtree, os.remove
    before = {name: getattr(os, name) for name in _OS}
    arrow = {name: getattr(pa, name) for name in ("OSFile", "memory_map")}
    try:
        for name, (kind, possible) in _OS.items():
            setattr(os, name, wrapped(before[name], kind, possible))
        for name, function in arrow.items():
            setattr(pa, name, wrapped(function, "open", ("eio", "death")))
        builtins.open = opened  # type: ignore[assignment]
        shutil.rmtree = tree_removed  # type: ignore[assignment]
        yield
    finally:
        for name, function in before.items():
            setattr(os, name, function)
        for name, function in arrow.items():
            setattr(pa, name, function)
        builtins.open, shutil.rmtree = plain, rmtree  # type: ignore[assignment]


# -------------------------------------------------------------------------------------- stores


class Store(AbstractFileSystem):
    """Files in memory, by the calls that the engine makes of fsspec's file systems."""

    protocol = ("simulated",)
    cachable = False
    files: dict[str, bytes] = {}  # noqa: RUF012 (one store for all instances)
    earlier: dict[str, bytes] = {}  # noqa: RUF012 (what a stale listing still shows)
    world: World | None = None

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).partition("://")[2].strip("/") if "://" in str(path) else str(path)

    def unstrip_protocol(self, name: str) -> str:
        return f"{self.protocol[0]}://{self._strip_protocol(name)}"

    def _call(self, kind: str, path: str, possible: Sequence[str]) -> str:
        fault = self.world.call(kind, path, possible) if self.world else ""
        if fault == "busy":
            raise OSError(errno.EBUSY, "reduce your request rate", path)
        if fault == "refused":
            raise PermissionError(errno.EACCES, "access denied", path)
        return fault

    def _done(self, fault: str) -> None:
        if fault == "lost":
            raise ConnectionResetError("connection reset by peer")

    def _listed(self, kind: str, path: str) -> dict[str, bytes]:
        fault = self._call(kind, path, ("busy", "refused", "stale", "death"))
        return dict(Store.earlier if fault == "stale" else Store.files)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        self._call("stat", path, ("busy", "refused", "death"))
        if path in Store.files:
            return {"name": path, "size": len(Store.files[path]), "type": "file"}
        if any(name.startswith(f"{path}/") for name in Store.files):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        path = self._strip_protocol(path)
        found: dict[str, dict[str, Any]] = {}
        for name, data in self._listed("list", path).items():
            if name.startswith(f"{path}/"):
                first, slash, _ = name[len(path) + 1 :].partition("/")
                full = f"{path}/{first}"
                kind = "directory" if slash else "file"
                found[full] = {"name": full, "size": 0 if slash else len(data), "type": kind}
        if not found:
            raise FileNotFoundError(path)
        return list(found.values())

    def find(self, path: str, detail: bool = False, **options: Any) -> Any:  # type: ignore[override]
        path = self._strip_protocol(path)
        return {
            name: {"name": name, "size": len(data), "type": "file"}
            for name, data in sorted(self._listed("list", path).items())
            if name.startswith(f"{path}/")
        }

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **options: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        kind = "read" if start is None and end is None else "range"
        fault = self._call(kind, path, ("busy", "lost", "refused", "short", "death"))
        if path not in Store.files:
            raise FileNotFoundError(path)
        data = Store.files[path][start:end]
        self._done(fault)
        return data[: len(data) // 2] if fault == "short" else data

    def checksum(self, path: str) -> str:
        return str(zlib.crc32(self.cat_file(path)))

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:
        path = self._strip_protocol(path)
        fault = self._call("write", path, ("busy", "lost", "refused", "death"))
        Store.files[path] = bytes(value)
        self._done(fault)

    def mv(self, source: str, target: str, **options: Any) -> None:  # type: ignore[override]
        fault = self._call("rename", target, ("busy", "lost", "refused", "death"))
        if source not in Store.files:
            raise FileNotFoundError(source)
        Store.files[target] = Store.files.pop(source)
        self._done(fault)

    def rm_file(self, path: str) -> None:
        path = self._strip_protocol(path)
        fault = self._call("delete", path, ("busy", "lost", "refused", "death"))
        if path not in Store.files:
            raise FileNotFoundError(path)
        del Store.files[path]
        self._done(fault)

    def rm(self, path: Any, recursive: bool = False, **options: Any) -> None:  # type: ignore[override]
        for name in [path] if isinstance(path, str) else path:
            self.rm_file(name)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self._call("create", path, ("busy", "refused", "death"))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:  # type: ignore[override]
        assert mode == "rb"
        return io.BytesIO(self.cat_file(path))


class Objects(Store):
    """The same as an object store, where a file appears whole when it is written."""

    protocol = ("objects", "s3")


for _kind in (Store, Objects):
    fsspec.register_implementation(_kind.protocol[0], _kind, clobber=True)


@contextlib.contextmanager
def store_faults(world: World) -> Iterator[None]:
    """Let calls to simulated stores go by way of the world; pauses take no time."""
    kept = persist.time, stores.each, runs._READERS
    Store.world = world
    try:
        persist.time = _NoTime()  # type: ignore[assignment]
        stores.each = lambda action, items: list(map(action, items))  # type: ignore[assignment]
        runs._READERS = 1  # calls in one order
        yield
    finally:
        persist.time, stores.each, runs._READERS = kept  # type: ignore[assignment]
        Store.world = None


class _NoTime:
    def sleep(self, seconds: float) -> None:
        """Pauses between tries."""


# -------------------------------------------------------------------------------------- runner


@dataclass
class Pool:
    """Does the tasks of a step one after the other, some of them by two workers at a time."""

    world: World
    doubled: float = 0.0
    workers: int = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def counts(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def run(self, work: TaskList) -> Iterator[int]:
        tasklist._load.cache_clear()
        for number in range(len(work.tasks)):
            if self.world.random.random() >= self.doubled:
                do_task(work, number, again=False)
            else:
                self._by_two(work, number)
            yield 1

    def _by_two(self, work: TaskList, number: int) -> None:
        attempts = [partial(do_task, work, number, again) for again in (False, True)]
        raised = self.world.together(attempts)
        fatal = [e for e in raised if not isinstance(e, Exception)]
        if fatal:
            raise fatal[0]
        if len(raised) == 2:  # an engine is content with one that is done
            raise raised[0]


class Direct(Executor):
    """An executor without processes and pipelines."""

    def __init__(self, world: World, doubled: float = 0.0) -> None:
        super().__init__(RunnerOptions())
        self.world, self.doubled = world, doubled

    def __enter__(self) -> Direct:
        set_progress(no_progress)
        self._pool: Any = Pool(self.world, self.doubled)
        return self

    def __exit__(self, *exception: object) -> None:
        return None
