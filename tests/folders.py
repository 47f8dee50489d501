"""Compare run folders byte by byte, from whatever runner."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

#: Files that tell of the machine and the hour; everything else must be equal.
VARYING = {"timings.json", "report.json", "report.html"}


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file below, by relative path."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in VARYING
    }


def differences(left: Path, right: Path) -> list[str]:
    """Paths of files that differ or stand on one side only."""
    a, b = digests(left), digests(right)
    return sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))


def flip(folder: Path, dice: random.Random) -> str:
    """Flip one bit of one file of a finished run, as a bad disk does; return the file's name."""
    names = [name for name in digests(folder) if (folder / name).stat().st_size]
    path = folder / dice.choice(names)
    data = bytearray(path.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)
    return str(path.relative_to(folder))


def tear(folder: Path, dice: random.Random) -> str:
    """Cut, zero or remove one file of a killed run, as a power failure does; say which and how."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != ".lock"]
    if not files:
        return "nothing"
    path, how = dice.choice(files), dice.choice(["cut", "zeroed", "removed"])
    data = path.read_bytes()
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes(bytes(len(data)) if how == "zeroed" else data[: len(data) // 2])
    return f"{how} {path.relative_to(folder)}"


@contextlib.contextmanager
def external_workers() -> Iterator[list[str]]:
    """Options of a run on Beam's embedded job service, with workers of our pool."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "pipelines.cli", "worker-pool", "--port", str(port)]
    root = Path(__file__).resolve().parent.parent
    pool = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(root)}, stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        runner = ["--runner=PortableRunner", "--job_endpoint=embed"]
        yield [
            "--",
            *runner,
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{port}",
        ]
    finally:
        pool.terminate()
        pool.wait()
