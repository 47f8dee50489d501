"""Kill a run at many moments, resume it, and compare every byte with an undisturbed run.

    python benchmarks/interruptions.py --kills 40

Each round kills either the driver or one of its workers with SIGKILL after a random delay, then
runs the same command again, until it finishes. Exit code 1 when a byte differs.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from run_folder import stage_at_work

from tests.folders import differences


def command(recipe: str, inputs: list[str], output: Path, workers: int) -> list[str]:
    """The command line of a run."""
    given = ["--input", *inputs] if inputs else []
    arguments = ["run", recipe, *given, "--output", str(output), "--workers", str(workers)]
    return [sys.executable, "-m", "pipelines.cli", *arguments, "--quiet"]


def kill_one(process: subprocess.Popen[bytes], dice: random.Random) -> str:
    """Kill the driver or one of its workers; return which."""
    try:
        workers = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return "nothing"
    workers = [w for w in workers if "resource_tracker" not in " ".join(w.cmdline())]
    if workers and dice.random() < 0.4:
        dice.choice(workers).send_signal(signal.SIGKILL)
        return "worker"
    process.send_signal(signal.SIGKILL)
    return "driver"


def main() -> int:
    """Run the experiment and print one line per kill."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--recipe", default="sample")
    parser.add_argument("--input", nargs="*", default=[])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--kills-per-run", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    place = Path(tempfile.mkdtemp(prefix="curation-kills-"))
    base, again = place / "undisturbed", place / "again"
    subprocess.run(command(options.recipe, options.input, base, options.workers), check=True)
    # The first run may have compiled kernels; the second has the length of those that follow.
    started = time.monotonic()
    subprocess.run(command(options.recipe, options.input, again, options.workers), check=True)
    length = time.monotonic() - started
    bad = int(bool(differences(base, again)))
    print(f"undisturbed: {length:.1f} s, {'DIFFERENT' if bad else 'identical'} twice", flush=True)
    kills = 0
    while kills < options.kills:
        output = place / f"run-{kills}"
        for _ in range(options.kills_per_run):
            run = command(options.recipe, options.input, output, options.workers)
            process = subprocess.Popen(run, stderr=subprocess.DEVNULL)
            delay = dice.uniform(0.5, length)
            try:
                process.wait(delay)
                break
            except subprocess.TimeoutExpired:
                stage, victim = (stage_at_work(output) or "between stages"), kill_one(process, dice)
                process.wait()
                kills += 1
                print(f"kill {kills}: {victim} after {delay:.1f} s, during {stage}", flush=True)
        run = command(options.recipe, options.input, output, 1 + dice.randrange(3))
        subprocess.run(run, check=True)
        different = differences(base, output)
        bad += bool(different)
        print(
            f"resumed: {'identical' if not different else f'DIFFERENT {different[:5]}'}", flush=True
        )
        shutil.rmtree(output)
    shutil.rmtree(place)
    print(f"{kills} kills, {bad} runs with different bytes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
