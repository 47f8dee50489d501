"""Runs on a real Slurm of three nodes on this machine, where its packages are installed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT, curate_alone

SCRIPT = ROOT / "deploy" / "slurm" / "cluster.sh"
#: Ends the process that works on it, as the kernel does where memory runs out.
RULE = """
import os, signal

def deadly(texts):
    if any("deadly" in text for text in texts):
        os.kill(os.getpid(), signal.SIGKILL)
    return [0.0] * len(texts)
"""
WORDS = "of the river and a stone that was in it for her with him under their house by day".split()


class Cluster:
    def __init__(self, place: Path) -> None:
        self.place = place

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PLACE": str(self.place)}
        command = [str(SCRIPT), *words]
        # Its services keep what they get as standard output.
        with open(self.place.with_suffix(".log"), "w+") as told:
            done = subprocess.run(command, env=environment, stdout=told, stderr=told, check=False)
            told.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, told.read())

    def run(
        self, output: Path, *options: str | Path, slurm: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """Start a run on the cluster."""
        place = {"PLACE": str(self.place), "PYTHONPATH": str(ROOT)}
        slurm = ["--runner=slurm", "--slurm_jobs=3", "--slurm_mem_per_cpu=1900M", *slurm]
        command = [str(SCRIPT), "head", sys.executable, "-m", "pipelines.cli", "run"]
        command += [*map(str, options), "--output", str(output), "--", *slurm]
        return subprocess.Popen(
            command, cwd=ROOT, env=os.environ | place, stderr=subprocess.PIPE, text=True
        )

    def nodes(self) -> set[str]:
        """The nodes at which jobs are."""
        return set(self.call("head", "squeue", "-h", "-t", "RUNNING", "-o", "%N").stdout.split())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("slurm") / "cluster")
    done = found.call("up")
    try:
        if done.returncode == 77:
            pytest.skip(f"no Slurm here: {done.stdout.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stdout
        yield found
    finally:
        found.call("down")


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """A run over four files, with a document that ends the process which judges it."""
    place, dice = tmp_path_factory.mktemp("crawl"), random.Random(7)
    for number in range(4):
        with open(place / f"{number}.jsonl", "w") as file:
            for row in range(600):
                text = " ".join(dice.choices(WORDS, k=450)) + "."
                text += " deadly" * ((number, row) == (3, 77))
                url = f"http://{number}.example/{row % 590}"
                file.write(json.dumps({"text": text, "url": url}) + "\n")
    (place / "deadly.py").write_text(RULE)
    stages = ["extract", "dedup-urls", "identify-language", "dedup-documents", "filter"]
    rules = {"mine": {"deadly": {"python": "deadly.py:deadly", "max": 1}}}
    recipe = {"extends": "llama3", "name": "mine", "stages": stages, "filter": {"rules": rules}}
    (place / "mine.yaml").write_text(json.dumps(recipe))
    return [place / "mine.yaml", "--input", place / "*.jsonl", "--quiet"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, options: Sequence[str | Path]) -> Path:
    """The same run on the local pool."""
    out = tmp_path_factory.mktemp("here") / "out"
    done = curate_alone("run", *options, "--output", out, "--workers", "2")
    assert done.returncode == 0, done.stderr
    return out


def until(true: Callable[[], object], run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


def ended(run: subprocess.Popen[str], code: int) -> str:
    """Await the end of a run; return what it has told."""
    _, told = run.communicate(timeout=300)
    assert run.returncode == code, told
    return told


def test_a_node_that_dies_and_a_deadly_document_change_no_byte(
    tmp_path: Path, cluster: Cluster, options: Sequence[str | Path], here: Path
) -> None:
    run = cluster.run(tmp_path / "out", *options)
    until(lambda: (tmp_path / "out/dedup-urls").exists(), run)
    (node, *_) = sorted(cluster.nodes())
    assert cluster.call("kill", node).returncode == 0
    ended(run, 0)
    cluster.call("start", node)
    assert (tmp_path / "out/SHA256SUMS").read_bytes() == (here / "SHA256SUMS").read_bytes()
    counts = json.loads((here / "filter/manifest.json").read_text())["counts"]
    assert counts["removed"]["memory.filter"]["documents"] == 1
    assert not cluster.nodes()


def test_a_driver_that_is_killed_or_stopped_goes_on_with_the_same_command(
    tmp_path: Path, cluster: Cluster, options: Sequence[str | Path], here: Path
) -> None:
    out = tmp_path / "out"
    for stage, number in {"dedup-urls": signal.SIGKILL, "dedup-documents": signal.SIGINT}.items():
        run = cluster.run(out, *options)
        until(lambda stage=stage: (out / stage).exists(), run)  # type: ignore[misc]
        assert cluster.nodes()
        run.send_signal(number)
        told = ended(run, -9 if number == signal.SIGKILL else 130)
    assert told == "curate: error: interrupted; run the same command again to resume\n"
    assert not cluster.nodes()
    ended(cluster.run(out, *options), 0)
    assert (out / "SHA256SUMS").read_bytes() == (here / "SHA256SUMS").read_bytes()


def test_a_partition_that_is_not_there_is_named(
    tmp_path: Path, cluster: Cluster, options: Sequence[str | Path]
) -> None:
    run = cluster.run(tmp_path / "out", *options, slurm=["--slurm_partition=nosuch"])
    assert "invalid partition specified: nosuch" in ended(run, 2)
    assert not (tmp_path / "out").exists()
