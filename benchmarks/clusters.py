"""A recipe on every runner: the same bytes, at what cost, and after what is killed.

    python benchmarks/clusters.py --input 'crawl/*.warc.gz' --sizes 1 2 4 8
    python benchmarks/clusters.py --engines slurm flink spark --kill node worker driver

`direct` is Beam's direct runner in one process, `processes` in two. `python -m tests.machines` has
hosts with networks of their own, and more that fails.

With `--sizes`, runs read parts of the input's files: of `1 2 4 8`, an eighth to all. CPU seconds are those of
all processes from the start of a run to its end; a cluster is up before. Where inputs are named, a
run over the sample's 448 pages goes first (`start`): what a run takes however little it reads, such
as loading models and, on a cluster, what Java compiles. `less start` is without that. `by stage` adds
up what each stage's tasks take per document that the stage reads, less what they took in the first
run: the cost of a document that passes all stages. The share that is removed on the way, duplicates above all,
grows with the input and makes the other figures fall. With `--kill`, one process
is killed during every stage (a driver alone on `local`, `direct` and `processes`), the same command
goes on where the run failed, and the bytes are compared. Engines that can't be had here are named and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "deploy")]

from jobserver import UnavailableError  # noqa: E402
from run_folder import stage_at_work  # noqa: E402

from tests.folders import differences, digests  # noqa: E402
from tests.machines import HERE, Engine, engine  # noqa: E402

ENGINES = ["local", "direct", "slurm", "flink", "spark"]
#: The size of the run that shows what a run takes before it reads much.
START_UP = 0


def command(options: argparse.Namespace, inputs: list[str], output: Path) -> list[str]:
    given = ["--input", *inputs] if inputs else []
    chosen = [part for s in options.set for part in ("--set", s)]
    arguments = ["run", options.recipe, *given, "--output", str(output), "--quiet", *chosen]
    return [sys.executable, "-m", "pipelines.cli", *arguments]


@dataclass
class Run:
    """What a run took."""

    wall: float
    cpu: float
    documents: int
    jobs: int
    stages: dict[str, tuple[float, int]]  # CPU seconds of a stage's tasks, documents it read


def timed(where: Engine, options: argparse.Namespace, inputs: list[str], output: Path) -> Run:
    began, cpu, own = time.perf_counter(), where.cpu(), _children()
    if code := where.start(command(options, inputs, output)).wait():
        raise RuntimeError(f"{where.name}: exit code {code}")
    wall = time.perf_counter() - began
    time.sleep(3)  # workers of the last job end
    spent = _children() - own + where.cpu() - cpu
    funnel = json.loads((output / "report.json").read_text())["funnel"]
    timings = [json.loads(path.read_text()) for path in output.glob("*/timings.json")]
    jobs = sum(t.get("jobs", 0) for t in timings)
    stages = {
        e["stage"]: (sum(s["cpu"] for s in e["steps"].values()), e["documents_in"]) for e in funnel
    }
    return Run(wall, spent, funnel[0]["documents_in"], jobs, stages)


def by_stage(run: Run, start: Run) -> float:
    """CPU seconds of a document that passes all stages, without what a stage takes to begin."""
    return sum((cpu - start.stages[name][0]) / read for name, (cpu, read) in run.stages.items())


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compare(options: argparse.Namespace, files: list[str], scratch: Path) -> int:
    """Print one line per engine and size. Returns how many runs differ."""
    print(f"{'engine':<8}{'size':>6}{'documents':>11}{'wall s':>9}{'CPU s':>9}{'of local':>10}"
          f"{'us/doc':>9}{'less start':>12}{'by stage':>10}{'jobs':>6}{'differ':>8}", flush=True)  # fmt: skip
    sizes = [START_UP, *options.sizes] if files else options.sizes
    wrong, local = 0, {}
    for name in options.engines:
        with available(name, options) as where:
            start: Run | None = None
            for size in sizes if where else ():
                output = scratch / f"{name}-{size}"
                run = timed(where, options, part(options, files, size), output)
                start = start or run
                local.setdefault(size, run)
                found = differences(scratch / f"{options.engines[0]}-{size}", output)
                wrong += bool(found)
                beyond = 1e6 * (run.cpu - start.cpu) / run.documents
                print(f"{name:<8}{size or 'start':>6}{run.documents:>11,}{run.wall:>9.1f}{run.cpu:>9.1f}"
                      f"{run.cpu / local[size].cpu:>10.2f}{1e6 * run.cpu / run.documents:>9.0f}"
                      f"{beyond:>12.0f}{1e6 * by_stage(run, start):>10.0f}"
                      f"{run.jobs:>6}{len(found):>8} {found[:3] or ''}", flush=True)  # fmt: skip
    return wrong


def part(options: argparse.Namespace, files: list[str], size: int) -> list[str]:
    """The inputs of a run: every so-manieth file, so that sizes don't differ in what they hold."""
    if size == START_UP and files:
        return [str(ROOT / "data_samples" / "*.*z*")]
    return [f for i, f in enumerate(files) if i % max(options.sizes) < size]


