"""Documents per CPU second and peak memory of every stage, and the framework's share of CPU time.

    python benchmarks/throughput.py --recipe llama3 --input 'crawl/*.warc.gz' --workers 2

CPU seconds are user and system time of all processes. The framework's share is everything but the
steps: Beam, process start, imports, planning, manifests, report.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from run_folder import stage_at_work


def watch(process: subprocess.Popen[bytes], output: Path) -> dict[str, tuple[int, int]]:
    """Sample memory until the run ends: by stage, peak RSS of one process and of all together."""
    peaks: dict[str, tuple[int, int]] = {}
    driver = psutil.Process(process.pid)
    while process.poll() is None:
        sizes = []
        try:
            for one in [driver, *driver.children(recursive=True)]:
                sizes.append(one.memory_info().rss)
        except psutil.NoSuchProcess:
            pass
        stage, (most, total) = stage_at_work(output) or "-", (0, 0)
        if stage in peaks:
            most, total = peaks[stage]
        peaks[stage] = max([most, *sizes]), max(total, sum(sizes))
        time.sleep(0.1)
    return peaks


def main() -> int:
    """Run once and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="sample")
    parser.add_argument("--input", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--output", help="keep the run folder here")
    options = parser.parse_args()
    place = Path(options.output or tempfile.mkdtemp(prefix="curation-throughput-"))
    output = place / "run"
    command = [sys.executable, "-m", "pipelines.cli", "run", options.recipe, "--quiet", "--fresh"]
    command += ["--workers", str(options.workers), "--output", str(output)]
    command += ["--input", *options.input] if options.input else []
    for assignment in options.set:
        command += ["--set", assignment]
    started = time.perf_counter()
    process = subprocess.Popen(command)
    peaks = watch(process, output)
    if process.returncode:
        return process.returncode
    wall = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = usage.ru_utime + usage.ru_stime
    show(output, peaks, wall, total)
    if not options.output:
        shutil.rmtree(place)
    return 0


def show(output: Path, peaks: dict[str, tuple[int, int]], wall: float, total: float) -> None:
    """Print one line per stage, then the shares."""
    print(
        f"{'stage':<20}{'docs in':>10}{'CPU s':>10}{'docs/CPU s':>12}{'process MB':>12}{'all MB':>9}"
    )
    steps_cpu = 0.0
    stages = json.loads((output / "report.json").read_text())["funnel"]
    for entry in stages:
        cpu = entry["cpu_seconds"]
        steps_cpu += cpu
        process, everything = peaks.get(entry["stage"], (0, 0))
        rate = entry["documents_in"] / cpu if cpu else 0.0
        print(
            f"{entry['stage']:<20}{entry['documents_in']:>10,}{cpu:>10.1f}{rate:>12,.0f}"
            f"{process >> 20:>12,}{everything >> 20:>9,}"
        )
    print(f"wall {wall:.1f} s, CPU {total:.1f} s: steps {steps_cpu:.1f} s")
    rest = total - steps_cpu
    print(f"everything else {rest:.1f} s = {rest / total:.1%} of CPU")
    print(f"{'stage':<20}{'step':<14}{'CPU us/doc':>12}{'bytes written/doc':>20}")
    for entry in stages:
        for step, took in entry["steps"].items():
            read = max(1, entry["documents_in"])
            print(
                f"{entry['stage']:<20}{step:<14}{1e6 * took['cpu'] / read:>12,.1f}{took['bytes'] / read:>20,.1f}"
            )
    largest = max((p for p, _ in peaks.values()), default=0)
    print(
        f"peak memory of one process {largest / 2**20:,.0f} MB, of all {max((a for _, a in peaks.values()), default=0) / 2**20:,.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
