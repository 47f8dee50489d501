"""The funnel on a terminal."""

from typing import Any

from rich.table import Table
from rich.text import Text

from pipelines.console import PlainConsole
from pipelines.reading.funnel import listed, ranked_reasons, records_text

#: Reasons of a stage, and alarms, that are shown.
_REASONS, _ALARMS = 6, 6


def print_funnel(facts: dict[str, Any], console: PlainConsole) -> None:
    """Print stages with documents in and kept, characters, CPU seconds and main reasons."""
    table = Table(title=f"Funnel of {facts['run']} (recipe {facts['recipe']['name']})")
    names = ("stage", "in", "kept", "share", "characters", "distinct\ntokens", "CPU s")
    for name in names:
        table.add_column(name, justify="left" if name == "stage" else "right", no_wrap=True)
    for entry in facts["funnel"]:
        total = entry["documents_in"]
        share = f"{entry['documents'] / total:.1%}" if total else "-"
        distinct = entry["distinct_tokens"]
        table.add_row(
            entry["stage"],
            f"{total:,}",
            f"{entry['documents']:,}",
            share,
            f"{entry['characters']:,}",
            "" if distinct is None else f"{distinct:,}",
            f"{entry['cpu_seconds']:,.1f}",
        )
    console.print(table)
    written = {e["distinct_tokens"]: e for e in facts["funnel"] if e["distinct_tokens"]}
    for distinct, entry in written.items():
        console.print(
            f"{entry['stage']}: {distinct:,} distinct tokens x {entry['epochs']:.2f} epochs = "
            f"{entry['tokens']:,} tokens"
        )
    for entry in facts["funnel"]:
        if entry["removed"]:
            ranked = [(why, of["documents"]) for why, of in ranked_reasons(entry["removed"])]
            console.print(f"{entry['stage']} removed: {listed(ranked, _REASONS)}")
    first = facts["funnel"][0]["counters"]
    if first.get("records"):
        console.print(records_text(first))
    for line in facts["alarms"][:_ALARMS]:
        console.print(Text.assemble(("! ", "yellow"), line))
    if len(facts["alarms"]) > _ALARMS:
        console.print(f"! {len(facts['alarms']) - _ALARMS:,} more in the report")
