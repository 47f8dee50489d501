"""`curate policy`: the thresholds of a measured run with what each of them removes."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from curation.errors import ConfigError
from curation.policy import ALL, Approval, Corpus, Policy
from curation.stages import find
from pipelines.commands.options import add_run, count
from pipelines.policy import counts, judging
from pipelines.run_folder import load_run, root_hash, run_recipe, run_settings
from pipelines.terminal import say

_HEAD = """\
# Thresholds for approval, and the share of the documents that each rule removes: {documents:,}
# documents in {run}. A document counts for the first reason of the first stage that removes it.
# Edit `settings` as in a recipe, measure with them again (curate measure ... --set KEY=VALUE), and
# write the policy anew. `curate apply` refuses documents of which these rules remove other shares
# than these, by more than `margin` (or `margins.REASON`).
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
        default=0.02,
        metavar="SHARE",
        help="by how much a share may differ later (default: %(default)s)",
    )
    parser.add_argument(
        "--least-documents",
        type=count,
        default=100,
        metavar="N",
        help="languages with fewer documents are not compared (default: %(default)s)",
    )
    parser.add_argument("--by", metavar="NAME", help="who approves it")
    parser.add_argument("--notes", metavar="TEXT", help="why it is as it is")
    parser.set_defaults(command=write)


def write(options: argparse.Namespace) -> int:
    """Count and write."""
    if not 0 <= options.margin <= 1:
        raise ConfigError(f"--margin {options.margin}: expected a share from 0 to 1")
    policy = made(options)
    output = Path(options.output)
    try:
        output.write_text(
            _HEAD.format(documents=policy.corpus.documents, run=options.run)
            + yaml.safe_dump(policy.model_dump(), sort_keys=False, allow_unicode=True, width=100),
            encoding="utf-8",
        )
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror}") from None
    for stage, reasons in policy.removes.items():
        ranked = sorted(reasons.items(), key=lambda kv: (-kv[1][ALL], kv[0]))
        say(f"{stage}: {sum(shares[ALL] for shares in reasons.values()):.2%} would be removed")
        for reason, shares in ranked[:8]:
            say(f"  {shares[ALL]:8.3%}  {reason}")
    say(f"policy: {output}")
    return 0


def made(options: argparse.Namespace) -> Policy:
    """The policy of a measured run. Raises ConfigError for one that measured nothing."""
    folder, stages = load_run(options.run)
    recipe = run_recipe(folder)
    judges = judging(stages)
    if not recipe.get("measure") or not judges:
        raise ConfigError(f"{options.run}: not a measured run: start with `curate measure`")
    found = counts(folder, stages, measured=True)
    by = options.by
    return Policy(
        recipe=recipe["name"],
        corpus=Corpus(documents=found.documents[ALL], root=root_hash(folder, stages)),
        approved=Approval(
            by=by, date=datetime.now(UTC).date().isoformat() if by else None, notes=options.notes
        ),
        margin=options.margin,
        margins={},
        least_documents=max(options.least_documents, 1),
        settings={stage: _deciding(run_settings(folder, stage), stage) for stage in judges},
        removes=found.shares(max(options.least_documents, 1)),
    )


def _deciding(settings: dict[str, Any], stage: str) -> dict[str, Any]:
    return {key: settings[key] for key in find(stage).decides_by if key in settings}
