"""`curate ablate`: which of several runs trains the better model, at equal tokens."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from curation.errors import ConfigError
from models.ablate.experiment import FILE
from models.ablate.training import SIZES, add_training, positive, training_of
from pipelines.commands.options import add_dry_run, add_json, end_dry_run
from pipelines.terminal import say, tell

_INSTANT_VOCABULARY = 16_384


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="run folder, stage folder, token shards, or files of texts; also NAME=PATH",
    )
    parser.add_argument(
        "--eval",
        action="append",
        default=[],
        metavar="LABEL=PATH",
        help="held-out texts for bits per byte: tables or text files (repeatable)",
    )
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="SET=FILE",
        help="items of an evaluation set from configs/evals, e.g. hellaswag=val.jsonl (repeatable)",
    )
    parser.add_argument("--stage", metavar="S", help="of run folders (default: the last)")
    parser.add_argument(
        "--instant",
        action="store_true",
        help="train n-gram models instead: takes seconds, needs no PyTorch",
    )
    add_training(parser)
    parser.add_argument(
        "--tokenizer", default="curation-128k", metavar="T", help="default: curation-128k"
    )
    parser.add_argument(
        "--vocabulary",
        type=positive,
        metavar="N",
        help="how many of its first tokens to use (default: by size)",
    )
    parser.add_argument(
        "--prepare",
        action="store_true",
        help=f"only write {FILE}; `python -m models.ablate DIR` trains, with numpy and PyTorch",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the results")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_json(parser)
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Prepare the data, train or count, then write and print the results."""
    from curation.tokenize.tokenizer import load_ranks
    from models.ablate import compare
    from models.ablate.experiment import check, save
    from models.ablate.prepare import Text, experiment, smaller
    from models.ablate.results import markdown, write
    from models.ablate.store import FILE as MEASURED
    from models.ablate.store import Store
    from models.commands.texts import Corpora

    if not options.instant and not options.prepare:
        from models.ablate.trainer import device_of

        device_of(options.device)  # checked before anything is read
    full = load_ranks(options.tokenizer)
    end_dry_run(options, options.output)
    size = _INSTANT_VOCABULARY if options.instant else SIZES[options.size].vocabulary
    reader = Corpora(options.stage, full)

    def read(path: str) -> list[Text]:
        texts = reader.texts(path)
        return [text.one_line() for text in texts] if options.instant else texts

    prepared = experiment(
        smaller(full, options.vocabulary or min(size, len(full.tokens))),
        [(name, read(path)) for name, path in _named(options.runs)],
        [(label, read(path)) for label, path in _named(options.eval)],
        [(label, list(_items(label, path))) for label, path in _named(options.task)],
    )
    check(prepared)
    output = Path(options.output)
    note = _silent if options.quiet else tell
    if options.prepare:
        save(prepared, output)
        note(f"{output / FILE}: {prepared.least_tokens:,} tokens in the smallest run")
        return 0
    training, seeds = training_of(options, prepared)
    if options.instant:
        from models.ablate.instant import accuracy

        prepared = replace(prepared, notes=(*prepared.notes, accuracy()))
        outcome = compare.count_all(prepared, training.tokens, seeds, note)
    else:
        outcome = compare.train_all(
            prepared,
            training,
            seeds,
            options.device,
            options.together,
            note,
            Store(prepared, output / MEASURED),
        )
    content = write(outcome, output)
    say(json.dumps(content, indent=1, ensure_ascii=False) if options.json else markdown(content))
    return 0


def _silent(text: str) -> None:
    """Print nothing."""


def _named(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield name and path from `NAME=PATH`; a bare path is named by its last part."""
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or "/" in name:
            name, path = Path(argument).name.split(".")[0] or argument, argument
        if not name or not path:
            raise ConfigError(f"{argument}: expected NAME=PATH")
        yield name, path


def _items(name: str, path: str) -> Iterable:
    from curation.decontaminate.decontaminate_settings import load_mapping
    from curation.decontaminate.items import read_items

    return read_items(name, [path], load_mapping(name).fields)
