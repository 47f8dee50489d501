"""What `plan` refuses before a run, and the lock of a run folder."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

import pipelines.run
from curation.errors import ConfigError
from curation.recipe import load
from pipelines.engine.files import Folder
from pipelines.run import locked, plan


@pytest.mark.parametrize(
    ("stage", "assignment", "message"),
    [
        (
            "identify-language",
            "identify-language.languages=[eng]",
            r"identify-language.languages: .*'eng'; did you mean 'en.*it has: .*zh",
        ),
        ("identify-language", "identify-language.thresholds={deu: 0.5}", "thresholds: .*'deu'"),
        ("mix", "mix.topics={nosuchtopic: 0.5}", "mix.topics: .*'nosuchtopic'.*it has: .*science"),
        ("mix", "mix.mixes={late: {topics: {x: 1}}}", "mix.mixes.late.topics: .*'x'"),
        ("classify", "classify.drop_topics=[sport]", "classify.drop_topics: .*'sport'"),
    ],
)
def test_labels_that_no_model_gives(
    tmp_path: Path, stage: str, assignment: str, message: str
) -> None:
    (tmp_path / "a.txt").write_text("text")
    stages = ["extract", "classify", "mix"] if stage == "mix" else ["extract", stage]
    with pytest.raises(ConfigError, match=message):
        plan(load("llama3", [assignment]), str(tmp_path / "out"), [str(tmp_path / "a.txt")], stages)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    with locked(folder), pytest.raises(ConfigError, match=f"process {os.getpid()}"), locked(folder):
        pass
    assert not list(tmp_path.iterdir())


def test_a_lock_that_ends_while_another_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path))
    first = locked(folder)
    first.__enter__()
    flock, ended = fcntl.flock, []

    def late(*arguments: object) -> None:
        """The first run ends after the second opened the file, and before it locks it."""
        if not ended:
            ended.append(first.__exit__(None, None, None))
        flock(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pipelines.run.fcntl, "flock", late)
    with locked(folder), pytest.raises(ConfigError, match="another run"), locked(folder):
        pass


@pytest.mark.parametrize(("output", "given"), [("", "a.txt"), ("out", ""), (" ", "a.txt")])
def test_empty_paths_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, given: str
) -> None:
    (tmp_path / "a.txt").write_text("text")
    monkeypatch.chdir(tmp_path)
    for stage in ("extract", "filter"):
        with pytest.raises(ConfigError, match=r"--(in|out)put: an empty path"):
            plan(load("llama3"), output, [given], [stage])
    with pytest.raises(ConfigError, match="empty path"):
        pipelines.run.load_run("")


def test_a_run_inside_its_input_does_not_read_itself(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "out"):
        (tmp_path / "a.txt").write_text("text")
        (place / "extract/documents").mkdir(parents=True)
        (place / "extract/documents/a.parquet").touch()
        (place / "report.html").touch()
        work = plan(load("llama3"), str(place), [str(tmp_path)], ["extract"])
        assert [file.name for file in work.files] == ["a.txt"]
        shutil.rmtree(place)
        tmp_path.mkdir(exist_ok=True)
