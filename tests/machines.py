"""Machines on this one, made by `deploy/slurm/cluster.sh`: a login node, three nodes, an S3 server.

They share files, as the nodes of a site do, and reach nothing but each other.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.faulty_store import environment_of

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "deploy" / "slurm" / "cluster.sh"
HEAD = "10.79.0.1"
NODES = {f"n{number}": f"10.79.0.{10 + number}" for number in (1, 2, 3)}
STORE = "10.79.0.2", 9000
#: What Python does in the store.
_FILL = """
import sys, s3fs
store = s3fs.S3FileSystem()
for bucket in ("crawl", "out"):
    store.mkdir(bucket)
for path in sys.argv[1:]:
    store.put_file(path, "crawl/" + path.rpartition("/")[2])
"""
_READ = "import sys, s3fs; print(s3fs.S3FileSystem().cat_file(sys.argv[1]).decode(), end='')"


#: `sitecustomize` of a Python whose clock is an hour ahead, for itself and for the store. The
#: kernel has one clock for all of these machines, and under libfaketime Python's sleep fails.
_LATE = """
import datetime, time
import botocore.compat

now, date = time.time, botocore.compat.get_current_datetime
time.time = lambda: now() + 3600
botocore.compat.get_current_datetime = lambda *a, **k: date(*a, **k) + datetime.timedelta(hours=1)
"""


class Machines:
    """What there is of them is in `place`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.environment = {"PLACE": str(place), "PYTHONPATH": str(ROOT)}
        self.environment |= {"TMPDIR": str(place.with_suffix(".tmp"))}
        self.environment |= environment_of(f"http://{STORE[0]}:{STORE[1]}")
        self._store: subprocess.Popen[bytes] | None = None

    def up(self, slurm: bool) -> str:
        """Start them; return why that can't be done, or nothing."""
        Path(self.environment["TMPDIR"]).mkdir()
        done = self.call("up" if slurm else "hosts")
        if done.returncode == 77:
            return done.stdout.strip().splitlines()[-1]
        assert done.returncode == 0, done.stdout
        return ""

    def down(self) -> None:
        self.call("down")
        if self._store:
            self._store.wait()

    def on(self, where: str, *command: str) -> list[str]:
        """The words that run a command on one of them."""
        return [str(SCRIPT), *((where,) if where == "head" else ("on", where)), *command]

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the script."""
        environment, command = os.environ | self.environment, [str(SCRIPT), *words]
        # Its services keep what they get as standard output.
        with open(self.place.with_suffix(".log"), "w+") as told:
            done = subprocess.run(command, env=environment, stdout=told, stderr=told, check=False)
            told.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, told.read())

    def serve(self, rate: float, files: Sequence[str | Path] = ()) -> None:
        """Start the S3 server, of whose requests so many go wrong, with files in `s3://crawl`."""
        command = [sys.executable, "-m", "tests.faulty_store", *map(str, STORE), str(rate)]
        self._store = subprocess.Popen(
            self.on("store", *command),
            cwd=ROOT,
            env=os.environ | self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.python(_FILL, *map(str, files))

    def python(self, code: str, *words: str) -> str:
        """What a program prints on the login node."""
        done = self.call("head", sys.executable, "-c", code, *words)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def sums(self, name: str) -> str:
        """`SHA256SUMS` of a run in the store."""
        return self.python(_READ, f"out/{name}/SHA256SUMS")

    def start(self, *options: str | Path) -> subprocess.Popen[str]:
        """Start `curate run` on the login node."""
        command = self.on("head", sys.executable, "-m", "pipelines.cli", "run", *map(str, options))
        environment = os.environ | self.environment
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
        )

    def run(
        self, options: Sequence[str | Path], strikes: Mapping[str, Callable[[], object]] = {}
    ) -> subprocess.CompletedProcess[str]:
        """`curate run`; when a stage is done, what `strikes` has for it happens."""
        driver, told = self.start(*options), ""
        assert driver.stderr is not None
        for line in driver.stderr:
            told += line
            stage, _, state = line.partition(": ")
            if state.startswith("done") and stage in strikes:
                if strikes[stage] is self.kill_driver:
                    driver.kill()
                else:
                    strikes[stage]()
        return subprocess.CompletedProcess([], driver.wait(), "", told)

    def kill_driver(self) -> None:
        """What `run` takes for the death of the driver."""

    def cut(self, node: str, seconds: float = 20.0) -> subprocess.Popen[bytes]:
        """Cut a node off for so long."""
        heal = f'"$0" cut {node}; sleep {seconds}; "$0" heal {node}'
        environment = os.environ | self.environment
        return subprocess.Popen(["bash", "-c", heal, str(SCRIPT)], env=environment)

    def late(self) -> str:
        """The `PYTHONPATH` with which a process's clock is off."""
        place = self.place.with_suffix(".late")
        place.mkdir(exist_ok=True)
        (place / "sitecustomize.py").write_text(_LATE)
        return f"{place}:{ROOT}"

    def fill_disk(self, node: str) -> None:
        """Leave no room for temporary files on a node, until `empty_disk`."""
        place = self.environment["TMPDIR"]
        fill = f"mount -t tmpfs -o size=64k none {place}; cat /dev/zero > {place}/full"
        self.call("on", node, "bash", "-c", fill)

    def empty_disk(self, node: str) -> None:
        self.call("on", node, "umount", "-l", self.environment["TMPDIR"])

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Have the network of the login node, for processes that are started as well."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as own, open("/run/netns/curate-slurm-head") as other:
            assert libc.setns(other.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                libc.setns(own.fileno(), 0)


def until(true: Callable[[], object], run: subprocess.Popen[str], seconds: float = 120.0) -> None:
    """Wait for something to happen during a run."""
    deadline = time.monotonic() + seconds
    while not true():
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
