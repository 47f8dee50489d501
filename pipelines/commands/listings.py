"""`curate recipes` and `curate models`: what is built in."""

from __future__ import annotations

import argparse

import yaml
from rich.table import Table

import curation
from curation.models import list_models
from curation.recipe import built_in, load
from pipelines.commands.options import add_json
from pipelines.terminal import PlainConsole, say, say_json

_SUMS = 3  # checksums shown of a model of many files; --json has them all


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options of `recipes` or `models`."""
    if name == "recipes":
        parser.add_argument("recipe", nargs="?", help="print this recipe with every value")
    add_json(parser)
    parser.set_defaults(command=recipes if name == "recipes" else models)


def recipes(options: argparse.Namespace) -> int:
    """List the built-in recipes, or print one with every value."""
    if options.recipe:
        content = load(options.recipe).model_dump(mode="json", by_alias=True)
        if options.json:
            say_json(content)
        else:
            say(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100), end="")
        return 0
    loaded = [(name, load(name)) for name in built_in()]
    if options.json:
        rows = [
            {
                "name": name,
                "version": curation.__version__,
                "description": recipe.description,
                "stages": list(recipe.stages),
                "sha256": recipe.sha256,
                "licence": "Apache-2.0",
            }
            for name, recipe in loaded
        ]
        say_json(rows)
        return 0
    table = Table("recipe", "version", "licence", "sha256", "stages", "description")
    for name, recipe in loaded:
        table.add_row(
            name,
            curation.__version__,
            "Apache-2.0",
            recipe.sha256[:12],
            str(len(recipe.stages)),
            recipe.description,
        )
    PlainConsole().print(table)
    return 0


def models(options: argparse.Namespace) -> int:
    """List the built-in models with version, licence and checksum."""
    cards = list_models()
    if options.json:
        say_json([c.model_dump(mode="json") for c in cards])
        return 0
    table = Table("model", "version", "licence", "sha256", "task")
    for card in cards:
        sums = [card.sha256] if isinstance(card.sha256, str) else list(card.sha256.values())
        if len(sums) > _SUMS:
            sums = [*sums[:_SUMS], f"and {len(sums) - _SUMS} more"]
        short = "\n".join(s[:16] for s in sums)
        table.add_row(card.name, str(card.version), card.licence, short, card.task)
    PlainConsole().print(table)
    return 0
