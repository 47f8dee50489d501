"""Stages in pipelines of one's own: `RunStage` is the stage, and so are the forms over batches."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.errors import ConfigError, WorkerError
from curation.recipe import Recipe, load
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, RunnerOptions
from pipelines.transforms import (
    Batches,
    Classify,
    DeduplicateDocuments,
    Extract,
    Filter,
    IdentifyLanguage,
    Judged,
    ReadPages,
    ReadShards,
    RunStage,
    WriteShards,
    stage,
)
from tests.folders import digests

ORDER = (
    *("extract", "dedup-urls", "identify-language", "dedup-documents"),
    *("classify", "dedup-lines", "filter", "mix", "tokenize"),
)


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load("sample")


def write_all(outputs: Any, folder: Path, label: str = "") -> None:
    """Write every output of a transform to the folder of its name."""
    for kind in outputs._fields:
        write = WriteShards(str(folder / kind))
        _ = getattr(outputs, kind) | f"Write {label} {kind}" >> write


def check_same(made: Path, run: Path) -> None:
    """Of each kind of file that transforms wrote, the stage wrote the same, byte for byte."""
    written = digests(made)
    kinds = {name.partition("/")[0] for name in written}
    known = {n: digest for n, digest in digests(run).items() if n.partition("/")[0] in kinds}
    assert written and written == known


def composed(
    pipeline: beam.Pipeline, recipe: Recipe, folder: Path, order: Sequence[str] = ORDER
) -> None:
    """All stages in one pipeline."""
    shards = pipeline | RunStage(order[0], str(folder), recipe, paths=recipe.inputs)
    for name in order[1:]:
        shards = shards | RunStage(name, str(folder), recipe)


def check_composed(folder: Path, run: Path, order: Sequence[str] = ORDER) -> None:
    """All files of all stages are the same, manifests and commit records too."""
    for name in order:
        assert digests(folder / name) == digests(run / name), name


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the end of a stage find nothing to do: every step was done by tasks of the pipeline."""

    class Done(Executor):
        def run(self, *arguments: Any, **named: Any) -> int:
            assert super().run(*arguments, **named) == 0
            return 0

    monkeypatch.setattr(stage, "Executor", Done)


@pytest.mark.usefixtures("nothing_left")
def test_one_pipeline_does_what_the_stages_do(
    sample_run: Path, recipe: Recipe, tmp_path: Path
) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        composed(pipeline, recipe, tmp_path)
    check_composed(tmp_path, sample_run)


def test_indexes_are_those_of_the_stage(sample_run: Path, tmp_path: Path) -> None:
    settings = ["dedup-documents.index.write=true"]
    recipe, inputs = load("sample", settings), str(sample_run / "identify-language")
    with Executor(RunnerOptions()) as executor:
        run_plan(plan(recipe, f"{tmp_path}/run", [inputs], ["dedup-documents"]), executor)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        shards = pipeline | ReadShards(inputs)
        _ = shards | DeduplicateDocuments(f"{tmp_path}/made", recipe.dedup_documents)
    made, run = (digests(tmp_path / name / "dedup-documents") for name in ("made", "run"))
    assert {n for n in made.keys() | run.keys() if made.get(n) != run.get(n)} <= {
        "manifest.json",  # the recipe's name
    }


def test_batches_are_judged_as_shards_are(sample_run: Path, recipe: Recipe, tmp_path: Path) -> None:
    judges = {
        "identify-language": IdentifyLanguage(recipe.identify_language),
        "classify": Classify(recipe.classify),
        "filter": Filter(recipe.filter),
    }
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        pages = pipeline | ReadPages(recipe.inputs, recipe.readers)
        extracted = pages.pages | Extract(recipe.extract)
        write_all(Judged(extracted.documents, extracted.removed), tmp_path / "extract", "extract")
        for name, judge in judges.items():
            before = str(sample_run / ORDER[ORDER.index(name) - 1])
            batches = pipeline | f"Read {name}" >> ReadShards(before) | f"Of {name}" >> Batches()
            write_all(batches | judge, tmp_path / name, name)
    for name in ("extract", *judges):
        check_same(tmp_path / name, sample_run / name)


