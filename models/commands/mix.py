"""`curate mix`: run the stage, or plan it: token tables, own experiments."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from curation.config import nearest
from curation.errors import ConfigError, InputError
from curation.mix.mix_table import align, plan_table
from curation.recipe import load
from curation.stages import find
from models.mixes.design import Design, draw_design
from models.mixes.fit import Fitted, fit_results, read_results
from models.mixes.search import SearchSettings, search_settings, space_of
from pipelines import mix as stage
from pipelines.commands.options import count, end_dry_run
from pipelines.commands.run import run as run_stages
from pipelines.commands.stage import RECIPE, settle
from pipelines.commands.stage import add as add_stage
from pipelines.plan import Plan, plan
from pipelines.run import mixes_of, run_plan, stage_run
from pipelines.run_folder import locked
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.progress import open_display
from pipelines.storage.files import Folder
from pipelines.terminal import say

#: Mixtures of `--design`, a recipe that draws them all, and the result of `--fit`.
DESIGN_FILE = "mix-design.json"
DESIGN_RECIPE = "mix-design.yaml"
FIT_FILE = "mix-fit.json"


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options of the stage's command, and further ones."""
    add_stage(parser, name)
    before = parser.add_mutually_exclusive_group()
    before.add_argument(
        "--plan", action="store_true", help="only count and show the token table of every mix"
    )
    before.add_argument(
        "--design",
        type=count,
        metavar="N",
        help=f"only write N mixtures for training runs of your own: {DESIGN_FILE} with shares and "
        f"sampling weights, {DESIGN_RECIPE} to write their shards",
    )
    before.add_argument(
        "--fit",
        metavar="FILE",
        help="only propose shares from results of such runs, a JSON line each: run (or shares), "
        "and losses or scores by target",
    )
    parser.add_argument(
        "--freeze",
        default="",
        metavar="DOMAINS",
        help="with --design: comma-separated domains that keep their proportions to each other",
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="NAME=WEIGHT",
        help="with --fit: weight of a target in the objective (repeatable; default: 1)",
    )
    parser.add_argument(
        "--next",
        type=count,
        default=5,
        metavar="N",
        help="with --fit: number of runs to propose next",
    )


def run(options: argparse.Namespace) -> int:
    """Draw the mix; or plan it, design runs or fit their results."""
    of_search = []
    if options.design or options.fit:
        of_search = [one for one in options.assignments if one.startswith("search.")]
        options.assignments = [one for one in options.assignments if one not in of_search]
    if options.fit:
        say(_fit(options, of_search))
        return 0
    settle(options)
    if options.freeze and options.design is None:
        raise ConfigError("mix: --freeze needs --design")
    if not options.plan and options.design is None:
        return run_stages(options)
    work = plan(load(options.recipe, options.assignments), options.output, options.input, ["mix"])
    settings = search_settings(of_search)
    written = (work.output / name for name in (DESIGN_FILE, DESIGN_RECIPE) if options.design)
    end_dry_run(options, *written)
    runner = parse_beam_args(options.beam_args, options.workers)
    with (
        open_display("quiet" if options.quiet else options.log_format) as display,
        Executor(runner, display, work.output) as executor,
    ):
        work = _of_documents(work, executor)
        with locked(work.output):
            if options.design is None:
                shown = _plans(work, executor)
            else:
                shown = _design(work, executor, options, settings)
    say(shown)
    return 0


def _of_documents(work: Plan, executor: Executor) -> Plan:
    """Read tables into documents, as drawing the mix would; return the plan for what is left."""
    source, *rest = work.stages
    if not find(source).is_source:
        return work
    run_plan(replace(work, stages=(source,)), executor)
    return replace(work, stages=tuple(rest), inputs=((work.output / source).url,))


def _plans(work: Plan, executor: Executor) -> str:
    """Print the token tables of all mixes. The counts are kept for drawing the mix."""
    parts = []
    for name in ("", *mixes_of("mix", work, work.inputs)):
        run = stage_run("mix", work, work.inputs, executor, name)
        parts.append(f"{run.stage}\n{plan_table(stage.plan(run))}")
    return "\n\n".join(parts)


