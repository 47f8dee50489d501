"""What a run says of itself while it goes on."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from curation.readers.raw import RawFile
from curation.readers.read import read as read_file
from pipelines.cli import main
from pipelines.runners import local
from pipelines.runners.execute import Executor, RunnerOptions
from pipelines.runners.progress import Bars, Lines, Paced, Quiet, duration, open_display
from pipelines.runners.tasks import Task
from pipelines.storage.files import Folder
from tests.engine.toys import WriteName
from tests.readers.archives import default_settings, http_response, warc_record


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def paced(display: Paced, costs: dict[str, float], clock: Clock) -> Paced:
    display._clock = clock
    display.plan(costs)
    return display


def test_the_time_left_follows_from_work_done() -> None:
    clock = Clock()
    pace = paced(Paced(), {"extract": 3.0, "filter": 1.0, "mix": 1.0}, clock)
    assert pace.remaining() is None
    pace.stage("extract", "started")
    clock.now = 30.0
    pace.step("extract", "shards", 0.5, 1, 0, 0)
    assert pace.remaining() == pytest.approx(30 * 3.5 / 1.5)  # of 5 parts 1.5 are done
    clock.now = 60.0
    pace.stage("extract", "done", documents=100, kept=50)
    assert pace.remaining() == pytest.approx(60 * 100 / 300)  # half the documents go on
    pace.stage("filter", "started")
    clock.now = 70.0
    pace.stage("filter", "done", documents=50, kept=0)
    assert pace.remaining() == 0
    pace.plan({"mix": 1.0})  # another run with the same display
    pace.stage("mix", "started")
    clock.now = 80.0
    pace.step("mix", "shards", 0.5, 1, 0, 0)
    assert pace.remaining() == pytest.approx(10)


def test_stages_that_were_complete_say_nothing_of_the_time() -> None:
    clock = Clock()
    pace = paced(Paced(), {"extract": 3.0, "filter": 1.0}, clock)
    pace.stage("extract", "started")
    pace.stage("extract", "complete", documents=100, kept=100)
    pace.stage("filter", "started")
    clock.now = 10.0
    pace.step("filter", "shards", 0.25, 1, 0, 0)
    assert pace.remaining() == pytest.approx(30)
    pace.step("filter", "shards", 0.1, 1, 0, 0)  # another step of the stage begins
    assert pace.remaining() == pytest.approx(30)


def test_what_an_earlier_run_did_of_a_stage_says_nothing_of_the_time() -> None:
    clock = Clock()
    pace = paced(Paced(), {"extract": 3.0, "filter": 1.0}, clock)
    pace.stage("extract", "started")
    pace.resumed("extract", 5, 10)
    pace.compiling(9, 9)  # it begins once more
    assert pace.remaining() is None
    clock.now = 30.0
    pace.step("extract", "shards", 0.75, 1, 0, 0)
    left = pytest.approx(30 * (0.75 + 1) / 0.75)
    assert pace.remaining() == left
    pace.resumed("extract", 9, 10)  # of a later step
    assert pace.remaining() == left


def test_loading_says_nothing_of_the_time() -> None:
    clock = Clock()
    pace = paced(Paced(), {"extract": 1.0}, clock)
    pace.stage("extract", "started")
    for now, done in ((60.0, 0), (61.0, 1)):
        clock.now = now
        pace.step("extract", "shards", done, 50, 0, 0)
    assert pace.remaining() is None
    clock.now = 66.0
    pace.step("extract", "shards", 6, 50, 0, 0)
    assert pace.remaining() == pytest.approx(44)
    pace.step("extract", "more", 0, 50, 0, 0)
    assert pace.remaining() == pytest.approx(44)


def test_seconds_for_people() -> None:
    assert [duration(s) for s in (4.4, 89, 91, 7100, 7500)] == [
        "4 s", "89 s", "2 min", "118 min", "2 h 5 min",
    ]  # fmt: skip


def test_without_a_terminal_no_half_minute_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines(pause=0.2) as display:
        display.plan({"extract": 1.0, "filter": 1.0})
        display.stage("extract", "started")
        assert "extract: under way" in capsys.readouterr().err  # at once
        time.sleep(0.5)
        assert "extract: under way" in capsys.readouterr().err
        display.step("extract", "shards", 30, 200, 30, 20)
        time.sleep(0.5)
        assert "extract: 30 of 200" in capsys.readouterr().err
        display.stage("extract", "done", documents=200, kept=150)
        assert capsys.readouterr().err == "extract: done: documents 200, kept 150\n"
        time.sleep(0.5)
        assert capsys.readouterr().err == ""  # between stages there is nothing to tell
    display.stage("filter", "started")


def test_the_last_stage_leaves_nothing_to_wait_for(capsys: pytest.CaptureFixture[str]) -> None:
    display = Lines()
    paced(display, {"filter": 1.0, "mix": 1.0}, clock := Clock())
    for stage, left in (("filter", "; about 89 s left"), ("mix", "")):
        display.stage(stage, "started")
        clock.now += 89.0
        display.stage(stage, "done", documents=9, kept=9)
        assert capsys.readouterr().err.endswith(f"{stage}: done: documents 9, kept 9{left}\n")


def test_a_line_comes_before_the_half_minute_is_over() -> None:
    """The display looks every 3 seconds, so that a line due at 28 can't wait for 31."""
    display, gaps = Lines(), []
    display.stage("extract", "started")
    for first in (0.1, 1.0, 2.9):
        looks = (display._told + first + 3 * n for n in range(99))
        gaps.append(next(now for now in looks if display._is_due(now)) - display._told)
    assert 24 < min(gaps) <= max(gaps) <= 30


