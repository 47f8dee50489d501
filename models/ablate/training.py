"""Sizes of models, how they are trained, and the options that say so."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from typing import Literal

from curation.errors import ConfigError
from models.ablate.experiment import Experiment

Schedule = Literal["cosine", "wsd"]


@dataclass(frozen=True)
class Size:
    """A transformer's shape. Heads have `width / heads` dimensions."""

    width: int
    layers: int
    heads: int
    vocabulary: int  # tokens that texts are cut into unless another number is asked for
    rate: float  # peak of the learning rate


#: By name; the number of parameters has the embedding in it, which is also the output layer.
SIZES = {
    "tiny": Size(32, 2, 2, 512, 1e-2),  # to try a command: tells nothing
    "2M": Size(128, 8, 4, 4096, 4e-3),
    "5M": Size(192, 8, 6, 8192, 3e-3),
    "10M": Size(256, 10, 4, 8192, 2e-3),
    "20M": Size(320, 12, 5, 16384, 1.5e-3),
    "50M": Size(512, 13, 8, 16384, 1e-3),
    "150M": Size(768, 18, 12, 32768, 6e-4),
}


DEFAULT_SIZE = "5M"


@dataclass(frozen=True)
class Training:
    """One training, the same for every run."""

    size: str
    tokens: int  # that a model reads; more than a run has are read again
    context: int = 512
    batch: int = 8  # sequences of a step
    schedule: Schedule = "cosine"
    rate: float | None = None  # None: the size's
    warmup: float = 0.05  # share of the steps
    decay: float = 0.2  # share of the steps in which `wsd` falls to nothing
    floor: float = 0.1  # of the peak, at the end of `cosine`
    weight_decay: float = 0.1
    points: int = 6  # of the curves

    @property
    def steps(self) -> int:
        """Whole steps in the tokens."""
        return self.tokens // (self.context * self.batch)

    @property
    def peak(self) -> float:
        """Largest learning rate."""
        return SIZES[self.size].rate if self.rate is None else self.rate

    def in_whole_steps(self) -> Training:
        """Return the training with the tokens that its steps read; models are kept by it."""
        return replace(self, tokens=self.steps * self.context * self.batch)


def check(training: Training) -> None:
    """Raise ConfigError for an unknown size, or where there are too few tokens for a step."""
    if training.size not in SIZES:
        raise ConfigError(f"no size {training.size!r} (there are: {', '.join(SIZES)})")
    if training.steps < 2:
        needed = 2 * training.context * training.batch
        raise ConfigError(
            f"{training.tokens:,} tokens are too few: two steps of {training.batch} sequences of "
            f"{training.context} need {needed:,}; lower --batch or --context"
        )


def rate_at(training: Training, step: int) -> float:
    """Return the learning rate of a step, counted from 0."""
    steps = training.steps
    rising = max(1, round(training.warmup * steps))
    if step < rising:
        return training.peak * (step + 1) / rising
    if training.schedule == "wsd":
        falling = max(1, round(training.decay * steps))
        return training.peak * min(1.0, (steps - step) / falling)
    done = (step - rising) / max(1, steps - rising)
    fall = (1 + math.cos(math.pi * done)) / 2
    return training.peak * (training.floor + (1 - training.floor) * fall)


def add_training(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--size", default=DEFAULT_SIZE, choices=SIZES, help=f"default: {DEFAULT_SIZE}")
    add(
        "--tokens",
        type=positive,
        metavar="N",
        help="that every model reads (default: all of the smallest run); a run that has fewer is "
        "read again",
    )
    add("--seeds", type=positive, default=3, metavar="N", help="models of each run (default: 3)")
    add("--device", default="auto", choices=["auto", "cpu", "cuda"])
    add(
        "--together",
        "--processes",
        type=positive,
        metavar="N",
        help="models trained at a time: on a GPU with their weights stacked (default: as many as "
        "fit), on a CPU in a process with one thread each (default: 1)",
    )
    add("--context", type=positive, default=512, metavar="N", help="tokens (default: 512)")
    add("--batch", type=positive, default=8, metavar="N", help="sequences of a step (default: 8)")
    add("--schedule", default="cosine", choices=["cosine", "wsd"], help="of the learning rate")
    add("--learning-rate", type=float, metavar="RATE", help="its peak (default: by size)")
    add("--weight-decay", type=float, default=0.1, metavar="SHARE", help="default: 0.1")


def positive(text: str) -> int:
    """Return a number from 1 on."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def training_of(options: argparse.Namespace, experiment: Experiment) -> tuple[Training, list[int]]:
    """Return the training and its seeds."""
    training = Training(
        size=options.size,
        tokens=options.tokens or experiment.least_tokens,
        context=options.context,
        batch=options.batch,
        schedule=options.schedule,
        rate=options.learning_rate,
        weight_decay=options.weight_decay,
    )
    return training, list(range(1, options.seeds + 1))
