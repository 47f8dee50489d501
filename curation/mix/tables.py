"""Mixes for people: the token table, and what is short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curation.mix.plan import MixPlan, Shortage


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
    return "\n".join([align(lines), f"budget {mix.budget:,} tokens", *advice(mix)])


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
    """What is short and what would fill it, a sentence each."""
    if not mix.most:
        return ["nothing to draw: no domain that has a share has any tokens"]
    lines = [_sentence(shortage) for shortage in mix.short]
    if any(shortage.epochs_needed is not None for shortage in mix.short):
        lines.append(f"a budget of {mix.most:,} tokens would be filled with what there is")
    return lines


def _sentence(short: Shortage) -> str:
    more = f"{short.tokens_needed:,} more distinct tokens"
    if short.epochs_needed is None:
        return f"{short.domain} is short of {short.missing:,} tokens: there are none; add {more}"
    return (
        f"{short.domain} is short of {short.missing:,} tokens: "
        f"{short.epochs_needed:.2f} epochs or {more} would fill it"
    )
