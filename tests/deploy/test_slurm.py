"""Runs on a real Slurm of three nodes on this machine, where its packages are installed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import curate_well
from tests.machines import Machines, until

SLURM = ["--runner=slurm", "--slurm_jobs=3", "--slurm_mem_per_cpu=1900M"]
#: Code of the user's own, which is beside the recipe alone.
RULE = """
def length(texts):
    return [float(len(text)) for text in texts]
"""
WORDS = "of the river and a stone that was in it for her with him under their house by day".split()


class Site(Machines):
    """A Slurm of three nodes."""

    def submit(
        self, output: Path, *options: str | Path, slurm: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """Start a run on the cluster."""
        return self.start(*options, "--output", output, "--", *SLURM, *slurm)

    def nodes(self) -> set[str]:
        """The nodes at which jobs are."""
        return set(self.call("head", "squeue", "-h", "-t", "RUNNING", "-o", "%N").stdout.split())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    found = Site(tmp_path_factory.mktemp("slurm") / "cluster")
    try:
        if missing := found.up(slurm=True):
            pytest.skip(f"no Slurm here: {missing}")
        yield found
    finally:
        found.down()


def write_texts(place: Path) -> None:
    """Write four files."""
    dice = random.Random(7)
    for number in range(4):
        with open(place / f"{number}.jsonl", "w") as file:
            for row in range(30):
                text = " ".join(dice.choices(WORDS, k=450)) + "."
                url = f"http://{number}.example/{row % 20}"
                file.write(json.dumps({"text": text, "url": url}) + "\n")


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """A run over some texts with a recipe of its own."""
    place = tmp_path_factory.mktemp("crawl")
    write_texts(place)
    (place / "length.py").write_text(RULE)
    stages = ["extract", "dedup-urls", "identify-language", "dedup-documents", "filter"]
    families = ("repetition", "c4", "fineweb", "llama3", "code", "mathematics", "gopher")
    own = {"mine": {"length": {"python": "length.py:length", "max": 1940}}}
    rules = dict.fromkeys(families) | own
    recipe = {"extends": "llama3", "name": "mine", "stages": stages, "filter": {"rules": rules}}
    (place / "mine.yaml").write_text(json.dumps(recipe))
    return [place / "mine.yaml", "--input", place / "*.jsonl", "--quiet"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, options: Sequence[str | Path]) -> Path:
    """The same run in this process."""
    out = tmp_path_factory.mktemp("here") / "out"
    curate_well(["run", *options, "--output", out, "--workers", "0"])
    return out


def ended(run: subprocess.Popen[str], code: int) -> str:
    """Await the end of a run; return what it has told."""
    _, told = run.communicate(timeout=300)
    assert run.returncode == code, told
    return told


def test_an_interrupted_driver_and_a_node_that_dies_change_no_byte(
    tmp_path: Path, cluster: Site, options: Sequence[str | Path], here: Path
) -> None:
    """The same command goes on where the driver before was stopped."""
    out = tmp_path / "out"
    run = cluster.submit(out, *options)
    until((out / "identify-language").exists, run)
    assert cluster.nodes()
    run.send_signal(signal.SIGINT)
    assert ended(run, 130) == "curate: error: interrupted; run the same command again to resume\n"
    assert not cluster.nodes()
    run = cluster.submit(out, *options)
    until(lambda: (out / "dedup-documents").exists() and bool(cluster.nodes()), run)
    (node, *_) = sorted(cluster.nodes())
    assert cluster.call("kill", node).returncode == 0
    ended(run, 0)
    cluster.call("start", node)
    assert (out / "SHA256SUMS").read_bytes() == (here / "SHA256SUMS").read_bytes()
    counts = json.loads((here / "filter/manifest.json").read_text())["counts"]
    assert 0 < counts["removed"]["mine.length"]["documents"] < counts["documents_in"]
    assert not cluster.nodes()


def test_a_partition_that_is_not_there_is_named(
    tmp_path: Path, cluster: Site, options: Sequence[str | Path]
) -> None:
    run = cluster.submit(tmp_path / "out", *options, slurm=["--slurm_partition=nosuch"])
    assert "invalid partition specified: nosuch" in ended(run, 2)
    assert not (tmp_path / "out").exists()


def test_hosts_and_a_store_that_fail_change_no_byte(tmp_path: Path, cluster: Site) -> None:
    """A clock that is off, a full disk, a host without network, a dead one, a dead driver."""
    pytest.importorskip("moto", reason="the S3 server of the tests (moto) is not installed")
    write_texts(tmp_path)
    cluster.serve(0.02, sorted(tmp_path.glob("*.jsonl")))
    given = ["llama3", "--input", "s3://crawl/*", "--stages", "extract,dedup-urls,dedup-documents"]
    given += ["--set", "dedup-documents.per_language=false"]
    assert cluster.run([*given, "--output", "s3://out/here", "--workers", "0"]).returncode == 0

    late = f"--slurm_setup=[ $(hostname) != n1 ] || export PYTHONPATH={cluster.late()}"
    run = [*given, "--output", "s3://out/there", "--", *SLURM, f"--slurm_log_dir={tmp_path}"]
    done = cluster.run([*run, late, "--slurm_sbatch_args=--nodelist=n1"])
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "error" in line]
    assert "error: on n1: s3://" in line and "current time is too large" in line

    cluster.fill_disk("n1")
    cut = cluster.cut("n2")
    done = cluster.run(run, {"extract": cluster.kill_driver})
    assert done.returncode == -signal.SIGKILL, done.stderr
    done = cluster.run(run, {"dedup-urls": lambda: cluster.call("kill", "n3")})
    cluster.call("start", "n3")
    cut.wait()
    assert done.returncode == 0, done.stderr
    assert cluster.sums("there") == cluster.sums("here")
