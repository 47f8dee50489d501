"""Carry out an experiment: every run with every seed, one after the other or side by side."""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from curation.ablate import experiment as experiments
from curation.ablate.experiment import Experiment
from curation.ablate.results import Outcome
from curation.ablate.training import Training, check
from curation.ablate.windows import Measured

Learner = Callable[[Experiment, int, int], Measured]  # run and seed
Note = Callable[[str], None]


def train_all(
    experiment: Experiment,
    training: Training,
    seeds: Sequence[int],
    device: str,
    processes: int,
    note: Note,
) -> Outcome:
    """Train a transformer for every run and seed. Raises ConfigError.

    `processes` share a GPU; on CPU each has one thread, so that as many as cores pay.
    """
    from curation.ablate.trainer import device_of, parameters, torch_module

    check(training)
    device = device_of(device)
    steps = training.steps
    training = replace(training, tokens=steps * training.context * training.batch)
    learner = functools.partial(_trained, training, device)
    found = list(_all(learner, experiment, seeds, processes, note))
    model = {
        "transformer of": f"{parameters(experiment, training):,} parameters",
        "steps": steps,
        **{k: v for k, v in asdict(training).items() if v is not None and k != "tokens"},
        "device": device,
        "torch": torch_module().__version__,
    }
    return Outcome(experiment, model, training.tokens, seeds, found)


def _trained(
    training: Training, device: str, experiment: Experiment, run: int, seed: int
) -> Measured:
    from curation.ablate.trainer import train

    return train(experiment, experiment.corpora[run], training, seed, device)


def count_all(experiment: Experiment, tokens: int, seeds: Sequence[int], note: Note) -> Outcome:
    """Count n-grams for every run and seed."""
    from curation.ablate.instant import DISCOUNT

    found = list(_all(functools.partial(_counted, tokens), experiment, seeds, 1, note))
    model: dict[str, Any] = {"trigram model of tokens, absolute discount": DISCOUNT}
    return Outcome(experiment, model, tokens, seeds, found)


def _counted(tokens: int, experiment: Experiment, run: int, seed: int) -> Measured:
    from curation.ablate.instant import measure

    return measure(experiment, experiment.corpora[run], tokens, seed)


def _all(
    learner: Learner, experiment: Experiment, seeds: Sequence[int], processes: int, note: Note
) -> Iterator[list[Measured]]:
    """Yield for each run what each seed measured."""
    jobs = [(run, seed) for run in range(len(experiment.corpora)) for seed in seeds]
    if processes > 1:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
            waiting = [pool.submit(learner, experiment, *job) for job in jobs]
            found = [
                _noted(one.result(), experiment, job, note)
                for one, job in zip(waiting, jobs, strict=True)
            ]
    else:
        found = [_noted(learner(experiment, *job), experiment, job, note) for job in jobs]
    for first in range(0, len(found), len(seeds)):
        yield found[first : first + len(seeds)]


def _noted(found: Measured, experiment: Experiment, job: tuple[int, int], note: Note) -> Measured:
    run, seed = job
    bits = sum(float(v.sum()) for v in found.texts.values())
    size = sum(int(texts.documents.sizes.sum()) for texts in experiment.texts)
    shown = f": {bits / size:.4f} bits per byte" if size else ""
    note(f"{experiment.corpora[run].name}, seed {seed}{shown}")
    return found


def read_prepared(folder: Path) -> Experiment:
    """Return a prepared experiment. Raises InputError or ConfigError."""
    found = experiments.load(folder)
    experiments.check(found)
    return found
