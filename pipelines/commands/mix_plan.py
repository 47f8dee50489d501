"""`curate mix`: the stage, and what to know before it: `--plan` and `--search`."""

from __future__ import annotations

import argparse
from typing import Any

import yaml

from curation.mix import align, plan_table
from curation.recipe import load
from pipelines import mix as stage
from pipelines.commands.run import run as run_stages
from pipelines.mix_search import search
from pipelines.plan import Plan, plan
from pipelines.run import mixes_of, stage_run
from pipelines.run_folder import locked
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.progress import Mode, open_display
from pipelines.terminal import say

#: Every proxy run of the last search, beside the stage folders.
SEARCH_FILE = "mix-search.json"


def extend(parser: argparse.ArgumentParser) -> None:
    """Declare what the command has besides a stage's options."""
    before = parser.add_mutually_exclusive_group()
    before.add_argument(
        "--plan", action="store_true", help="only count and show the token table of every mix"
    )
    before.add_argument(
        "--search", action="store_true", help="only propose shares, from small proxy runs"
    )
    parser.set_defaults(command=mix)


def mix(options: argparse.Namespace) -> int:
    """Draw the mix, or only plan it, or search for shares."""
    if not options.plan and not options.search:
        return run_stages(options)
    work = plan(load(options.recipe, options.assignments), options.output, options.input, ["mix"])
    runner = parse_beam_args(options.beam_args, options.workers, options.exchange)
    mode: Mode = "quiet" if options.quiet else options.log_format
    with (
        open_display(mode) as display,
        Executor(runner, display) as executor,
        locked(work.output),
    ):
        shown = _plans(work, executor) if options.plan else _search(work, executor)
    say(shown)
    return 0


def _plans(work: Plan, executor: Executor) -> str:
    """Token tables of all mixes. The counts stay for the run that draws."""
    parts = []
    for name in ("", *mixes_of("mix", work)):
        run = stage_run("mix", work, work.inputs, executor, name)
        parts.append(f"{run.stage}\n{plan_table(stage.plan(run).plan)}")
    return "\n\n".join(parts)


def _search(work: Plan, executor: Executor) -> str:
    run = stage_run("mix", work, work.inputs, executor)
    proposal, measured, runs = search(run, work.recipe.search)
    rows = proposal.rows(measured)
    work.output.write_json(SEARCH_FILE, {"proposal": rows, "runs": runs})
    shares = zip(rows, _rounded(rows), strict=True)
    domains = {row["domain"]: {"share": share} for row, share in shares}
    text = yaml.safe_dump({"mix": {"domains": domains}}, sort_keys=False)
    return "\n".join(
        [
            f"{proposal.runs} proxy runs of {runs['tokens']:,} tokens; losses in nats per token",
            _table(rows),
            f"every run: {work.output.shown}/{SEARCH_FILE}",
            f"for the recipe:\n{text}".rstrip(),
        ]
    )


def _rounded(rows: list[dict[str, Any]]) -> list[float]:
    """Proposed shares in whole thousandths that sum to 1."""
    parts = [round(row["proposed"] * 1000) for row in rows]
    parts[parts.index(max(parts))] += 1000 - sum(parts)
    return [part / 1000 for part in parts]


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [["", *"share,proposed,at most,loss,predicted,measured,error,ranks".split(",")]]
    for row in rows:
        lines.append(
            [
                row["domain"],
                f"{row['share']:.3f}",
                f"{row['proposed']:.3f}",
                f"{row['at_most']:.3f}",
                f"{row['loss']:.3f}",
                f"{row['predicted']:.3f} ± {row['uncertainty']:.3f}",
                f"{row['measured']:.3f}",
                f"{row['test_error']:.3f}",
                f"{row['rank_correlation']:.2f}",
            ]
        )
    return align(lines)
