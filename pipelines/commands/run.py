"""`curate run` and the stage commands."""

from __future__ import annotations

import argparse
import json
import sys

from rich.console import Console

from curation.errors import AlarmError
from curation.recipe import load
from pipelines.engine.execute import Executor, parse_beam_args
from pipelines.engine.progress import Mode, open_display
from pipelines.report.collect import collect
from pipelines.report.render import write_report
from pipelines.report.terminal import print_funnel
from pipelines.run import Plan, plan, run_plan


def run(options: argparse.Namespace) -> int:
    """Plan, run, report."""
    work = plan(
        load(options.recipe, options.assignments),
        options.output,
        options.input,
        [s for s in options.stages.split(",") if s],
    )
    runner = parse_beam_args(options.beam_args, options.workers)
    mode: Mode = "quiet" if options.quiet else options.log_format
    with open_display(mode) as display, Executor(runner, display) as executor:
        try:
            run_plan(work, executor, options.fresh, options.strict)
        except AlarmError:
            _report(work, quiet=True, as_json=False)
            raise
    _report(work, quiet=options.quiet, as_json=options.log_format == "json")
    return 0


def _report(work: Plan, quiet: bool, as_json: bool) -> None:
    facts = collect(work.output.url)
    path = write_report(work.output, facts)
    if not quiet and not as_json:
        print_funnel(facts, Console(file=sys.stdout))
        print(f"report: {path}")
    elif as_json:
        print(
            json.dumps({"event": "finished", "report": path, "funnel": facts["funnel"]}),
            flush=True,
            file=sys.stderr,
        )
