"""Processes of a small cluster on this machine: start, wait until ready, watch, stop.

`flink.py` and `spark.py` say what an engine's processes are. What is running stands in
`cluster.json` in the cluster's folder, with the Beam options that send a run there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobserver import UnavailableError

STATE = "cluster.json"
#: Exit code when the engine can't be had here (what test runners take for "skipped").
CANNOT = 77


@dataclass(frozen=True)
class Host:
    """A machine: its address, and the words that begin a command on it."""

    address: str = "localhost"
    enter: tuple[str, ...] = ()


@dataclass
class Cluster:
    """Processes with a log each. `start` adds one; `stop` ends all, the youngest first."""

    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _started: dict[str, tuple[Sequence[str], dict[str, str] | None]] = field(default_factory=dict)

    def restart(self, name: str) -> None:
        """Start a process that ended as it was started before."""
        self.processes.pop(name).wait()
        self.start(name, *self._started[name])

    def start(
        self, name: str, command: Sequence[str], env: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        self._started[name] = (command, env)
        log = open(self.folder / f"{name}.log", "ab")  # noqa: SIM115 (the process keeps it)
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        self.processes[name] = process
        return process

    def wait(self, what: str, ready: Callable[[], bool], seconds: float = 120) -> None:
        """Wait until `ready`. Raises RuntimeError when a process ends, or time is up."""
        until = time.monotonic() + seconds
        while not ready():
            for name, process in self.processes.items():
                if process.poll() is not None:
                    tail = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{tail}")
            if time.monotonic() > until:
                logs = "\n".join(p.read_text(errors="replace")[-500:] for p in self.logs())
                raise RuntimeError(f"{what} not ready after {seconds:.0f} s\n{logs}".rstrip())
            time.sleep(0.3)

    def start_worker_pools(self, hosts: Iterable[Host]) -> int:
        """Start the pools of Python workers that engines' workers turn to; return their port."""
        port = free_port()
        command = [sys.executable, "-m", "pipelines.cli", "worker-pool", "--port", str(port)]
        logs = []
        for number, host in enumerate(dict.fromkeys(hosts)):
            self.start(f"workers-{number}", [*host.enter, *command])
            logs.append(self.folder / f"workers-{number}.log")
        self.wait("the worker pools", lambda: all("serving" in log.read_text() for log in logs))
        return port

    def start_job_server(
        self,
        command: Sequence[str],
        arguments: Sequence[str],
        env: dict[str, str] | None = None,
    ) -> int:
        """Start Beam's job server (Java's command line); return the port that runs are sent to."""
        port = free_port()
        own = ["--job-host=localhost", f"--job-port={port}", "--expansion-port=0"]
        own += ["--artifact-port=0", f"--artifacts-dir={self.folder / 'artifacts'}"]
        self.start("job-server", [*command, *own, *arguments], env)
        self.wait("the job server", lambda: listens(port))
        return port

    def logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.log"))

    def stop(self) -> None:
        stop_processes({n: p.pid for n, p in self.processes.items()})
        for process in self.processes.values():
            process.wait()
        self.processes.clear()


def stop_processes(pids: dict[str, int], patience: float = 15) -> None:
    """End process groups, politely at first."""
    for pid in reversed(pids.values()):
        _signal(pid, signal.SIGTERM)
    until = time.monotonic() + patience
    while any(_alive(p) for p in pids.values()) and time.monotonic() < until:
        time.sleep(0.1)
    for pid in pids.values():
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, which)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def java(options: Sequence[str]) -> list[str]:
    """The Java command. Raises UnavailableError when there is none of version 11 to 21."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin/java") if home else shutil.which("java")
    if not found or not Path(found).exists():
        raise UnavailableError("no Java: install a JRE 17 or set JAVA_HOME")
    text = subprocess.run([found, "-version"], capture_output=True, text=True).stderr
    version = text.partition('version "')[2].split(".")[0].strip('"')
    if not version.isdigit() or not 11 <= int(version) <= 21:
        raise UnavailableError(f"{found} is version {version or text!r}; Java 17 is needed")
    return [found, *options]


def fetched(url: str) -> str:
    """The answer of an engine's web page; nothing while it doesn't answer."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


@dataclass(frozen=True)
class Settings:
    """What the user may choose. The first of the hosts has the master, the others are nodes."""

    folder: Path
    cache: Path
    hosts: tuple[Host, ...]
    processes: int
    job_server: str


