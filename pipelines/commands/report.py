"""`curate report`: write report.html and report.json of a run."""

import argparse

from pipelines.commands.options import add_dry_run, add_run, end_dry_run
from pipelines.console import PlainConsole
from pipelines.report.collect import collect
from pipelines.report.render import write_report
from pipelines.report.terminal import print_funnel
from pipelines.run_folder import REPORT_DATA, REPORT_PAGE, load_run
from pipelines.terminal import say


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--all-documents",
        action="store_true",
        help="read every document of a large run instead of a sample of files",
    )
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Collect the report, write it and print the funnel."""
    folder, _ = load_run(options.run)
    end_dry_run(options, folder / REPORT_PAGE, folder / REPORT_DATA)
    facts = collect(options.run, all_documents=options.all_documents)
    path = write_report(folder, facts)
    print_funnel(facts, PlainConsole())
    say(f"report: {path}")
    return 0
