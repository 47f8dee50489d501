"""Train transformers on what `benchmarks/proof.py --prepare PREPARED` wrote; needs numpy and PyTorch.

    python benchmarks/proofs/trained.py PREPARED RESULTS 5M:all:4:5:6 5M:unseen:4:5 150M:all:4:1:2

An entry is SIZE:PAGES:EPOCHS:SEEDS[:TOGETHER]; TOGETHER is how many models are trained at a time
(default: as many as fit into half of a GPU's memory). PAGES: `all`, or `unseen` by every model of
the toolkit. All outputs are read for EPOCHS times the tokens of the smallest; larger ones repeat
less. Models of 150M are trained for whole pipelines and plain text only.

Rate (as a multiple of the size's own) and weight decay are chosen once for everything, with
models of TUNED on text that no pipeline has touched: plain text, as many tokens of it as the
smallest output of all pages has, read as often; those win by which other pages of plain text, of
other sites, need the fewest bits.

Every model is kept in RESULTS/measured.jsonl as soon as it is measured, and isn't trained again:
all outputs of a seed first. `--seconds` ends training in time; `--evaluate` trains nothing, and
writes RESULTS/SIZE-PAGES-EPOCHS of the seeds that all outputs have.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the package isn't installed

from models.ablate.compare import read_prepared, train_all, train_each
from models.ablate.experiment import Experiment
from models.ablate.results import write
from models.ablate.store import FILE, Store
from models.ablate.training import SIZES, Training
from models.ablate.windows import Measured

PAGES = ("all", "unseen")
CONTEXT = 512  # no gold text is longer
#: Sequences of a step: many steps with few tokens, of larger models fewer.
BATCH = {"150M": 16}
OTHER_BATCH = 8
PIPELINES = ("plain-text", "datatrove-fineweb", "fineweb", "llama3")
RATES = (0.25, 0.5, 1.0, 2.0)  # times the size's own
DECAYS = (0.1, 1.0)  # of matrices
TUNED = "5M"
TUNING = "tuning"  # folder of the experiment that rates are chosen by
TUNING_EPOCHS, TUNING_SEED = 4, 101
RESERVE = 6.0  # seconds to measure models and to stop


class OutOfTimeError(Exception):
    """What was begun would not be done in time."""


class Clock:
    """Ends training that would last too long, as soon as that can be told."""

    def __init__(self, seconds: float) -> None:
        self.begun = time.monotonic()
        self.end = self.begun + seconds
        self._before = (0, 0.0)

    def watch(self, done: int, steps: int) -> None:
        """Be told of steps done. Raises OutOfTimeError."""
        now = time.monotonic()
        before, then = self._before
        self._before = (done, now)
        late = now + RESERVE > self.end
        if 0 < before < done:
            late |= now + (now - then) / (done - before) * (steps - done) + RESERVE > self.end
        if late:
            raise OutOfTimeError


@dataclass(frozen=True)
class Entry:
    """Models of one size, all outputs of the pages, so many epochs of the smallest."""

    size: str
    pages: str
    epochs: int
    seeds: int
    together: int | None

    @property
    def name(self) -> str:
        return f"{self.size}-{self.pages}-{self.epochs}"


def entry(text: str) -> Entry:
    """Return an entry from `SIZE:PAGES:EPOCHS:SEEDS[:TOGETHER]`."""
    size, pages, *numbers = text.split(":")
    counts = [int(number) for number in numbers]
    if size not in SIZES or pages not in PAGES or len(counts) not in (2, 3):
        raise argparse.ArgumentTypeError(f"{text}: sizes {', '.join(SIZES)}; {', '.join(PAGES)}")
    if min(counts) < 1:
        raise argparse.ArgumentTypeError(f"{text}: EPOCHS, SEEDS and TOGETHER are 1 or more")
    epochs, seeds, *together = counts
    return Entry(size, pages, epochs, seeds, together[0] if together else None)


def training_of(size: str, tokens: int) -> Training:
    """Return the training, the same for all outputs."""
    return Training(size, tokens, CONTEXT, BATCH.get(size, OTHER_BATCH))


class Proof:
    """What is prepared, and what has been measured."""

    def __init__(self, prepared: Path, results: Path, device: str, clock: Clock) -> None:
        self.prepared, self.results = prepared, results
        self.device, self.clock = device, clock

    def tuned(self) -> tuple[float, float]:
        """Return the multiple of a size's rate, and the decay, that suit plain text best."""
        experiment = read_prepared(self.prepared / TUNING)
        training = training_of(TUNED, TUNING_EPOCHS * experiment.least_tokens)
        choices = [(rate, decay) for rate in RATES for decay in DECAYS]
        models = [(0, TUNING_SEED, chosen(training, *choice)) for choice in choices]
        note = functools.partial(self._say, TUNING)
        store = self._store(experiment)
        watch = self.clock.watch
        found = train_each(experiment, models, self.device, None, note, store, watch)
        bits = {c: means([one])["plain text"] for c, one in zip(choices, found, strict=True)}
        best = min(choices, key=lambda choice: bits[choice])
        for choice in choices:
            text = "rate x {}, weight decay {}".format(*choice)
            print(f"{text}: {bits[choice]:.0f} bits{' *' * (choice == best)}", flush=True)
        return best

    def trained(self, what: Entry, best: tuple[float, float]) -> None:
        """Train what is missing. Raises OutOfTimeError."""
        experiment, training = self._planned(what, best)
        seeds = range(1, what.seeds + 1)
        note = functools.partial(self._say, what.name)
        store, watch = self._store(experiment), self.clock.watch
        train_all(experiment, training, seeds, self.device, what.together, note, store, watch)

    def evaluated(self, what: Entry, best: tuple[float, float]) -> None:
        """Write the results of the seeds that all outputs have."""
        experiment, training = self._planned(what, best)
        store, folder = self._store(experiment), self.results / what.name
        if seeds := list(self._complete(experiment, training, what, store)):
            outcome = train_all(experiment, training, seeds, "cpu", 1, print, store)
            write(outcome, folder)
            print(f"\n## {what.name}\n\n{(folder / 'results.md').read_text()}", flush=True)

    def shown(self, what: Entry, best: tuple[float, float]) -> None:
        """Print means over seeds of bits per byte of each output."""
        experiment, training = self._planned(what, best)
        store = self._store(experiment)
        seeds = list(self._complete(experiment, training, what, store))
        print(f"\n{what.name}: {len(seeds)} seeds of {what.seeds}")
        for run, corpus in enumerate(experiment.corpora if seeds else ()):
            found = [store.find(run, seed, training.in_whole_steps()) for seed in seeds]
            bits = means([one for one in found if one])
            sizes = {s.label: int(s.documents.sizes.sum()) for s in experiment.texts}
            cells = [f"{label} {bits[label] / size:.4f}" for label, size in sizes.items()]
            print(f"  {corpus.name:18} {'  '.join(cells)}", flush=True)

    def _planned(self, what: Entry, best: tuple[float, float]) -> tuple[Experiment, Training]:
        experiment = read_prepared(self.prepared / what.pages)
        training = training_of(what.size, what.epochs * experiment.least_tokens)
        if what.size in BATCH:
            some = tuple(corpus for corpus in experiment.corpora if corpus.name in PIPELINES)
            experiment = replace(experiment, corpora=some)
        return experiment, chosen(training, *best)

    def _complete(
        self, experiment: Experiment, training: Training, what: Entry, store: Store
    ) -> Iterator[int]:
        for seed in range(1, what.seeds + 1):
            runs = range(len(experiment.corpora))
            if all(store.find(run, seed, training.in_whole_steps()) for run in runs):
                yield seed

    def _store(self, experiment: Experiment) -> Store:
        return Store(experiment, self.results / FILE)

    def _say(self, name: str, text: str) -> None:
        print(f"{time.monotonic() - self.clock.begun:4.0f} s {name}: {text}", flush=True)


