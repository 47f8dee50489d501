"""Fixtures that several tests share."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import io
import multiprocessing
import os
import pickle
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from multiprocessing.util import Finalize
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest
import yaml

from curation import config
from pipelines.cli import main
from pipelines.runners.execute import RunnerOptions, parse_beam_args
from pipelines.storage.files import Folder

# A first example may compile or load kernels. Failures are mended, not kept for the next time.
hypothesis.settings.register_profile("kernels", deadline=None, database=None)
hypothesis.settings.load_profile("kernels")

# Processes start by the hundred: without its modules as bytecode each takes most of a second more,
# and assertions are rewritten for each of pytest's.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).resolve().parent.parent

gc.disable()  # until all is collected


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Begin again in UTF-8 where Python was told to do without (`LC_ALL=C PYTHONUTF8=0`)."""
    if sys.getfilesystemencoding() != "utf-8":
        config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
        command = [sys.executable, "-m", "pytest", *config.invocation_params.args]
        os.execve(sys.executable, command, os.environ | {"PYTHONUTF8": "1"})


#: Files that take long for their number of tests, most of it waiting: they begin first, so that no
#: process is left alone with one of them at the end. Not both of Slurm at once: cores would idle.
_FIRST = (
    *("deploy/test_slurm", "view/test_browser", "engine/test_portable"),
    *("test_growth", "extract/test_units", "models/test_tokenizer_training", "filters/test_plain"),
    *("engine/test_poison", "transforms/test_stages", "engine/test_slurm", "test_notebook"),
    *("test_docs_commands", "test_resume", "test_named_files"),
    *("engine/test_shuffle", "test_sample_run", "test_object_store", "test_process"),
    *("test_user_code", "readers/test_types"),
    *("readers/test_ranges", "view/test_explorer", "test_ranges", "models/ablate/test_ablate"),
    *("models/test_train", "test_forecast", "engine/test_simulated", "tokenize/test_copies"),
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One process more than cores: some tests wait, for browsers, other processes or signals."""
    given = "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ
    return None if given else len(os.sched_getaffinity(0)) + 1


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what collecting made, which stays."""
    gc.enable()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="draw the order of files")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long files first, then those with most tests; or all as a seed draws them."""
    sizes = Counter(item.path for item in items)
    if (seed := config.getoption("shuffle")) is not None:
        dice = random.Random(seed)
        drawn = {path: dice.random() for path in sorted(sizes)}
        items.sort(key=lambda i: drawn[i.path])
        return
    first = {ROOT / "tests" / f"{name}.py": rank for rank, name in enumerate(_FIRST)}
    items.sort(key=lambda i: (first.get(i.path, len(first)), -sizes[i.path], str(i.path)))


def pytest_configure(config: pytest.Config) -> None:
    """Hand files to processes in the order of `pytest_collection_modifyitems`.

    All of them have one folder for temporary files, which goes when they have ended.
    """
    if not hasattr(config, "workerinput"):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        place = tempfile.mkdtemp(prefix="curate-")
        # Behind what multiprocessing has to remove in it.
        Finalize(None, shutil.rmtree, (place, True), exitpriority=-200)
        os.environ["TMPDIR"] = tempfile.tempdir = place
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def curate(*arguments: str | Path, place: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command of `curate` from the checkout's root or another place, in this process.

    One of its own takes seconds to start; `curate_alone` is for what depends on it.
    """
    given, out, told = [*map(str, arguments)], io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(place),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(told),
    ):
        try:
            code = main(given)
        except SystemExit as ended:  # --help and --version
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(given, code, out.getvalue(), told.getvalue())


_HEAD = 'set -euo pipefail\ncurate() { python -m pipelines.cli "$@"; }\n'


