"""`--what-if` of `curate filter` and `curate rights`: try other settings on a finished run."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from curation.config import nearest
from curation.errors import ConfigError
from curation.rights.rights_settings import COPY
from pipelines.console import PlainConsole
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest
from pipelines.terminal import say_json

#: Rows of signals and hosts that are printed; --json has all.
_HOSTS = 30


#: Documents shown on either side of a threshold.
_NEAREST = 2


def extend(parser: argparse.ArgumentParser) -> None:
    """Declare `--what-if` and its options on the command of the stage."""
    if parser.get_default("stages") == "filter":
        group = parser.add_argument_group(
            "try other thresholds on a finished run",
            "curate filter --what-if --run out --sweep filter.rules.gopher.word_count.min=20,100",
        )
        shown = "show what each threshold of --set and --sweep would change; nothing is written"
        group.add_argument(
            "--sweep",
            action="append",
            default=[],
            metavar="KEY=V1,V2,...",
            help="try each value (repeatable; thresholds together: curate policy --set)",
        )
    else:
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
    if options.what_if:
        return what_if(options)
    for name in ("sweep", "site_files"):
        if getattr(options, name, None):
            raise ConfigError(f"--{name.replace('_', '-')} needs --what-if")
    return int(options.otherwise(options))


def what_if(options: argparse.Namespace) -> int:
    """Judge the documents of the run again, and print what would change."""
    from pipelines.reading.thresholds import newer_signals, other_policies

    if options.run is None:
        raise ConfigError("--what-if needs --run DIR, the folder of a finished run")
    shown = Folder(options.run).shown
    if options.stages == "filter":
        facts = _thresholds(options)
        say_json(facts) if options.json else _print_thresholds(facts, shown)
    elif options.site_files:
        facts = newer_signals(options.run, options.site_files, options.assignments)
        say_json(facts) if options.json else _print_drift(facts, shown)
    else:
        facts = other_policies(options.run, options.assignments)
        say_json(facts) if options.json else _print_policies(facts, shown)
    return 0


def _thresholds(options: argparse.Namespace) -> dict[str, Any]:
    """Return what each value of each threshold would change, one at a time."""
    from pipelines.reading.explorer import Explorer

    explorer = Explorer(options.run)
    limits = explorer.limits({})["limits"]
    by_key = {limit["key"]: limit for limit in limits}
    counts = read_manifest(Folder(options.run) / explorer.signals.stage)["counts"]
    tried = []
    for change in (*options.assignments, *options.sweep):
        key, _, values = change.partition("=")
        if key not in by_key:
            raise ConfigError(f"{key}: no threshold of this run{nearest(key, by_key)}")
        limit = by_key[key]
        others = [
            {name: each[name] for name in ("language", "threshold", "removed")}
            for each in limits
            if (each["reason"], each["side"]) == (limit["reason"], limit["side"])
            and limit["language"] is None is not each["language"]
        ]
        for value in values.split(","):
            try:
                query = {"limit": str(limit["limit"]), "threshold": str(float(value))}
            except ValueError:
                raise ConfigError(f"{key}: not a number: {value!r}") from None
            sides = explorer.nearest({**query, "most": str(_NEAREST)})
            kept = {"documents": counts["documents"]}
            found = explorer.change(query)
            kept["documents"] += found["gained"] - found["lost"]
            tried.append({"value": value, **kept, **found, "own_thresholds": others, **sides})
    return {
        "documents_in": counts["documents_in"],
        "documents": counts["documents"],
        "tried": tried,
    }


def _print_thresholds(facts: dict[str, Any], run: str) -> None:
    console = PlainConsole()
    console.print(f"filter of {run}: kept {facts['documents']:,} of {facts['documents_in']:,}")
    table = Table("value")
    for name in ("kept", "share", "gained", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in facts["tried"]:
        kept = f"{row['documents']:,}", f"{row['documents'] / max(1, facts['documents_in']):.1%}"
        table.add_row(row["setting"], *kept, f"{row['gained']:,}", f"{row['lost']:,}")
    console.print(table)
    own = {row["setting"].partition("=")[0]: row["own_thresholds"] for row in facts["tried"]}
    for key, languages in own.items():
        told = [
            f"{o['language']} {o['threshold']:.6g} ({o['removed']:,} removed)" for o in languages
        ]
        if told:
            text = f"{key}: not for languages with their own in filter.by_language: "
            console.print(text + ", ".join(told), soft_wrap=True)
    for row in facts["tried"]:
        for side in ("below", "above"):
            for near in row[side] if row["gained"] or row["lost"] else ():
                shown = f"{row['setting']}, {side}: {near['url']}  {near['signal']:.6g}"
                console.print(shown, soft_wrap=True)


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