Start = Callable[[Cluster, Settings], dict[str, Any]]


def main(engine: str, start: Start, description: str) -> int:
    """The command line of an engine's script."""
    options = parsed(make_parser(engine, description), sys.argv[1:])
    settings = Settings(
        Path(options.folder).absolute(),
        Path(options.cache).expanduser().absolute(),
        (Host(),) * (1 + options.workers),
        options.processes,
        options.job_server,
    )
    try:
        if options.action == "up":
            return _up(engine, start, settings)
        if options.action == "down":
            return _down(settings)
        if options.action == "options":
            print(" ".join(_state(settings)["options"]))
            return 0
        return _run(engine, start, settings, options.command)
    except UnavailableError as error:
        print(f"{engine} can't be started here: {error}", file=sys.stderr)
        return CANNOT
    except RuntimeError as error:
        print(f"{engine}: {error}", file=sys.stderr)
        return 1


def parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Options, and the command behind `--`; argparse takes no options between `run` and that."""
    cut = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:cut])
    options.command += words[cut + 1 :]
    return options


def make_parser(engine: str, description: str) -> argparse.ArgumentParser:
    script = f"python deploy/{engine}.py"
    parser = argparse.ArgumentParser(
        description=description,
        epilog=f"example: {script} run -- curate run sample --output out",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=["up", "down", "options", "run"])
    parser.add_argument(
        "command", nargs="*", help="after `--`: what `run` runs, with the Beam options added"
    )
    parser.add_argument("--folder", default=f".{engine}", help="state and logs (%(default)s)")
    parser.add_argument("--cache", default="~/.cache/curation/clusters", help="downloads")
    parser.add_argument("--workers", type=int, default=2, help="nodes of the cluster (%(default)s)")
    parser.add_argument(
        "--processes", type=int, default=1, help="Python processes of each node (%(default)s)"
    )
    parser.add_argument(
        "--job-server",
        default="",
        metavar="JAR",
        help="path or URL of Beam's job server (default: Maven Central); "
        "or maven:VERSION, to put together that version's parts with mvn",
    )
    return parser


def _up(engine: str, start: Start, settings: Settings) -> int:
    cluster, state = _started(engine, start, settings)
    del cluster  # its processes go on
    print(f"{engine} is up: {', '.join(f'{n} {p}' for n, p in state['pids'].items())}")
    print(f"logs: {settings.folder}")
    print("append to a command: -- " + " ".join(state["options"]))
    return 0


def _started(engine: str, start: Start, settings: Settings) -> tuple[Cluster, dict[str, Any]]:
    if (settings.folder / STATE).exists():
        raise RuntimeError(f"{settings.folder} has a cluster; `down` ends it")
    shutil.rmtree(settings.folder, ignore_errors=True)
    settings.folder.mkdir(parents=True)
    cluster = Cluster(settings.folder)
    try:
        state = start(cluster, settings)
    except BaseException:
        cluster.stop()
        raise
    state["engine"] = engine
    state["pids"] = {n: p.pid for n, p in cluster.processes.items()}
    (settings.folder / STATE).write_text(json.dumps(state, indent=1) + "\n")
    return cluster, state


def _state(settings: Settings) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((settings.folder / STATE).read_text())
    except FileNotFoundError:
        raise RuntimeError(f"no cluster in {settings.folder}") from None
    return state


def _down(settings: Settings) -> int:
    stop_processes(_state(settings)["pids"])
    _clear(settings.folder)
    return 0


def _clear(folder: Path) -> None:
    """Leave nothing but logs and configuration."""
    (folder / STATE).unlink()
    for path in folder.iterdir():
        if path.is_dir() and path.name != "conf":
            shutil.rmtree(path, ignore_errors=True)


def _run(engine: str, start: Start, settings: Settings, command: Sequence[str]) -> int:
    if not command:
        raise RuntimeError("run: name a command after `--`")
    cluster, state = _started(engine, start, settings)
    try:
        bin_folder = str(Path(sys.executable).parent)
        path = os.pathsep.join([bin_folder, os.environ.get("PATH", "")])
        whole = [*command, "--", *state["options"]]
        return subprocess.run(whole, env={**os.environ, "PATH": path}).returncode
    finally:
        cluster.stop()
        _clear(settings.folder)
