"""`python -m models.ablate FOLDER`: train a prepared experiment where only numpy and PyTorch are.

    curate ablate A B --eval gold=texts.parquet --size 150M --prepare --output FOLDER
    python -m models.ablate FOLDER --size 150M --device cuda      # on another machine

Results come into the same folder, or into `--output`. Each model is kept in `measured.jsonl` as
soon as it is measured: a command that was stopped goes on from there, and one that has all of them
only writes the results, without PyTorch.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from curation.errors import CurationError
from models.ablate.compare import read_prepared, train_all
from models.ablate.results import markdown, write
from models.ablate.store import FILE, Store
from models.ablate.training import add_training, training_of


def main() -> int:
    """Train, write results, print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="what `curate ablate --prepare` wrote")
    parser.add_argument("--output", type=Path, help="default: the folder")
    add_training(parser)
    options = parser.parse_args()
    try:
        experiment = read_prepared(options.folder)
        training, seeds = training_of(options, experiment)
        output = options.output or options.folder
        store = Store(experiment, output / FILE)
        outcome = train_all(
            experiment, training, seeds, options.device, options.together, _note, store
        )
        print(markdown(write(outcome, output)))
    except CurationError as error:
        _note(f"error: {error}")
        return error.exit_code
    return 0


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
