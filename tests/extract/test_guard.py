"""A crash in an engine costs one page."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pipelines.extract as stage
from curation.errors import WorkerError
from curation.extract import Extractor, safe
from curation.extract.extractor import default_settings
from curation.readers.records import Page
from pipelines.cli import main
from pipelines.runners.guard import Crash, Guard
from tests.extract import crashes


def test_the_culprit_is_found_and_the_others_are_answered(tmp_path: Path) -> None:
    guard = Guard(crashes.shout)
    words = ["a", "abort", "b", f"once {tmp_path / 'seen'}", "c", "exit", "exit", "d"]
    answers = guard.map(words)
    assert answers == [
        "A",
        Crash("ended its process by SIGABRT"),
        "B",
        "SECOND TIME",
        "C",
        Crash("ended its process with exit code 3"),
        Crash("ended its process with exit code 3"),
        "D",
    ]
    assert guard.map([]) == [] and guard.map(["e"]) == ["E"]
    guard.close()


def test_memory_is_bounded() -> None:
    guard = Guard(crashes.hungry, 2 << 30)
    assert guard.map([1 << 20, 3 << 30, 5]) == [1 << 20, 0, 5]
    guard.close()


def test_processor_time_is_bounded_for_each_item() -> None:
    guard = Guard(crashes.busy, max_seconds=1)
    crash = Crash("ended its process by SIGXCPU, after 1 CPU seconds")
    assert guard.map([5, 1 << 60, 7], again=False) == [5, crash, 7]
    guard.close()


def test_a_child_that_cannot_start_is_an_error() -> None:
    guard: Guard[str, str] = Guard(_Unpicklable())
    with pytest.raises(WorkerError, match="did not start"):
        guard.map(["a"])


class _Unpicklable:
    def __call__(self, word: str) -> str:
        return word

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (4,)


@pytest.mark.parametrize("error", [RecursionError, SystemExit, ValueError])
def test_what_an_engine_raises_costs_one_page(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error("too much")

    monkeypatch.setattr(Extractor, "extract", fail)
    answer = safe.extract_page(default_settings(), _page(b"<p>a"))
    assert answer == safe.Failed(f"{error.__name__}: too much")


def test_pages_that_are_begun_have_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = default_settings().model_copy(update={"max_html_bytes": 60})
    pages = [_page(b"<p>\xe9 &copy; 2020 A"), _page(b"<p>" + 60 * b"x"), _page(b"")]
    pages.append(replace(pages[0], kind="text"))
    begun = [safe.begin_page(settings, page) for page in pages]
    assert [one is None for one in begun] == [False, True, False, True]
    answers = [safe.extract_page(settings, page) for page in pages]
    assert isinstance(answers[1], safe.Refused)
    assert [
        safe.extract_page(settings, *each) for each in zip(pages, begun, strict=True)
    ] == answers

    def fail(*_: object) -> None:
        raise RecursionError("too much")

    monkeypatch.setattr(Extractor, "begin", fail)
    assert safe.begin_page(settings, pages[0]) is None
    assert safe.extract_page(settings, pages[0]) == safe.Failed("RecursionError: too much")


def _page(content: bytes) -> Page:
    return Page("", None, "", 0, content, "html", None, "text/html", None, None)


@pytest.mark.usefixtures("forked_processes")
def test_a_crashing_page_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resiliparse")
    folder = tmp_path / "pages"
    folder.mkdir()
    for number in range(5):
        mark = "abort-here" if number in (1, 3) else "sound"
        text = f"<title>{number}</title><p>The page of number {number} is {mark}, and says so.</p>"
        (folder / f"{number}.html").write_text(text)
    monkeypatch.setattr(stage, "extract_page", crashes.crashing)
    stage.guarded.cache_clear()
    outputs = []
    for run in ("one", "two"):
        out = tmp_path / run
        arguments = ["extract", "--input", str(folder), "--output", str(out), "--workers", "0"]
        assert main([*arguments, "--set", "extract.engine=resiliparse", "--quiet"]) == 0
        kept, removed, aside = (_rows(out, kind) for kind in ("documents", "removed", "set_aside"))
        assert sorted(row["title"] for row in kept) == ["0", "2", "4"]
        assert [row["reason"] for row in removed] == ["crash.extract"] * 2
        assert [row["detail"] for row in aside] == ["ended its process by SIGABRT"] * 2
        assert all(b"abort-here" in row["html"] for row in aside)
        manifest = json.loads((out / "extract" / "manifest.json").read_text())
        outputs.append([record["sha256"] for record in manifest["files"].values()])
    assert outputs[0] == outputs[1]
    stage.guarded.cache_clear()
    monkeypatch.undo()
    pages = str(tmp_path / "one/extract/set_aside/*.parquet")
    again = tmp_path / "again"
    assert main(["extract", "--input", pages, "--output", str(again), "--workers", "0"]) == 0
    assert sorted(row["title"] for row in _rows(again, "documents")) == ["1", "3"]
    assert {row["id"] for row in _rows(again, "documents")} == {row["id"] for row in removed}


def _rows(out: Path, kind: str) -> list[dict[str, Any]]:
    files = sorted((out / "extract" / kind).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]
