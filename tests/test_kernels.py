"""Compiled kernels are kept by what decides them, and nothing else makes them again."""

from __future__ import annotations

import inspect
import os
import pickle
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from curation import golden, kernels, warm_up
from curation.compiled import borrowing, describe_type, inlined, kernel, type_of
from curation.recipe import load
from tests.conftest import ROOT


def total(values: Any) -> Any:
    """The sum, in a loop."""
    found = 0
    for value in values:
        found += value
    return found


def _first(data: Any, at: Any) -> Any:
    return data[at]


_first_of = borrowing(_first)


def _ends(data: Any, other: Any) -> Any:
    return _first_of(data, 0) + _first_of(data, len(data) - 1) + _first_of(other, 1)


VALUES = np.arange(5)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for kernels."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernels.places.cache_clear()
    yield tmp_path / "curation"
    kernels.places.cache_clear()
    kernels.levels.cache_clear()


@pytest.fixture
def wheel(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kernels that a wheel brings."""
    monkeypatch.setattr(kernels, "OF_WHEEL", place.parent / "wheel")
    kernels.places.cache_clear()
    kernels.levels.cache_clear()
    return kernels.OF_WHEEL


@pytest.fixture
def compilations() -> Iterator[Callable[[], int]]:
    """How often numba compiled something since the last question."""
    from numba.core import event

    recorded = event.RecordingListener()
    event.register("numba:compile", recorded)

    def count() -> int:
        starts = sum(e.is_start for _, e in recorded.buffer)
        recorded.buffer.clear()
        return starts

    yield count
    event.unregister("numba:compile", recorded)


def test_a_kernel_is_compiled_once(place: Path, compilations: Callable[[], int]) -> None:
    assert kernel(total)(VALUES) == 10
    assert compilations() == 1
    (file,) = place.iterdir()
    os.utime(file, (0, 0))  # times don't matter
    os.utime(__file__)
    assert kernel(total)(VALUES) == 10
    assert compilations() == 0


def test_a_processor_uses_what_was_compiled_for_its_level(
    wheel: Path,
    place: Path,
    compilations: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    level = kernels.levels()[0]
    script = "from tests.test_kernels import *; assert kernel(total)(VALUES) == 10"
    named = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": f"{place}/built"}
    path = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | named | path)
    (place / "built" / "curation").rename(wheel)
    assert kernel(total)(VALUES) == 10
    assert compilations() == 0
    kernels.refuse()  # its answers were wrong
    assert kernels.levels() == ()
    assert kernel(total)(VALUES) == 10
    assert compilations() == 1


def test_a_level_is_had_with_all_its_instructions(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = dict.fromkeys(kernels._LEVELS["x86-64-v3"].split(), True)
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: has)
    assert kernels.levels() == ("x86-64-v3", "generic")
    has["avx2"] = False
    kernels.levels.cache_clear()
    assert kernels.levels() == ("generic",)
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    kernels.levels.cache_clear()
    assert kernels.levels() == ()


def test_a_wheel_is_built_with_kernels_where_a_level_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = SimpleNamespace(BuildHookInterface=object)
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", base)

    def warm_up(command: list[str], check: bool, cwd: str, env: dict[str, str]) -> None:
        assert command[-2:] == ["warm-up", "--quiet"] and "NUMBA_BOUNDSCHECK" not in env
        assert (env["NUMBA_CPU_NAME"], env["NUMBA_CPU_FEATURES"]) == ("x86-64-v3", "")
        assert env["PYTHONPATH"].split(os.pathsep) == [str(root), "pip's"]
        folder = Path(env["NUMBA_CACHE_DIR"], "curation")
        folder.mkdir(exist_ok=True)
        (folder / "a.kernel").touch()

    monkeypatch.setattr(subprocess, "run", warm_up)
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "pip's")
    root = Path(__file__).parent.parent
    for level, version, built in (
        ("", "standard", 0),
        ("x86-64-v3", "editable", 0),
        ("x86-64-v3", "standard", 1),
    ):
        monkeypatch.setenv("CURATION_KERNELS", level)
        hook = runpy.run_path(str(root / "hatch_build.py"))["Kernels"]()
        hook.root = str(root)
        hook.metadata = SimpleNamespace(core=SimpleNamespace(dependencies=["numba"]))
        assert hook.dependencies() == (["numba"] if level else [])
        data: dict[str, Any] = {"force_include": {}, "pure_python": True, "infer_tag": False}
        hook.initialize(version, data)
        assert (data["infer_tag"], data["pure_python"]) == (bool(built), not built)
        inside = ["curation/_resources/kernels/a.kernel"] * built
        assert [*data["force_include"].values()] == inside


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: data[:5000] + bytes([data[5000] ^ 64]) + data[5001:],
    ],
)
def test_a_damaged_file_is_compiled_again(
    damage: Callable[[bytes], bytes], place: Path, compilations: Callable[[], int]
) -> None:
    kernel(total)(VALUES)
    (file,) = place.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert kernels.read_kept(file.name) is None
    compilations()
    assert kernel(total)(VALUES) == 10
    assert (compilations(), len(list(place.iterdir()))) == (1, 1)
    assert kernels.read_kept(file.name) is not None
    assert kernel(total)(VALUES) == 10
    assert compilations() == 0


@pytest.mark.parametrize(
    "content",
    [
        b"cno_such_module\nNothing\n.",  # a class that has moved
        pickle.dumps(()) + b"cno_such_module\nNothing\n.",
        pickle.dumps(()) + pickle.dumps((1, 2)),
    ],
)
def test_what_cannot_be_read_is_compiled_again(
    content: bytes, place: Path, compilations: Callable[[], int]
) -> None:
    kernel(total)(VALUES)
    (file,) = place.iterdir()
    kernels.keep(file.name, content)
    compilations()
    assert kernel(total)(VALUES) == 10
    assert compilations() == 1


def test_constants_and_read_only_texts_need_no_further_part(
    place: Path, compilations: Callable[[], int]
) -> None:
    read_only = np.arange(3, dtype=np.uint8)
    read_only.flags.writeable = False
    assert kernel(_ends)(np.arange(3, dtype=np.uint8), read_only) == 0 + 2 + 1
    assert compilations() == 2  # _ends, and _first once for three calls


def test_functions_in_one_another(place: Path) -> None:
    parts = [inlined(_first), kernel(_first)]
    assert [part(VALUES, 3) for part in parts] == [3, 3]


def test_a_kernel_has_its_plain_function_without_the_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("numba.core.config.DISABLE_JIT", 1)
    plain = kernel(lambda n: n + 1)  # type: ignore[var-annotated]
    assert (plain(1), plain.py_func(1)) == (2, 2)


def test_a_full_disk_or_a_missing_folder_costs_only_time(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert kernel(total)(VALUES) == 10
    assert list(place.iterdir()) == [] and not kernels.OF_WHEEL.exists()


def test_the_last_two_states_of_the_sources_are_kept(place: Path) -> None:
    for number in range(4):
        for types in ("a", "b"):
            name = f"curation.module.name-{number:016}-{types}.kernel"
            kernels.keep(name, b"content")
            os.utime(place / name, (number, number))
    kernels.keep("curation.module.name.part-0000000000000000-a.kernel", b"content")
    states = {path.name.split("-")[1][-1] for path in place.glob("*.name-*")}
    assert states == {"2", "3"}


def test_a_table_is_built_once_for_its_arguments(place: Path) -> None:
    built = list[tuple[int, str]]()

    @kernels.kept
    def table(size: int, name: str = "") -> tuple[Any, str]:
        """Return a table."""
        if not size:
            raise ValueError("empty")
        built.append((size, name))
        values = np.arange(size)
        values.flags.writeable = size == 2
        return values, name

    for size, name in ((2, "a"), (3, "a"), (3, "b")):
        for _ in range(2):
            values, named = table(size, name=name)
            assert values.tolist() == list(range(size)) and named == name
            assert values.flags.writeable == (size == 2)
    assert built == [(2, "a"), (3, "a"), (3, "b")] and table.__doc__ == "Return a table."
    for _ in range(2):  # an error is not kept
        with pytest.raises(ValueError, match="empty"):
            table(0)
    for file in place.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert table(2, name="a")[0].tolist() == [0, 1] and len(built) == 4
    for size in range(1, 60):
        table(size)
    assert len(list(place.iterdir())) == kernels._MOST


_DOUBLES = """
import numpy as np
from numba.core.runtime import rtsys
from curation.compiled import kernel

@kernel
def doubled(values):
    if len(values) > 3:
        raise ValueError("too many")
    return values * 2, np.zeros(len(values))

print(doubled(np.arange(3))[0], rtsys._init)
try:
    doubled(np.arange(4))
except ValueError as error:
    print(error)
"""


def test_kept_kernels_need_no_runtime_that_is_compiled(place: Path) -> None:
    path = place.parent / "doubles.py"
    path.write_text(_DOUBLES)
    run = [sys.executable, str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    said = [subprocess.check_output(run, env=environment, text=True) for _ in range(2)]
    assert said == [f"[0 2 4] {compiled}\ntoo many\n" for compiled in (True, False)]


def test_arrays_are_mapped_and_what_is_written_to_them_stays_here(
    place: Path, tmp_path: Path
) -> None:
    built, source = list[int](), tmp_path / "source"

    @kernels.kept
    def tables(of: Path) -> list[Any]:
        built.append(len(built))
        strided = np.arange(12.0).reshape(3, 4)
        return [np.arange(3, dtype=np.uint8), strided.T, strided[:, ::2], np.zeros(0), b"x"]

    for content in ("one", "two", "two"):
        source.write_text(content)
        tables(source)
    assert len(built) == 2
    tables(tmp_path / "missing")  # which would say so itself
    assert built.pop() == 2
    for _ in range(2):
        found = tables(source)
        assert found[0].tolist() == [0, 1, 2] and found[4] == b"x" and not len(found[3])
        assert found[1].flags.f_contiguous and found[1][1].tolist() == [1, 5, 9]
        assert found[2].tolist() == [[0, 2], [4, 6], [8, 10]]
        assert all(array.ctypes.data % 64 == 0 for array in found[:2])
        found[0][:] = 9
    assert len(built) == 2


def test_a_stamp_follows_all_that_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "curation"
    package.mkdir()
    monkeypatch.setattr(kernels, "_PACKAGE", package)

    def stamp(**sources: str) -> str:
        for name, text in sources.items():
            (package / f"{name}.py").write_text(text)
        for cached in (kernels.sources_stamp, kernels._read, kernels.source_of):
            cached.cache_clear()
        return kernels.sources_stamp(package / "a.py")

    first = stamp(
        a="from curation.b import (\n    ONE,  # (\n    two,\n)\n",
        b="import curation.c\n",
        c="",
        d="",
    )
    assert stamp(d="x = 1") == first
    assert stamp(c="x = 1") != first
    assert stamp(c="") == first
    assert stamp(b="") != first
    assert stamp(a="from curation import d\n", d="") != stamp(d="x = 1")
    shutil.rmtree(package)
    for cached in (kernels.sources_stamp, kernels._read, kernels.source_of):
        cached.cache_clear()


def test_a_place_where_package_and_home_are_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first() -> Path:
        kernels.places.cache_clear()
        return kernels.places()[0]

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(kernels, "_PACKAGE", tmp_path / "curation")
    assert first() == tmp_path / "curation" / "__pycache__" / "kernels"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    folder = first()
    assert (folder.parent, folder.stat().st_mode & 0o777) == (tmp_path, 0o700)
    assert first() == folder
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert first() != folder
    monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
    assert kernels.places() != (Path("mine/curation"),)
    assert first() == Path("mine/curation")
    kernels.places.cache_clear()


def test_types_are_what_they_were_described_as() -> None:
    for known in warm_up.known_kernels():
        assert [describe_type(type_of(described)) for described in known.types] == known.types


def test_listed_kernels_come_after_those_that_they_call() -> None:
    listed = warm_up.known_kernels()
    assert all(called < n for n, known in enumerate(listed) for called in known.calls)
    assert all(known.stages for known in listed if not known.is_part)
    only = set(warm_up.needed_kernels(["decontaminate"])) - set(
        warm_up.needed_kernels(load("sample").stages)
    )
    # Its index is mapped read-only, for which what reads bits is compiled once more.
    assert {listed[n].kernel.split(".")[1] for n in only} - {"bytes"} == {"decontaminate"}
    needed = warm_up.needed_kernels(["classify"])
    assert needed and all(set(listed[n].calls) <= set(needed) for n in needed)


def test_functions_that_count_no_references_call_none_that_return_arrays() -> None:
    """Nobody would free such an array."""
    for known in warm_up.known_kernels():
        dispatcher = _dispatcher(known.kernel)
        if dispatcher.targetoptions["_nrt"]:
            continue
        for called in known.calls:
            callee = warm_up.known_kernels()[called]
            part = _dispatcher(callee.kernel).part()
            if part.targetoptions["_nrt"]:
                types = tuple(type_of(described) for described in callee.types)
                part.compile(types)
                answer = part.overloads[types].signature.return_type
                assert "array" not in str(answer), (known.kernel, callee.kernel)


@pytest.mark.parametrize("stage", sorted(golden._golden()))
def test_this_machine_gives_the_answers_that_manifests_state(stage: str) -> None:
    same = golden.measured_digest(stage) == golden.golden_digest(stage)
    assert same, f"kernels of {stage} give other results; if meant: python -m curation.golden"


def test_every_stage_with_kernels_states_their_answers() -> None:
    known, needed = set(golden._golden()), set(golden.stages_with_kernels())
    assert known == needed, f"{sorted(known ^ needed)}: run python -m curation.golden"


def _dispatcher(name: str) -> Any:
    module, _, function = name.partition(":")
    found = getattr(__import__(module, fromlist=["x"]), function, None)
    assert found, f"{name} is gone: run python benchmarks/compilation.py --write"
    assert inspect.isfunction(found.py_func)
    return found


def test_a_mark_says_that_a_stage_is_compiled(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not warm_up.are_compiled(["filter"])
    warm_up.mark_compiled(["filter", "dedup-lines"])
    assert warm_up.are_compiled(["filter"]) and warm_up.are_compiled(["dedup-lines", "filter"])
    assert not warm_up.are_compiled(["filter", "extract"])
    monkeypatch.setattr(warm_up, "_stamp", lambda: "another")
    assert not warm_up.are_compiled(["filter"])
