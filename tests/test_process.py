"""How commands end that are told to, what they leave behind, and what they say of limits."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from pipelines.process import owner, temporary_folder
from pipelines.runners.progress import open_display
from pipelines.storage.files import Folder
from pipelines.terminal import Warnings
from tests.conftest import ROOT

RUN = [sys.executable, "-m", "pipelines.cli", "run", "llama3", "--quiet"]
RUN += ["--stages", "extract", "--input", "data_samples/*.warc.gz", "--workers"]


def start(
    output: Path, temporary: Path, workers: int = 1, shielded: bool = False
) -> subprocess.Popen[str]:
    """Start a run; `shielded` as by `nohup`, and not even where the tests are."""
    temporary.mkdir(exist_ok=True)
    of_hangup = signal.SIG_IGN if shielded else signal.SIG_DFL
    return subprocess.Popen(
        [*RUN, str(workers), "--output", str(output)],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, of_hangup),
    )


def wait_for_workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = psutil.Process(process.pid).children(recursive=True)
        if any("spawn_main" in " ".join(child.cmdline()) for child in found):
            return found
        time.sleep(0.02)
    raise AssertionError("no workers")


@pytest.mark.parametrize(
    ("signals", "code", "word", "pause"),
    [
        ([signal.SIGINT], 130, "interrupted", 1.0),
        ([signal.SIGHUP], 129, "terminated, as its terminal was closed", 0.0),
        ([signal.SIGTERM], 143, "terminated", 1.0),
        ([signal.SIGTERM, signal.SIGINT, signal.SIGINT], 143, "terminated", 0.0),
    ],
)
def test_a_run_ends_with_one_line(
    tmp_path: Path, signals: list[int], code: int, word: str, pause: float
) -> None:
    """`pause` is how long its workers have been there: they start up, or work."""
    process = start(tmp_path / "out", tmp_path / "tmp", workers=2)
    children = wait_for_workers(process)
    time.sleep(pause)
    children += psutil.Process(process.pid).children(recursive=True)
    for number in signals:
        # A terminal sends its signals to all, a supervisor SIGTERM to the one that it started.
        (os.kill if number == signal.SIGTERM else os.killpg)(process.pid, number)
        time.sleep(0.05)
    said, told = process.communicate(timeout=30)
    assert (process.returncode, said) == (code, "")
    assert told == f"curate: error: {word}; run the same command again to resume\n"
    gone, alive = psutil.wait_procs(children, 10)
    assert not alive and gone is not None
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_signal_waits_for_the_named_tuples_of_kernels() -> None:
    """An exception where numba makes one, in the answer of a kernel, would crash the process."""
    code = (
        "import collections, signal, time\n"
        "from pipelines.process import stoppable\n"
        "Frame = collections.namedtuple('Frame', 'f_code')\n"
        "with stoppable():\n"
        "    made = Frame(Frame.__new__.__code__)\n"
        "    signal.getsignal(signal.SIGTERM)(signal.SIGTERM, made)\n"
        "    print('made', flush=True)\n"
        "    time.sleep(20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (143, "made\n")


def test_a_closed_pipe_is_no_error() -> None:
    command = f"set -o pipefail; {sys.executable} -m pipelines.cli recipes | true"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("streams", ["2>&1 | true", "2>/dev/full", "<&- >&- 2>&-"])
def test_a_run_goes_on_when_nobody_takes_its_messages(tmp_path: Path, streams: str) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "one"}\n')
    command = (
        f"{sys.executable} -m pipelines.cli read-tables --input t.jsonl --output out {streams}"
    )
    script = f"set -o pipefail; PYTHONPATH={ROOT} {command}"
    assert subprocess.run(["bash", "-c", script], cwd=tmp_path).returncode == 0
    assert (tmp_path / "out" / "read-tables" / "manifest.json").exists()


def test_nohup_shields_a_run(tmp_path: Path) -> None:
    process = start(tmp_path / "out", tmp_path / "tmp", shielded=True)
    wait_for_workers(process)
    os.killpg(process.pid, signal.SIGHUP)
    said, told = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, ""), told
    assert (tmp_path / "out" / "extract" / "manifest.json").exists()


@pytest.mark.parametrize("signals", [1, 2])
def test_nobody_waits_for_threads_and_a_second_signal_not_for_the_rest(signals: int) -> None:
    code = (
        "import sys, time, threading\n"
        "from pipelines import cli\n"
        "from pipelines.commands import reports\n"
        "def wait(*_):\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    print('here', flush=True)\n"
        "    try:\n"
        "        time.sleep(60)\n"
        f"    finally:\n        time.sleep({60 * (signals - 1)})\n"
        "reports.run = wait\n"
        "sys.argv = ['curate', 'report', '--run', 'x']\n"
        "sys.exit(cli.main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.3)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    if signals == 2:
        time.sleep(0.5)
        assert process.poll() is None  # held up
        process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130 and time.monotonic() - started < 30
    assert told.decode() == "curate: error: interrupted; run the same command again to resume\n"


def test_the_next_run_clears_away_what_a_killed_one_left(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    process = start(tmp_path / "out", temporary)
    wait_for_workers(process)
    process.kill()
    process.communicate()
    (left,) = temporary.iterdir()
    assert left.name.startswith("curate-run-")
    alive, strange, link = (temporary / f"curate-run-{n}" for n in ("alive", "strange", "link"))
    elsewhere = tmp_path / "elsewhere"
    for folder in (alive, strange, elsewhere):
        folder.mkdir()
        (folder / "precious").touch()
    (elsewhere / "owner").touch()
    link.symlink_to(elsewhere)
    with open(alive / "owner", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.cli", "recipes"],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(temporary)},
            capture_output=True,
        )
    assert done.returncode == 0
    # One without an owner's file may be in the making.
    assert sorted(temporary.iterdir()) == sorted([alive, strange, link])
    assert (elsewhere / "precious").exists() and (alive / "precious").exists()
    old = time.time() - 7200
    os.utime(strange, (old, old))
    environment = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(temporary)
    try:
        tempfile.tempdir = None
        with temporary_folder() as own:
            assert own.parent == temporary and tempfile.gettempdir() == str(own)
        assert sorted(temporary.iterdir()) == [link]
    finally:
        tempfile.tempdir = None
        if environment is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = environment


@pytest.mark.parametrize("megabytes", [200, 1000, 2000])
def test_a_small_address_space_is_named(tmp_path: Path, megabytes: int) -> None:
    # By a shell: what runs in a fork of this process may have gRPC's own words in its way.
    limited = ["sh", "-c", f'ulimit -v {megabytes << 10}; exec "$@"', "sh", *RUN, "2"]
    done = subprocess.run(
        [*limited, "--output", str(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"is limited to {(megabytes << 20) / 1e9:.1f} GB of address space (ulimit -v)" in line


@pytest.mark.parametrize("mode", ["quiet", "plain"])
def test_each_warning_appears_once(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "timings.json").write_text("{")
    folder = Folder(str(tmp_path))
    with open_display(mode):  # type: ignore[arg-type]
        for _ in range(3):
            folder.read_own_json("timings.json")
    assert capsys.readouterr().err.count("damaged; the same run") == 1


def test_warnings_without_a_display_are_plain_and_appear_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipelines.terminal import tell

    told: list[str] = []
    handler = Warnings(told.append)
    for text in ("a", "a", "b"):
        handler.handle(logging.makeLogRecord({"msg": text, "levelno": logging.WARNING}))
    assert told == ["a", "b"]
    later = Warnings(told.append, handler)  # that of a display, say
    for text in ("b", "c"):
        later.handle(logging.makeLogRecord({"msg": text, "levelno": logging.WARNING}))
    assert told == ["a", "b", "c"]
    tell("\x1b[31m")
    assert capsys.readouterr().err == "\\u001b[31m\n"


def without_locks(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """As Lustre mounted without `flock`, and some NFS."""

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)


_AT_THE_END = """
import atexit, gc, os, sys
atexit.register(lambda: print(gc.get_freeze_count() > 0))
from pipelines.process import own_process
from curation.user_code import _module
own_process()
print(os.environ.get("OPENBLAS_NUM_THREADS"))
if sys.argv[1:]:
    _module(sys.argv[1], open(sys.argv[1]).read(), "0" * 64)
