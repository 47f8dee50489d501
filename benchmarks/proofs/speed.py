"""Print what a GPU does with models trained together: whether they learn the same, tokens a second.

    python benchmarks/proofs/speed.py PREPARED --seconds 70 SIZE:MODELS SIZE:MODELS:compiled ...

First three small models learn together and each alone, recorded and not; their bits per byte are
printed. Then each entry does some steps. Times are of steps between which nothing is set up.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

# Where the package isn't installed.
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))

from models.ablate import steps, trainer
from models.ablate.compare import read_prepared
from models.ablate.experiment import Experiment
from models.ablate.trainer import Job
from proofs.trained import chosen, means, training_of

STEPS = 60


class EnoughError(Exception):
    """The steps that tell are done."""


class Timer:
    """Times the steps between two reports."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.times: list[tuple[int, float]] = []

    def watch(self, done: int, steps: int) -> None:
        """Be told of steps done."""
        self.times.append((done, time.monotonic()))
        if len(self.times) == 2:
            raise EnoughError

    @property
    def step(self) -> float:
        """Seconds of a step."""
        (first, begun), (last, ended) = self.times
        return (ended - begun) / (last - first)


def same(experiment: Experiment, device: str) -> None:
    """Print what models learn together, alone, and by steps that are not recorded."""
    training = training_of("5M", STEPS * 4096)
    jobs = [Job(0, 1, training), Job(1, 1, chosen(training, 2, 0.5)), Job(2, 2, training)]
    size = sum(int(texts.documents.sizes.sum()) for texts in experiment.texts)

    def bits(some: list[Job]) -> list[float]:
        found = trainer.train(experiment, some, device)
        return [sum(means([one]).values()) / size for one in found]

    def show(name: str, values: list[float]) -> None:
        print(f"{name:24}", *(f"{value:.5f}" for value in values), flush=True)

    show("together", bits(jobs))
    show("each alone", [value for job in jobs for value in bits([job])])
    recorded, steps.WARM = steps.WARM, sys.maxsize
    show("together, not recorded", bits(jobs))
    steps.WARM = recorded


def speed(experiment: Experiment, size: str, models: int, device: str) -> None:
    """Print tokens a second."""
    step = training_of(size, 0)
    training = replace(step, tokens=STEPS * step.batch * step.context, points=1)
    jobs = [Job(k % len(experiment.corpora), 1, training) for k in range(models)]
    timer = Timer()
    try:
        trainer.train(experiment, jobs, device, timer.watch)
    except EnoughError:
        tokens = models * training.batch * training.context
        print(f"{1e3 * timer.step:.1f} ms, {tokens / timer.step:,.0f} tokens/s", end="")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prepared", type=Path)
    parser.add_argument("entries", nargs="+", metavar="SIZE:MODELS[:compiled]")
    parser.add_argument("--seconds", type=float, default=600, help="begin no entry after them")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    options = parser.parse_args()
    begun = time.monotonic()
    device = trainer.device_of(options.device)
    experiment = read_prepared(options.prepared / "all")
    print(trainer.machine(device), flush=True)
    as_is, trainer.compiled = trainer.compiled, lambda function, device: function
    same(experiment, device)
    plain = trainer.compiled
    torch = trainer.torch_module()
    for text in options.entries:
        size, models, *rest = text.split(":")
        trainer.compiled = as_is if rest else plain
        if time.monotonic() - begun > options.seconds:
            break
        started = time.monotonic()
        print(f"{started - begun:4.0f} s {text}: ", end="", flush=True)
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        try:
            speed(experiment, size, int(models), device)
        except RuntimeError as error:
            print(f"{type(error).__name__}: {str(error)[:200]}", end="")
        most = torch.cuda.max_memory_reserved() / 2**30 if device == "cuda" else 0
        print(f", {most:.1f} GiB, {time.monotonic() - started:.1f} s in all", flush=True)


if __name__ == "__main__":
    main()
