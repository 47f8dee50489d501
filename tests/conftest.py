"""Fixtures that several tests share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import hypothesis
import pytest

# A first example may compile or load kernels.
hypothesis.settings.register_profile("kernels", deadline=None)
hypothesis.settings.load_profile("kernels")

ROOT = Path(__file__).resolve().parent.parent


def curate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, from the checkout's root."""
    command = [sys.executable, "-m", "pipelines.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def curate_well(arguments: Sequence[str | Path]) -> str:
    """Run it and expect success; return what it printed."""
    done = curate(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of the `sample` recipe with two workers."""
    output = tmp_path_factory.mktemp("sample") / "out"
    printed = curate_well(["run", "sample", "--output", output, "--workers", "2"])
    assert "Funnel" in printed
    assert f"{output}/report.html" in printed.replace("\n", "")
    return output
