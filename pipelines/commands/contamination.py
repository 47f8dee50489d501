"""`curate contamination`: measure evaluation sets in a finished run or any corpus."""

from __future__ import annotations

import argparse
import os

import pyarrow as pa
import pyarrow.parquet as pq

from curation.decontaminate.dialects import DIALECTS
from curation.decontaminate.overlap import latex, markdown, summary
from curation.recipe import load
from pipelines.commands.options import add_dry_run, add_json, add_set, end_dry_run, workers
from pipelines.decontaminate import evals_key
from pipelines.reading.evaluations import READ, STAGE, unread
from pipelines.reading.evaluations import contamination as compared
from pipelines.runners.compilation import compile_kernels
from pipelines.runners.progress import open_display
from pipelines.storage.files import Folder
from pipelines.terminal import say, say_json, tell

_FILES = "contamination"


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", metavar="DIR", help="a finished run")
    what.add_argument("--input", nargs="+", metavar="PATH", help="files or folders of any corpus")
    parser.add_argument(
        "--stages", metavar="A,B", help="stages of the run (default: the last with documents)"
    )
    parser.add_argument(
        "--recipe", required=True, help="recipe whose decontaminate.evals names the sets"
    )
    add_set(parser, "the recipe", "decontaminate.threshold=0.9")
    parser.add_argument(
        "--dialect", choices=DIALECTS, help="find items in a published way, for comparison"
    )
    parser.add_argument("--workers", type=workers, default=os.cpu_count(), metavar="N")
    parser.add_argument(
        "--output", required=True, metavar="DIR", help=f"gets {_FILES}.parquet, .md and .tex"
    )
    add_json(parser)
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Compare documents with the sets; write the tables and print the shares."""
    recipe, folder = load(options.recipe, options.assignments), Folder(options.output)
    evals_key(recipe.decontaminate)  # before anything is written or compiled
    end_dry_run(options, *(folder / f"{_FILES}.{kind}" for kind in ("parquet", "md", "tex")))
    if options.workers and not options.dialect:
        with open_display("auto") as display:
            compile_kernels([STAGE], options.workers, display.compiling)
    stages = options.stages.split(",") if options.stages else ()
    rows, counts = compared(
        recipe, options.run, options.input or (), stages, options.dialect, options.workers
    )
    shares = summary(rows)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    folder.write_bytes(f"{_FILES}.parquet", sink.getvalue().to_pybytes())
    folder.write_bytes(f"{_FILES}.md", markdown(shares).encode())
    folder.write_bytes(f"{_FILES}.tex", latex(shares).encode())
    if options.json:
        say_json(shares)
    else:
        say(markdown(shares), end="")
    tell(f"{counts[READ]:,} documents compared{unread(counts)}")
    return 0