"""
_LEAVES_OPEN = """
class Log:
    def __init__(self):
        self.itself = self
        self.file = open(__file__ + ".log", "w")
        self.file.write("written")
LOG = Log()
"""


def _ends(*arguments: str, **variables: str) -> list[str]:
    """OpenBLAS's threads in a process of the toolkit, and whether it seeks no cycles at its end."""
    run = [sys.executable, "-c", _AT_THE_END, *arguments]
    base = {n: v for n, v in os.environ.items() if not n.endswith("_NUM_THREADS")}
    return subprocess.check_output(run, cwd=ROOT, env=base | variables, text=True).split()


def test_a_process_of_the_toolkit_has_one_thread_of_openblas_unless_told() -> None:
    assert _ends() == ["1", "True"]
    assert _ends(OPENBLAS_NUM_THREADS="2") == ["2", "True"]
    assert _ends(OMP_NUM_THREADS="3") == ["3", "True"]


def test_what_a_user_s_code_left_open_is_written_when_a_process_ends(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text(_LEAVES_OPEN)
    assert _ends(str(code)) == ["1", "False"]
    assert (tmp_path / "code.py.log").read_text() == "written"


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL])
def test_without_locks_temporary_folders_go_when_their_process_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    without_locks(monkeypatch, number)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1)
    here, now = socket.gethostname(), "2026-01-01 00:00:00+00:00"
    owners = {
        "dead": f"process {int(ended.stdout)} on {here} since {now}",
        "reused": f"process {os.getpid()} on {here} since {now}",
        "alive": owner(),
        "elsewhere": f"process {int(ended.stdout)} on another since {now}",
        "unknown": "",
    }
    for name, text in owners.items():
        (tmp_path / f"curate-run-{name}").mkdir()
        (tmp_path / f"curate-run-{name}" / "owner").write_text(text)
    with temporary_folder() as own:
        assert (own / "owner").read_text() == owner()
        there = {path.name for path in tmp_path.iterdir()} - {own.name}
        with temporary_folder() as inner:  # a child's, while its parent lives
            assert own.exists() and inner != own
    assert there == {f"curate-run-{name}" for name in ("alive", "elsewhere", "unknown")}


def test_a_folder_whose_lock_another_host_keeps_to_itself_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Lustre's `localflock` each host has locks of its own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    other = tmp_path / "curate-run-other"
    other.mkdir()
    (other / "owner").write_text("process 1 on n7 since 2026-01-01 00:00")
    for days, stays in {0: True, 29: True, 31: False}.items():
        then = time.time() - days * 86400
        os.utime(other, (then, then))
        with temporary_folder():
            assert other.exists() == stays


def test_one_start_makes_one_folder_where_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch, errno.EOPNOTSUPP)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    made, make = [], tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **k: made.append(make(**k)) or made[-1])
    with temporary_folder() as own:
        assert made == [str(own)] and [*tmp_path.iterdir()] == [own]
    assert [*tmp_path.iterdir()] == []
