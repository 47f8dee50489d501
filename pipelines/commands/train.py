"""`curate train`: train the models that the stages use, from files the user names."""

from __future__ import annotations

import argparse
import glob
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from curation import resources
from curation.config import assign, read_yaml, validate
from curation.credentials import redact
from curation.errors import ConfigError, InputError
from pipelines.commands.options import add_set
from pipelines.terminal import say

Settings = TypeVar("Settings", bound=BaseModel)

#: Settings that `--set` may change where training reads no text column.
_EXAMPLES = {"ranking": "min_documents=100", "tokenizer": "size=64000"}
_FILES = "JSONL (also .gz) or Parquet files, by path or glob"


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the models that can be trained and their options."""
    tasks = parser.add_subparsers(metavar="MODEL", required=True)
    for task, purpose in (
        ("quality", "grades of a page's value, or good and bad examples"),
        ("domain", "general, math_reasoning or code"),
        ("topic", "a topic classifier for the labels in the data"),
        ("format", "a format classifier for the labels in the data"),
        ("citable", "a fastText model of pages that an encyclopaedia would cite"),
        ("language", "a fastText language model"),
        ("corrector", "a second language model that corrects the first"),
    ):
        one = _task(
            tasks,
            task,
            purpose,
            f"curate train {task} --input labelled.jsonl.gz --output my-{task}",
        )
        one.add_argument("--input", nargs="+", default=[], metavar="GLOB", help=_FILES)
        if task in ("quality", "citable"):
            one.add_argument(
                "--positive", nargs="+", default=[], metavar="GLOB", help="good examples"
            )
            one.add_argument(
                "--negative", nargs="+", default=[], metavar="GLOB", help="bad examples"
            )
        if task == "corrector":
            one.add_argument(
                "--pages", nargs="+", default=[], metavar="GLOB", help="web texts without labels"
            )
        one.set_defaults(command=_labelled)
    one = _task(
        tasks,
        "tokenizer",
        "a vocabulary, continued from another or from scratch",
        "curate train tokenizer --base cl100k_base.tiktoken --size 128000 "
        "--corpus 'texts/*.jsonl.gz' --output my-vocabulary",
    )
    one.add_argument("--corpus", nargs="+", required=True, metavar="GLOB", help=_FILES)
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
    one.add_argument("--input", nargs="+", required=True, metavar="GLOB", help=_FILES)
    one.add_argument("--language", required=True, help="code as `identify-language` writes it")
    one.set_defaults(command=_reference)
    one = _task(
        tasks,
        "ranking",
        "how quality is distributed in each language",
        "curate train ranking --input 'out/classify/documents/*.parquet' --output my-ranking",
    )
    one.add_argument("--input", nargs="+", required=True, metavar="GLOB", help="classified Parquet")
    one.set_defaults(command=_ranking)
    one = _task(
        tasks,
        "perplexity",
        "a language's model of characters, for perplexity",
        "curate train perplexity --language de --input 'wiki/*.parquet' --output models",
    )
    one.add_argument("--input", nargs="+", required=True, metavar="GLOB", help=_FILES)
    one.add_argument("--language", required=True, help="code as `identify-language` writes it")
    one.add_argument(
        "--calibrate",
        nargs="+",
        default=[],
        metavar="GLOB",
        help="reference documents for percentiles; default: held-out texts of --input",
    )
    one.set_defaults(command=_perplexity)


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
    for pattern in patterns:
        there = os.path.exists(pattern)  # an existing file, even if its name looks like a pattern
        matches = [pattern] if there else sorted(glob.glob(pattern, recursive=True))
        if not matches:
            raise ConfigError(f"{pattern}: no such file")
        found += matches
    return found


def _output(options: argparse.Namespace) -> Path:
    """Create the folder for model and card, before hours of training."""
    output = Path(options.output)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file, not a folder" if output.is_file() else error.strerror
        raise ConfigError(f"--output {output}: {reason}") from None
    return output


def _command_line() -> str:
    return redact(shlex.join(["curate", *sys.argv[1:]]))


def _labelled(options: argparse.Namespace) -> int:
    from curation.train import (
        About,
        train_citable,
        train_classes,
        train_corrector,
        train_language,
        train_quality,
    )
    from curation.train.settings import CorrectorTraining, LanguageTraining, LinearTraining

    about = About(options.version, options.licence, options.source, _command_line())
    inputs, output = _files(options.input), _output(options)
    pairs = options.task in ("quality", "citable") and options.positive and options.negative
    if not inputs and not pairs:
        raise ConfigError("no examples: name files with --input")
    if options.task == "language":
        language = _settings("language", LanguageTraining, options.assignments)
        say(train_language(inputs, output, about, language))
        return 0
    if options.task == "citable":
        citable = _settings("citable", LanguageTraining, options.assignments)
        good, bad = _files(options.positive), _files(options.negative)
        say(train_citable(inputs, output, about, citable, good, bad))
        return 0
    if options.task == "corrector":
        corrector = _settings("corrector", CorrectorTraining, options.assignments)
        say(train_corrector(inputs, output, about, corrector, _files(options.pages)))
        return 0
    settings = _settings(options.task, LinearTraining, options.assignments)
    if options.task == "quality":
        good, bad = _files(options.positive), _files(options.negative)
        say(train_quality(inputs, output, about, settings, good, bad))
        return 0
    say(train_classes(options.task, inputs, output, about, settings))
    return 0


def _tokenizer(options: argparse.Namespace) -> int:
    import yaml

    from curation.tokenize.train import CardFacts, TokenizerTraining, base_ranks, train_tokenizer

    if options.base is not None:
        try:
            base_ranks(options.base)
        except InputError as error:
            raise ConfigError(f"--base: {error}") from None
    assignments = [*options.assignments]
    if options.size is not None:
        assignments.append(f"size={options.size}")
    settings = _settings("tokenizer", TokenizerTraining, assignments)
    facts = CardFacts(options.version, options.licence, options.source, _command_line())
    card = train_tokenizer(
        _files(options.corpus), _output(options), settings, options.base, options.name, facts
    )
    say(yaml.safe_dump({k: v for k, v in card.items() if k != "data"}, sort_keys=False), end="")
    return 0


def _reference(options: argparse.Namespace) -> int:
    from curation.train import About
    from curation.train.reference import (
        ReferenceTraining,
        calibration_table,
        train_reference_files,
    )

    settings = _settings("reference", ReferenceTraining, options.assignments)
    about = About(options.version, options.licence, options.source, _command_line())
    files, output = _files(options.input), _output(options)
    report = train_reference_files(files, options.language, output, about, settings)
    say(report)
    say(calibration_table(report.metrics["calibration"]))
    return 0


def _ranking(options: argparse.Namespace) -> int:
    from curation.train import About
    from curation.train.ranking import RankingTraining, train_ranking

    settings = _settings("ranking", RankingTraining, options.assignments)
    about = About(options.version, options.licence, options.source, _command_line())
    say(train_ranking(_files(options.input), _output(options), about, settings))
    return 0


def _perplexity(options: argparse.Namespace) -> int:
    from curation.train import About
    from curation.train.perplexity import PerplexityTraining, train_perplexity_files

    settings = _settings("perplexity", PerplexityTraining, options.assignments)
    about = About(options.version, options.licence, options.source, _command_line())
    output = _output(options)
    inputs, calibrate = _files(options.input), _files(options.calibrate)
    say(train_perplexity_files(inputs, options.language, output, about, settings, calibrate))
    return 0