def in_shell(script: str, folder: Path) -> str:
    """What a script of bash prints in a folder. `python` and `curate` are those of the tests."""
    environment = os.environ | {
        "COLUMNS": "80",
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", _HEAD + script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


_QUOTED = re.compile(r"'[^']*'|\"[^\"$]*\"")
#: What a shell makes something of outside quotes.
_OF_SHELL = re.compile(r"[|&;<>(){}$`\\*?~#!=\n]")


def as_typed(script: str, folder: Path) -> str:
    """What a script prints in a folder; a plain command of `curate` runs in this process."""
    words = script.strip()
    if not words.startswith("curate ") or _OF_SHELL.search(_QUOTED.sub("", words)):
        return in_shell(script, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        done = curate(*shlex.split(words)[1:], place=folder)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stderr + done.stdout


def curate_alone(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own."""
    command = [sys.executable, "-m", "pipelines.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def curate_well(arguments: Sequence[str | Path]) -> str:
    """Run it and expect success; return what it printed."""
    done = curate(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_synced() -> Iterator[None]:
    """No test pulls the plug: what this process writes may reach the disk when it likes.

    Small runs wait hundreds of times for it. Tests of syncing count the calls.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Iterator[None]:
    """Tests find the process as the ones before found it: environment, place, files in memory."""
    environment, place = dict(os.environ), Path.cwd()
    yield
    os.chdir(place)
    for name in os.environ.keys() | environment.keys():
        if name == "PYTEST_CURRENT_TEST" or os.environ.get(name) == environment.get(name):
            continue
        if name in environment:
            os.environ[name] = environment[name]
        else:
            del os.environ[name]
    if memory := sys.modules.get("fsspec.implementations.memory"):
        memory.MemoryFileSystem.store.clear()
        memory.MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture(scope="session", autouse=True)
def _runs_stay_here() -> Iterator[None]:
    """Commands of `curate` in this process start no others, unless the test says how many.

    To start them takes seconds of CPU time, and most runs of tests do not.
    """

    def here(arguments: Sequence[str], workers: int | None) -> RunnerOptions:
        options = parse_beam_args(arguments, workers)
        return replace(options, workers=0) if options.is_local and workers is None else options

    with pytest.MonkeyPatch.context() as patch:
        for command in ("pipelines.commands.run", "pipelines.commands.withdraw"):
            patch.setattr(f"{command}.parse_beam_args", here)
        patch.setattr("models.commands.mix.parse_beam_args", here)
        yield


@pytest.fixture(scope="session", autouse=True)
def _yaml_takes_no_time() -> Iterator[None]:
    """Each document is parsed once; libyaml writes recipes, a third of what a small run takes.

    Bytes are compared with those of processes that do neither.
    """
    parse = config.parse_yaml

    @functools.cache
    def parsed(text: str) -> bytes:
        return pickle.dumps(parse(text))

    with pytest.MonkeyPatch.context() as patch:
        for module in ("curation.config", "pipelines.run_folder"):
            patch.setattr(f"{module}.parse_yaml", lambda text: pickle.loads(parsed(text)))
        if yaml.__with_libyaml__:
            write = functools.partial(yaml.dump, Dumper=yaml.CSafeDumper)
            patch.setattr("pipelines.run.yaml", SimpleNamespace(safe_dump=write))
        yield


@pytest.fixture(scope="session")
def fork_server() -> BaseContext:
    """A process that has imported all that workers need, with their kernels, to be forked."""
    context = multiprocessing.get_context("forkserver")
    tests = ["tests.engine.poison", "tests.engine.toys", "tests.fake_slurm"]
    context.set_forkserver_preload(["pipelines.runners.preload", "pipelines.runners.slurm", *tests])
    with contextlib.chdir(ROOT):
        forkserver.ensure_running()
    return context


@pytest.fixture
def forked_processes(fork_server: BaseContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children are forked, where new ones would take seconds of CPU time to import all.

    They inherit neither variables of the environment that the test sets nor what it replaces.
    """
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: fork_server)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A copy of a folder that one of pytest's processes makes for all."""
    together = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        together = together.parent
    made, own = together / name, factory.mktemp(name) / "out"
    with (together / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (together / f"{name}.done").exists():
            make(made)
            (together / f"{name}.done").touch()
    shutil.copytree(made, own)
    return own


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of the `sample` recipe with two workers."""

    def make(made: Path) -> None:
        done = curate_alone("run", "sample", "--output", made, "--workers", "2")
        assert done.returncode == 0, done.stderr
        assert "Funnel" in done.stdout
        with contextlib.chdir(ROOT):
            shown = Folder(str(made)).shown
        assert f"{shown}/report.html" in done.stdout.replace("\n", "")

    return made_once(tmp_path_factory, "sample_run", make)
