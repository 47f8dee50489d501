"""A recipe from and to an S3 server that fails, against the same on local disks; a long listing.

    python benchmarks/object_store.py --rate 0.02
    python benchmarks/object_store.py --no-run --listing 100000
    python benchmarks/object_store.py --no-run --listing 0 --per-shard

The server is moto, behind a proxy that throttles, errs, hangs up, loses, cuts and delays answers,
each with the given rate. Prints, for each stage, requests, faults, bytes and seconds, and the files
that differ from a local run; a driver that is killed once in every other stage resumes. Exit code 1
when a byte differs. Server and client share the machine: requests and bytes carry over to other
stores, seconds don't.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from curation import stores  # noqa: E402
from curation.recipe import load  # noqa: E402
from pipelines.plan import plan  # noqa: E402
from pipelines.run import run_plan  # noqa: E402
from pipelines.runners.execute import Executor, parse_beam_args  # noqa: E402
from pipelines.storage.files import Folder  # noqa: E402
from tests.faulty_store import KINDS, Proxy, environment, faulty_store  # noqa: E402
from tests.folders import digests  # noqa: E402


def curate(stage: str, recipe: str, given: str, output: str, kill_after: float = 0) -> float:
    """Run a stage in a process of its own; return its CPU seconds. Killed once where asked to."""
    command = [sys.executable, "-m", "pipelines.cli", "run", recipe, "--stages", stage]
    command += ["--output", output, "--quiet", "--workers", "2"]
    if stage == "extract":
        command += ["--input", given]
    if kill_after:
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            process.wait(kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
    before = psutil.Process().cpu_times()
    subprocess.run(command, cwd=ROOT, check=True)
    after = psutil.Process().cpu_times()
    return float(
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def run_stages(proxy: Proxy, recipe: str, files: list[Path], rate: float, place: Path) -> bool:
    """Every stage on local disks and on the store; whether all bytes are the same."""
    system, _ = stores.file_system("s3://crawl")
    for bucket in ("crawl", "out"):
        system.mkdir(bucket)
    for file in files:
        system.pipe_file(f"crawl/in/{file.name}", file.read_bytes())
    given, local = "s3://crawl/in/*", str(place / "local")
    print(
        f"{'stage':20}{'GET':>7}{'PUT':>7}{'other':>7}{'faults':>8}{'MB in':>8}{'MB out':>8}",
        end="",
    )
    print(f"{'CPU s':>8}{'local':>8}{'wall s':>8}  killed")
    for number, stage in enumerate(load(recipe).stages):
        proxy.rates = {}
        alone = curate(stage, recipe, given, local)
        proxy.rates = dict.fromkeys(KINDS, rate)
        proxy.requests.clear()
        proxy.faults.clear()
        proxy.sent = proxy.received = 0
        started, killed = time.perf_counter(), 6.0 if number % 2 else 0.0
        seconds = curate(stage, recipe, given, "s3://out/run", killed)
        get, put = proxy.requests["GET"], proxy.requests["PUT"]
        print(
            f"{stage:20}{get:7}{put:7}{sum(proxy.requests.values()) - get - put:7}"
            f"{sum(proxy.faults.values()):8}{proxy.sent / 1e6:8.1f}{proxy.received / 1e6:8.1f}"
            f"{seconds:8.1f}{alone:8.1f}{time.perf_counter() - started:8.1f}  {'yes' if killed else ''}",
            flush=True,
        )
    proxy.rates = {}
    remote, copy = Folder("s3://out/run"), place / "remote"
    for name in remote.tree():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(remote.read_bytes(name))
    ours, theirs = digests(copy), digests(place / "local")
    different = sorted(n for n in ours.keys() | theirs.keys() if ours.get(n) != theirs.get(n))
    print(f"{len(ours)} files, {len(different)} differ {different[:5]}")
    return not different


def requests_per_shard(proxy: Proxy, recipe: str) -> None:
    """How many requests a further shard costs in each stage: 12 shards against 4."""
    system, _ = stores.file_system("s3://shards")
    system.mkdir("shards")
    counts: dict[int, dict[str, Counter[str]]] = {}
    words = "harbour lantern meadow copper violet engine winter ribbon canyon saddle".split()
    for shards in (4, 12):
        for i in range(shards):
            dice = random.Random(i)
            lines = [
                json.dumps({"text": "\n\n".join(_paragraph(dice, words) for _ in range(40))})
                for _ in range(60)  # in all more than a megabyte, so that files are not grouped
            ]
            system.pipe_file(f"shards/{shards}/in/{i:02d}.jsonl", "\n".join(lines).encode())
        given, output = [f"s3://shards/{shards}/in/*"], f"s3://shards/{shards}/out"
        counts[shards] = {}
        # Generated documents don't pass all filters: nothing is left to mix.
        for stage in (s for s in load(recipe).stages if s not in ("mix", "tokenize")):
            work = plan(load(recipe), output, given if stage == "extract" else [], [stage])
            proxy.requests.clear()
            with Executor(parse_beam_args([], 0)) as executor:
                run_plan(work, executor)
            counts[shards][stage] = proxy.requests.copy()
    print(f"{'requests per shard':20}{'GET':>7}{'PUT':>7}{'other':>7}")
    for stage in counts[4]:
        more = {m: (counts[12][stage][m] - counts[4][stage][m]) / 8 for m in counts[12][stage]}
        get, put = more.pop("GET", 0), more.pop("PUT", 0)
        print(f"{stage:20}{get:7.1f}{put:7.1f}{sum(more.values()):7.1f}")


def _paragraph(dice: random.Random, words: list[str]) -> str:
    return " ".join(
        f"The {dice.choice(words)} of the {dice.choice(words)} was not in {dice.randrange(999)}."
        for _ in range(12)
    )


_LIST = """
import json, sys, time, psutil
from curation.readers.discover import discover
from pipelines.storage.files import Folder
folder, process = Folder(sys.argv[1]), psutil.Process()
def measured(what, action):
    cpu, wall, memory = time.process_time(), time.perf_counter(), process.memory_info().rss
    found = len(action())
    print(json.dumps([what, found, time.process_time() - cpu, time.perf_counter() - wall,
                      process.memory_info().rss - memory]), flush=True)