def test_a_kernel_that_takes_long_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines(pause=0.6) as display:
        display.stage("extract", "started")
        display.compiling(0, 9)
        display.compiling(1, 9)
        capsys.readouterr()
        time.sleep(0.5)  # longer than a third of the pause, in which no kernel is done
        assert "compiling kernels 1/9 (once per machine), 0 s so far" in capsys.readouterr().err
        display.compiling(9, 9)
        capsys.readouterr()
        time.sleep(0.4)
        assert capsys.readouterr().err == ""


def test_the_display_without_a_terminal() -> None:
    assert isinstance(open_display("auto"), Lines)


def test_a_finished_stage_keeps_its_rate_and_a_resumed_one_has_none() -> None:
    with Bars() as display:
        display.stage("extract", "started")
        display.step("extract", "shards", 100, 100, 100, 90)
        display.stage("extract", "done", documents=100, kept=90)
        display.stage("filter", "started")
        display.stage("filter", "complete", documents=90, kept=80)
        column = display._progress.columns[4]
        done, resumed = display._progress.tasks
        first = str(column.render(done))
        time.sleep(0.3)
        assert str(column.render(done)) == first and "/s" in first
        assert "/s" not in str(column.render(resumed)) and "90 docs" in str(column.render(resumed))


def test_a_stage_that_an_earlier_run_began_ends_without_a_rate() -> None:
    """The documents are those of both runs, the time is this one's."""
    with Bars() as display:
        display.stage("extract", "started")
        display.resumed("extract", 60, 100)
        display.step("extract", "shards", 80, 100, 20, 20)
        column, (task,) = display._progress.columns[4], display._progress.tasks
        assert "/s" in str(column.render(task))  # documents of this run
        display.stage("extract", "done", documents=100, kept=90)
        assert "/s" not in str(column.render(task)) and "100 docs" in str(column.render(task))


def test_the_bar_of_a_few_files_moves_within_them() -> None:
    with Bars() as display:
        paced(display, {"extract": 1.0}, clock := Clock())
        display.stage("extract", "started")
        clock.now = 20.0
        display.step("extract", "shards", 0.5, 2, 100, 90)
        (task,) = display._progress.tasks
        assert task.percentage == 25 and task.fields["step"] == "60 s left"
        display.step("extract", "shards", 2, 2, 400, 360)  # its manifest is still to be written
        assert task.percentage == 99 and not task.finished
        display.stage("extract", "done", documents=400, kept=360)
        assert task.finished


def test_the_rate_leaves_out_what_compiling_took() -> None:
    with Bars() as display:
        display._progress.get_time = clock = Clock()
        display.stage("extract", "started")
        display.compiling(0, 2)
        clock.now = 90.0
        display.compiling(2, 2)
        clock.now = 100.0
        display.step("extract", "shards", 0.5, 2, 500, 400)
        assert " 50/s" in str(display._progress.columns[4].render(display._progress.tasks[0]))


class Steps(Quiet):
    """Keeps how much of a step was done."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float] = []

    def step(self, stage: str, step: str, done: float, total: int, read: int, kept: int) -> None:
        self.seen.append(done / total)


class Pool:
    """Two tasks of 100 bytes, of which this much is read when looked at, and so many are done."""

    looks = ((0, 0), (60, 0), (120, 0), (150, 1), (500, 0), (500, 1))

    def run(self, work: object) -> Iterator[int]:
        for read, finished in self.looks:
            self.read = read
            yield finished

    def counts(self) -> tuple[int, int, int]:
        return 9, 9, self.read


def test_tasks_under_way_count_by_what_they_have_read(tmp_path: Path) -> None:
    executor, display = Executor(RunnerOptions(workers=1)), Steps()
    executor.display = display
    executor.__dict__["_pool"] = Pool()
    tasks = [Task(name, (), 100) for name in "ab"]
    executor.run("extract", WriteName(), Folder(str(tmp_path)), tasks)
    assert display.seen == [0, 0.3, 0.6, 0.75, 1, 1]


def test_beginnings_of_files_count_once(tmp_path: Path) -> None:
    """Of many small ones, telling their formats took as much as reading them."""
    packed = {"a.html": bytes, "b.txt.gz": gzip.compress}
    for size in (1000, 10_000, 100_000):
        for name, pack in packed.items():
            (tmp_path / name).write_bytes(pack(random.Random(size).randbytes(size).hex().encode()))
            before = RawFile.fetched
            assert len(list(read_file(str(tmp_path / name), default_settings()))) == 1
            assert RawFile.fetched - before == (tmp_path / name).stat().st_size


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a.jsonl", "a.jsonl.gz"])
def test_a_source_says_how_far_it_has_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a file is packed in, and if its columns were looked up before."""
    stage = "extract" if ".warc" in name else "read-tables"
    texts = [f"<p>{random.Random(i).randbytes(3000).hex()}</p>" for i in range(1000)]
    if ".warc" in name:
        parts = [
            warc_record(i, http_response(text.encode()), url=f"http://a.example/{i}")
            for i, text in enumerate(texts)
        ]
    else:
        parts = [json.dumps({"text": text}).encode() + b"\n" for text in texts]
    pack = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(pack(b"".join(parts)))
    seen: list[tuple[int, ...]] = []
    monkeypatch.setattr(local, "_add", lambda counters, slot, *counts: seen.append(counts))
    command = ["run", "llama3", "--input", str(tmp_path / name), "--stages", stage, "--quiet"]
    assert main([*command, "--output", str(tmp_path / "out"), "--workers", "0"]) == 0
    size = (tmp_path / name).stat().st_size
    shares = list(accumulate(part / size for _, _, part in seen))
    assert sum(read for read, _, _ in seen) == len(texts)
    assert len(shares) > 1 and 0 < shares[0] < 0.9 and 0.95 < shares[-1] < 1.2
