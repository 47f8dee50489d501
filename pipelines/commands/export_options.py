"""Options of `curate export`, apart from it so that the parser loads fast."""

from __future__ import annotations

import argparse

#: As in `pipelines.export_formats`.
FORMAT_NAMES = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet", "hf", "webdataset")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--run", required=True, metavar="DIR", help="run folder")
    parser.add_argument(
        "--stage", required=True, metavar="STAGE", help="whose documents, such as classify"
    )
    parser.add_argument("--to", required=True, choices=FORMAT_NAMES, help="format")
    parser.add_argument(
        "--output", metavar="DIR", help="folder or URL (default: RUN/export/STAGE-FORMAT)"
    )
    parser.add_argument(
        "--columns", default="", metavar="A,B", help="only these columns, in this order"
    )
    parser.add_argument(
        "--shards",
        type=_positive,
        metavar="N",
        help="files of each split, of like numbers of rows (default: as many as the stage has)",
    )
    parser.add_argument(
        "--split",
        default="",
        metavar="NAME=SHARE,...",
        help="divide documents by a hash of their id: train=0.99,val=0.01",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of the split (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    parser.set_defaults(command=_export)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text}")
    return int(text)


def _export(options: argparse.Namespace) -> int:
    from pipelines.commands.export import export

    return export(options)
