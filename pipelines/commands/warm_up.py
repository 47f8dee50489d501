"""`curate warm-up`: compile kernels before anything runs."""

import argparse
import os

from curation.errors import CurationError
from curation.golden import is_right
from curation.kernels import places
from curation.recipe import load
from curation.stages import known_stages
from pipelines.commands.options import add_dry_run, add_flag, add_workers, end_dry_run
from pipelines.runners.compilation import compile_kernels
from pipelines.runners.progress import open_display
from pipelines.terminal import say


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument("--recipe", help="a recipe file or a built-in name (default: all stages)")
    add_workers(parser, "number of processes (default: one per CPU)")
    add_flag(parser, "--quiet", "show no progress")
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Compile kernels and check their results. Exit code 1 if a kernel can't be compiled.

    Raises CurationError if kernels give wrong results.
    """
    stages = load(options.recipe).stages if options.recipe else list(known_stages())
    end_dry_run(options, places()[0])
    with open_display("quiet" if options.quiet else "auto") as display:
        whole = compile_kernels(stages, options.workers or os.cpu_count() or 1, display.compiling)
    for stage in stages:
        if not is_right(stage):
            raise CurationError(
                f"{stage}: the compiled kernels give different results from those expected of this "
                "version; install the versions of numba and NumPy in constraints.txt"
            )
    if whole and not options.quiet:
        say(f"kernels are in {places()[0]}")
    return 0 if whole else 1
