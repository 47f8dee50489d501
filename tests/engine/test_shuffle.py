"""Rows that travel by GroupByKey are those that would be read from files, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.exchange import (
    GatheredFolder,
    key_ranges,
    numbers_of_shard,
    read_range,
    write_run,
)
from pipelines.engine.execute import Executor, parse_beam_args
from pipelines.engine.files import Folder
from pipelines.engine.jobs import cause
from pipelines.engine.shuffle import PerformGathered, Scatter
from pipelines.engine.tasklist import write_task_list
from pipelines.engine.tasks import Progress, Result, Task


@dataclass(frozen=True)
class Lists:
    """Writes what it was given to read, as text."""

    files: tuple[str, ...]
    name: str = "shards"
    settings_key: str = "lists"

    def runs(self) -> Sequence[str]:
        return self.files

    def key_range(self, task: Task) -> tuple[int, int]:
        return task.payload  # type: ignore[no-any-return]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high = task.payload
        rows = [r for b in read_range(folder, self.files, "key", low, high) for r in b.to_pylist()]
        name = f"out/{task.name}.txt"
        return Result({name: folder.write_bytes(name, repr(rows).encode())})


def _tasks(ranges: Sequence[tuple[int, int]]) -> list[Task]:
    return [Task(f"t{i}", (("range", f"{a}-{b}"),), 0, (a, b)) for i, (a, b) in enumerate(ranges)]


def _runs(folder: Folder, keys: Sequence[Any]) -> tuple[str, ...]:
    names = []
    for i, some in enumerate(keys):
        values = np.array(some, np.uint64)
        texts = pa.array([f"{i}.{j}" for j in range(len(values))], pa.string())
        write_run(folder, f"run-{i}.arrow", "key", {"key": values, "text": texts})
        names.append(f"run-{i}.arrow")
    return tuple(names)


KEYS = st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 5, 2**63, 2**64 - 1]), max_size=30)


@given(st.lists(KEYS, min_size=1, max_size=4), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_pieces_are_what_files_hold(
    tmp_path_factory: pytest.TempPathFactory, keys: list[list[int]], count: int
) -> None:
    folder = Folder(str(tmp_path_factory.mktemp("runs")))
    step, tasks = Lists(_runs(folder, keys)), _tasks(key_ranges(count))
    scatter = Scatter(write_task_list(folder, step, tasks))
    scatter.setup()
    sent: dict[int, list[Any]] = {i: [] for i in range(count)}
    for element in reversed(range(count + len(keys))):
        for number, piece in scatter.process(element):
            sent[number].append(piece)
    performer = PerformGathered(scatter.work, tries_again=True)
    performer.setup()
    for i, task in enumerate(tasks):
        whole = step.run(task, folder, lambda a, b: None)
        list(performer.process((i, sent[i])))
        assert folder.read_json(f"shards/{task.name}.json")["files"] == {
            n: f.as_dict() for n, f in whole.files.items()
        }


def test_ranges_of_shards_leave_gaps(tmp_path: Path) -> None:
    """Ranges need not touch: pending tasks are some of all."""
    folder = Folder(str(tmp_path))
    step = Lists(_runs(folder, [[1 << 32, 2 << 32, (2 << 32) + 7, 9 << 32]]))
    tasks = _tasks([numbers_of_shard(9), numbers_of_shard(1), numbers_of_shard(5)])
    scatter = Scatter(write_task_list(folder, step, tasks))
    scatter.setup()
    assert [number for number, _ in scatter.process(len(tasks))] == [1, 0]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_executor_gives_the_same_files(tmp_path: Path, workers: int) -> None:
    rng = np.random.default_rng(0)
    # One key in every row of a long run, and a run without rows.
    keys = [rng.integers(0, 2**63, 5000), np.full(20_000, 77), np.zeros(0)]
    outputs = []
    for exchange in ("files", "beam"):
        folder = Folder(str(tmp_path / exchange))
        step, tasks = Lists(_runs(folder, keys)), _tasks(key_ranges(7))
        with Executor(parse_beam_args([], workers, exchange)) as executor:
            assert executor.run("stage", step, folder, tasks) == 7
            assert executor.run("stage", step, folder, tasks) == 0
        outputs.append([folder.read_bytes(f"out/{t.name}.txt") for t in tasks])
    assert outputs[0] == outputs[1]


def test_a_task_without_rows_reads_none_from_files(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    (name,) = _runs(folder, [[1, 2, 3]])
    assert list(read_range(GatheredFolder(folder.url), [name], "key", 0, 9)) == []


def test_a_committed_task_is_left(tmp_path: Path) -> None:
    """A runner that lost a worker gives its tasks to another, done or not."""
    folder = Folder(str(tmp_path))
    step, tasks = Lists(_runs(folder, [[1, 2, 3]])), _tasks(key_ranges(1))
    performer = PerformGathered(write_task_list(folder, step, tasks), tries_again=True)
    performer.setup()
    scatter = Scatter(performer.work)
    scatter.setup()
    pieces = [p for e in range(2) for _, p in scatter.process(e)]
    assert list(performer.process((0, pieces))) == ["t0"]
    before = folder.stamp("out/t0.txt")
    assert list(performer.process((0, pieces))) == ["t0"]
    assert folder.stamp("out/t0.txt") == before
    size = folder.size("out/t0.txt")
    assert size is not None
    folder.write_bytes("out/t0.txt", b"x" * size)  # of the same size, but not what was written
    assert list(performer.process((0, pieces))) == ["t0"]
    assert not folder.read_bytes("out/t0.txt").startswith(b"x")


def test_the_cause_of_a_failed_job_is_found() -> None:
    text = """Pipeline x failed in state FAILED: java.lang.RuntimeException: Error from SDK harness:
Traceback (most recent call last):
  File "a.py", line 1
curation.errors.WorkerError: filter, shard a: ValueError: no such thing [while running 'P']
"""
    assert cause(text).startswith("filter, shard a: ValueError: no such thing")
    assert cause("gone") == "gone"
