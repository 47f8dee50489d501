"""CPU time of every stage next to the floor: unpacking the same archives and parsing their pages.

    python benchmarks/floor.py --recipe llama3 --input 'crawl/*.warc.gz' --input 'japanese/*.warc.gz'
    python benchmarks/floor.py --stages filter --input run/dedup-lines --functions 20

Each `--input` is a set of its own (a language, a kind of page) and gets a table of its own: stages
from the first of `--stages` on, all in one process that begins with none of them loaded. The floor
is zlib's time for the bytes of the archives and lexbor's for the pages in them, without anything
around (`pip install resiliparse`). Where the input is no archive there is none.

A timer interrupts the process every millisecond of CPU time, and what passed since is counted for
the stage and for what the innermost known function does: `read` (archives, shards, their hashes),
`write` (shards, records, counts), `start` (imports, kernels, models, tables) or `decide`, the rest.
What is outside all stages is in the line `-`. A kernel that takes longer is counted whole, for the
function that called it; `--functions` names those that took the most.
"""

from __future__ import annotations

import argparse
import glob
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import FrameType
from typing import NamedTuple

PARTS = ("read", "decide", "write", "start")
#: What a function does, by its file and name.
_KNOWN = re.compile(
    r"(?P<start>importlib\._bootstrap"
    r"|/curation/(?:kernels|compiled|lazy|archive|resources|models|warm_up)\.py:)"
    r"|(?P<write>/storage/shards\.py:(?:TableWriter|Tally)|/storage/files\.py:"
    r"|/engine/transform\.py:ShardWriter)"
    r"|(?P<read>/storage/(?:shards|damage)\.py:|/curation/readers/)"
)
_PIECE = 1 << 14
_STAGE = "/pipelines/run.py:run_stage"
_OUTSIDE = "-"


class Spent(NamedTuple):
    """CPU seconds of one run, by stage and part, and by function; its most memory in bytes."""

    parts: dict[tuple[str, str], float]
    functions: dict[tuple[str, str], float]
    memory: int
    documents: dict[str, int]


class Clock:
    """Counts CPU time by stage and part while it is the handler of SIGPROF."""

    def __init__(self) -> None:
        self.parts: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.functions: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._last = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.process_time()
        stage, part, function = _OUTSIDE, "", ""
        while frame is not None:
            name = f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"
            known = None if part else _KNOWN.search(name)
            part = known.lastgroup or "" if known else part
            if not function and ("/curation/" in name or "/pipelines/" in name):
                function = name.rpartition("/")[2]
            if name.endswith(_STAGE):
                stage = frame.f_locals["stage"]
                break
            frame = frame.f_back
        self.parts[stage, part or "decide"] += now - self._last
        self.functions[stage, function] += now - self._last
        self._last = now


def spent(options: tuple[str, Sequence[str], str]) -> Spent:
    """Run a recipe over an input in this process, and return what it took."""
    clock = Clock()
    signal.signal(signal.SIGPROF, clock)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    from pipelines.cli import main

    recipe, stages, path = options
    with tempfile.TemporaryDirectory(prefix="curation-floor-") as folder:
        command = ["run", recipe, "--quiet", "--workers", "0", "--input", path]
        command += ["--output", f"{folder}/run"]
        command += ["--stages", ",".join(stages)] if stages else []
        code = main(command)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if code:
            sys.exit(code)
        manifests = sorted(Path(folder).glob("run/*/manifest.json"))
        counts = {m.parent.name: json.loads(m.read_text())["counts"] for m in manifests}
    documents = {name: found["documents_in"] for name, found in counts.items()}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Spent(dict(clock.parts), dict(clock.functions), memory, documents)


def floor(paths: Sequence[str]) -> tuple[float, float, int, int]:
    """Return CPU seconds of unpacking these archives and of parsing their pages, pages, bytes."""
    from resiliparse.parse.html import HTMLTree

    from curation import recipe  # here, since the measured process imports this module
    from curation.readers.read import read
    from curation.readers.records import Page

    settings = recipe.load("sample").readers
    unpacked, pages = 0.0, list[bytes]()
    for path in paths:
        data = memoryview(Path(path).read_bytes())
        began, at, member = time.process_time(), 0, zlib.decompressobj(wbits=31)
        while at < len(data) and data[0] == 0x1F:
            member.decompress(data[at : at + _PIECE])
            at += len(data[at : at + _PIECE]) - len(member.unused_data)
            if member.eof:
                member = zlib.decompressobj(wbits=31)
        unpacked += time.process_time() - began
        pages += [event.content for event in read(path, settings) if isinstance(event, Page)]
    began = time.process_time()
    for page in pages:
        HTMLTree.parse_from_bytes(page)
    return unpacked, time.process_time() - began, len(pages), sum(map(len, pages))


def show(found: Spent, bare: tuple[float, float, int, int] | None, functions: int) -> None:
    """Print the table of one input."""
    least, size = 0.0, 0
    if bare:
        unpacking, parsing, pages, size = bare
        least = unpacking + parsing
        print(
            f"{pages:,} pages, {size / 1e6:,.1f} MB; floor {least:.2f} CPU s: "
            f"unpacking {unpacking:.2f}, parsing {parsing:.2f}"
        )
    heads = ("documents", "CPU s", "ms/doc", "ms/MB", "x floor", *PARTS)
    print(f"{'stage':<20}" + "".join(f"{head:>10}" for head in heads))
    stages = dict.fromkeys(stage for stage, _ in found.parts)
    table = {stage: [found.parts.get((stage, part), 0.0) for part in PARTS] for stage in stages}
    table["all"] = [sum(column) for column in zip(*table.values(), strict=True)]
    for stage, parts in table.items():
        cpu, documents = sum(parts), found.documents.get(stage, 0)
        figures = [f"{documents:,}" if documents else "", f"{cpu:.2f}"]
        figures.append(f"{1e3 * cpu / documents:.3f}" if documents else "")
        figures.append(f"{1e9 * cpu / size:.1f}" if size else "")
        figures.append(f"{cpu / least:.2f}" if least else "")
        figures += [f"{part:.2f}" for part in parts]
        print(f"{stage:<20}" + "".join(f"{figure:>10}" for figure in figures))
    print(f"peak memory {found.memory / 1e6:,.0f} MB")
    for (stage, function), cpu in Counter(found.functions).most_common(functions):
        print(f"{cpu:>8.2f} s  {stage:<20}{function}")


def main() -> None:
    """Print a table for each input."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="llama3")
    parser.add_argument("--input", action="append", required=True, help="a glob; repeat it")
    parser.add_argument("--stages", type=lambda text: text.split(","), default=[])
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="name the N slowest")
    options = parser.parse_args()
    for path in options.input:
        # a new process, not a fork: nothing is loaded in it
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            found = pool.submit(spent, (options.recipe, options.stages, path)).result()
        archives = [name for name in sorted(glob.glob(path)) if not os.path.isdir(name)]
        print(f"\n{path}")
        show(found, floor(archives) if archives else None, options.functions)


if __name__ == "__main__":
    main()