@contextlib.contextmanager
def available(name: str, options: argparse.Namespace) -> Iterator[Engine | None]:
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(engine(name, options.cache, options.job_server))
        except UnavailableError as error:
            print(f"{name}: can't be had here: {error}", flush=True)
            found = None
        yield found


def disturbed(
    where: Engine, options: argparse.Namespace, files: list[str], output: Path, what: str
) -> list[str]:
    """Run with one process killed in every stage; return what was killed where."""
    dice, struck, told, runs = random.Random(options.seed), set(), [], 0
    while runs < 40:
        runs += 1
        process = where.start(command(options, files, output), stderr=subprocess.DEVNULL)
        while process.poll() is None:
            stage = stage_at_work(output)
            if stage and stage not in struck:
                time.sleep(dice.uniform(0.5, 3))
                if stage_at_work(output) == stage:
                    hit = where.kill(what, dice, process)
                    if hit != "no worker":
                        struck.add(stage)
                        told.append(f"{stage}: {hit}")
            time.sleep(0.2)
        if process.returncode == 0:
            return [*told, f"{runs} times started"]
        time.sleep(5)
    return [*told, "never finished"]


def faults(options: argparse.Namespace, files: list[str], scratch: Path) -> int:
    """Print what was killed and how many files differ. Returns how many runs differ."""
    timed(Engine("local", []), options, files, scratch / "local")
    whole, wrong = len(digests(scratch / "local")), 0
    for name in options.engines:
        with available(name, options) as where:
            kinds = [k for k in options.kill if k == "driver" or name not in HERE]
            for what in kinds if where else ():
                output = scratch / f"{name}-{what}"
                told = disturbed(where, options, files, output, what)
                found = differences(scratch / "local", output)
                wrong += bool(found)
                print(f"{name}, {what} killed: {len(found)} of {whole} files differ "
                      f"({'; '.join(told)})", flush=True)  # fmt: skip
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="sample")
    parser.add_argument("--input", nargs="*", default=[])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1])
    parser.add_argument("--kill", nargs="*", choices=["node", "worker", "driver"], default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job-server", default="", help="as for deploy/flink.py")
    parser.add_argument("--cache", default="~/.cache/curation/clusters")
    parser.add_argument("--scratch", help="keep run folders here")
    options = parser.parse_args()
    files = sorted(f for pattern in options.input for f in glob.glob(pattern, recursive=True))
    scratch = Path(options.scratch or tempfile.mkdtemp(prefix="curation-clusters-"))
    try:
        return min(1, (faults if options.kill else compare)(options, files, scratch))
    finally:
        if not options.scratch:
            shutil.rmtree(scratch)


if __name__ == "__main__":
    sys.exit(main())