folder.exists("x")
measured("names of a folder", folder.sizes)
measured("all files below", folder.tree)
measured("input by pattern", lambda: discover([sys.argv[1] + "/*.warc.gz"]))
measured("input by folder", lambda: discover([sys.argv[1]]))
"""


def list_many(proxy: Proxy, count: int) -> None:
    """Time the ways in which a folder of so many objects is listed, by a process of its own."""
    import boto3

    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{proxy.target[1]}")
    client.create_bucket(Bucket="many")
    from moto.s3.models import s3_backends

    (account,) = (a for a in s3_backends if "many" in s3_backends[a]["aws"].buckets)
    backend = s3_backends[account]["aws"]
    for i in range(count):  # by the server's own door: a request each would take minutes
        backend.put_object("many", f"segments/CC-{i:06d}.warc.gz", b"x")
    # moto sorts all keys for every page: here only once.
    backend.list_objects = functools.cache(backend.list_objects)
    proxy.requests.clear()
    command = [sys.executable, "-c", _LIST, "s3://many/segments"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        what, found, cpu, wall, memory = json.loads(line)
        print(
            f"{what:20}{found:8} files{cpu:8.1f} CPU s of the client{wall:8.1f} s in all"
            f"{memory / 1e6:8.0f} MB"
        )
    print(f"requests: {sum(proxy.requests.values())}")


def main() -> int:
    """Run both parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--recipe", default="sample")
    parser.add_argument("--input", default=str(ROOT / "data_samples"), help="folder of archives")
    parser.add_argument("--rate", type=float, default=0.02, help="of each kind of fault")
    parser.add_argument("--listing", type=int, default=100_000, help="objects to list, 0: none")
    parser.add_argument("--no-run", action="store_true", help="the listing alone")
    parser.add_argument("--per-shard", action="store_true", help="requests that a shard costs")
    options = parser.parse_args()
    files = sorted(p for p in Path(options.input).glob("*.*z*") if p.is_file())
    same = True
    with faulty_store({}) as proxy, tempfile.TemporaryDirectory() as place:
        os.environ.update(environment(proxy))
        if not options.no_run:
            same = run_stages(proxy, options.recipe, files, options.rate, Path(place))
        if options.per_shard:
            proxy.rates = {}
            requests_per_shard(proxy, options.recipe)
        if options.listing:
            proxy.rates = {}
            list_many(proxy, options.listing)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
