"""Tables of mixes: token counts, and shortages."""

from collections.abc import Sequence
from typing import Any

from curation.mix.plan import MixPlan, Shortage
from curation.mix.schedule import shares


def align(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def plan_table(mix: MixPlan) -> str:
    """One line per domain, below it its inputs if there are several, then what is short."""
    lines = [["", "share", "documents", "available", "wanted", "epochs", "kept", "is"]]
    cells = mix.cell_rows()
    several = len({cell["source"] for cell in cells}) > 1
    for row in mix.rows():
        lines.append(_line(row["domain"], f"{row['share']:.2%}", f"{row['wanted']:,}", row))
        for cell in cells if several else []:
            if cell["domain"] == row["domain"]:
                lines.append(_line(f"  {cell['source']} x{cell['weight']:g}", "", "", cell))
    phases = [align(_phases(mix))] if mix.settings.phases else []
    return "\n".join([align(lines), *phases, f"budget {mix.budget:,} tokens", *advice(mix)])


def _phases(mix: MixPlan) -> list[list[str]]:
    """One line per phase: its part of training, and wanted and drawn share of each domain."""
    lines = [["phase", "from", "to", "kept", *mix.settings.domains]]
    for row in mix.phase_rows():
        parts = row["domains"].values()
        shares = [f"{part['share']:.2%} {part['kept_share']:.2%}" for part in parts]
        ends = f"{row['start']:.1%}", f"{row['end']:.1%}"
        lines.append([row["phase"], *ends, f"{row['kept']:,}", *shares])
    return lines


def _line(name: str, share: str, wanted: str, row: dict[str, Any]) -> list[str]:
    return [
        name,
        share,
        f"{row['documents']:,}",
        f"{row['available']:,}",
        wanted,
        f"{row['epochs']:.3f}",
        f"{row['kept']:,}",
        f"{row['kept_share']:.2%}",
    ]


def advice(mix: MixPlan) -> list[str]:
    """Return a sentence for each domain that is short or limits the budget, with remedies."""
    if not mix.most:
        return ["nothing to draw: no domain with a share has any tokens"]
    shares = {row["domain"]: row["kept_share"] for row in mix.rows()}
    lines = [_sentence(shortage, mix, shares[shortage.domain]) for shortage in mix.short]
    if any(shortage.epochs_needed is not None for shortage in mix.short):
        lines.append(
            f"a budget of {mix.most:,} tokens would be filled with what there is "
            "(mix.on_shortage: shrink)"
        )
    return [*lines, *_binding(mix)]


def lacking(mix: MixPlan) -> str | None:
    """Return what a mix with other shares than the settings' lacks, and how to draw it once."""
    if not mix.short or not mix.drawn:
        return None
    rows = {row["domain"]: row for row in mix.rows()}
    short = [rows[shortage.domain] for shortage in mix.short]
    lacks = [f"{_is(row)}" if row["available"] else f"{row['domain']} (none)" for row in short]
    most = max(rows.values(), key=lambda row: row["kept"])
    distinct = sum(min(row["kept"], row["available"]) for row in rows.values())
    return (
        f"the documents lack {', '.join(lacks)}; the most is {_is(most)}, and documents are drawn "
        f"{mix.drawn / distinct:.2f} times on average: --set mix.budget=all takes each once"
    )


def _is(row: dict[str, Any]) -> str:
    return f"{row['domain']} ({row['kept_share']:.1%} of the mix instead of {row['share']:.1%})"


def _sentence(short: Shortage, mix: MixPlan, share: float) -> str:
    more = f"{short.tokens_needed:,} more distinct tokens"
    is_and_wanted = (
        f"{share:.2%} of what is drawn instead of {shares(mix.settings)[short.domain]:.2%}"
    )
    if short.epochs_needed is None:
        return (
            f"{short.domain} is short of {short.missing:,} tokens ({is_and_wanted}): "
            f"there are none; add {more}"
        )
    key = f"{_key(mix, short.domain)}.max_epochs"
    epochs = f"{short.epochs_needed:.2f} epochs ({key})"
    if mix.settings.curve_of(short.domain):
        epochs = f"an average of {short.epochs_needed:.2f} epochs (`mean` of its repeats, {key})"
    return (
        f"{short.domain} is short of {short.missing:,} tokens ({is_and_wanted}): "
        f"{epochs} or {more} would fill it"
    )


def _key(mix: MixPlan, domain: str) -> str:
    """Return the key of a domain's settings, or of a named input's."""
    return f"mix.{'inputs' if mix.settings.inputs else 'domains'}.{domain}"


def _binding(mix: MixPlan) -> list[str]:
    """Return which domain keeps `budget: auto` from drawing more, if tokens are left."""
    if mix.settings.budget != "auto" or not mix.unused:
        return []
    domain = next((d for d, limit in mix.limits.items() if limit == mix.budget), None)
    if domain is None:
        return []
    epochs, share = mix.settings.domains[domain].max_epochs, shares(mix.settings)[domain]
    line = (
        f"{domain} sets the budget: all it has, {epochs:g} times, is {share:.2%} of "
        f"{mix.budget:,} tokens; {mix.unused:,} tokens of other domains are not drawn. A smaller "
        f"{_key(mix, domain)}.share or a larger max_epochs draws more"
    )
    if mix.settings.on_shortage == "shrink" and mix.budget == mix.most:
        line += ", as does mix.on_shortage: relax where it is scarce"
    return [line]
