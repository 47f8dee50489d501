"""Carry out an experiment: every run with every seed, several models at a time."""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.ablate import experiment as experiments
from models.ablate.experiment import Experiment
from models.ablate.layout import layout
from models.ablate.results import Outcome
from models.ablate.store import Store
from models.ablate.training import SIZES, Training, check
from models.ablate.windows import Measured

if TYPE_CHECKING:
    from models.ablate.trainer import Job

Note = Callable[[str], None]


def train_all(
    experiment: Experiment,
    training: Training,
    seeds: Sequence[int],
    device: str,
    together: int | None,
    note: Note,
    store: Store,
) -> Outcome:
    """Train a transformer for every run and seed that `store` lacks. Raises ConfigError.

    `together` models are trained at a time: on a GPU as one (default: as many as fit), on a CPU in
    a process with one thread each (default: one).
    """
    runs = range(len(experiment.corpora))
    check(training)
    training = training.in_whole_steps()
    # All runs of a seed come first: what there is when time runs out can be compared.
    models = [(run, seed) for seed in seeds for run in runs]
    if missing := [model for model in models if store.find(*model, training) is None]:
        from models.ablate.trainer import Job

        jobs = [Job(*model, training) for model in missing]
        _train(experiment, jobs, device, together, note, store)
    every = [measured for model in models if (measured := store.find(*model, training))]
    found = [[every[k * len(runs) + run] for k in range(len(seeds))] for run in runs]
    count = layout(SIZES[training.size], experiment.vocabulary_size + 1).count
    model = {
        "transformer of": f"{count:,} parameters",
        "steps": training.steps,
        **{k: v for k, v in asdict(training).items() if v is not None and k != "tokens"},
        **{k: " and ".join(sorted({m[k] for m in store.machines})) for k in ("device", "torch")},
    }
    return Outcome(experiment, model, training.tokens, seeds, found)


def _train(
    experiment: Experiment,
    jobs: Sequence[Job],
    device: str,
    together: int | None,
    note: Note,
    store: Store,
) -> None:
    """Train group after group; keep what each measures."""
    from models.ablate.trainer import device_of, machine, room

    device = device_of(device)
    where = machine(device)
    if device == "cpu":
        groups = [[job] for job in jobs]
        processes = together or 1
    else:
        most = together or room(experiment, jobs[0].training)
        count = math.ceil(len(jobs) / most)  # of about one size, so that all are compiled once
        step = math.ceil(len(jobs) / count)
        groups = [list(jobs[first : first + step]) for first in range(0, len(jobs), step)]
        processes = 1
    begun = time.monotonic()
    for group, found in _measured(experiment, groups, device, processes):
        for job, measured in zip(group, found, strict=True):
            store.add(job.run, job.seed, job.training, measured, where)
            name, shown = experiment.corpora[job.run].name, _shown(experiment, measured)
            note(f"{name}, seed {job.seed}{shown} ({time.monotonic() - begun:.0f} s)")


def _measured(
    experiment: Experiment,
    groups: Sequence[Sequence[Job]],
    device: str,
    processes: int,
) -> Iterator[tuple[Sequence[Job], list[Measured]]]:
    """Yield the groups in order, with what their models measure."""
    from models.ablate.trainer import train

    if processes < 2:
        for group in groups:
            yield group, train(experiment, group, device)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        waiting = [pool.submit(train, experiment, group, device) for group in groups]
        for group, one in zip(groups, waiting, strict=True):
            yield group, one.result()


def _shown(experiment: Experiment, found: Measured) -> str:
    bits = sum(float(v.sum()) for v in found.texts.values())
    size = sum(int(texts.documents.sizes.sum()) for texts in experiment.texts)
    return f": {bits / size:.4f} bits per byte" if size else ""


def count_all(experiment: Experiment, tokens: int, seeds: Sequence[int], note: Note) -> Outcome:
    """Count n-grams for every run and seed."""
    from models.ablate.instant import DISCOUNT, measure

    found: list[list[Measured]] = []
    for corpus in experiment.corpora:
        found.append([])
        for seed in seeds:
            found[-1].append(measure(experiment, corpus, tokens, seed))
            note(f"{corpus.name}, seed {seed}{_shown(experiment, found[-1][-1])}")
    model: dict[str, Any] = {"trigram model of tokens, absolute discount": DISCOUNT}
    return Outcome(experiment, model, tokens, seeds, found)


def read_prepared(folder: Path) -> Experiment:
    """Return a prepared experiment. Raises InputError or ConfigError."""
    found = experiments.load(folder)
    experiments.check(found)
    return found
