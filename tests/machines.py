"""Machines on this one, made by `deploy/slurm/cluster.sh`: a login node, three nodes, an S3 server.

They share files, as the nodes of a site do, and reach nothing but each other.

    python -m tests.machines --engines slurm flink spark --faults node cut clock disk driver

runs a recipe from and to the store, of whose requests 2 % go wrong, on the local pool and on each
engine, once for each fault: a node dies, is cut off for 20 seconds, has a clock that is an hour
ahead or no room for temporary files, or the driver is killed. Where the run fails, the same
command is given again without the fault. Prints what was said, and whether `SHA256SUMS` is the
pool's. Other options go to `curate run`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import glob
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faulty_store import environment_of

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "deploy"))

import flink  # noqa: E402
import psutil  # noqa: E402
import spark  # noqa: E402
from cluster import Cluster, Host, Settings  # noqa: E402
from jobserver import UnavailableError  # noqa: E402

START = {"flink": flink.start, "spark": spark.start}
CACHE = "~/.cache/curation/clusters"
DIRECT = ["--", "--runner=DirectRunner"]
#: Options of the runners that need no cluster, by name.
HERE: dict[str, list[str]] = {
    "local": [],
    "direct": DIRECT,
    "processes": [*DIRECT, "--direct_num_workers=2", "--direct_running_mode=multi_processing"],
}
SLURM = ["--", "--runner=slurm", "--slurm_jobs=3", "--slurm_mem_per_cpu=1900M"]
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
import datetime, time, types
import botocore.compat
from grpc._cython import cygrpc

now, date = time.time, botocore.compat.get_current_datetime
cygrpc.time = types.SimpleNamespace(time=now)  # which it compares with the kernel's
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
        environment, command = self.variables(), [str(SCRIPT), *words]
        # Its services keep what they get as standard output.
        with open(self.place.with_suffix(".log"), "w+") as told:
            done = subprocess.run(command, env=environment, stdout=told, stderr=told, check=False)
            told.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, told.read())

    def variables(self) -> dict[str, str]:
        """The environment of what runs on them."""
        return os.environ | self.environment

    def processes(self) -> list[int]:
        """The first process of each of them."""
        return [int(note.read_text()) for note in self.place.glob("*.process")]

    def serve(self, rate: float, files: Sequence[str | Path] = ()) -> None:
        """Start the S3 server, of whose requests so many go wrong, with files in `s3://crawl`."""
        command = [sys.executable, "-m", "tests.faulty_store", *map(str, STORE), str(rate)]
        self._store = subprocess.Popen(
            self.on("store", *command),
            cwd=ROOT,
            env=self.variables(),
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
        return subprocess.Popen(
            command, cwd=ROOT, env=self.variables(), stderr=subprocess.PIPE, text=True
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
                if strikes[stage] == self.kill_driver:
                    driver.kill()
                else:
                    strikes[stage]()
        return subprocess.CompletedProcess([], driver.wait(), "", told)

    def kill_driver(self) -> None:
        """What `run` takes for the death of the driver."""

    def cut(self, node: str, seconds: float = 20.0) -> subprocess.Popen[bytes]:
        """Cut a node off for so long."""
        heal = f'"$0" cut {node}; sleep {seconds}; "$0" heal {node}'
        return subprocess.Popen(["bash", "-c", heal, str(SCRIPT)], env=self.variables())

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

    def hosts(self, late: bool) -> tuple[Host, ...]:
        """The login node and the nodes, of which the clock of the first may be off."""
        found = [Host(HEAD)]
        for node, address in NODES.items():
            clock = ("env", f"PYTHONPATH={self.late()}") if late and node == "n1" else ()
            found.append(Host(address, tuple(self.on(node, *clock))))
        return tuple(found)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Have the login node's network and variables, for processes that are started as well."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as own, open("/run/netns/curate-slurm-head") as other:
            assert libc.setns(other.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
            before = dict(os.environ)
            os.environ.update(self.environment)
            try:
                yield
            finally:
                libc.setns(own.fileno(), 0)
                os.environ.clear()
                os.environ.update(before)


@dataclass
class Engine:
    """Where runs go."""

    name: str
    options: list[str]
    cluster: Cluster | None = None
    machines: Machines | None = None

    def start(self, command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        """Start a run where runs of this engine are started."""
        if self.machines:
            command, how["env"] = self.machines.on("head", *command), self.machines.variables()
        return subprocess.Popen([*command, *self.options], cwd=ROOT, **how)

    def processes(self) -> list[psutil.Process]:
        """The processes of the cluster."""
        roots = self.cluster.processes.values() if self.cluster else ()
        numbers = [p.pid for p in roots] + (self.machines.processes() if self.machines else [])
        found = []
        for number in numbers:
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(number)
                found += [process, *process.children(recursive=True)]
        return found

    def cpu(self) -> float:
        """CPU seconds of the cluster's processes so far, ended ones included."""
        total = 0.0
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
        return total

    def kill(self, what: str, dice: random.Random, driver: subprocess.Popen[bytes]) -> str:
        """Kill a node (and what it started), a Python worker, or the driver; return which."""
        if what == "driver":
            driver.kill()
        elif what == "worker":
            workers = [process for process in self.processes() if _is_worker(process)]
            if not workers:
                return "no worker"
            dice.choice(workers).kill()
        elif self.machines:
            what = dice.choice([*NODES])
            self.machines.call("kill", what)
            self.machines.call("start", what)
        elif self.cluster:
            nodes = "taskmanager-", "worker-"
            what = dice.choice([name for name in self.cluster.processes if name.startswith(nodes)])
            node = psutil.Process(self.cluster.processes[what].pid)
            for process in (node, *node.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    process.kill()
            self.cluster.restart(what)
        return what


def _is_worker(process: psutil.Process) -> bool:
    """Whether a process does tasks: a child of a pool's fork server, or of a worker on Slurm."""
    with contextlib.suppress(psutil.Error):
        parent = process.parent()
        above = " ".join(parent.cmdline()) if parent else ""
        return "multiprocessing.forkserver" in above or "pipelines.runners.slurm" in above
    return False


@contextlib.contextmanager
def engine(
    name: str,
    cache: str = CACHE,
    job_server: str = "",
    machines: Machines | None = None,
    late: bool = False,
) -> Iterator[Engine]:
    """This machine's pool, or a cluster for as long as it is needed.

    On `machines`, the clock of the first node may be off. Raises UnavailableError.
    """
    with tempfile.TemporaryDirectory(prefix=f"curation-{name}-") as place:
        folder = Path(place)
        if name in HERE:
            yield Engine(name, HERE[name], machines=machines)
        elif name == "slurm":
            own = nullcontext(machines) if machines else up(folder / "machines", slurm=True)
            with own as site:
                options = [*SLURM, f"--slurm_log_dir={folder / 'jobs'}"]
                setup = f"[ $(hostname) != n1 ] || export PYTHONPATH={site.late()}"
                yield Engine(name, options + [f"--slurm_setup={setup}"] * late, machines=site)
        else:
            hosts = machines.hosts(late) if machines else (Host(),) * 3
            settings = Settings(folder, Path(cache).expanduser(), hosts, 1, job_server)
            cluster = Cluster(folder)
            with machines.inside() if machines else nullcontext():
                try:
                    state = START[name](cluster, settings)
                    # On machines a slot is spare: Flink waits for one that is gone.
                    spare = ["--parallelism=2"] * (name == "flink" and machines is not None)
                    yield Engine(name, ["--", *state["options"], *spare], cluster, machines)
                finally:
                    cluster.stop()


@contextlib.contextmanager
def up(place: Path, slurm: bool) -> Iterator[Machines]:
    """Machines for as long as they are needed. Raises UnavailableError."""
    machines = Machines(place)
    try:
        if missing := machines.up(slurm):
            raise UnavailableError(missing)
        yield machines
    finally:
        machines.down()


def struck(machines: Machines, name: str, fault: str, given: Sequence[str]) -> str:
    """Run on an engine with a fault, and again without where that fails; say what happened."""
    output = f"{name}-{fault}"
    command = [*given, "--output", f"s3://out/{output}"]
    strikes: dict[str, Callable[[], object]] = {
        "node": lambda: machines.call("kill", "n1"),
        "cut": lambda: machines.cut("n1"),
        "driver": machines.kill_driver,
    }
    said, began = "", time.monotonic()
    for tried in range(4):
        late = fault == "clock" and not tried
        with engine(name, machines=machines, late=late) as where:
            if fault == "disk" and not tried:
                machines.fill_disk("n1")
            now = {"dedup-urls": strikes[fault]} if fault in strikes and not tried else {}
            done = machines.run([*command, *where.options], now)
        if fault == "node" and not tried:
            machines.call("start", "n1")
        if fault == "disk" and not tried:
            machines.empty_disk("n1")
        if not done.returncode:
            same = machines.sums(output) == machines.sums("local")
            seconds = time.monotonic() - began
            return f"{'the same bytes' if same else 'OTHER BYTES'}, {seconds:.0f} s{said}"
        lines = [line for line in done.stderr.splitlines() if "error: " in line]
        said += f"; exit code {done.returncode}: {' '.join(lines)}"
    return f"NEVER DONE{said}"


def main() -> int:
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument("--engines", nargs="+", default=["slurm", "flink", "spark"])
    faults = ["none", "node", "cut", "clock", "disk", "driver"]
    parser.add_argument("--faults", nargs="+", default=faults, choices=faults)
    parser.add_argument("--recipe", default="sample")
    parser.add_argument("--input", nargs="+", default=[str(ROOT / "data_samples" / "*.*z*")])
    options, more = parser.parse_known_args()
    files = sorted(path for pattern in options.input for path in glob.glob(pattern))
    given, wrong = [options.recipe, "--input", "s3://crawl/*", *more], 0
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="curation-machines-"))
        machines = stack.enter_context(up(Path(folder) / "machines", "slurm" in options.engines))
        machines.serve(0.02, files)
        done = machines.run([*given, "--output", "s3://out/local", "--workers", "2"])
        assert done.returncode == 0, done.stderr
        for name in options.engines:
            for fault in options.faults:
                found = struck(machines, name, fault, given)
                wrong += not found.startswith("the same")
                print(f"{name}, {fault}: {found}", flush=True)
    return min(1, wrong)


def until(true: Callable[[], object], run: subprocess.Popen[str], seconds: float = 120.0) -> None:
    """Wait for something to happen during a run."""
    deadline = time.monotonic() + seconds
    while not true():
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
