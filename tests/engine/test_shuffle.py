"""Rows that travel by GroupByKey are those that would be read from files, in the same order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.stage import StageRun
from pipelines.runners.chain import FEWEST_KEYS, SMALL_BYTES, Chain, Pass, write_chain
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.jobs import cause
from pipelines.runners.shuffle import PerformPass, build_chain
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.damage import DamagedError, damaged
from pipelines.storage.exchange import (
    key_ranges,
    numbers_of_shard,
    read_columns,
    read_range,
    scratch,
    with_rows,
    write_run,
)
from pipelines.storage.files import Folder

DIRECT = "DirectRunner"


@dataclass(frozen=True)
class Keys:
    """Writes the keys of a task, each with a text, as a run."""

    name: str = "keys"
    settings_key: str = "keys"
    sends = ("keys",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        keys, texts = task.payload
        name, columns = scratch("keys", task.name), {"key": np.array(keys, np.uint64)}
        return Result({name: write_run(folder, name, "key", columns | {"text": pa.array(texts)})})


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


def _listed(folder: Folder, runs: Sequence[Any], ranges: Sequence[tuple[int, int]]) -> list[Pass]:
    """Keys and texts of each run, and what each range of keys holds."""
    keys = [Task(f"run-{i}", (), 0, run) for i, run in enumerate(runs)]
    lists = Lists(tuple(scratch("keys", t.name) for t in keys))
    return [Pass(Keys(), keys, folder), Pass(lists, _tasks(ranges), folder, after=("keys",))]


def _sent(chain: Chain, tasks: int) -> dict[int, list[Any]]:
    """The pieces that each task of the second step gets from those of the first, in no order."""
    sender, sent = PerformPass(chain, 0, (1,)), {i: [] for i in range(tasks)}
    sender.setup()
    for i in reversed(range(len(chain.tasks))):
        for output in sender.process((i, ())):
            number, piece = output.value
            sent[number].insert(0, piece)
    return sent


RUNS = st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 5, 2**63, 2**64 - 1]), max_size=30)


@given(st.lists(RUNS, min_size=1, max_size=4), st.integers(1, 9))
@settings(max_examples=60)
def test_pieces_are_what_files_hold(
    tmp_path_factory: pytest.TempPathFactory, keys: list[list[int]], count: int
) -> None:
    files, job = (Folder(str(tmp_path_factory.mktemp("runs"))) for _ in range(2))
    runs = [(some, [f"{i}.{j}" for j in range(len(some))]) for i, some in enumerate(keys)]
    first, second = _listed(files, runs, key_ranges(count))
    for task in first.tasks:
        first.step.run(task, files, lambda a, b: None)
    chain = write_chain(_listed(job, runs, key_ranges(count)))
    performer, sent = PerformPass(chain, 1, ()), _sent(chain, count)
    performer.setup()
    for i, task in enumerate(second.tasks):
        whole = second.step.run(task, files, lambda a, b: None)
        assert list(performer.process((i, sent[i]))) == []
        assert job.read_json(f"shards/{task.name}.json")["files"] == {
            n: f._asdict() for n, f in whole.files.items()
        }
    assert not (job / ".work/data/keys").sizes(), "rows that only travel are in no file"


def test_a_row_longer_than_any_element_comes_in_parts(tmp_path: Path) -> None:
    """Flink's runner refuses elements beyond its sort buffer."""
    texts = ["short", "long " * 900_000, "end"]
    chain = write_chain(_listed(Folder(str(tmp_path)), [([0, 1, 2], texts)], key_ranges(1)))
    (pieces,) = _sent(chain, 1).values()
    assert len(pieces) > 4 and max(len(piece[-1]) for piece in pieces) <= 1 << 20
    performer = PerformPass(chain, 1, ())
    performer.setup()
    assert list(performer.process((0, pieces))) == []
    rows = [{"key": i, "text": text} for i, text in enumerate(texts)]
    assert chain.folder.read_bytes("out/t0.txt") == repr(rows).encode()


