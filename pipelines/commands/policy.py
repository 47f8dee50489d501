"""`curate policy`: write the thresholds of a measured run and the share that each removes."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from curation.errors import ConfigError
from curation.policy import ALL, Approval
from pipelines.commands.options import add_dry_run, add_run, add_set, end_dry_run
from pipelines.reading.policies import POLICY_HEAD, made, policy_text
from pipelines.terminal import say


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--output", default="policy.yaml", metavar="FILE", help="default: %(default)s"
    )
    add_set(parser, "a threshold of the filter", "filter.rules.gopher.word_count.min=30")
    parser.add_argument("--by", metavar="NAME", help="who approves it")
    parser.add_argument("--notes", metavar="TEXT", help="reason for the choices")
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Count what each rule removes and write the policy."""
    policy = made(
        options.run,
        options.assignments,
        Approval(
            by=options.by,
            date=datetime.now(UTC).date().isoformat() if options.by else None,
            notes=options.notes,
        ),
    )
    output = Path(options.output)
    end_dry_run(options, output, known=POLICY_HEAD)
    try:
        output.write_text(policy_text(policy, options.run), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror}") from None
    for stage, reasons in policy.removes.items():
        ranked = sorted(reasons.items(), key=lambda kv: (-kv[1][ALL], kv[0]))
        say(f"{stage}: {sum(shares[ALL] for shares in reasons.values()):.2%} would be removed")
        for reason, shares in ranked[:8]:
            say(f"  {shares[ALL]:8.3%}  {reason}")
    say(f"policy: {output}")
    return 0
