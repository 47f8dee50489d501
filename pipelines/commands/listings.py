"""`curate recipes`, `curate models` and `curate runs`: list what is built in, and what there is."""

import argparse

import yaml
from rich import box
from rich.table import Table

import curation
from curation.errors import ConfigError
from curation.models import list_models
from curation.recipe import built_in, load, outline
from pipelines.commands.options import add_json
from pipelines.console import PlainConsole
from pipelines.terminal import say, say_json

#: Purposes of models whose cards name only the task.
_PURPOSES = {
    "corrector": "second opinion on the language model's answers",
    "domain": "general, mathematics or code",
    "format": "what kind of page: article, listing, forum, ...",
    "quality": "educational value of a page",
    "tokenizer": "texts to token ids",
    "topic": "what a page is about",
}


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options of `recipes`, `models` or `runs`."""
    if name == "runs":
        parser.add_argument("folder", nargs="?", default=".", help="default: the working directory")
    if name == "recipes":
        parser.add_argument("recipe", nargs="?", help="print this recipe with all its values")
    add_json(parser)
    parser.set_defaults(command={"recipes": recipes, "models": models, "runs": runs}[name])


def recipes(options: argparse.Namespace) -> int:
    """List the built-in recipes, or print one with all its values."""
    if options.recipe:
        content = load(options.recipe).model_dump(mode="json", by_alias=True)
        if options.json:
            say_json(content)
        else:
            say(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100), end="")
        return 0
    if options.json:
        loaded = [(name, load(name)) for name in built_in()]
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
    table = _table("recipe", "stages", "purpose")
    for name in built_in():
        described = outline(name)
        table.add_row(name, str(len(described["stages"])), described["description"])
    PlainConsole().print(table)
    say(
        f"All are version {curation.__version__}, Apache-2.0. Give a NAME to see all values of one."
    )
    return 0


def models(options: argparse.Namespace) -> int:
    """List the built-in models with version, licence and checksum."""
    cards = list_models()
    if options.json:
        say_json([c.model_dump(mode="json") for c in cards.values()])
        return 0
    line = "{:<23}{:<15}{:<14}{:>8}  {}"
    say(line.format("model", "version", "licence", "size", "sha256"))
    for folder, card in cards.items():
        sums = [card.sha256] if isinstance(card.sha256, str) else list(card.sha256.values())
        files = [card.file] if isinstance(card.sha256, str) else list(card.sha256)
        size = sum((folder / name).stat().st_size for name in files) / 1e6
        checksum = sums[0][:8] if len(sums) == 1 else f"{len(sums)} files"  # --json shows them all
        version, licence = str(card.version).partition(" ")[0], card.licence.partition(";")[0]
        say(line.format(card.name, version, licence, f"{size:.1f} MB", checksum))
        say(f"    {_PURPOSES.get(card.task, card.task)}")
    return 0


def runs(options: argparse.Namespace) -> int:
    """List the runs in a folder and below it."""
    from pipelines.run_folder import run_facts, runs_below  # slow
    from pipelines.storage.files import Folder

    folder = Folder(options.folder)
    if not folder.exists():
        raise ConfigError(f"{options.folder}: no such folder")
    found = [run_facts(run) for run in runs_below(folder)]
    if options.json:
        say_json(found)
        return 0
    table = _table("state", "recipe", "documents", "tokens", "size", "root", "run")
    for one in found:
        counts = f"{one['documents']:,}", f"{one['tokens']:,}", f"{one['bytes'] / 1e6:,.1f} MB"
        table.add_row(one["state"], one["recipe"], *counts, (one["root"] or "")[:8], one["run"])
    PlainConsole().print(table) if found else say(f"{folder.shown}: no run in it or below it")
    return 0


def _table(*columns: str) -> Table:
    """Return a table that wraps only its last column in a narrow terminal."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in columns[:-1]:
        table.add_column(name, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    return table
