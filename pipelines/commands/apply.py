"""`curate apply`: run a recipe under an approved policy, unless the corpus has drifted from it.

`curate measure`: compute all signals and scores without removing documents by them.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from curation.config import read_yaml, validate
from curation.errors import ConfigError, DriftError
from curation.models import sha256_of
from curation.policy import Drift, Policy, drift
from curation.recipe import load
from pipelines.commands.run import add_options, execute, named_stages, planned
from pipelines.console import PlainConsole
from pipelines.forecast import forecast
from pipelines.plan import Plan
from pipelines.reading.policies import counts, judging, measured_stages
from pipelines.terminal import say

#: Most drifted shares shown, the furthest first.
_SHOWN = 20


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options of `apply` or `measure`."""
    add_options(parser)
    if name == "measure":
        parser.set_defaults(command=measure)
        return
    parser.add_argument(
        "--policy", required=True, metavar="FILE", help="policy file written by `curate policy`"
    )
    parser.add_argument(
        "--force",
        metavar="NOTE",
        help="continue although shares have left their margins; NOTE is recorded in the manifests",
    )


def run(options: argparse.Namespace) -> int:
    """Run up to the mix, compare, and continue with the mix if nothing has drifted."""
    if options.force is not None and not options.force.strip():
        raise ConfigError("--force: give a reason, in a few words")
    policy = load_policy(options.policy)
    noted = {"sha256": sha256_of(Path(options.policy)), "approved": policy.approved.model_dump()}
    noted |= {"force": options.force} if options.force else {}
    changes = [f"{key}={json.dumps(value)}" for key, value in policy.assignments().items()]
    whole = replace(planned(options, named_stages(options), changes), policy=noted)
    judged = measured_stages(whole.stages)
    if missing := sorted(set(policy.settings) - set(judged)):
        raise ConfigError(f"{options.policy}: {options.recipe} has no stage {missing[0]}")
    if options.dry_run:
        execute(whole, options)
    measured = replace(whole, stages=tuple(s for s in whole.stages if s in judged))
    # A run that has all this already stays as it is where the policy stops it.
    is_made = not options.fresh and not any(one.why for one in forecast(measured))
    if is_made:
        _judge(policy, measured, options)
    execute(measured, options, report=judged == list(whole.stages))
    if not is_made:
        _judge(policy, measured, options)
    if judged != list(whole.stages):
        execute(replace(whole, fresh=False), options)
    return 0


def _judge(policy: Policy, measured: Plan, options: argparse.Namespace) -> None:
    """Raise DriftError if shares have left their margins, unless that is forced."""
    drifted = drift(policy, counts(measured.output, judging(measured.stages), measured=False))
    if not drifted:
        say("policy: every share is within its margin")
        return
    _print(drifted)
    if not options.force:
        left = "1 share" if len(drifted) == 1 else f"{len(drifted)} shares"
        raise DriftError(
            f"{options.policy}: {left} left the policy's margins; approve a new "
            "policy, or continue with --force NOTE"
        )


def measure(options: argparse.Namespace) -> int:
    """Run the recipe's stages before its mix. Deduplication still removes duplicates."""
    named = named_stages(options)
    stages = measured_stages(named or load(options.recipe, options.assignments).stages)
    work = planned(options, stages, ["measure=true"]) if stages else None
    if work is None or not judging(work.stages):
        raise ConfigError(
            f"{options.stages or options.recipe}: no stage removes documents by measured values"
        )
    execute(work, options)
    if not options.quiet:
        say(f"next: curate policy --run {options.output} --output policy.yaml")
    return 0


def load_policy(path: str) -> Policy:
    """Read a policy. Raises ConfigError naming the invalid key."""
    if not Path(path).is_file():
        raise ConfigError(f"--policy {path}: no such file")
    return validate(Policy, read_yaml(Path(path)), path)


def _print(drifted: Sequence[Drift]) -> None:
    table = Table(title="shares of documents that left the policy's margins")
    table.add_column("rule", overflow="fold")
    table.add_column("language")
    for name in ("approved", "now", "margin"):
        table.add_column(name, justify="right", no_wrap=True)
    for found in drifted[:_SHOWN]:
        table.add_row(
            f"{found.stage} {found.reason}",
            found.language,
            f"{found.approved:.2%}",
            f"{found.found:.2%}",
            f"{found.margin:.2%}",
        )
    console = PlainConsole()
    console.print(table)
    if len(drifted) > _SHOWN:
        console.print(f"and {len(drifted) - _SHOWN:,} more")
