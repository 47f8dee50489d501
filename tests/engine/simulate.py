"""Runs of the real engine on disks and stores that fail: at every call, and at many drawn ones.

    python -m tests.engine.simulate --seeds 1000 [--first 0] [--sweep] [--where local,files,objects]

A run of two stages over a few documents, in one process. Each seed draws how often what goes wrong
(see `tests/simulated.py`), whether two workers do the same task, and when the process dies; the
same command is given again until it ends. `--sweep` fails the k-th call of an undisturbed run, for
every k and every fault that it can meet. Exits with 1, and names seed and calls, where

- a run that ends well, or the undisturbed one after it, has other bytes or lacks a document,
- a run makes more calls than any needs,
- a run ends with anything but one line of a kind that the command line prints.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from curation.recipe import load
from curation.schema import DOCUMENTS
from pipelines import run as runs
from pipelines.cli import line_of
from pipelines.plan import Plan, plan
from pipelines.run import run_plan
from pipelines.storage import files
from pipelines.storage.files import Folder
from tests.folders import VARYING
from tests.simulated import (
    LOCAL,
    STORE,
    DiedError,
    Direct,
    Store,
    World,
    local_faults,
    store_faults,
)

WHERE = ("local", "files", "objects")
STAGES = ("dedup-urls", "dedup-lines")
SET = ["dedup-lines.per_language=false", "dedup-urls.index.write=true"]
#: How often the same command is given again before its faults end.
ATTEMPTS = 6
_DOCUMENTS = 5


def write_inputs(folder: Path) -> None:
    """Two small shards with URLs and lines in common."""
    folder.mkdir(parents=True)
    for shard in range(2):
        rows = [
            {
                "id": f"{shard}-{i}",
                "url": f"http://host{i % 2}.example/page{i if i % 3 else 0}",
                "date": None,
                "text": f"A line that is everywhere.\nA line of shard {shard} and page {i}.\n",
                "title": "",
                "source": {"file": f"in{shard}", "offset": i},
            }
            for i in range(_DOCUMENTS)
        ]
        pq.write_table(pa.Table.from_pylist(rows, DOCUMENTS), folder / f"part{shard}.parquet")


@dataclass
class Subject:
    """A run that can be given as often as wanted, in one place, and what it should come to."""

    where: str
    root: str

    @property
    def output(self) -> str:
        return f"{self.root}/out"

    @functools.cached_property
    def work(self) -> Plan:
        """Settled once: models and lists are no part of this."""
        return plan(load("llama3", SET), self.output, [f"{self.root}/in"], STAGES)

    @functools.cached_property
    def recipe(self) -> str:
        """Written once: nor is YAML part of this."""
        return yaml.safe_dump(self.work.recipe.model_dump(mode="json", by_alias=True))

    def run(self, world: World, doubled: float = 0.0) -> None:
        files._known.cache_clear()
        work = replace(self.work, output=Folder(self.output))
        faults = local_faults(world, f"{self.root}/out") if self.local else store_faults(world)
        written = mock.patch.object(runs.yaml, "safe_dump", return_value=self.recipe)
        with written, faults, Direct(world, doubled) as executor:
            run_plan(work, executor)

    @property
    def local(self) -> bool:
        return self.where == "local"

    def clear(self) -> None:
        if self.local:
            shutil.rmtree(self.output, ignore_errors=True)
        else:
            for name in [n for n in Store.files if "/out/" in n]:
                del Store.files[name]
            Store.earlier = dict(Store.files)

    def content(self) -> dict[str, bytes]:
        """Every file that may not vary, and whatever else is left, by name."""
        if self.local:
            base = Path(self.output)
            files = {str(p.relative_to(base)): p for p in base.rglob("*") if p.is_file()}
            return {n: p.read_bytes() for n, p in files.items() if p.name not in VARYING}
        found = {n.partition("/out/")[2]: data for n, data in Store.files.items() if "/out/" in n}
        return {n: data for n, data in found.items() if n.rpartition("/")[2] not in VARYING}


def subject(where: str, place: Path) -> Subject:
    """A run with its inputs at hand."""
    inputs = place / "in"
    if not inputs.exists():
        write_inputs(inputs)
    if where == "local":
        return Subject(where, str(place))
    scheme = {"files": "simulated", "objects": "objects"}[where]
    for path in sorted(inputs.iterdir()):
        Store.files[f"bucket/in/{path.name}"] = path.read_bytes()
    return Subject(where, f"{scheme}://bucket")


def undisturbed(one: Subject) -> tuple[dict[str, bytes], int]:
    """What the run writes, and how many calls it makes."""
    one.clear()
    world = World(lambda kind, call, dice: "")
    one.run(world)
    return one.content(), world.calls


def trouble(error: Exception) -> str:
    """What is wrong with how a run ended, or nothing."""
    line = line_of(error)
    # What to do follows from the file's or the input's name, or is said.
    helps = any(word in line for word in ("the same command", "/out", "bucket/", "/in/"))
    return "" if helps and "this is a bug" not in line else f"says only {line!r}"


def attempt(one: Subject, world: World, doubled: float = 0.0) -> tuple[bool, str]:
    """Whether a run under faults ended well, and what is wrong with how it ended."""
    try:
        one.run(world, doubled)
    except DiedError:
        if world.calls > world.most_calls:
            return False, f"hangs: {world.calls} calls"
        return False, ""
    except Exception as error:
        return False, trouble(error)
    return True, ""


def check(one: Subject, expected: dict[str, bytes]) -> str:
    """How the run's files differ from those of an undisturbed one."""
    found = one.content()
    names = sorted(n for n in found.keys() | expected.keys() if found.get(n) != expected.get(n))
    return f"differ: {', '.join(names[:4])}" if names else ""


