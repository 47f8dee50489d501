"""`curate completion`: a script that lets a shell complete commands, options and their values."""

import argparse
from collections.abc import Iterator

from pipelines.terminal import hand_over


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument(
        "shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="%(choices)s"
    )


def run(options: argparse.Namespace) -> int:
    """Print the script. Values without a list of choices, or a type, are completed as files."""
    import shtab

    parser = options.whole()
    for action in _actions(parser):
        if action.nargs != 0 and action.choices is None and action.type is None:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    hand_over(shtab.complete(parser, options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
