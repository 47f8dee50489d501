"""Runs on Slurm, played by processes here; `tests/deploy/test_slurm.py` has a real one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing.context import BaseContext
from pathlib import Path

import psutil
import pytest

from curation.errors import ConfigError, WorkerError
from pipelines.cli import main
from pipelines.engine.transform import shard_tasks
from pipelines.runners import slurm
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.progress import Quiet
from pipelines.runners.slurm import SlurmOptions, parse
from pipelines.runners.tasks import Step, Task
from pipelines.storage.files import Folder
from tests import fake_slurm
from tests.conftest import ROOT, curate
from tests.engine import test_poison as poison
from tests.engine.test_execute import TASKS, folder_in, runs
from tests.engine.toys import Die, Fail, KillJob, WriteName
from tests.faulty_store import environment, faulty_store

RUNNER = ["--runner=slurm", "--slurm_partition=main", "--slurm_jobs=1", "--slurm_python=worker"]
#: A second worker takes seconds to start.
TWO = "--slurm_jobs=2"


class Site:
    """A cluster, by the folder with what there is of its jobs."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def states(self) -> list[str]:
        """State of each element that there was."""
        return [path.read_text().split("|")[0] for path in sorted(self.place.glob("[0-9]*_*"))]

    def processes(self) -> list[psutil.Process]:
        """What runs on the nodes."""
        groups = {int(line) for line in (self.place / "groups").read_text().split()}
        return [each for each in psutil.process_iter() if is_of(groups, each)]


def is_of(groups: set[int], process: psutil.Process) -> bool:
    """Whether a process is of one of these groups, and not dead already."""
    with contextlib.suppress(ProcessLookupError, psutil.Error):
        return os.getpgid(process.pid) in groups and process.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork_server: BaseContext
) -> Iterator[Site]:
    place, tools = tmp_path / "cluster", tmp_path / "bin"
    for folder in (place, tools):
        folder.mkdir()
    for tool in ("sbatch", "squeue", "scancel", "scontrol"):
        fake = f"exec '{sys.executable}' -IS '{ROOT}/tests/fake_slurm.py' {tool} \"$@\""
        (tools / tool).write_text(f"#!/bin/sh\n{fake}\n")
    (tools / "worker").write_text(fake_slurm.WORKER)
    for tool in tools.iterdir():
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(place))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name, seconds in {"_LOOK": 0.2, "_SLOW": 0.2}.items():
        monkeypatch.setattr(slurm, name, seconds)
    control = fork_server.Process(target=fake_slurm.control, args=(str(place),))  # type: ignore[attr-defined]
    control.start()
    yield Site(place)
    (place / "over").touch()
    control.join()


def run(tmp_path: Path, step: Step, *options: str, tasks: Sequence[Task] = TASKS) -> int:
    """Run a step's tasks in a stage of a run folder."""
    folder = Folder(str(tmp_path / "stage"))
    chosen = parse_beam_args([*RUNNER, *options], None)
    with Executor(chosen, output=Folder(str(tmp_path))) as executor:
        return executor.run("stage", step, folder, tasks)


def left_over(tmp_path: Path) -> list[str]:
    """What the runner has left in a run folder but logs."""
    return [p.name for p in (tmp_path / ".slurm").iterdir() if p.suffix != ".log"]


def test_every_task_runs_once_and_is_not_redone(tmp_path: Path, site: Site) -> None:
    folder = folder_in(tmp_path)
    options = TWO, f"--slurm_python={sys.executable}"  # here as on a real cluster
    assert run(tmp_path, WriteName(), *options) == 4
    assert runs(folder) == ["a", "b", "c", "d"]
    assert run(tmp_path, WriteName(), *options) == 0
    assert site.states() == ["COMPLETED"] * 2
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("requeues", [True, False])
def test_what_a_lost_worker_has_left_is_done_by_others(
    tmp_path: Path, site: Site, requeues: bool
) -> None:
    folder = folder_in(tmp_path)
    if requeues:
        (site.place / "requeue").touch()
    assert run(tmp_path, KillJob(2)) == 4
    assert runs(folder).count("b") == 3
    assert {name: runs(folder).count(name) for name in "acd"} == dict.fromkeys("acd", 1)
    assert site.states() == ["COMPLETED"] if requeues else ["FAILED", "FAILED", "COMPLETED"]