def disturbed(
    one: Subject, expected: dict[str, bytes], worlds: Iterator[World], doubled: float
) -> list[str]:
    """Give the run again and again under faults, then without; what was wrong."""
    one.clear()
    wrong: list[str] = []
    for world in worlds:
        Store.earlier = dict(Store.files)
        well, told = attempt(one, world, doubled)
        problem = told or (check(one, expected) if well else "")
        if problem:
            wrong.append(f"{problem} after {'; '.join(world.log[-4:])}")
        if well:
            break
    Store.earlier = dict(Store.files)
    well, told = attempt(one, World(lambda kind, call, dice: ""))
    problem = told or check(one, expected)
    if problem:
        wrong.append(f"rerun without faults: {problem}")
    return wrong


def drawn(seed: int, where: str) -> tuple[Iterator[World], float]:
    """The worlds of a seed: faults drawn at a rate, and a death now and then."""
    dice = random.Random(seed)
    kinds = [k for k in (LOCAL if where == "local" else STORE) if k != "death"]
    kinds = dice.sample(kinds, dice.randint(1, len(kinds)))
    rate = 10 ** dice.uniform(-3, -1)
    doubled = dice.choice([0.0, 0.0, 0.5, 1.0])

    def worlds() -> Iterator[World]:
        for number in range(ATTEMPTS):
            death = dice.randint(1, 600) if dice.random() < 0.5 else 0
            few = rate / (number + 1)

            def fault(
                kind: str, call: int, dice: random.Random, death: int = death, few: float = few
            ) -> str:
                if call == death:
                    return "death"
                return dice.choice(kinds) if dice.random() < few else ""

            yield World(fault, seed * ATTEMPTS + number)

    return worlds(), doubled


def sweep(
    one: Subject, expected: dict[str, bytes], calls: int, step: int = 1
) -> Iterator[tuple[str, list[str]]]:
    """Fail the k-th call in every way, once and (in stores) until the engine gives up."""
    for kind in LOCAL if one.local else STORE:
        for k in range(1, calls + 1, step):
            for lasting in (False, True) if kind in ("busy", "lost", "eio") else (False,):

                def fault(
                    _: str,
                    call: int,
                    dice: random.Random,
                    k: int = k,
                    kind: str = kind,
                    lasting: bool = lasting,
                ) -> str:
                    return kind if call == k or (lasting and k <= call < k + 40) else ""

                yield (
                    f"{kind} at call {k}{' and on' if lasting else ''}",
                    disturbed(one, expected, iter([World(fault)]), 0.0),
                )


def main() -> int:
    """Run the seeds and the sweep; print what was wrong, and figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--step", type=int, default=1, help="of the sweep")
    parser.add_argument("--where", default=",".join(WHERE))
    options = parser.parse_args()
    bad: Counter[str] = Counter()
    base = "/dev/shm" if os.path.isdir("/dev/shm") else None
    place = Path(tempfile.mkdtemp(prefix="curation-simulated-", dir=base))
    try:
        for where in options.where.split(","):
            one = subject(where, place)
            expected, calls = undisturbed(one)
            print(f"{where}: {len(expected)} files, {calls} calls", flush=True)
            started, runs = time.process_time(), 0
            if options.sweep:
                for name, wrong in sweep(one, expected, calls, options.step):
                    runs += 1
                    bad[where] += bool(wrong)
                    for line in wrong:
                        print(f"{where}, {name}: {line}", flush=True)
            for seed in range(options.first, options.first + options.seeds):
                worlds, doubled = drawn(seed, where)
                wrong = disturbed(one, expected, worlds, doubled)
                runs += 1
                bad[where] += bool(wrong)
                for line in wrong:
                    print(f"{where}, seed {seed}: {line}", flush=True)
            seconds = (time.process_time() - started) / max(1, runs)
            print(
                f"{where}: {runs} disturbed runs, {bad[where]} wrong, "
                f"{1000 * seconds:.0f} ms of CPU each",
                flush=True,
            )
    finally:
        shutil.rmtree(place)
    return 1 if sum(bad.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
