"""A command as a process: signals, locks, its temporary folder, memory limits."""

import atexit
import contextlib
import datetime
import fcntl
import gc
import multiprocessing
import os
import re
import resource
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

from curation.errors import ConfigError

_WORDS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminated, as its terminal was closed",
}
_FOLDER = "curate-run-"
_OWNER = "owner"
#: What `owner` says.
_OWNED = re.compile(r"process (\d+) on (\S+) since (\S+ \S+)")
#: Age in seconds after which a folder without a lock file was left by a process that died.
_MAKING = 3600.0
#: Age after which one of another host goes, whose processes can't be asked for.
_ABANDONED = 30 * 86400.0
#: Seconds allowed for cleaning up at exit, and for workers to end by themselves.
_PATIENCE = 10


class Stopped(KeyboardInterrupt):
    """The process was asked to end, by Ctrl-C, SIGTERM or SIGHUP."""

    def __init__(self, number: int) -> None:
        word = _WORDS[signal.Signals(number)]
        super().__init__(f"curate: error: {word}; run the same command again to resume")
        self.number, self.exit_code = number, 128 + number


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Make the first of these signals raise Stopped, and the second end the process at once.

    After Stopped the process exits here: the interpreter would wait for its threads, which may be
    about to retry a request, and print their tracebacks.
    """
    stops: list[Stopped] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if frame and frame.f_code.co_name in ("_numba_unpickle", "<lambda>"):
            # Maybe numba makes a kernel's answer, a named tuple or its class, and can't fail there.
            threading.Timer(0.01, signal.raise_signal, [number]).start()
        elif not stops:
            stops.append(Stopped(number))
            raise stops[0]
        else:
            _end(stops[0])

    def unraisable(found: Any) -> None:
        # An exception raised where none may be raised, such as in a finalizer, would be lost.
        if isinstance(found.exc_value, Stopped):
            stops.clear()
            signal.raise_signal(found.exc_value.number)
        else:
            sys.__unraisablehook__(found)

    sys.unraisablehook = unraisable
    ignored = signal.SIGHUP, signal.SIG_IGN  # by nohup
    before = {n: signal.signal(n, stop) for n in _WORDS if (n, signal.getsignal(n)) != ignored}
    with contextlib.suppress(Stopped):
        yield
    if stops:
        _end(stops[0])
    for number, handler in before.items():
        signal.signal(number, handler)


def _end(stopped: Stopped) -> NoReturn:
    """Print the reason and exit without waiting for threads; leave no child processes."""
    for which in _WORDS:
        signal.signal(which, signal.SIG_IGN)
    import psutil  # seldom needed; a further signal would interrupt the import

    signal.signal(signal.SIGALRM, lambda *_: os._exit(stopped.exit_code))
    signal.alarm(_PATIENCE)
    os.write(2, f"{stopped}\n".encode())
    # The tracker of multiprocessing may have got the terminal's signal, too: of that nobody asks.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "resource_tracker" not in " ".join(child.cmdline()):
                child.kill()
    leave(stopped.exit_code)


def leave(exit_code: int) -> NoReturn:
    """Exit without waiting for threads: one in Arrow aborts a process that ends as usual."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        atexit._run_exitfuncs()
    os._exit(exit_code)


