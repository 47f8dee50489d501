"""Train transformers on what `benchmarks/proof.py --prepare PREPARED` wrote; needs numpy and PyTorch.

    python benchmarks/proofs/trained.py PREPARED RESULTS 5M:unseen:1:6 20M:all:4:6

An entry is SIZE:PAGES:EPOCHS:SEEDS. PAGES: `all`, or `unseen` by every model of the toolkit. All
outputs are read for EPOCHS times the tokens of the smallest; larger ones repeat less. Rate and
weight decay are chosen first, for all outputs alike, on one that no pipeline has touched: plain
text, as many tokens of it as the smallest output has, read as often; those win by which other pages
of plain text, of other sites, need the fewest bits.

Each entry has its process, `--lanes` of them at a time, and the folder RESULTS/SIZE-PAGES-EPOCHS.
What is there already isn't trained again.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the package isn't installed

from curation.ablate.compare import read_prepared, train_all, train_each
from curation.ablate.results import write
from curation.ablate.store import FILE, Store
from curation.ablate.training import SIZES, Training

PAGES = ("unseen", "all")
#: A step of 2,048 tokens: many steps with few tokens. No gold text is longer than the context.
CONTEXT, BATCH = 512, 4
RATES = (0.5, 1.0, 2.0)  # times the size's own
DECAYS = (0.1, 1.0)  # of matrices; read once, nothing can be learned by heart: the first
TUNING_SEEDS = (101, 102)


@dataclass(frozen=True)
class Entry:
    """Models of one size, all outputs of the pages, so many epochs of the smallest."""

    size: str
    pages: str
    epochs: int
    seeds: int

    @property
    def name(self) -> str:
        return f"{self.size}-{self.pages}-{self.epochs}"


def entry(text: str) -> Entry:
    """Return an entry from `SIZE:PAGES:EPOCHS:SEEDS`."""
    size, pages, epochs, seeds = text.split(":")
    if size not in SIZES or pages not in PAGES:
        raise argparse.ArgumentTypeError(f"{text}: sizes {', '.join(SIZES)}; {', '.join(PAGES)}")
    return Entry(size, pages, int(epochs), int(seeds))


def tuning_of(pages: str) -> str:
    """Return the folder of the experiment that rates are chosen by."""
    return f"{pages}-tuning"


def tuned(
    prepared: Path, folder: Path, what: Entry, training: Training, device: str, together: int | None
) -> Training:
    """Return the training with the rate and decay that suit plain text best."""
    experiment = read_prepared(prepared / tuning_of(what.pages))
    choices = [
        replace(training, rate=SIZES[what.size].rate * rate, weight_decay=decay)
        for rate in RATES
        for decay in DECAYS[: 1 if what.epochs == 1 else None]
    ]
    models = [(0, seed, choice) for choice in choices for seed in TUNING_SEEDS]
    store = Store(experiment, folder / "tuning" / FILE)
    found = train_each(
        experiment, models, device, together, functools.partial(_say, what, "tuning"), store
    )
    size = sum(int(texts.documents.sizes.sum()) for texts in experiment.texts)
    rows = []
    for k, choice in enumerate(choices):
        some = found[k * len(TUNING_SEEDS) : (k + 1) * len(TUNING_SEEDS)]
        bits = sum(float(v.sum()) for one in some for v in one.texts.values())
        rows.append((bits / size / len(some), choice))
    content = [{"bits": b, "rate": c.rate, "weight_decay": c.weight_decay} for b, c in rows]
    (folder / "tuning" / "tuning.json").write_text(json.dumps(content, indent=1) + "\n")
    return min(rows, key=lambda row: row[0])[1]


def carry_out(
    prepared: Path, results: Path, what: Entry, device: str, together: int | None
) -> None:
    """Tune, train and write the results of an entry."""
    folder = results / what.name
    experiment = read_prepared(prepared / what.pages)
    training = Training(what.size, what.epochs * experiment.least_tokens, CONTEXT, BATCH)
    training = tuned(prepared, folder, what, training, device, together)
    store = Store(experiment, folder / FILE)
    seeds = range(1, what.seeds + 1)
    note = functools.partial(_say, what, "outputs")
    write(train_all(experiment, training, seeds, device, together, note, store), folder)


def _say(what: Entry, kind: str, text: str) -> None:
    print(f"{what.name}, {kind}: {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prepared", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("entries", type=entry, nargs="+", metavar="SIZE:PAGES:EPOCHS:SEEDS")
    parser.add_argument("--lanes", type=int, default=1, help="entries at a time")
    parser.add_argument("--together", type=int, help="models at a time of each entry")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    chosen = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(chosen.lanes, mp_context=spawn, max_tasks_per_child=1) as pool:
        waiting = [
            pool.submit(
                carry_out, chosen.prepared, chosen.results, one, chosen.device, chosen.together
            )
            for one in chosen.entries
        ]
        failed = 0
        for one, done in zip(chosen.entries, waiting, strict=True):
            if error := done.exception():
                print(f"{one.name}: {type(error).__name__}: {error}", flush=True)
                failed += 1
            else:
                print((chosen.results / one.name / "results.md").read_text(), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
