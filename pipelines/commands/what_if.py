"""`--what-if` of `curate filter` and `curate rights`: try other settings on a finished run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from curation.errors import ConfigError
from pipelines.commands.options import count
from pipelines.console import PlainConsole
from pipelines.storage.files import Folder
from pipelines.terminal import say_json

_NOTE = (
    "chars: of the text that rules judge, before personal data is replaced; the funnel counts "
    "after that. ~tokens: estimated from up to {rows:,} documents. Documents shown are those "
    "nearest to the threshold, with their values."
)
#: Rows of signals and hosts that are printed; --json has all.
_HOSTS = 30
#: Title and example by stage, and what is shown.
_GROUPS = {
    "filter": (
        "try other thresholds on a finished run",
        "curate filter --what-if --run out --sweep filter.rules.fineweb.line_punct.min=0.05,0.1",
        "show what --set and --sweep would change, from the signals alone; nothing is written",
    ),
    "rights": (
        "show what a policy would remove from a finished run",
        "curate rights --what-if --run out --set rights.honour=[robots,tdm]",
        "show what each signal, or the policy of --set, would remove; nothing is written",
    ),
}


def extend(parser: argparse.ArgumentParser) -> None:
    """Declare `--what-if` and its options on the command of the stage."""
    stage = parser.get_default("stages")
    title, example, shown = _GROUPS[stage]
    group = parser.add_argument_group(title, example)
    group.add_argument("--what-if", action="store_true", help=shown)
    if stage == "filter":
        group.add_argument(
            "--sweep",
            action="append",
            default=[],
            metavar="KEY=V1,V2,...",
            help="try each value; several sweeps try every combination (repeatable)",
        )
        group.add_argument(
            "--samples",
            type=count,
            default=2,
            metavar="N",
            help="documents shown per change (default: 2)",
        )
    if stage == "rights":
        group.add_argument(
            "--site-files",
            nargs="+",
            metavar="FILE",
            help="judge by what these newer robots.txt, tdmrep.json, ai.txt and RSL files say: "
            "show what would go that the policy keeps, by signal and host",
        )
    parser.set_defaults(command=_stage, otherwise=parser.get_default("command"))


def _stage(options: argparse.Namespace) -> int:
    if options.what_if:
        return what_if(options)
    for name in ("sweep", "site_files"):
        if getattr(options, name, None):
            raise ConfigError(f"--{name.replace('_', '-')} goes with --what-if")
    return int(options.otherwise(options))


def what_if(options: argparse.Namespace) -> int:
    """Judge the documents of the run again, and print what would change."""
    from pipelines.reading.thresholds import (
        FILTER,
        newer_signals,
        other_policies,
        other_thresholds,
    )

    if options.run is None:
        raise ConfigError("--what-if needs --run DIR, the folder of a finished run")
    shown = Folder(options.run).shown
    if options.stages == FILTER:
        samples = max(0, options.samples)
        changes, found = other_thresholds(options.run, options.assignments, options.sweep, samples)
        say_json(found) if options.json else _print_thresholds(changes, found, shown)
    elif options.site_files:
        facts = newer_signals(options.run, options.site_files, options.assignments)
        say_json(facts) if options.json else _print_drift(facts, shown)
    else:
        facts = other_policies(options.run, options.assignments)
        say_json(facts) if options.json else _print_policies(facts, shown)
    return 0


def _print_thresholds(
    changes: Sequence[Sequence[str]], facts: Sequence[Mapping[str, Any]], run: str
) -> None:
    """Print the table, whose title names the keys and whose rows their values, and the flips."""
    from pipelines.reading.thresholds import AS_RUN, COUNTED_ROWS, short_key

    console = PlainConsole()
    keys = dict.fromkeys(short_key(c.partition("=")[0]) for some in changes for c in some)
    other = f" under other values of {', '.join(keys)}" if keys else ""
    console.print(f"filter of {run}{other}", soft_wrap=True)
    table = Table("value")
    for name in ("kept", "share", "chars", "~tokens", "gained", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for some, fact in zip(changes, facts, strict=True):
        share = fact["documents"] / max(fact["documents_in"], 1)
        table.add_row(
            ", ".join(change.partition("=")[2] for change in some) or AS_RUN,
            f"{fact['documents']:,}",
            f"{share:.1%}",
            f"{fact['characters']:,}",
            f"{fact['tokens_estimated']:,}",
            f"{fact['newly_kept']:,}",
            f"{fact['newly_removed']:,}",
        )
    console.print(table)
    console.print(_NOTE.format(rows=COUNTED_ROWS))
    own: dict[str, list[str]] = {}
    for held in facts[-1]["own_thresholds"]:
        shown = f"{held['language']} {held['threshold']:.6g} ({held['removed']:,} removed)"
        own.setdefault(f"{held['rule']}.{held['side']}", []).append(shown)
    for key, languages in own.items():
        told = f"not for languages with their own in filter.by_language: {', '.join(languages)}"
        console.print(f"{key}: {told}", soft_wrap=True)
    for fact in facts:
        for flip in fact["flips"]:
            console.print(
                f"{short_key(fact['variant'])}: {flip['was']} -> {flip['now']}, "
                f"documents {flip['documents']:,}",
                soft_wrap=True,
            )
            for sample in flip["samples"]:
                value = "" if sample["value"] is None else f"  {sample['value']:.6g}"
                console.print(f"    {sample['url']}{value}", soft_wrap=True)
                console.print(f"      {sample['text']}", soft_wrap=True)


def _print_policies(facts: dict[str, Any], run: str) -> None:
    title = f"what policies would remove from {run}, stage {facts['stage']}"
    rows = [((cost["policy"],), cost) for cost in facts["policies"]]
    _print_costs(facts, title, ("policy",), rows)


def _print_drift(facts: dict[str, Any], run: str) -> None:
    title = f"what newer files of sites would remove from {run}, stage {facts['stage']}"
    rows = [((row["reason"], row["host"]), row) for row in facts["by_host"][:_HOSTS]]
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
        table.add_column(name, overflow="fold", min_width=12)
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
