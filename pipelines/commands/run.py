"""`curate run` and the stage commands."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from curation.errors import AlarmError, ConfigError, CurationError, InputError, WorkerError
from curation.recipe import load, stage_names
from curation.stages import find, known_stages
from pipelines.commands.options import add_index, add_input, add_recipe_options
from pipelines.console import PlainConsole
from pipelines.plan import Plan, plan
from pipelines.report.collect import collect
from pipelines.report.render import write_report
from pipelines.report.terminal import print_funnel
from pipelines.run import removed_first, run_plan
from pipelines.runners.execute import Executor, RunnerOptions, parse_beam_args
from pipelines.runners.progress import Mode, duration, open_display
from pipelines.storage.files import Folder
from pipelines.storage.manifest import complete_manifest
from pipelines.terminal import say, say_json, tell

if TYPE_CHECKING:
    from pipelines.runners.slurm import SlurmOptions

#: CPU hours and bytes stored for a byte of Common Crawl's archives (docs/scale.md).
_HOURS, _STORED = 2934 / 90e12, (17.7 + 12.6) / 90


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what every command that runs a recipe takes."""
    parser.add_argument("recipe", metavar="RECIPE", help="a recipe file or a built-in name")
    add_input(parser, "files, folders, globs or URLs; NAME=GLOB for a named input of the recipe")
    parser.add_argument("--output", default="out", metavar="DIR", help="run folder (default: out)")
    parser.add_argument("--stages", metavar="A,B", help="run only these stages")
    add_index(parser)
    add_recipe_options(parser)


def run(options: argparse.Namespace) -> int:
    """Plan and run a recipe, and report."""
    execute(planned(options, named_stages(options)), options)
    return 0


def named_stages(options: argparse.Namespace) -> list[str]:
    """Return the stages of `--stages`; none without it. Raises ConfigError if it names none."""
    stages = stage_names(options.stages or "")
    if options.stages is not None and not stages:
        raise ConfigError(f"--stages {options.stages!r}: names no stage")
    return stages


def planned(
    options: argparse.Namespace, stages: Sequence[str] = (), assignments: Sequence[str] = ()
) -> Plan:
    """Plan the recipe in the options, with `assignments` applied before the user's.

    Raises ConfigError as `plan` does.
    """
    runs = getattr(options, "index", [])
    recipe = load(options.recipe, [*_index_assignments(runs), *assignments, *options.assignments])
    work = plan(recipe, options.output, options.input, stages, options.sync, options.fresh)
    used = [stage for stage in work.stages if find(stage).is_indexed]
    for run in runs if used else ():
        if not any(complete_manifest(Folder(run) / stage) for stage in used):
            raise ConfigError(f"--index {run}: no complete {' or '.join(used)}")
    return work


def execute(work: Plan, options: argparse.Namespace, report: bool = True) -> None:
    """Run a plan with a progress display; then write its report and print its funnel.

    With `--dry-run`, print what it would do, and exit.
    """
    runner = parse_beam_args(options.beam_args, options.workers)
    if options.dry_run:
        _show(work, runner, options.json)
        raise SystemExit(0)
    mode: Mode = "quiet" if options.quiet else options.log_format
    if work.passed_over.counts and not options.quiet:
        tell(f"input: skipped {work.passed_over}")
    with open_display(mode) as display, Executor(runner, display) as executor:
        try:
            run_plan(work, executor, options.strict)
        except (AlarmError, InputError, WorkerError):
            # Report the complete stages, so that no report of an earlier run is left next to them.
            with contextlib.suppress(CurationError):
                _report(work, options.typed, quiet=True)
            raise
    if report:
        _report(work, options.typed, quiet=options.quiet)


def _show(work: Plan, runner: RunnerOptions, as_json: bool) -> None:
    """Print what a plan would do."""
    from pipelines.forecast import forecast  # seldom needed

    workers = max(1, runner.workers)
    found, removed = forecast(work), removed_first(work) if work.fresh else []
    costs = [one.cpu_seconds for one in found]
    seconds = None if None in costs else sum(cost or 0 for cost in costs) / workers
    jobs = dict[str, Any]()
    if runner.slurm:
        hours = None if seconds is None else seconds * workers / 3600
        jobs = _asked(work, runner.slurm, hours, sum(one.bytes or 0 for one in found))
    if as_json:
        stages = [one._asdict() for one in found]
        say_json({"removed": removed, "stages": stages, "seconds": seconds, **jobs})
        return
    for script in jobs.pop("scripts", ()):
        say(script)
    for stage in removed:
        say(f"{stage}: removed first, if it is there")
    for one in found:
        say(f"{one.stage}: {one.words() if one.why else 'complete'}")
    if jobs:
        say("Slurm: " + ", ".join(f"{number:,} {what}" for what, number in jobs.items()))
    lasts = "how long is unknown" if seconds is None else f"about {duration(seconds)}"
    say(f"{lasts} with {workers} processes; nothing was written")


def _asked(work: Plan, slurm: SlurmOptions, hours: float | None, stored: int) -> dict[str, Any]:
    """Return what a run asks of Slurm; before a first run, by the bytes of its input."""
    size = sum(file.size for file in work.files)
    hours = size * _HOURS if hours is None else hours
    scripts = slurm.scripts(slurm.base(work.output) / "curate")
    found = {"elements": slurm.jobs, "CPU hours": round(hours, 3)}
    return found | {"bytes": stored or round(size * _STORED), "scripts": scripts}


def _index_assignments(runs: Sequence[str]) -> list[str]:
    """Return assignments that use finished runs as indexes, each for the stages it has."""
    found: dict[str, list[str]] = {}
    for stage, described in known_stages().items():
        for run in runs if described.is_indexed else ():
            if complete_manifest(Folder(run) / stage):
                found.setdefault(stage, []).append((Folder(run) / stage).url)
    return [f"{stage}.index.against={json.dumps(urls)}" for stage, urls in found.items()]


def _report(work: Plan, typed: Sequence[str], quiet: bool) -> None:
    facts = collect(work.output.url, shlex.join(["curate", *typed]))
    path = write_report(work.output, facts)
    if not quiet:
        print_funnel(facts, PlainConsole())
        say(f"report: {path}")
        say(f"root: {facts['root']}")
