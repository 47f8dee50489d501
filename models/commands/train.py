"""`curate train`: train the models that the stages use, from files the user names."""

from __future__ import annotations

import argparse
import functools
import glob
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from curation import resources
from curation.config import assign, read_yaml, validate
from curation.credentials import redact
from curation.errors import ConfigError, InputError
from models.training.report import CARD, About
from pipelines.commands.options import add_dry_run, add_set, end_dry_run
from pipelines.terminal import say

Settings = TypeVar("Settings", bound=BaseModel)

#: Settings that `--set` may change where training reads no text column.
_EXAMPLES = {"tokenizer": "size=64000"}
_FILES = "JSONL (also .gz) or Parquet files, by path or glob"
_CODE = "code as `identify-language` writes it"
#: Models that are trained on labelled examples, with their purpose.
_LABELLED = {
    "quality": "grades of a page's value, or good and bad examples",
    "target": "a view of quality: likeness to texts you name, against those of a crawl",
    "domain": "general, math_reasoning or code",
    "topic": "a topic classifier for the labels in the data",
    "format": "a format classifier for the labels in the data",
    "language": "a fastText language model",
    "corrector": "a second language model that corrects the first",
}
_GRADED = {"positive": "good examples", "negative": "bad examples"}
#: The same for a target, by their options.
_TOWARDS = {
    "towards": ("positive", "texts that a corpus should be like; decontaminate them first"),
    "against": ("negative", "texts of the crawl, for example a run's documents"),
}
#: Options that name further files of examples, by model.
_FURTHER = {
    "quality": _GRADED,
    "target": _GRADED,
    "corrector": {
        "pages": "web texts without labels",
        "words": "lists of words by frequency: a label and `words`, an object of counts",
    },
}


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the models that can be trained and their options."""
    tasks = parser.add_subparsers(metavar="MODEL", required=True)
    for task, purpose in _LABELLED.items():
        options = "--towards gold.jsonl.gz --against 'corpus/filter/documents/*.parquet'"
        options = options if task == "target" else "--input labelled.jsonl.gz"
        one = _task(tasks, task, purpose, f"curate train {task} {options} --output my-{task}")
        one.set_defaults(command=_labelled, input=[])
        if task == "target":
            for option, (dest, what) in _TOWARDS.items():
                _add_files(one, option, what, required=True, dest=dest)
            continue
        for option, what in {"input": _FILES, **_FURTHER.get(task, {})}.items():
            _add_files(one, option, what)
    one = _task(
        tasks,
        "tokenizer",
        "a vocabulary, continued from another or from scratch",
        "curate train tokenizer --base cl100k_base.tiktoken --size 128000 "
        "--corpus 'texts/*.jsonl.gz' --output my-vocabulary",
    )
    _add_files(one, "corpus", _FILES, required=True)
    one.add_argument(
        "--base",
        metavar="FILE",
        help=".tiktoken file whose ranks are kept, or the name of a tiktoken encoding",
    )
    one.add_argument("--size", type=int, help="vocabulary size without special tokens")
    one.add_argument("--name", default="tokenizer", help="name of the vocabulary file")
    one.set_defaults(command=_tokenizer)
    one = _task(
        tasks,
        "reference",
        "a language's distribution of words, for KL divergence",
        "curate train reference --language de --input 'news/*.parquet' --output references",
    )
    _add_files(one, "input", _FILES, required=True)
    one.add_argument("--language", required=True, help=_CODE)
    one.set_defaults(command=_reference)


def _add_files(
    parser: argparse.ArgumentParser, option: str, what: str, required: bool = False, dest: str = ""
) -> None:
    parser.add_argument(
        f"--{option}",
        nargs="+",
        required=required,
        default=None if required else [],
        metavar="GLOB",
        help=what,
        dest=dest or option,
    )


def _task(tasks: Any, name: str, purpose: str, example: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = tasks.add_parser(
        name,
        help=purpose,
        description=f"Train {purpose}.",
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--output",
        required=True,
        type=_folder,
        metavar="DIR",
        help="folder for the model and its card",
    )
    add_set(parser, f"configs/train/{name}.yaml", _EXAMPLES.get(name, "text_column=content"))
    parser.add_argument("--version", default="1", help="for the card")
    parser.add_argument("--licence", default="unstated", help="for the card")
    parser.add_argument("--source", default="", help="source of the data, for the card")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    add_dry_run(parser)
    parser.set_defaults(task=name)
    return parser


def _folder(path: str) -> str:
    if not path.strip():
        raise argparse.ArgumentTypeError("an empty path")
    return path


def _settings(task: str, model: type[Settings], assignments: Sequence[str]) -> Settings:
    tree = read_yaml(resources.root() / "configs" / "train" / f"{task}.yaml")
    for assignment in assignments:
        assign(tree, assignment)
    return validate(model, tree, f"configs/train/{task}.yaml")


def _files(patterns: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in patterns:
        # An existing file, even if its name looks like a pattern.
        matches = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
        if not matches:
            raise ConfigError(f"{name}: no such file")
        found += matches
    return found


def _output(options: argparse.Namespace) -> Path:
    """Create the folder for model and card, before hours of training; end a dry run."""
    output = Path(options.output)
    card = output / CARD if options.task != "reference" else None  # that one gets languages added
    end_dry_run(options, output, card, known=None)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror}") from None
    return output


def _about(options: argparse.Namespace) -> About:
    command = redact(shlex.join(["curate", *sys.argv[1:]]))
    return About(options.version, options.licence, options.source, command)


def _labelled(options: argparse.Namespace) -> int:
    from models.training.classes import train_classes
    from models.training.corrector import train_corrector
    from models.training.language import train_language
    from models.training.quality import train_quality
    from models.training.settings import (
        CorrectorTraining,
        LabelledTraining,
        LanguageTraining,
        LinearTraining,
    )

    own: dict[str, tuple[Callable[..., object], type[LabelledTraining]]] = {
        "quality": (train_quality, LinearTraining),
        "target": (functools.partial(train_quality, name="target"), LinearTraining),
        "language": (train_language, LanguageTraining),
        "corrector": (train_corrector, CorrectorTraining),
    }
    of_classes = functools.partial(train_classes, options.task), LinearTraining
    train, kind = own.get(options.task, of_classes)
    inputs = _files(options.input)
    graded = _FURTHER.get(options.task) is _GRADED and options.positive and options.negative
    if not inputs and not graded:
        raise ConfigError("no examples: name files with --input")
    settings = _settings(options.task, kind, options.assignments)
    further = {name: _files(getattr(options, name)) for name in _FURTHER.get(options.task, {})}
    say(train(inputs, _output(options), _about(options), settings, **further))
    return 0


def _tokenizer(options: argparse.Namespace) -> int:
    import yaml

    from models.training.tokenizer import TokenizerTraining, base_ranks, train_tokenizer

    if options.base is not None:
        try:
            base_ranks(options.base)
        except InputError as error:
            raise ConfigError(f"--base: {error}") from None
    assignments = [*options.assignments]
    if options.size is not None:
        assignments.append(f"size={options.size}")
    settings = _settings("tokenizer", TokenizerTraining, assignments)
    files, output = _files(options.corpus), _output(options)
    card = train_tokenizer(files, output, settings, options.base, options.name, _about(options))
    say(yaml.safe_dump({k: v for k, v in card.items() if k != "data"}, sort_keys=False), end="")
    return 0


def _reference(options: argparse.Namespace) -> int:
    from models.training.reference import (
        ReferenceTraining,
        calibration_table,
        train_reference_files,
    )

    settings = _settings("reference", ReferenceTraining, options.assignments)
    files, output = _files(options.input), _output(options)
    report = train_reference_files(files, options.language, output, _about(options), settings)
    say(report)
    say(calibration_table(report.metrics["calibration"]))
    return 0
