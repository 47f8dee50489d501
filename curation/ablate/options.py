"""Options of a training, on the command line of the toolkit and of a prepared experiment."""

from __future__ import annotations

import argparse

from curation.ablate.experiment import Experiment
from curation.ablate.training import SIZES, Training

DEFAULT_SIZE = "5M"


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
