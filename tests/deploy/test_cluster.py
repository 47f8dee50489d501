"""The command line of the scripts that start clusters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "deploy"))

import cluster  # noqa: E402


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--processes", "2", "--", "curate", "run", "sample", "--", "--more"],
        ["--processes", "2", "run", "--", "curate", "run", "sample", "--", "--more"],
        ["run", "--processes=2", "--", "curate", "run", "sample", "--", "--more"],
    ],
)
def test_options_stand_before_or_behind_the_action(words: list[str]) -> None:
    options = cluster.parsed(cluster.make_parser("flink", ""), words)
    assert (options.action, options.processes) == ("run", 2)
    assert options.command == ["curate", "run", "sample", "--", "--more"]


def test_an_action_needs_no_command() -> None:
    options = cluster.parsed(cluster.make_parser("flink", ""), ["up", "--workers", "3"])
    assert (options.action, options.workers, options.command) == ("up", 3, [])
