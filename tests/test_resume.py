"""Interruption and change: what is finished is not redone, and the bytes come out the same."""

from __future__ import annotations

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from curation.recipe import load
from pipelines.cli import main
from pipelines.run_folder import load_run
from tests.conftest import curate, curate_well
from tests.engine.toys import be_curate
from tests.folders import differences, flip, tear

_STAGES = load("sample").stages
#: Kills per test run, in stages that have begun; benchmarks/interruptions.py tries many more.
#: Not in the last two: a fast machine has finished them before the signal comes.
_KILLS = 3
_KILLED = range(len(_STAGES) - 2)
_FLIPS = 3


def times(run: Path, stage: str, kind: str = "documents") -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in (run / stage / kind).iterdir()}


def test_a_killed_run_goes_on_to_the_same_bytes(
    sample_run: Path, tmp_path: Path, fork_server: Any
) -> None:
    dice = random.Random(20240723)
    output = tmp_path / "out"
    arguments = ["run", "sample", "--output", str(output), "--quiet", "--workers"]
    for stage in sorted(dice.sample(_KILLED, _KILLS)):
        process = fork_server.Process(target=be_curate, args=([*arguments, "2"],))
        process.start()
        while process.is_alive() and not (output / _STAGES[stage]).exists():
            time.sleep(0.02)
        time.sleep(dice.uniform(0, 0.2))
        assert process.is_alive(), "it ended before it was killed"
        process.kill()
        process.join()
        tear(output, dice)  # what a power failure adds to it
    curate_well([*arguments, "0"])
    assert differences(sample_run, output) == []


def test_flipped_bits_are_found_and_made_good(
    sample_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, dice = tmp_path / "out", random.Random(20240724)
    shutil.copytree(sample_run, output)
    assert main(["verify", "--run", str(output), "--sample", "0.1"]) == 0
    assert "39 files are intact; 55 token spans" in capsys.readouterr().out
    flipped = {flip(output, dice) for _ in range(_FLIPS)}
    assert main(["verify", "--run", str(output), "--json"]) == 1
    problems = "\n".join(json.loads(capsys.readouterr().out)["problems"])
    assert all(name in problems for name in flipped)
    assert main(["run", "sample", "--output", str(output), "--workers", "0", "--quiet"]) == 0
    assert differences(sample_run, output) == []
    assert main(["verify", "--run", str(output)]) == 0


def test_a_finished_run_is_left_alone(sample_run: Path) -> None:
    before = times(sample_run, "filter")
    printed = curate_well(["run", "sample", "--output", sample_run, "--workers", "2"])
    assert "Funnel" in printed
    assert times(sample_run, "filter") == before


def test_a_changed_recipe_redoes_what_depends_on_it(sample_run: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    shutil.copytree(sample_run, output)
    changed = "filter.rules.gopher.word_count.min=60"
    extract, lines = times(output, "extract"), times(output, "dedup-lines")
    filtered = times(output, "filter")
    arguments = ["run", "sample", "--workers", "0", "--quiet", "--set", changed]
    curate_well([*arguments, "--output", output])
    assert times(output, "extract") == extract
    assert times(output, "dedup-lines") == lines
    assert times(output, "filter").keys() == filtered.keys()
    assert all(times(output, "filter")[n] > filtered[n] for n in filtered)
    recipes = [
        json.loads((output / s / "manifest.json").read_text())["recipe"]
        for s in ("extract", "filter")
    ]
    assert recipes[0] == recipes[1]
    curate_well([*arguments, "--output", tmp_path / "fresh"])
    assert differences(output, tmp_path / "fresh") == []


def test_a_stage_done_anew_leaves_nothing_stale_behind(sample_run: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    shutil.copytree(sample_run, output)
    before = {p: p.stat().st_mtime_ns for p in (output / "tokenize").rglob("*") if p.is_file()}
    arguments = ["run", "sample", "--workers", "0", "--quiet", "--output", output]
    changed = "filter.rules.gopher.word_count.min=90000"
    curate_well([*arguments, "--stages", "filter", "--set", changed])
    report = json.loads((output / "report.json").read_text())
    assert [entry["stage"] for entry in report["funnel"]][-1] == "filter"
    assert report["stale"] == ["mix", "tokenize"]
    assert load_run(str(output))[1] == [entry["stage"] for entry in report["funnel"]]
    done = curate("tokenize", "--input", output / "mix", "--output", tmp_path / "other")
    assert done.returncode == 2 and "mix: not complete" in done.stderr
    curate_well(arguments)  # the same documents again: what was made of them counts again
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_a_new_input_redoes_its_own_shard(tmp_path: Path) -> None:
    crawl, output = tmp_path / "crawl", tmp_path / "out"
    crawl.mkdir()
    for name in ("a", "b"):
        (crawl / f"{name}.jsonl").write_text(
            "".join(
                json.dumps(
                    {"text": f"Document {i} of {name}. " * 50_000, "url": f"http://x/{name}{i}"}
                )
                + "\n"
                for i in range(2)
            )
        )
    arguments = ["run", "llama3", "--input", crawl, "--stages", "extract,dedup-urls", "--quiet"]
    curate_well([*arguments, "--output", output, "--workers", "0"])
    before = times(output, "extract")
    (crawl / "c.jsonl").write_bytes((crawl / "b.jsonl").read_bytes())
    curate_well([*arguments, "--output", output, "--workers", "0"])
    after = times(output, "extract")
    assert len(after) == 3
    assert {n: t for n, t in after.items() if n in before} == before
    (crawl / "b.jsonl").unlink()
    curate_well([*arguments, "--output", output, "--workers", "0"])
    assert len(times(output, "extract")) == 2
    curate_well([*arguments, "--output", tmp_path / "fresh", "--workers", "0"])
    assert differences(output, tmp_path / "fresh") == []