def test_a_task_that_ends_every_job_is_named(tmp_path: Path, site: Site) -> None:
    folder_in(tmp_path)
    with pytest.raises(WorkerError, match=r"ending \(FAILED\) during stage, .* b, .*mem_per_cpu"):
        run(tmp_path, KillJob(9))
    assert left_over(tmp_path) == []


def test_a_deadly_document_costs_itself_alone(tmp_path: Path, site: Site) -> None:
    texts = ["one", "kill in toy", "two", "abort in toy"]
    step, shards = poison.toy(tmp_path, {"a": texts, "b": ["three"]})
    folder = Folder(str(tmp_path / "out"))
    with Executor(parse_beam_args(RUNNER, None), output=Folder(str(tmp_path))) as executor:
        assert executor.run("toy", step, folder, shard_tasks(shards)) == 2
    removed = poison.read(tmp_path / "out", "removed")
    assert {r["text"]: r["reason"] for r in removed.values()} == {
        "kill in toy": "memory.toy",
        "abort in toy": "crash.toy",
    }
    assert {r["text"] for r in poison.read(tmp_path / "out", "documents").values()} == {
        *("one", "two", "three")
    }
    assert site.states() == ["COMPLETED"]


def test_an_error_of_a_step_is_told_as_on_the_local_pool(tmp_path: Path, site: Site) -> None:
    folder_in(tmp_path)
    with pytest.raises(WorkerError, match=r"^on .*: stage, shard [ab]: ValueError: the reason$"):
        run(tmp_path, Fail(), TWO, tasks=TASKS[:2])
    assert not {"PENDING", "RUNNING"} & {*site.states()}


def test_jobs_that_cannot_start_end_the_run_with_their_last_words(
    tmp_path: Path, site: Site
) -> None:
    folder_in(tmp_path)
    setup = "--slurm_setup=echo no such module >&2; exit 3"
    with pytest.raises(WorkerError, match=r"finished no task .*FAILED.*no such module"):
        run(tmp_path, WriteName(), setup)
    assert site.states() == ["FAILED"] * 3


def test_a_time_limit_is_renewed_as_long_as_tasks_get_done(tmp_path: Path, site: Site) -> None:
    folder_in(tmp_path)
    (site.place / "late").touch()
    assert run(tmp_path, KillJob(1)) == 4
    assert site.states() == ["TIMEOUT", "COMPLETED"]
    with pytest.raises(WorkerError, match=r"\(TIMEOUT\); give them longer with --slurm_time"):
        run(tmp_path, KillJob(9, "2"), tasks=TASKS[1:2])