def test_a_row_above_ten_megabytes_goes_through_a_job(tmp_path: Path) -> None:
    """Runners refuse longer keys and elements; ours are the numbers of tasks, and parts of rows."""
    runs = [([1, 9], ["short", "x" * (12 << 20)]), ([2], ["y" * (11 << 20)])]
    folders = {e: Folder(str(tmp_path / e)) for e in ("local", DIRECT)}
    found = {e: _run_chain(f, _listed(f, runs, key_ranges(2)), e) for e, f in folders.items()}
    names = "out/t0.txt", "out/t1.txt"
    first, second = ([found[e][name] for name in names] for e in folders)
    assert first == second and len(first[0]) > 23 << 20


def test_tasks_are_divided_among_workers_before_they_read(tmp_path: Path) -> None:
    """A runner may make one partition of what a pipeline begins with."""
    pipeline = beam.Pipeline(runner=FnApiRunner())
    folder = Folder(str(tmp_path))
    build_chain(pipeline, write_chain([replace(p, folder=folder) for p in _passes(folder)]))
    transforms = pipeline.to_runner_api().components.transforms.values()
    producers = {out: t for t in transforms for out in t.outputs.values() if not t.subtransforms}
    performers = [t for t in transforms if re.search(r"PerformTask \w+$", t.unique_name)]
    assert len(performers) == 4  # one does what follows, too
    for performer in performers:
        above, urns = list(performer.inputs.values()), set()
        while above:
            producer = producers[above.pop()]
            urns.add(producer.spec.urn)
            above += producer.inputs.values()
        assert "beam:transform:group_by_key:v1" in urns


@pytest.mark.usefixtures("forked_processes")
def test_two_workers_that_do_the_same_at_once_leave_what_one_does(tmp_path: Path) -> None:
    """As engines have it that start a slow task a second time."""
    alone, both = (Folder(str(tmp_path / name)) for name in ("alone", "both"))
    found = _run_chain(alone, _passes(alone))
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(_run_chain, both, _passes(both), DIRECT, 1) for _ in range(2)]
    assert [run.result() for run in runs] == [found] * 2
    assert sorted(both.tree()) == sorted(alone.tree())


def test_ranges_of_shards_leave_gaps(tmp_path: Path) -> None:
    """Ranges need not touch, nor come in their order."""
    keys = [1 << 32, 2 << 32, (2 << 32) + 7, 9 << 32]
    ranges = [numbers_of_shard(9), numbers_of_shard(1), numbers_of_shard(5)]
    chain = write_chain(_listed(Folder(str(tmp_path)), [(keys, ["a", "b", "c", "d"])], ranges))
    assert [len(pieces) for pieces in _sent(chain, 3).values()] == [2, 2, 1]