@contextlib.contextmanager
def uninterrupted_children() -> Iterator[None]:
    """Start processes inside that ignore what a terminal sends to all: the driver handles it."""
    ignored = {signal.SIGINT, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ignored)
    try:
        ensure_running()  # starts the tracker of multiprocessing, which then lets SIGINT through
        signal.pthread_sigmask(signal.SIG_BLOCK, ignored)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def await_ends(processes: Sequence[BaseProcess], seconds: float = _PATIENCE) -> None:
    """Wait up to `seconds` for processes to end; kill those that own code's threads keep."""
    until = time.monotonic() + seconds
    for process in processes:
        process.join(max(0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


def own_process() -> None:
    """Set what suits a process that does the toolkit's work and nothing else.

    OpenBLAS, which numpy brings, gets no threads of its own: there is a process for each core, and
    a sum may depend on their number. When the process ends, Python doesn't look through all that
    was imported for cycles, which takes a quarter of a second. Only that search closes files which
    other code left open in a cycle: where a user's or a plug-in's is loaded, it is done after all.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    atexit.register(gc.freeze)


def end_with_parent() -> None:
    """End this process when its parent does, however that ends."""
    own_process()
    parent = multiprocessing.process.parent_process()
    if parent is not None:
        threading.Thread(target=_await_end, args=(parent.sentinel,), daemon=True).start()


def _await_end(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def owner() -> str:
    """Describe this process for others that find its lock: number, host and time."""
    now = datetime.datetime.now(datetime.UTC).isoformat(" ", "seconds")
    return f"process {os.getpid()} on {socket.gethostname()} since {now}"


def lock(file: int, how: int = fcntl.LOCK_EX) -> bool | None:
    """Lock an open file; return whether that worked, and None where there are no locks.

    Lustre and NFS may be mounted without them.
    """
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def process_here(text: str) -> int:
    """Return the number of a process that `owner` described; 0 if it is not one of this host."""
    found = _OWNED.match(text)
    return int(found[1]) if found and found[2] == socket.gethostname() else 0


def has_ended(text: str) -> bool:
    """Return whether a process that `owner` described is known to have ended: one of this host."""
    number, found = process_here(text), _OWNED.match(text)
    if not number or found is None:
        return False
    import psutil  # seldom needed

    try:
        began = psutil.Process(number).create_time()
    except psutil.NoSuchProcess:
        return True
    return bool(began > datetime.datetime.fromisoformat(found[3]).timestamp() + 1)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder for temporary files of this process and its children; remove it at the end.

    Folders of killed processes of this host are removed first: their locks are gone. Those of other
    hosts go when they have not changed for a month.
    """
    base = tempfile.gettempdir()
    _remove_leftovers(Path(base))
    place, held = _own_folder(base)
    before = os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(place)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    try:
        yield place
    finally:
        tempfile.tempdir = None
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before
        shutil.rmtree(place, ignore_errors=True)
        held.close()


def _own_folder(base: str) -> tuple[Path, IO[str]]:
    place = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=base))
    file = open(place / f".{_OWNER}", "x")  # noqa: SIM115 (held until the process ends)
    lock(file.fileno())
    os.write(file.fileno(), owner().encode())
    os.rename(place / f".{_OWNER}", place / _OWNER)
    return place, file


def _remove_leftovers(base: Path) -> None:
    with contextlib.suppress(OSError):
        for place in base.glob(f"{_FOLDER}*"):
            with contextlib.suppress(OSError):
                facts = place.lstat()
                if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid():
                    _remove_if_left(place, time.time() - facts.st_mtime)


def _remove_if_left(place: Path, age: float) -> None:
    try:
        file = os.open(place / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        if age > _MAKING:
            shutil.rmtree(place, ignore_errors=True)
        return
    try:
        text, held = os.read(file, 1 << 10).decode(errors="replace"), lock(file)
        # A lock may be known only to the host that holds it (Lustre's `localflock`).
        left = age > _ABANDONED and not process_here(text)
        if held is not False and (left or has_ended(text) or (held and not text)):
            shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(file)


#: Address space that a process needs: libraries, models, and memory reserved for its threads, of
#: which there is one per core. Measured on two cores: 2.6 GB.
_ADDRESSES = 2 << 30
_ADDRESSES_PER_CORE = 256 << 20


def check_address_space() -> None:
    """Raise ConfigError where `ulimit -v` is too small.

    Some libraries do not fail then but wait forever for threads that could not be started.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = _ADDRESSES + _ADDRESSES_PER_CORE * (os.cpu_count() or 1)
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise ConfigError(
            f"each process is limited to {limit / 1e9:.1f} GB of address space (ulimit -v), which "
            f"counts mapped, not used memory: on this machine it needs {needed / 1e9:.1f} GB or "
            "more; raise the limit, or limit the memory of the group instead (cgroup, systemd)"
        )
