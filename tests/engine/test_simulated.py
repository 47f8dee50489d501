"""Runs of two stages on disks and stores that fail: `tests/engine/simulate.py` with a few seeds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.storage.shards import TableWriter
from tests.engine import simulate
from tests.simulated import LOCAL, STORE, Store, World

Subject = tuple[simulate.Subject, dict[str, bytes], int]


@pytest.fixture(scope="module", params=simulate.WHERE)
def one(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    place = tmp_path_factory.mktemp("simulated")
    made = simulate.subject(request.param, place)
    expected, calls = simulate.undisturbed(made)
    names = {name.split("/")[0] for name in expected}
    assert names == {"dedup-urls", "dedup-lines", "recipe.yaml", "SHA256SUMS"}
    return made, expected, calls


@pytest.fixture(autouse=True)
def _only_these_files() -> Iterator[None]:
    yield
    assert Store.world is None


#: A call after the last stage fails: the file of sums must not leave out what it can't see.
_FOUND = (50027, 50231, 50687)


def test_seeds(one: Subject) -> None:
    made, expected, _ = one
    for seed in (*range(4), *_FOUND):
        worlds, doubled = simulate.drawn(seed, made.where)
        assert simulate.disturbed(made, expected, worlds, doubled) == [], f"seed {seed}"


def test_some_calls_fail_in_every_way(one: Subject) -> None:
    made, expected, calls = one
    step = calls // 3
    found = dict(simulate.sweep(made, expected, calls, step))
    assert len(found) >= 3 * len(LOCAL if made.local else STORE)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_the_same_seed_makes_the_same_calls(one: Subject) -> None:
    made, _, _ = one
    logs = []
    for _ in range(2):
        made.clear()
        worlds, _ = simulate.drawn(3, made.where)
        log = []
        for world in worlds:
            Store.earlier = dict(Store.files)
            simulate.attempt(made, world, 1.0)
            log.append((world.calls, [line.split(",")[0] for line in world.log]))
        logs.append(log)
    assert logs[0] == logs[1] and any(log for _, log in logs[0])


def test_an_engine_that_forgets_a_document_is_found(
    one: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks have teeth."""
    made, expected, _ = one
    write = TableWriter.write
    monkeypatch.setattr(TableWriter, "write", lambda w, b: write(w, b.slice(0, b.num_rows - 1)))
    (well, *_) = simulate.disturbed(made, expected, iter([World(lambda *_: "")]), 0.0)
    assert "differ" in well


def test_endless_calls_and_other_errors_are_told(one: Subject, tmp_path: Path) -> None:
    made, _, _ = one
    made.clear()
    well, told = simulate.attempt(made, World(lambda *_: "", most_calls=50))
    assert not well and told.startswith("hangs")
    assert "this is a bug" in simulate.trouble(KeyError("x"))
    assert simulate.trouble(OSError(5, os.strerror(5), f"{tmp_path}/out/x")) == ""
