"""`curate verify`: check a run folder against its manifests, down to the tokens' source records."""

from __future__ import annotations

import argparse

from curation.errors import ConfigError
from pipelines.commands.options import add_input, add_json, add_run
from pipelines.reading.checks import Checked, check
from pipelines.reading.summary import BILL
from pipelines.run_folder import SUMMARY, root_hash
from pipelines.storage.manifest import named_files
from pipelines.terminal import say, say_json


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--sample",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="share of the token spans to trace back (default: %(default)s)",
    )
    parser.add_argument(
        "--bom", metavar="FILE", help=f"a bill of materials (default: {SUMMARY}/{BILL} in the run)"
    )
    parser.add_argument("--key", metavar="PEM", help="public key to check the bill's signature")
    add_input(parser, "the run's raw input, to trace tokens back to its records")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Check everything and print the problems; return 0 only if there are none."""
    if not 0 <= options.sample <= 1:
        raise ConfigError(f"--sample {options.sample}: expected a share from 0 to 1")
    found = check(options.run, options.sample, options.input, options.bom, options.key)
    _print(options, found)
    return 1 if found.problems else 0


def _print(options: argparse.Namespace, found: Checked) -> None:
    folder, manifests, traced, problems = found
    root = root_hash(folder, list(manifests))
    files = sum(len(named_files(m)) for m in manifests.values())
    if options.json:
        facts = {"root": root, "files": files, "spans": traced, "problems": problems}
        say_json({"stages": list(manifests)} | facts)
        return
    for stage, manifest in manifests.items():
        counts = manifest["counts"]
        say(
            f"{stage}: {len(named_files(manifest)):,} files; {counts['documents_in']:,} documents "
            f"= {counts['documents']:,} kept + {counts['documents_removed']:,} removed"
        )
    for problem in problems:
        say(f"wrong: {problem}")
    if not problems:
        say(f"{files:,} files are intact; {traced:,} token spans trace back to their records")
    say(f"root: {root}")
