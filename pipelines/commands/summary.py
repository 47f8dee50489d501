"""`curate summary`: write the training-data documents that must be published, from a run."""

import argparse
from pathlib import Path

import yaml

from curation.config import parse_yaml
from curation.errors import ConfigError
from pipelines.commands.options import add_dry_run, add_json, add_run, end_dry_run
from pipelines.reading.summary import RunFacts, write_summary
from pipelines.run_folder import SUMMARY
from pipelines.storage.files import Folder
from pipelines.terminal import say, say_json


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument("--output", metavar="DIR", help=f"folder (default: {SUMMARY} in the run)")
    parser.add_argument(
        "--mix", default="", metavar="NAME", help="a named mix (default: the main mix)"
    )
    parser.add_argument(
        "--answers", metavar="FILE", help="YAML file with the answers that a person gives, by field"
    )
    add_json(parser)
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Count, write the files, and list the fields that a person must fill in."""
    facts = RunFacts.of(options.run, options.mix)
    answers = _answers(options.answers)
    folder = Folder(options.output) if options.output else facts.folder / SUMMARY
    end_dry_run(options, folder)
    left = write_summary(facts, folder, answers)
    _say(options, folder, left)
    return 0


def _answers(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = parse_yaml(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: expected a mapping of fields to texts")
    return found


def _say(options: argparse.Namespace, folder: Folder, left: dict[str, str]) -> None:
    if options.json:
        say_json({"folder": folder.url, "files": folder.names(), "to_add": left})
        return
    say(f"{folder.shown}: {', '.join(folder.names())}")
    say(f"fields still to be filled in (--answers): {', '.join(left)}")