def _design(
    work: Plan, executor: Executor, options: argparse.Namespace, settings: SearchSettings
) -> str:
    """Write mixtures for training runs, and a recipe that draws them."""
    found = stage.plan(stage_run("mix", work, work.inputs, executor))
    if not found.budget:
        raise InputError("mix: nothing to draw: no domain with a share has any tokens")
    available = {row["domain"]: row["available"] for row in found.rows()}
    frozen = tuple(name for name in options.freeze.split(",") if name)
    space = space_of(found)
    design = draw_design(space, options.design, found.budget, available, settings, frozen)
    old = not options.fresh and work.output.exists(DESIGN_FILE)
    if old and work.output.read_json(DESIGN_FILE) != json.loads(json.dumps(design.as_dict())):
        raise ConfigError(f"{work.output.shown}/{DESIGN_FILE}: another design; --fresh replaces it")
    extends = options.recipe.removeprefix(f"{work.output.url}/")
    key = "inputs" if work.recipe.mix.inputs else "domains"  # under which the mix has its shares
    recipe = yaml.safe_dump(design.recipe(extends, key), sort_keys=False)
    work.output.write_bytes(DESIGN_RECIPE, recipe.encode())
    work.output.write_json(DESIGN_FILE, design.as_dict())
    draw = [f"{work.output.shown}/{DESIGN_RECIPE}", "--stages", "mix,tokenize", "--output", "runs"]
    draw += ["--input", *(options.input or work.inputs)]
    draw += [part for one in options.assignments for part in ("--set", one)]
    lines = [["", *design.space.domains]]
    lines += [[name, *(f"{s:.3f}" for s in shares)] for name, shares in design.runs.items()]
    return "\n".join(
        [
            f"{len(design.runs)} mixtures of {design.tokens:,} tokens; the first is the recipe's",
            align(lines),
            f"shares and sampling weights: {work.output.shown}/{DESIGN_FILE}",
            f"their shards: curate run {shlex.join(draw)}",
        ]
    )


def _fit(options: argparse.Namespace, of_search: Sequence[str]) -> str:
    """Propose shares from the results of runs."""
    design = None
    output = Folder(options.output) if options.output else None
    if output is not None and output.exists(DESIGN_FILE):
        design = Design.from_dict(output.read_json(DESIGN_FILE))
    try:
        lines = Path(options.fit).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{options.fit}: can't be read: {reason}") from None
    load(options.recipe or RECIPE, options.assignments)  # refuses what is no recipe
    settings = search_settings(of_search)
    results = read_results(lines, options.fit, design)
    fitted = fit_results(results, settings, options.next, _weights(options.target, results.targets))
    end_dry_run(options, output and output / FIT_FILE)
    if output is not None:
        output.write_json(FIT_FILE, fitted.as_dict())
    return json.dumps(fitted.as_dict(), indent=1) if options.json else _fit_table(fitted)


def _weights(given: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
    """Parse the weights of targets. Raises ConfigError for an invalid or unknown one."""
    found = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or not found[name] >= 0:
            raise ConfigError(f"--target {text}: expected NAME=WEIGHT with a weight of 0 or more")
        if name not in targets:
            hint = nearest(name, targets)
            raise ConfigError(
                f"--target {text}: no target {name!r}{hint} (there are: {', '.join(targets)})"
            )
    return found


def _fit_table(fitted: Fitted) -> str:
    found = fitted.as_dict()
    laws = [["law", "error", "ranks"]]
    for name, law in found["laws"].items():
        laws.append([name, f"{law['error']:.3f}", f"{law['rank_correlation']:.2f}"])
    domains = [["", "prior", "proposed", "from", "to", ""]]
    for row in found["domains"]:
        numbers = (f"{row[key]:.3f}" for key in ("prior", "proposed", "low", "high"))
        domains.append([row["domain"], *numbers, "settled" if row["settled"] else ""])
    targets = [["target", "predicted"]]
    for row in found["targets"]:
        targets.append([row["target"], f"{row['predicted']:.4f} ± {row['uncertainty']:.4f}"])
    runs = [["tells most", *fitted.results.space.domains, "gain"]]
    for k, row in enumerate(found["next"], 1):
        runs.append([f"{k}", *(f"{s:.3f}" for s in row["shares"].values()), f"{row['gain']:.3f}"])
    head = f"{found['runs']} runs; fitted: {fitted.law} (error on left-out runs, in their spread)"
    return "\n\n".join([head, *map(align, (laws, domains, targets, runs))])
