"""`curate report`: write report.html and report.json of a run.

`curate summary`: write the training-data documents that must be published, from a run.
"""

import argparse
from pathlib import Path

from curation.config import read_yaml
from pipelines.commands.options import add_dry_run, add_json, add_run, end_dry_run
from pipelines.console import PlainConsole
from pipelines.report.collect import collect
from pipelines.report.render import write_report
from pipelines.report.terminal import print_funnel
from pipelines.run_folder import REPORT_DATA, REPORT_PAGE, SUMMARY, load_run
from pipelines.storage.files import SCRATCH, Folder
from pipelines.terminal import say, say_json

#: By these lines the card of an earlier summary is known.
_TAGS = b"\ntags:\n- curation\n- pretraining\n"


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options of `report` or `summary`."""
    add_run(parser)
    add_dry_run(parser)
    if name == "report":
        return
    parser.set_defaults(command=_summarize)
    parser.add_argument("--output", metavar="DIR", help=f"folder (default: {SUMMARY} in the run)")
    parser.add_argument(
        "--mix", default="", metavar="NAME", help="a named mix (default: the main mix)"
    )
    parser.add_argument(
        "--answers", metavar="FILE", help="YAML file with the answers that a person gives, by field"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Collect the report, write it and print the funnel."""
    folder, _ = load_run(options.run)
    end_dry_run(options, folder / REPORT_PAGE, folder / REPORT_DATA)
    facts = collect(options.run)
    path = write_report(folder, facts)
    print_funnel(facts, PlainConsole())
    say(f"report: {path}")
    return 0


def _summarize(options: argparse.Namespace) -> int:
    """Count, write the files, and list the fields that a person must fill in."""
    from pipelines.reading.summary import RunFacts, summary_files  # which `report` needs not

    facts = RunFacts.of(options.run, options.mix)
    answers = read_yaml(Path(options.answers)) if options.answers else {}
    folder = Folder(options.output) if options.output else facts.folder / SUMMARY
    files, left = summary_files(facts, answers)
    card = folder.read_bytes("README.md") if folder.exists("README.md") else b""
    end_dry_run(options, *(folder / name for name in files), known=b"" if _TAGS in card else None)
    for name, content in files.items():
        folder.write_bytes(name, content)
    folder.remove(SCRATCH)
    if options.json:
        say_json({"folder": folder.url, "files": [*files], "to_add": left})
        return 0
    say(f"{folder.shown}: {', '.join(files)}")
    say(f"fields still to be filled in (--answers): {', '.join(left)}")
    return 0