def test_pages_that_cannot_be_read_are_set_aside(
    sample_run: Path, recipe: Recipe, tmp_path: Path
) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        pages = pipeline | ReadPages(recipe.inputs, recipe.readers)
        _ = pages.set_aside | WriteShards(str(tmp_path / "set_aside"))
    made, known = (
        sorted(r["source"]["offset"] for f in sorted(p.glob("*.parquet")) for r in rows(f))
        for p in (tmp_path / "set_aside", sample_run / "extract" / "set_aside")
    )
    assert made and made == known


def rows(file: Path) -> list[dict[str, Any]]:
    return pq.read_table(file).to_pylist()


def test_other_kinds_of_files_are_read(sample_run: Path, tmp_path: Path) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        shards = pipeline | ReadShards(str(sample_run / "filter"))
        _ = shards | Batches("removed") | WriteShards(str(tmp_path / "removed"))
    check_same(tmp_path, sample_run / "filter")
    assert sum(map(len, map(rows, (tmp_path / "removed").iterdir()))) > 0


@pytest.fixture
def three_shards(sample_run: Path, tmp_path: Path) -> Iterator[str]:
    documents = pa.concat_tables(
        pq.ParquetFile(file).read()
        for file in sorted((sample_run / "dedup-urls/documents").iterdir())
    )
    folder = tmp_path / "three"
    folder.mkdir()
    for number, name in enumerate("abc"):
        pq.write_table(documents.slice(20 * number, 20), folder / f"{name}.parquet")
    yield str(folder)


def test_a_pipeline_that_failed_goes_on(
    three_shards: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    perform, fails = stage.do_task, True

    def do_task(work: Any, number: int, again: bool, guarded: bool) -> None:
        name = work.tasks[number].name
        if fails and name == "c":
            raise WorkerError("shard c: no such luck")
        perform(work, number, again, guarded)
        done.append(name)

    monkeypatch.setattr(stage, "do_task", do_task)

    def run() -> None:
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            shards = pipeline | ReadShards(three_shards)
            _ = shards | RunStage("identify-language", str(tmp_path / "run"))

    with pytest.raises(WorkerError, match="no such luck"):
        run()
    first, fails = sorted(done), False
    run()
    assert sorted(done) == ["a", "b", "c"] and "c" not in first
    assert (tmp_path / "run/identify-language/manifest.json").exists()
    run()
    assert len(done) == 3


def run_own(shards: str, place: Path) -> None:
    """A pipeline in a process of its own."""
    os.chdir(place)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | ReadShards(shards) | RunStage("own-one", f"{place}/run", load("own.yaml"))


def test_a_document_that_kills_its_worker_is_removed_when_the_pipeline_runs_again(
    three_shards: str, tmp_path: Path, fork_server: BaseContext
) -> None:
    deadly = pq.read_table(f"{three_shards}/b.parquet")["id"][7].as_py()
    (tmp_path / "own.py").write_text(
        "import os\n"
        "def lethal(batch):\n"
        f"    if {deadly!r} in batch['id'].to_pylist():\n"
        "        os.abort()\n"
        "    return [True] * batch.num_rows\n"
    )
    recipe = "name: own\nextends: llama3\nstages: [own-one]\nown-one: {python: own.py:lethal}\n"
    (tmp_path / "own.yaml").write_text(recipe)
    for end in (-signal.SIGABRT, 0):
        process = fork_server.Process(target=run_own, args=(three_shards, tmp_path))  # type: ignore[attr-defined]
        process.start()
        process.join()
        assert process.exitcode == end
    removed = pq.read_table(tmp_path / "run" / "own-one" / "removed").to_pylist()
    assert [(row["id"], row["reason"]) for row in removed] == [(deadly, "crash.own-one")]
    assert pq.read_table(tmp_path / "run" / "own-one" / "documents").num_rows == 59


def test_shards_of_one_name_are_refused(three_shards: str, tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="three: given twice"),
        beam.Pipeline(runner="FnApiRunner") as pipeline,
    ):
        lists = [pipeline | f"Read {n}" >> ReadShards(three_shards) for n in range(2)]
        _ = lists | beam.Flatten() | RunStage("identify-language", str(tmp_path / "run"))


def test_what_a_stage_begins_with_is_checked(three_shards: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'extract'\): this stage begins a pipeline"):
        _ = beam.Pipeline() | ReadShards(three_shards) | RunStage("extract", str(tmp_path))
    with pytest.raises(ConfigError, match=r"'filter'\): this stage needs shards"):
        _ = beam.Pipeline() | RunStage("filter", str(tmp_path))