def chosen(training: Training, rate: float, decay: float) -> Training:
    """Return the training with a multiple of the size's rate."""
    return replace(training, rate=SIZES[training.size].rate * rate, weight_decay=decay)


def means(found: Sequence[Measured]) -> dict[str, float]:
    """Return the bits of each kind of text, the mean of some models."""
    return {k: sum(float(m.texts[k].sum()) for m in found) / len(found) for k in found[0].texts}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prepared", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("entries", type=entry, nargs="+", metavar="ENTRY")
    parser.add_argument("--seconds", type=float, help="train for so long, and write no results")
    parser.add_argument("--evaluate", action="store_true", help="only write results")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    options = parser.parse_args()
    clock = Clock(options.seconds or float("inf"))
    proof = Proof(options.prepared, options.results, options.device, clock)
    try:
        best = proof.tuned()
    except OutOfTimeError:
        sys.exit("no time to choose a rate")
    for what in () if options.evaluate else options.entries:
        try:
            proof.trained(what, best)
        except OutOfTimeError:
            print(f"{what.name}: no time for all", flush=True)
        except RuntimeError as error:  # such as no memory: other entries may have enough
            print(f"{what.name}: {error}", flush=True)
    for what in options.entries:
        proof.shown(what, best)
    if not options.seconds:
        for what in options.entries:
            proof.evaluated(what, best)


if __name__ == "__main__":
    main()
