"""Kill runs, tear and flip their files, resume; compare every byte with an undisturbed run.

    python benchmarks/interruptions.py --kills 40 --torn 20 --flips 20

A kill hits the driver or one of its workers with SIGKILL after a random delay. After so many of the
kills a file of the run is cut, zeroed or removed, as a power failure does. A flip changes one bit of
one file of a finished run. Then the same command runs again, until it finishes. Exit code 1 when a
byte differs, or a run refuses to go on.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from run_folder import stage_at_work

from tests.folders import differences, flip, tear


@dataclass
class Experiment:
    """A recipe, the folder of an undisturbed run of it, and its length in seconds."""

    recipe: str
    inputs: list[str]
    workers: int
    place: Path
    dice: random.Random
    length: float = 0.0
    bad: int = 0

    @property
    def base(self) -> Path:
        return self.place / "undisturbed"

    def command(self, output: Path, workers: int | None = None) -> list[str]:
        """The command line of a run."""
        given = ["--input", *self.inputs] if self.inputs else []
        count = self.workers if workers is None else workers
        arguments = ["run", self.recipe, *given, "--output", str(output), "--workers", str(count)]
        return [sys.executable, "-m", "pipelines.cli", *arguments, "--quiet"]

    def undisturbed(self) -> None:
        """Run twice: the first run may compile kernels, the second has the length of the others."""
        subprocess.run(self.command(self.base), check=True)
        again = self.place / "again"
        started = time.monotonic()
        subprocess.run(self.command(again), check=True)
        self.length = time.monotonic() - started
        self.compare(f"undisturbed, {self.length:.1f} s", again)

    def interrupt(self, output: Path) -> str:
        """Begin a run and kill it after a random delay; what was hit, empty if it ended before."""
        process = subprocess.Popen(self.command(output), stderr=subprocess.DEVNULL)
        delay = self.dice.uniform(0.5, self.length)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            stage, victim = stage_at_work(output) or "between stages", kill_one(process, self.dice)
            process.wait()
            return f"{victim} after {delay:.1f} s, during {stage}"
        return ""

    def resume(self, output: Path) -> None:
        """Run the same command again, with some number of workers, and compare."""
        done = subprocess.run(
            self.command(output, 1 + self.dice.randrange(3)), capture_output=True, text=True
        )
        if done.returncode:
            self.bad += 1
            print(f"REFUSED: {done.stderr.strip()}", flush=True)
        else:
            self.compare("resumed", output)

    def compare(self, what: str, output: Path) -> None:
        """Say whether a run's files are those of the undisturbed one."""
        different = differences(self.base, output)
        self.bad += bool(different)
        print(f"{what}: {f'DIFFERENT {different[:5]}' if different else 'identical'}", flush=True)


def kill_one(process: subprocess.Popen[bytes], dice: random.Random) -> str:
    """Kill the driver or one of its workers; return which."""
    try:
        workers = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return "nothing"
    workers = [w for w in workers if is_worker(w)]
    if workers and dice.random() < 0.4:
        with contextlib.suppress(psutil.NoSuchProcess):
            dice.choice(workers).send_signal(signal.SIGKILL)
        return "worker"
    process.send_signal(signal.SIGKILL)
    return "driver"


def is_worker(process: psutil.Process) -> bool:
    """Whether this child of a run still lives and does its work."""
    try:
        return "resource_tracker" not in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # also a zombie
        return False


def kill_and_tear(trial: Experiment, kills: int, torn: int, kills_per_run: int) -> None:
    """Kill `kills` times; after `torn` of the kills tear a file, too."""
    done = 0
    while done < max(kills, torn):
        output = trial.place / f"killed-{done}"
        for _ in range(kills_per_run):
            hit = trial.interrupt(output)
            if not hit:
                break
            done += 1
            torn_file = f"; {tear(output, trial.dice)}" if done <= torn else ""
            print(f"kill {done}: {hit}{torn_file}", flush=True)
        trial.resume(output)
        shutil.rmtree(output)


def flip_bits(trial: Experiment, flips: int) -> None:
    """Flip a bit of a finished run, and run the command again; `flips` times."""
    output = trial.place / "flipped"
    shutil.copytree(trial.base, output)
    for i in range(flips):
        print(f"flip {i + 1}: {flip(output, trial.dice)}", flush=True)
        trial.resume(output)


def main() -> int:
    """Run the experiment and print one line per disturbance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--recipe", default="sample")
    parser.add_argument("--input", nargs="*", default=[])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--torn", type=int, default=0)
    parser.add_argument("--flips", type=int, default=0)
    parser.add_argument("--kills-per-run", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="curation-kills-"))
    dice = random.Random(options.seed)
    trial = Experiment(options.recipe, options.input, options.workers, place, dice)
    trial.undisturbed()
    flip_bits(trial, options.flips)
    kill_and_tear(trial, options.kills, options.torn, options.kills_per_run)
    shutil.rmtree(place)
    print(
        f"{options.kills} kills, {options.torn} torn, {options.flips} flips: "
        f"{trial.bad} runs with different bytes or refused"
    )
    return 1 if trial.bad else 0


if __name__ == "__main__":
    sys.exit(main())
