"""Kernels are compiled before a run, each once, by several processes, callees first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curation import kernels, warm_up
from curation.warm_up import known_kernels, needed_kernels
from pipelines.runners import compilation
from pipelines.runners.progress import Lines


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for kernels."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernels.places.cache_clear()
    kernels.levels.cache_clear()
    yield tmp_path
    kernels.places.cache_clear()
    kernels.levels.cache_clear()


def _note(number: int) -> None:
    """Instead of compiling: what was called must be there."""
    place = Path(os.environ["NUMBA_CACHE_DIR"])
    assert all((place / str(called)).exists() for called in known_kernels()[number].calls)
    (place / str(number)).touch(exist_ok=False)


def _fail(number: int) -> None:
    if not known_kernels()[number].calls:
        raise ValueError("no such type\nmore")


def _die(number: int) -> None:
    os._exit(1)


def test_each_kernel_is_compiled_once_after_those_that_it_calls(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "compile_kernel", _note)
    told: list[tuple[int, int]] = []
    assert compilation.compile_kernels(["classify"], 2, lambda *now: told.append(now))
    needed = needed_kernels(["classify"])
    assert {int(path.name) for path in place.iterdir() if path.is_file()} == set(needed)
    assert (told[0], told[-1]) == ((0, len(needed)), (len(needed), len(needed)))
    assert told == sorted(told)
    assert compilation.compile_kernels(["classify"], 2, lambda *now: told.append(now))
    assert told[-1] == (len(needed), len(needed)) and told.count(told[0]) == 1


def test_what_cannot_be_compiled_is_named_and_left_to_the_run(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compilation, "compile_kernel", _fail)
    for _ in range(2):  # it isn't marked as compiled
        caplog.clear()
        assert not compilation.compile_kernels(["classify"], 1, lambda *_: None)
        assert "no such type" in caplog.text and "more" not in caplog.text


def test_a_process_that_dies_ends_the_compilation_only(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compilation, "compile_kernel", _die)
    assert not compilation.compile_kernels(["classify"], 1, lambda *_: None)
    assert "a process compiling kernels died" in caplog.text


def _right(stage: str) -> bool:
    return True


def _wrong(stage: str) -> bool:
    return stage != "filter"


def _dead(stage: str) -> bool:
    os._exit(1)


@pytest.fixture
def wheel(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with compiled kernels of two stages: the marks that say so."""
    with monkeypatch.context() as built:
        built.setenv("NUMBA_CPU_NAME", kernels.levels()[0])
        warm_up.mark_compiled(["filter", "classify"])
    kernels.levels.cache_clear()
    monkeypatch.setattr(kernels, "OF_WHEEL", place / "wheel")
    (place / "curation").rename(kernels.OF_WHEEL)
    kernels.places.cache_clear()
    monkeypatch.setattr(compilation, "compile_kernel", _note)
    return kernels.OF_WHEEL


@pytest.mark.parametrize(("check", "right"), [(_right, True), (_wrong, False), (_dead, False)])
def test_kernels_of_a_wheel_are_used_once_they_have_given_the_right_answers(
    check: Callable[[str], bool],
    right: bool,
    wheel: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(compilation, "is_right", check)
    told: list[tuple[int, int]] = []
    stages = ["classify", "filter"]
    assert compilation.compile_kernels(stages, 2, lambda *now: told.append(now))
    assert (not told, bool(kernels.levels()), not caplog.text) == (right, right, right)
    assert right or "wrong results" in caplog.text
    monkeypatch.setattr(compilation, "is_right", _dead)  # nothing is asked again
    assert compilation.compile_kernels(stages, 2, lambda *_: None)


def test_a_machine_unlike_that_of_the_wheel_is_told_why_it_compiles(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert warm_up.unlike_the_wheel() == ""
    here = kernels.software()
    monkeypatch.setattr(kernels, "software", lambda: here | {"numba": "0.1"})
    monkeypatch.setattr(warm_up, "_stamp", lambda: "another")
    assert compilation.compile_kernels(["classify"], 1, lambda *_: None)
    assert caplog.messages == [
        f"compiling kernels: those in the wheel are for numba {here['numba']} (here 0.1)"
    ]
    with monkeypatch.context() as older:
        older.setattr(kernels, "levels", lambda: ())
        assert "processor" in warm_up.unlike_the_wheel()


def test_the_compilation_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines() as display:
        display.stage("extract", "started")
        for done in range(4):
            display.compiling(done, 3)
        display.stage("extract", "done", documents=1)
    shown = capsys.readouterr().err
    assert "compiling kernels 0/3 (once per machine)" in shown
    assert "compiling kernels 3/3 (once per machine)" in shown
