"""Train the extractor's model: python -m models.training.extract --data DIR --output FOLDER.

DIR holds `<set>/html/<id>.html` and `<set>/gold.jsonl` ({id, text, url, group or site}).
The same data, settings and versions of scikit-learn and RapidFuzz give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

from curation.config import read_yaml, validate
from models.training.extract import model_name, train
from models.training.extract.settings import ExtractTraining, default_training
from models.training.saving import save_blocks


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m models.training.extract", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--output", type=Path, required=True, help="folder for blocks.npz")
    parser.add_argument("--settings", type=Path, help="YAML instead of configs/train/extract.yaml")
    parser.add_argument(
        "--cross-fit",
        action="store_true",
        help="also write blocks-fold<k>.npz, the models that saw no site of fold k",
    )
    parser.add_argument(
        "--all-sets",
        action="store_true",
        help="to measure only, never to ship: cross-fit on all sets, those too that the shipped "
        "model never learns from, and write nothing but all-sets-fold<k>.npz",
    )
    options = parser.parse_args(arguments)
    settings = default_training()
    if options.settings:
        listed = read_yaml(options.settings)
        settings = validate(ExtractTraining, listed, str(options.settings))
    options.output.mkdir(parents=True, exist_ok=True)
    if options.all_sets:
        trained = train(options.data, settings.with_all_sets(), False, True, _say)
    else:
        trained = train(options.data, settings, True, options.cross_fit, _say)
    for fold, model in trained:
        path = options.output / model_name(fold, options.all_sets)
        save_blocks(model, path)
        print(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}", flush=True)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
