"""Tasks, commit records and runners."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import threading
from pathlib import Path

import pytest
from apache_beam.runners.portability.fn_api_runner import worker_handlers

from curation.errors import ConfigError, StoreError, WorkerError
from pipelines.process import Stopped
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.local import _end_if_lost, _innermost, bundles
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.files import Folder, LocalFolder
from tests.engine.toys import Die, Fail, WriteName

TASKS = [Task(n, (("input", n),), size=1) for n in "abcd"]


def folder_in(tmp_path: Path) -> Folder:
    tmp_path.joinpath("stage").mkdir()
    return Folder(str(tmp_path / "stage"))


def runs(folder: Folder) -> list[str]:
    log = folder.read_bytes(".log.txt") if folder.exists(".log.txt") else b""
    return sorted(log.decode().split())


@pytest.mark.parametrize("workers", [0, 2])
def test_every_task_runs_once_and_is_not_redone(tmp_path: Path, workers: int) -> None:
    folder = folder_in(tmp_path)
    with Executor(parse_beam_args([], workers)) as executor:
        assert executor.run("stage", WriteName(), folder, TASKS) == 4
        assert runs(folder) == ["a", "b", "c", "d"]
        assert executor.run("stage", WriteName(), folder, TASKS) == 0
    assert runs(folder) == ["a", "b", "c", "d"]


def test_what_changed_is_redone_and_nothing_else(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    with Executor(parse_beam_args([], 0)) as executor:
        executor.run("stage", WriteName(), folder, TASKS)
        changed = [*TASKS[:3], Task("d", (("input", "new"),))]
        assert executor.run("stage", WriteName(), folder, changed) == 1
        assert runs(folder) == ["a", "b", "c", "d", "d"]
        Path(folder.path("documents/b.txt")).write_bytes(b"cut short by a full disk")
        assert executor.run("stage", WriteName(), folder, changed) == 1
        assert executor.run("stage", WriteName(settings_key="2"), folder, changed) == 4


def test_outputs_of_tasks_that_are_gone_go_too(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    with Executor(parse_beam_args([], 0)) as executor:
        executor.run("stage", WriteName(), folder, TASKS)
        executor.run("stage", WriteName(), folder, TASKS[:2])
    assert sorted((folder / "documents").sizes()) == ["a.txt", "b.txt"]
    assert sorted((folder / "shards").sizes()) == ["a.json", "b.json"]


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_names_step_shard_and_reason(tmp_path: Path, workers: int) -> None:
    with (
        Executor(parse_beam_args([], workers)) as executor,
        pytest.raises(WorkerError, match=r"stage, shard a: ValueError: the reason"),
    ):
        executor.run("stage", Fail(), folder_in(tmp_path), TASKS[:1])


def test_a_dead_worker_ends_the_run(tmp_path: Path) -> None:
    with (
        Executor(parse_beam_args([], 2)) as executor,
        pytest.raises(WorkerError, match="a worker process died"),
    ):
        executor.run("stage", Die(), folder_in(tmp_path), TASKS)


def test_bundles_hold_every_task_once() -> None:
    tasks = [Task(str(i), (), size=i * 3_000_000) for i in range(50)]
    for workers in (1, 2, 4):
        parts = bundles(tasks, workers)
        assert sorted(i for p in parts for i in p) == list(range(len(tasks)))
        sizes = [sum(tasks[i].size for i in p) for p in parts]
        assert max(sizes) - min(sizes) <= max(t.size for t in tasks)


def test_beam_arguments() -> None:
    assert parse_beam_args([], 3).workers == 3
    direct = parse_beam_args(["--runner=DirectRunner", "--direct_num_workers=5"], None)
    assert (direct.is_direct, direct.workers) == (True, 1)
    assert direct.beam_args == ("--direct_num_workers=5",)
    flink = parse_beam_args(["--runner", "FlinkRunner", "--flink_master=h:1"], None)
    assert (flink.is_local, flink.beam_args) == (False, ("--flink_master=h:1",))
    with pytest.raises(ConfigError, match="--flink_master"):
        parse_beam_args(["--flink_master=h:1"], None)
    with pytest.raises(ConfigError, match="--direct_num_workers=5 --direct_running_mode=multi_pro"):
        parse_beam_args(["--runner=DirectRunner"], 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--runner=FlinkRuner"],
            r"Unexpected .*: FlinkRuner. Valid values are local, slurm, ",
        ),
        (["--runner=DirectRunner", "--nosuch=1"], "DirectRunner: unrecognized arguments: --nosuch"),
        (["--runner=DirectRunner", "--direct_num_workers=x"], "invalid int value: 'x'"),
        (["--runner=DirectRunner", "--direct_running_mode=x"], "invalid choice: 'x'"),
        (["--runner=DirectRunner", "--direct_num_workers=-1"], "--direct_num_workers must be 0 or"),
        (["--runner=PrismRunner", "--prism_location=/no/prism"], "PrismRunner: "),
        (["--runner=FlinkRunner"], "FlinkRunner: its job server needs Java"),
        (["--direct_num_workers=3"], "--direct_num_workers=3: not an option of the local pool"),
        (["--runner="], "expected `--runner=NAME`"),
    ],
)
def test_a_runner_that_cannot_be_used_is_refused_first(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/java")
    with pytest.raises(ConfigError, match=message) as refused:
        parse_beam_args(arguments, None)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url, kind", [("a/b", LocalFolder), ("file:///a", LocalFolder), ("memory://a", Folder)]
)
def test_a_folder_is_of_the_class_of_its_place(url: str, kind: type[Folder]) -> None:
    folder = Folder(url)
    assert type(folder) is type(folder / "c") is type(pickle.loads(pickle.dumps(folder))) is kind
    assert pickle.loads(pickle.dumps(folder)) == folder == Folder(url, sync=False)
    assert folder.is_local == (kind is LocalFolder)


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    with pytest.raises(RuntimeError), folder.create("x.bin") as sink:
        sink.write(b"half")
        raise RuntimeError
    assert not folder.exists("x.bin")
    assert (folder / ".work").sizes() == {}
    record = folder.write_bytes("x.bin", b"whole")
    assert folder.size("x.bin") == record.bytes == 5


def test_files_and_their_folders_are_on_the_disk_before_they_have_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, move = os.fsync, os.replace

    def synced(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        done.append("file" if path.endswith(".part") else os.path.relpath(path, tmp_path))
        sync(handle)

    def moved(source: str, target: str) -> None:
        done.append("rename")
        move(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", moved)
    (Folder(str(tmp_path)) / "a").write_bytes("b/x.bin", b"1")
    assert done == [".", "a", "file", "rename", "a/b"]
    done.clear()
    (Folder(str(tmp_path), sync=False) / "a").write_bytes("c/x.bin", b"1")
    assert done == ["rename"]


def test_a_step_that_is_told_to_end_says_nothing_itself(tmp_path: Path) -> None:
    class End(WriteName):
        def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
            raise Stopped(signal.SIGTERM)

    with Executor(parse_beam_args([], 0)) as executor, pytest.raises(Stopped):
        executor.run("stage", End(), folder_in(tmp_path), TASKS)


def test_an_error_outside_a_step_is_told_as_it_is() -> None:
    try:
        raise StoreError("out/a: No space left on device") from OSError(28, "No space left")
    except StoreError as error:
        assert _innermost(error) == "out/a: No space left on device"


def test_an_error_of_a_process_of_the_direct_runner_is_told_in_a_line() -> None:
    line = "curation.errors.WorkerError: filter, shard a: gone [while running 'P']"
    assert _innermost(RuntimeError(f"Traceback\n  File\n{line}\n")) == "filter, shard a: gone"
    assert _innermost(RuntimeError("one\ntwo")) == "RuntimeError: one"


def test_a_lost_process_of_the_direct_runner_ends_its_owner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The owner would wait forever; its death is found, and the work is done again."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(threading, "excepthook", _end_if_lost)
    for name in ("another", "run_worker"):
        lost = threading.Thread(target=lambda: 1 / 0, name=name)
        lost.start()
        lost.join()
    assert codes == [1] and "ZeroDivisionError" in capsys.readouterr().err
    assert "name='run_worker', target=self.worker.run" in inspect.getsource(worker_handlers)
