"""Beam's job service with workers of our pool: tasks cross processes as on a cluster.

One pool does for all: it loads every kernel before it forks.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from curation.recipe import load
from examples import beam_pipeline
from pipelines.cli import main
from pipelines.engine.transform import shard_tasks
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.storage.files import Folder
from tests.conftest import ROOT
from tests.dedup import test_stages as dedup
from tests.engine import test_poison as poison
from tests.folders import differences, external_workers
from tests.transforms.test_stages import ORDER, check_composed, composed


@pytest.fixture(scope="module")
def runner() -> Iterator[list[str]]:
    with external_workers() as options:
        yield options


def test_a_taken_port_is_named(runner: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    port = runner[-1].rpartition(":")[2]
    assert main(["worker-pool", "--port", port]) == 2
    assert f"--port {port}" in capsys.readouterr().err


def test_a_stage_writes_the_same_bytes(runner: list[str], tmp_path: Path) -> None:
    """One stage, since each of its steps starts a Python."""
    rows = [*dedup.crawl("a", 0, 1), *dedup.crawl("b", 3, 5), *dedup.crawl("c", 5, 2)]
    inputs = dedup.write(tmp_path / "in", rows, 3)
    arguments = ["dedup-urls", "--input", inputs, "--quiet", "--output"]
    assert main([*arguments, str(tmp_path / "local"), "--workers", "0"]) == 0
    assert dedup.read(tmp_path / "local", "dedup-urls", "removed")
    assert main([*arguments, str(tmp_path / "portable"), *runner]) == 0
    assert differences(tmp_path / "local", tmp_path / "portable") == []


def test_a_deadly_document_costs_itself_alone(runner: list[str], tmp_path: Path) -> None:
    """Beam's own job service waits for ever for a worker that is dead."""
    step, shards = poison.toy(tmp_path, {"a": ["one", "abort in toy", "two"], "b": ["three"]})
    outputs = [Folder(str(tmp_path / name)) for name in ("portable", "local")]
    for folder, options in zip(outputs, (runner[1:], []), strict=True):
        with Executor(parse_beam_args(options, 0)) as executor:
            assert executor.run("toy", step, folder, shard_tasks(shards)) == 2
    removed = poison.read(tmp_path / "portable", "removed")
    assert [(r["text"], r["reason"]) for r in removed.values()] == [("abort in toy", "crash.toy")]
    assert removed["a-1"]["letters"] is None
    assert differences(tmp_path / "portable/documents", tmp_path / "local/documents") == []
    assert differences(tmp_path / "portable/removed", tmp_path / "local/removed") == []


def test_transforms_do_what_the_stages_do(
    runner: list[str], sample_run: Path, tmp_path: Path
) -> None:
    """Up to the first that groups and one with a model; in a process, all of them do."""
    order = ORDER[:5]
    with beam.Pipeline(options=PipelineOptions(runner[1:])) as pipeline:
        composed(pipeline, load("sample"), tmp_path, order)
    check_composed(tmp_path, sample_run, order)


INPUTS = [ROOT / "data_samples" / n for n in ("english-00000.warc.gz", "records-00007.jsonl.gz")]


def arguments(output: Path, *options: str) -> list[str]:
    """Of the example."""
    given = ["--input", *map(str, INPUTS), "--output", str(output), "--language", "en", "de"]
    return [*given, *options]


def counts(output: Path) -> dict[str, int]:
    """Rows of each folder that the example writes."""
    files = output.rglob("*.parquet")
    return {str(f.parent.relative_to(output)): pq.read_metadata(f).num_rows for f in files}


def test_the_example_runs_here_and_in_other_processes(runner: list[str], tmp_path: Path) -> None:
    beam_pipeline.main(arguments(tmp_path / "here", "--runner=DirectRunner"))
    rows = counts(tmp_path / "here")
    removed = [f"removed/{name}" for name in ("extract", "language", "length")]
    stage = [f"dedup-documents/{kind}" for kind in ("documents", "removed")]
    assert set(rows) == {"long", *removed, *stage, "dedup-documents/audit"}
    assert min(rows[name] for name in ("long", "removed/language", *stage)) > 0
    assert rows["long"] == sum(rows[name] for name in stage)
    command = [sys.executable, "examples/beam_pipeline.py"]  # as a user starts it
    command += arguments(tmp_path / "there", *runner[1:])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert counts(tmp_path / "there") == rows
