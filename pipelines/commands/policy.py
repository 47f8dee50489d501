"""`curate policy`: write the thresholds of a measured run and the share that each removes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from curation.errors import ConfigError
from curation.policy import ALL, Approval, Corpus, Policy
from curation.stages import find
from pipelines.commands.options import add_dry_run, add_run, add_set, count, end_dry_run
from pipelines.reading.verdict_counts import FILTER, counts, judging
from pipelines.run_folder import load_run, root_hash, run_recipe, run_settings
from pipelines.terminal import say

#: Default margin of a share, and the fewest documents for which a language is compared.
MARGIN, LEAST_DOCUMENTS = 0.02, 100
_HEAD = """\
# Thresholds for approval, and the share of the documents that each rule removes: {documents:,}
# documents in {run}. A document counts for the first reason of the first stage that removes it.
# To change a threshold of the filter, write the policy again with --set KEY=VALUE; for other
# settings, measure again first (curate measure ... --set KEY=VALUE). `curate apply` refuses
# documents of which these rules remove other shares than these, by more than `margin` (or
# `margins.REASON`).
"""


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--output", default="policy.yaml", metavar="FILE", help="default: %(default)s"
    )
    parser.add_argument(
        "--margin",
        type=float,
        default=MARGIN,
        metavar="SHARE",
        help="how much a share may differ later (default: %(default)s)",
    )
    parser.add_argument(
        "--least-documents",
        type=count,
        default=LEAST_DOCUMENTS,
        metavar="N",
        help="languages with fewer documents are not compared (default: %(default)s)",
    )
    add_set(parser, "a threshold of the filter", "filter.rules.gopher.word_count.min=30")
    parser.add_argument("--by", metavar="NAME", help="who approves it")
    parser.add_argument("--notes", metavar="TEXT", help="reason for the choices")
    add_dry_run(parser)
    parser.set_defaults(command=write)


def write(options: argparse.Namespace) -> int:
    """Count what each rule removes and write the policy."""
    if not 0 <= options.margin <= 1:
        raise ConfigError(f"--margin {options.margin}: expected a share from 0 to 1")
    policy = made(
        options.run,
        options.assignments,
        options.margin,
        max(options.least_documents, 1),
        Approval(
            by=options.by,
            date=datetime.now(UTC).date().isoformat() if options.by else None,
            notes=options.notes,
        ),
    )
    output = Path(options.output)
    end_dry_run(options, output)
    try:
        output.write_text(text(policy, options.run), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror}") from None
    for stage, reasons in policy.removes.items():
        ranked = sorted(reasons.items(), key=lambda kv: (-kv[1][ALL], kv[0]))
        say(f"{stage}: {sum(shares[ALL] for shares in reasons.values()):.2%} would be removed")
        for reason, shares in ranked[:8]:
            say(f"  {shares[ALL]:8.3%}  {reason}")
    say(f"policy: {output}")
    return 0


def text(policy: Policy, run: str) -> str:
    """Format a policy as YAML with an explaining comment."""
    values = yaml.safe_dump(policy.model_dump(), sort_keys=False, allow_unicode=True, width=100)
    return _HEAD.format(documents=policy.corpus.documents, run=run) + values


def made(
    run: str, assignments: Sequence[str], margin: float, least_documents: int, approval: Approval
) -> Policy:
    """Build the policy of a measured run, with assigned thresholds in place of its filter's.

    Raises ConfigError for a run that measured nothing and for a key that is not a threshold.
    """
    folder, stages = load_run(run)
    recipe = run_recipe(folder)
    judges = judging(stages)
    if not recipe.get("measure") or not judges:
        raise ConfigError(f"{run}: not a measured run: run `curate measure` first")
    settings = {stage: run_settings(folder, stage) for stage in judges}
    rules = None
    if assignments:
        settings[FILTER], rules = _changed(run, settings, assignments)
    found = counts(folder, stages, measured=True, rules=rules)
    return Policy(
        recipe=recipe["name"],
        corpus=Corpus(documents=found.documents[ALL], root=root_hash(folder, stages)),
        approved=approval,
        margin=margin,
        margins={},
        least_documents=least_documents,
        settings={stage: _deciding(settings[stage], stage) for stage in judges},
        removes=found.shares(least_documents),
    )


def _changed(
    run: str, settings: dict[str, dict[str, Any]], assignments: Sequence[str]
) -> tuple[dict[str, Any], Any]:
    """Return the filter's settings after the assignments, and its rules."""
    from curation.filters.rules import RuleBook  # compiled kernels
    from pipelines.commands.what_if import variants

    if FILTER not in settings:
        raise ConfigError(f"{run}: no complete stage {FILTER!r}")
    *_, changed = variants(settings[FILTER], assignments, [])
    return changed.settings.model_dump(mode="json"), RuleBook(changed.settings)


def _deciding(settings: dict[str, Any], stage: str) -> dict[str, Any]:
    return {key: settings[key] for key in find(stage).decides_by if key in settings}
