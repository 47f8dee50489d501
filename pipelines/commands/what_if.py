"""`curate rights --what-if`: what other policies would remove from a finished run."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from curation.errors import ConfigError
from curation.rights.rights_settings import COPY
from pipelines.console import PlainConsole
from pipelines.storage.files import Folder
from pipelines.terminal import say_json

#: Rows of signals and hosts that are printed; --json has all.
_HOSTS = 30


def extend(parser: argparse.ArgumentParser) -> None:
    """Declare `--what-if` and its options on the command of the stage."""
    group = parser.add_argument_group(
        "show what a policy would remove from a finished run",
        "curate rights --what-if --run out --set rights.honour=[robots,tdm]",
    )
    shown = "show what each signal, or the policy of --set, would remove; nothing is written"
    group.add_argument(
        "--site-files",
        nargs="+",
        metavar="FILE",
        help="judge by what these newer robots.txt, tdmrep.json, ai.txt and RSL files say: "
        "show what would go that the policy keeps, by signal and host",
    )
    group.add_argument("--what-if", action="store_true", help=shown)
    parser.set_defaults(command=_stage, otherwise=parser.get_default("command"))


def _stage(options: argparse.Namespace) -> int:
    """Run the stage; with `--what-if`, judge a run's documents again and print what would go."""
    if not options.what_if:
        if options.site_files:
            raise ConfigError("--site-files needs --what-if")
        return int(options.otherwise(options))
    from pipelines.reading.thresholds import newer_signals, other_policies

    if options.run is None:
        raise ConfigError("--what-if needs --run DIR, the folder of a finished run")
    shown = Folder(options.run).shown
    if options.site_files:
        facts = newer_signals(options.run, options.site_files, options.assignments)
        say_json(facts) if options.json else _print_drift(facts, shown)
    else:
        facts = other_policies(options.run, options.assignments)
        say_json(facts) if options.json else _print_policies(facts, shown)
    return 0


def _print_policies(facts: dict[str, Any], run: str) -> None:
    title = f"what policies would remove from {run}, stage {facts['stage']}"
    rows = [((cost["policy"],), cost) for cost in facts["policies"]]
    _print_costs(facts, title, ("policy",), rows)


def _print_drift(facts: dict[str, Any], run: str) -> None:
    title = f"what newer files of sites would remove from {run}, stage {facts['stage']}"
    found = facts["by_host"][:_HOSTS]
    names = [(o["signal"] or o["reason"]) + ", copies" * (o["reason"] == COPY) for o in found]
    rows = [((n, row["host"]), row) for n, row in zip(names, found, strict=True)]
    _print_costs(facts, title, ("signal", "host"), [*rows, (("all", ""), facts["would_go"])])


def _print_costs(
    facts: Mapping[str, Any],
    title: str,
    names: Sequence[str],
    rows: Sequence[tuple[Sequence[str], Mapping[str, Any]]],
) -> None:
    unit = "tokens" if "tokens" in facts else "characters"
    console = PlainConsole()
    table = Table(title=title)
    for name in names:
        table.add_column(name, overflow="fold", min_width=14)
    for name in ("documents", "share", unit, "share "):
        table.add_column(name, justify="right", no_wrap=True)
    for named, cost in rows:
        table.add_row(
            *named,
            f"{cost['documents']:,}",
            f"{cost['documents'] / max(1, facts['documents']):.1%}",
            f"{cost[unit]:,}",
            f"{cost[unit] / max(1, facts[unit]):.1%}",
        )
    console.print(table)
    console.print(f"of {facts['documents']:,} documents, {facts[unit]:,} {unit}")