def test_an_array_is_cut_and_only_so_many_work_at_once(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ARRAY", "2")
    folder = folder_in(tmp_path)
    options = "--slurm_jobs=4", "--slurm_array_parallelism=2"
    assert run(tmp_path, WriteName(), *options) == 4
    assert runs(folder) == ["a", "b", "c", "d"]
    for jobs, most, limit in [(2500, 1001, 0), (2500, 1001, 2), (7, 3, 4), (1, 1001, 1)]:
        arrays = SlurmOptions(array_parallelism=limit).arrays(jobs, most)
        sizes = [1 + int(a.partition("%")[0].removeprefix("0-")) for a in arrays]
        limits = [int(a.partition("%")[2] or 0) for a in arrays]
        assert max(sizes) <= most and sum(limits) == limit
        assert sum(sizes) == jobs or len(sizes) == limit


def test_a_run_goes_on_while_the_controller_is_away(tmp_path: Path, site: Site) -> None:
    folder_in(tmp_path)
    folder, options = Folder(str(tmp_path / "stage")), parse_beam_args(RUNNER, None)
    with Executor(options, output=Folder(str(tmp_path))) as executor:
        executor.run("stage", WriteName(), folder, TASKS)
        (site.place / "away").touch()
        executor.run("stage", WriteName("2"), folder, TASKS)
        time.sleep(0.5)
        (site.place / "away").unlink()
        assert executor.run("stage", WriteName("3"), folder, TASKS) == 4


class Said(Quiet):
    """Keeps what is said; the first time, lets jobs start."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site, self.words = site, []

    def message(self, text: str) -> None:
        self.words.append(text)
        (self.site.place / "full").unlink(missing_ok=True)


def test_a_run_that_waits_for_a_place_in_the_queue_says_so(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "_PATIENCE", 2.0)
    folder, said = folder_in(tmp_path), Said(site)
    (site.place / "full").touch()
    with Executor(parse_beam_args(RUNNER, None), said, Folder(str(tmp_path))) as executor:
        assert executor.run("stage", WriteName(), folder, TASKS) == 4
    assert said.words[0] == "slurm: no job is at work yet: PENDING (Resources)"


def test_a_run_ends_that_has_no_jobs_and_hears_of_none(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_in(tmp_path)
    monkeypatch.setattr(slurm, "_SILENCE", 2.0)
    (site.place / "full").touch()
    squeue = tmp_path / "bin" / "squeue"
    squeue.write_text("#!/bin/sh\necho 'squeue: error: timed out' >&2; exit 1\n")
    with pytest.raises(WorkerError, match="squeue has not answered for half an hour"):
        run(tmp_path, WriteName())


def test_a_run_in_an_object_store_has_its_orders_where_its_logs_are(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto", reason="the S3 server of the tests (moto) is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    with faulty_store({}) as store:
        for name, value in environment(store).items():
            monkeypatch.setenv(name, value)
        output, logs = Folder("s3://bucket/out"), tmp_path / "logs"
        output.fs.mkdir("bucket")
        options = parse_beam_args([*RUNNER, f"--slurm_log_dir={logs}"], None)
        with Executor(options, output=output) as executor:
            assert executor.run("stage", Die(), output / "stage", [*TASKS[:1], *TASKS[2:]]) == 3
        assert sorted((output / "stage" / "shards").sizes()) == ["a.json", "c.json", "d.json"]
        assert not output.exists(slurm.NOTE) and {p.suffix for p in logs.iterdir()} == {".log"}


DRIVER = """
import sys
from pipelines.process import stoppable
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.tasks import Task
from pipelines.storage.files import Folder
from tests.engine.toys import Sleep
place, *options = sys.argv[1:]
tasks = [Task(name, (("input", name),), size=1) for name in "abcd"]
with stoppable(), Executor(parse_beam_args(options, None), output=Folder(place)) as executor:
    executor.run("stage", Sleep(60.0), Folder(place) / "stage", tasks)
"""


def driver(tmp_path: Path, site: Site, *options: str) -> subprocess.Popen[str]:
    """Start a run in a process of its own; return when its jobs are at work."""
    command = [sys.executable, "-c", DRIVER, str(tmp_path), *RUNNER, *options]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list((tmp_path / ".slurm").glob("*/workers/*/2")):  # an order behind the kernels
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_a_signal_leaves_no_job(tmp_path: Path, site: Site) -> None:
    folder_in(tmp_path)
    process = driver(tmp_path, site, TWO)
    assert site.processes()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert not {"PENDING", "RUNNING"} & {*site.states()}
    deadline = time.monotonic() + 10
    while site.processes():  # what was killed is on its way
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert left_over(tmp_path) == []


def test_a_run_is_cancelled_from_elsewhere(
    tmp_path: Path, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_in(tmp_path)
    process = driver(tmp_path, site)
    assert main(["cancel", "--run", str(tmp_path)]) == 0
    _, told = process.communicate(timeout=30)
    assert "cancelled by `curate cancel`" in told
    assert not {"PENDING", "RUNNING"} & {*site.states()}
    assert main(["cancel", "--run", str(tmp_path)]) == 2
    assert "no run is at work there" in capsys.readouterr().err


def changed(what: str) -> str:
    """Option of workers that are less patient."""
    return f"--slurm_setup=export FAKE_CHANGE={what}"


def test_a_worker_without_work_ends_and_another_comes_when_there_is_some(
    tmp_path: Path, site: Site
) -> None:
    folder = folder_in(tmp_path)
    options = [*RUNNER, changed("_IDLE=1")]
    with Executor(parse_beam_args(options, None), output=Folder(str(tmp_path))) as executor:
        assert executor.run("stage", WriteName(), folder, TASKS) == 4
        deadline = time.monotonic() + 60
        while site.states() != ["COMPLETED"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert executor.run("stage", WriteName("2"), folder, TASKS) == 4
    assert site.states() == ["COMPLETED"] * 2


def test_workers_end_after_their_driver_and_the_same_command_goes_on(
    tmp_path: Path, site: Site
) -> None:
    folder = folder_in(tmp_path)
    process = driver(tmp_path, site, changed("_PATIENCE=2"))
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while "RUNNING" in site.states():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert site.states() == ["COMPLETED"]
    second = driver(tmp_path, site)
    second.kill()
    second.wait()
    assert run(tmp_path, WriteName()) == 4
    assert runs(folder) == ["a", "b", "c", "d"]
    assert "CANCELLED" in site.states() and left_over(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--slurm_partition=nosuch"], "sbatch: invalid partition specified: nosuch"),
        (["--slurm_partion=main"], "--slurm_partion: not an .*; did you mean '--slurm_partition'?"),
        (["--slurm_jobs=0"], "--slurm_jobs=0: expected a number above 0"),
        (["--slurm_jobs", "x"], "--slurm_jobs: expected a number above 0"),
        (["--slurm_qos="], "--slurm_qos=: expected a value"),
        (["--flink_master=x"], "--flink_master: not an option of Slurm's runner"),
    ],
)
def test_what_slurm_would_refuse_is_refused_first(
    tmp_path: Path, site: Site, options: list[str], message: str
) -> None:
    done = curate("run", "sample", "--output", tmp_path / "out", "--", "--runner=slurm", *options)
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    (line,) = done.stderr.splitlines()
    with pytest.raises(ConfigError, match=message):
        raise ConfigError(line)


def test_without_slurm_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/no")
    with pytest.raises(ConfigError, match="no `scontrol` here; start the run on a login node"):
        parse([])
    with pytest.raises(ConfigError, match="--workers 2: for the local pool"):
        parse_beam_args(["--runner=slurm"], 2)


def test_options_reach_the_script_as_they_are(tmp_path: Path, site: Site) -> None:
    words = "--slurm_account=a --slurm_qos=q --slurm_time=1-0 --slurm_cpus_per_task=3 "
    words += "--slurm_mem_per_cpu=2G --slurm_constraint=ib&fast --slurm_log_dir=logs"
    more = ["--slurm_sbatch_args=--comment=a b", "--slurm_sbatch_args", "--exclude=n7"]
    more += ["--slurm_setup=module load x", "--slurm_setup=export A=1", "--slurm_python=py"]
    options = parse([*words.split(), *more])
    assert options.processes == 24
    assert options.base(Folder("s3://bucket/out")) == options.base(Folder("out")) != Path("logs")
    (script,) = options.scripts(Path("/a 10%/curate"))
    for line in [
        *("account=a", "qos=q", "time=1-0", "cpus-per-task=3", "mem-per-cpu=2G", "array=0-7"),
        *("exclude=n7", "nodes=1", "requeue"),
    ]:
        assert f"#SBATCH --{line}\n" in script
    assert "'--constraint=ib&fast'" in script and "'--comment=a b'" in script
    assert "'--output=/a 10%%/curate_%A_%a.log'" in script
    assert script.endswith(
        "set -e\nmodule load x\nexport A=1\nexec py -m pipelines.runners.slurm '/a 10%/curate'\n"
    )


def test_a_dry_run_shows_script_and_size(tmp_path: Path, site: Site) -> None:
    out = tmp_path / "out"
    done = curate("run", "sample", "--output", out, "--dry-run", "--", *RUNNER, TWO)
    assert done.returncode == 0 and not out.exists() and not site.states()
    assert "#SBATCH --array=0-1\n" in done.stdout and "Slurm: 2 elements, " in done.stdout
    done = curate("run", "sample", "--output", out, "--dry-run", "--json", "--", *RUNNER, TWO)
    found = json.loads(done.stdout)
    assert found["elements"] == 2 and found["CPU hours"] >= 0 and found["bytes"] > 0