def test_a_task_without_rows_reads_none_from_files(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    name = scratch("keys", "a")
    write_run(folder, name, "key", {"key": np.arange(3, dtype=np.uint64)})
    assert list(read_range(with_rows(folder, {}, ()), [name], "key", 0, 9)) == []
    assert len(list(read_range(with_rows(folder, None, ()), [name], "key", 0, 9))) == 1


@dataclass(frozen=True)
class Numbers:
    """Sends the numbers of a task, and leaves a note that stays a file."""

    also: tuple[str, ...] = ()
    name: str = "numbers"
    settings_key: str = "numbers"
    sends = ("numbers",)

    @property
    def keeps(self) -> tuple[str, ...]:
        return self.also

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        values = np.array(task.payload, np.uint64)
        name, note = scratch("numbers", task.name), scratch("notes", task.name)
        files = {name: write_run(folder, name, "key", {"key": values})}
        return Result(files | {note: folder.write_bytes(note, b"%d" % len(values))})


@dataclass(frozen=True)
class Sums:
    """Gathers numbers by range and sends what it found to each shard."""

    shards: tuple[str, ...]
    name: str = "sums"
    settings_key: str = "sums"
    sends = ("sums",)

    def runs(self) -> list[str]:
        return [scratch("numbers", s) for s in self.shards]

    def key_range(self, task: Task) -> tuple[int, int]:
        return task.payload  # type: ignore[no-any-return]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        found = list(read_range(folder, self.runs(), "key", *task.payload))
        keys = np.concatenate([np.zeros(0, np.uint64), *(b.column("key") for b in found)])
        name = scratch("sums", task.name)
        return Result({name: write_run(folder, name, "key", {"key": np.sort(keys)})})


@dataclass(frozen=True)
class Shares:
    """For each shard, the numbers of its range; read beside by `Written` alone."""

    ranges: tuple[str, ...]
    name: str = "shares"
    settings_key: str = "shares"
    sends = ("shares",)

    def runs(self) -> list[str]:
        return [scratch("sums", r) for r in self.ranges]

    def key_range(self, task: Task) -> tuple[int, int]:
        return task.payload  # type: ignore[no-any-return]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        found = list(read_range(folder, self.runs(), "key", *task.payload))
        keys = np.concatenate([np.zeros(0, np.uint64), *(b.column("key") for b in found)])
        name = scratch("shares", task.name)
        return Result({name: write_run(folder, name, "key", {"key": keys})})


@dataclass(frozen=True)
class Written:
    """The last step of a shard."""

    name: str = "shards"
    settings_key: str = "written"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        keys = read_columns(folder, scratch("shares", task.name)).column("key").to_pylist()
        name = f"out/{task.name}.txt"
        return Result({name: folder.write_bytes(name, repr(keys).encode())})


@dataclass(frozen=True)
class Total:
    """Waits for the notes of all tasks, and gathers nothing."""

    shards: tuple[str, ...]
    name: str = "total"
    settings_key: str = "total"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        notes = [int(folder.read_bytes(scratch("notes", s))) for s in self.shards]
        return Result({"total.txt": folder.write_bytes("total.txt", b"%d" % sum(notes))})


NUMBERS = {"a": [5, 1 << 40, 7], "b": [], "c": [(1 << 63) + 1, 7]}


def _passes(
    folder: Folder, keeps: tuple[str, ...] = (), numbers: Any = NUMBERS, size: int = 0
) -> list[Pass]:
    """`size` is what a range of numbers is expected to have, in bytes."""
    shards = tuple(numbers)
    ranges = [replace(task, size=size) for task in _tasks(key_ranges(3))]
    low, high = (0, 9), (10, 2**64 - 1)
    return [
        Pass(Numbers(keeps), [Task(s, (("n", repr(n)),), 0, n) for s, n in numbers.items()]),
        Pass(Sums(shards), ranges, after=("numbers",)),
        Pass(
            Shares(tuple(t.name for t in ranges)),
            [Task("low", (), 0, low), Task("high", (), 0, high)],
            after=("sums",),
        ),
        Pass(Written(), [Task("low", ()), Task("high", ())], beside="shares"),
        Pass(Total(shards), [Task("all", ())], after=("numbers",)),
    ]


def _run_chain(folder: Folder, passes: list[Pass], runner: str = DIRECT, workers: int = 0) -> Any:
    with Executor(parse_beam_args([f"--runner={runner}"], workers)) as executor:
        StageRun("stage", folder, None, "", executor, {}).chain(passes)
    return {name: folder.read_bytes(name) for name in folder.tree() if "/.work" not in f"/{name}"}


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.parametrize(("workers", "keeps"), [(0, ()), (0, ("numbers",)), (1, ())])
def test_a_chain_is_one_pipeline_with_the_same_bytes(
    tmp_path: Path, workers: int, keeps: tuple[str, ...]
) -> None:
    folders = {e: Folder(str(tmp_path / e)) for e in ("local", DIRECT)}
    found = {e: _run_chain(f, _passes(f, keeps), e, workers) for e, f in folders.items()}
    assert found["local"] == found[DIRECT]  # commit records among them
    assert found[DIRECT]["out/low.txt"] == b"[5, 7, 7]" and found[DIRECT]["total.txt"] == b"5"
    assert folders["local"].exists(scratch("numbers", "a"))
    assert folders[DIRECT].exists(scratch("numbers", "a")) == bool(keeps)
    for kind in ("sums", "shares"):
        assert not (folders[DIRECT] / f".work/data/{kind}").sizes()


def test_many_rows_for_few_keys_go_by_files(tmp_path: Path) -> None:
    """As records of Flink they would be too long; what follows goes by key again."""
    folders = {e: Folder(str(tmp_path / e)) for e in ("local", DIRECT)}
    passes = {e: _passes(f, size=SMALL_BYTES + 1) for e, f in folders.items()}
    found = {e: _run_chain(f, passes[e], e) for e, f in folders.items()}
    assert found["local"] == found[DIRECT]  # commit records among them
    assert folders[DIRECT].exists(scratch("numbers", "a"))
    for kind in ("sums", "shares"):
        assert not (folders[DIRECT] / f".work/data/{kind}").sizes()
    stamp = folders[DIRECT].stamp(scratch("numbers", "a"))
    folders[DIRECT].remove("shards/low.json")
    assert _run_chain(folders[DIRECT], passes[DIRECT]) == found[DIRECT]
    assert folders[DIRECT].stamp(scratch("numbers", "a")) == stamp, "committed"


def test_many_keys_need_no_files(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    numbers, sums, *rest = _passes(folder)
    ranges = [replace(t, size=SMALL_BYTES + 1) for t in _tasks(key_ranges(FEWEST_KEYS))]
    shares = replace(rest[0], step=Shares(tuple(t.name for t in ranges)))
    found = _run_chain(folder, [numbers, replace(sums, tasks=ranges), shares, *rest[1:]])
    assert found["out/low.txt"] == b"[5, 7, 7]"
    assert not folder.exists(scratch("numbers", "a"))


def test_a_job_reads_what_an_earlier_one_wrote_from_its_files(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    first, *rest = _passes(folder)
    _run_chain(folder, [first])
    assert folder.exists(scratch("numbers", "a"))
    sums, *others = rest[:3]
    found = _run_chain(folder, [replace(sums, after=()), *others])
    assert found["out/low.txt"] == b"[5, 7, 7]"


def test_a_chain_that_is_done_is_passed_over(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    before = _run_chain(folder, _passes(folder))
    stamp = folder.stamp(".work/records/numbers/a.json")
    assert _run_chain(folder, _passes(folder)) == before
    assert folder.stamp(".work/records/numbers/a.json") == stamp


def test_an_interrupted_chain_leaves_what_is_committed(tmp_path: Path) -> None:
    """Rows are made again; of the last step only what is missing."""
    folder = Folder(str(tmp_path))
    before = _run_chain(folder, _passes(folder))
    folder.remove("shards/low.json")
    low, high = folder.stamp("out/low.txt"), folder.stamp("out/high.txt")
    assert _run_chain(folder, _passes(folder)) == before
    assert folder.stamp("out/high.txt") == high and folder.stamp("out/low.txt") != low


def test_other_input_is_compared_again(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    _run_chain(folder, _passes(folder))
    high = folder.stamp("out/high.txt")
    found = _run_chain(folder, _passes(folder, numbers=NUMBERS | {"b": [2]}))
    assert found["out/low.txt"] == b"[2, 5, 7, 7]" and found["total.txt"] == b"6"
    assert folder.stamp("out/high.txt") == high, "the same numbers: not written again"


def test_a_chain_that_began_with_files_goes_on_by_key(tmp_path: Path) -> None:
    """Committed files of an earlier step don't keep its rows from being sent."""
    folder = Folder(str(tmp_path))
    _run_chain(folder, _passes(folder)[:2], "local")
    assert _run_chain(folder, _passes(folder))["out/low.txt"] == b"[5, 7, 7]"


@dataclass(frozen=True)
class Damaged(Numbers):
    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        raise damaged(folder, "input", "torn")


def test_damage_ends_a_chain_before_anything_follows(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    first, *rest = _passes(folder)
    with pytest.raises(DamagedError, match="torn"):
        _run_chain(folder, [Pass(Damaged(), first.tasks), *rest])
    assert not folder.exists("shards") and not folder.exists("total.txt")


def test_the_cause_of_a_failed_job_is_found() -> None:
    text = """Pipeline x failed in state FAILED: java.lang.RuntimeException: Error from SDK harness:
Traceback (most recent call last):
  File "a.py", line 1
curation.errors.WorkerError: filter, shard a: ValueError: no such thing [while running 'P']
"""
    assert cause(text).startswith("filter, shard a: ValueError: no such thing")
    assert cause("gone") == "gone"
