"""The commands of single stages."""

from __future__ import annotations

import argparse
import importlib
from types import ModuleType
from typing import Any

from curation.stages import Stage, find
from pipelines.commands.options import add_index, add_input, add_recipe_options
from pipelines.commands.run import run


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the common options and those of this stage."""
    stage = find(name)
    extension = _extension(stage)
    required = getattr(extension, "NEEDS_INPUT", True)
    add_input(parser, "a stage folder, or files by path, glob or URL", required)
    parser.add_argument(
        "--output",
        required=required,
        metavar="DIR",
        help=f"run folder; the stage writes DIR/{name}",
    )
    parser.add_argument("--recipe", default="llama3", metavar="RECIPE", help="default: llama3")
    if stage.is_indexed:
        add_index(parser)
    add_recipe_options(parser)
    parser.set_defaults(command=run, stages=name)
    if extension is not None:
        extension.extend(parser)


def _extension(stage: Stage[Any]) -> ModuleType | None:
    """Return the module that extends the stage's command, if any."""
    if not stage.command:
        return None
    return importlib.import_module(f"pipelines.commands.{stage.command}")
