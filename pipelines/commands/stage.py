"""The commands of single stages."""

import argparse
import importlib

from curation.errors import ConfigError
from curation.stages import find
from pipelines.commands.options import add_index, add_input, add_recipe_options
from pipelines.commands.run import run as run_stages
from pipelines.engine.stage import as_given
from pipelines.run_folder import RECIPE_FILE, load_run
from pipelines.storage.files import Folder

#: The recipe of a stage that reads the documents of no run.
RECIPE = "llama3"


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the common options and those of this stage."""
    stage = find(name)
    parser.add_argument("--run", metavar="DIR", help="in place of both: a run to do the stage in")
    add_input(parser, "a stage folder, or files by path, glob or URL")
    parser.add_argument("--output", metavar="DIR", help=f"run folder; the stage writes DIR/{name}")
    parser.add_argument(
        "--recipe", metavar="RECIPE", help=f"default: that of the run in DIR, else {RECIPE}"
    )
    if stage.is_indexed:
        add_index(parser)
    add_recipe_options(parser)
    parser.set_defaults(stages=name)
    if stage.command:  # the module that extends it
        importlib.import_module(f"pipelines.commands.{stage.command}").extend(parser)


def run(options: argparse.Namespace) -> int:
    """Run the stage."""
    settle(options)
    return run_stages(options)


def settle(options: argparse.Namespace) -> None:
    """Complete the options: folder and recipe of the run whose documents the stage reads.

    Raises ConfigError.
    """
    if options.run:
        if options.output:
            raise ConfigError("--run: names the folder that is written, too; leave out --output")
        load_run(options.run)
        options.output = options.run
    if not options.output or not (options.input or options.run):
        missing = " and ".join(f"--{n}" for n in ("input", "output") if not getattr(options, n))
        raise ConfigError(f"{missing} or --run is required (see `curate {options.stages} --help`)")
    folder = Folder(options.output)
    if options.recipe is None:
        inside = all(as_given(path).startswith(f"{folder.url}/") for path in options.input)
        own = inside and folder.is_local and folder.exists(RECIPE_FILE)
        options.recipe = folder.url_of(RECIPE_FILE) if own else RECIPE
