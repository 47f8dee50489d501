"""`curate export`: write the documents of a stage in the formats of other tools."""

import argparse
from typing import Any

from pipelines.commands.options import add_dry_run, add_flag, add_run, end_dry_run
from pipelines.reading.exports import FORMATS, export_of
from pipelines.storage.files import Folder
from pipelines.terminal import say, say_json


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--stage", required=True, metavar="STAGE", help="stage to export, such as classify"
    )
    parser.add_argument("--to", required=True, choices=list(FORMATS), help="format")
    parser.add_argument(
        "--output", metavar="DIR", help="folder or URL (default: RUN/export/STAGE-FORMAT)"
    )
    parser.add_argument("--columns", metavar="A,B", help="only these columns, in this order")
    parser.add_argument(
        "--split",
        default="",
        metavar="NAME=SHARE,...",
        help="divide documents by a hash of their id: train=0.99,val=0.01",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of the split (default: %(default)s)"
    )
    add_flag(parser, "--json", "print what was written as JSON")
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Write the documents and print what was written."""
    work = export_of(
        *(options.run, options.stage, options.to, options.output, options.columns),
        *(options.split, options.seed),
    )
    end_dry_run(options, work.folder, documents=sum(shard.rows for shard in work.shards))
    _print(work.folder, work.run(), options.json)
    return 0


def _print(folder: Folder, facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json({"folder": folder.url, **facts})
        return
    size = sum(file["bytes"] for file in facts["files"].values())
    for name, rows in facts["rows"].items():
        say(f"{name}: {rows:,} documents")
    say(f"{len(facts['files'])} files, {size:,} bytes: {folder.shown}")
