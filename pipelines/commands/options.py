"""Options that several commands have."""

from __future__ import annotations

import argparse


def add_set(parser: argparse.ArgumentParser, what: str, example: str) -> None:
    """Declare `--set KEY=VALUE`, which `curation.config.assign` carries out."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="assignments",
        help=f"change a value of {what}, e.g. --set {example} (repeatable)",
    )
