"""The pool of workers: what they are forked with, and who may end them."""

from __future__ import annotations

import multiprocessing.process
import socket
import subprocess
import sys
import time
from pathlib import Path

from pipelines.runners.worker_pool import WorkerPool

ROOT = Path(__file__).resolve().parent.parent.parent


def test_kernels_are_loaded_before_the_fork() -> None:
    """In a process of its own: kernels of this one are in use already."""
    code = (
        "from curation.hashing import mix64; import numpy as np; mix64(np.zeros(1, np.uint64));"
        "from pipelines.runners.preload import load_kernels; assert load_kernels() > 0"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def workers() -> list[multiprocessing.process.BaseProcess]:
    return [child for child in multiprocessing.active_children() if child.name == "1-1"]


def test_a_worker_that_dies_before_it_works_is_started_again() -> None:
    """Nobody answers at the endpoint, so workers wait. An engine would wait for them."""
    pool = WorkerPool()
    with socket.socket() as silent:
        silent.bind(("localhost", 0))
        pool.start_worker(f"localhost:{silent.getsockname()[1]}", "1-1", starts=2)
        (first,) = workers()
        first.kill()
        deadline = time.monotonic() + 30
        while not (found := [p for p in workers() if p.pid != first.pid]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        found[0].kill()
        found[0].join()
        pool.stop()
    assert workers() == []
