"""Format the values, thresholds and counts of a report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from curation.readers.records import NOT_DRAWN_COUNT, skipped
from curation.readers.settings import NAME_COLUMN

#: Reasons of stage `dedup-urls`, which writes dates as seconds since 1970.
_DATED = "url."
#: Prefixes of counters by reason, of records set aside and repaired; most reasons shown.
_ASIDE, _MENDED, _SHOWN = "set_aside.", "mended.", 3


def value_text(reason: str, value: float | None) -> str:
    """Format a date if the reason compares dates, else a six-digit number; empty for None."""
    if value is None:
        return ""
    if reason.startswith(_DATED):
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{value:.6g}"


def token_facts(*manifests: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens that a run wrote, the distinct ones of them, and epochs; None: unknown.

    The last of the manifests that has a fact counts.
    """
    counts: dict[str, Any] = {}
    for manifest in manifests:
        counts |= manifest["counts"]
    tokens, distinct = counts.get("tokens"), counts.get("distinct_tokens")
    return {
        "tokens": tokens,
        "distinct_tokens": distinct,
        "epochs": round(tokens / distinct, 4) if tokens and distinct else None,
    }


def snippet(text: str | None, most: int) -> str:
    """Return the beginning of a text on one line."""
    return " ".join((text or "")[: 4 * most].split())[:most]


def ranked_reasons(removed: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return reasons and counts of a funnel entry, the reason with the most documents first."""
    return sorted(removed.items(), key=lambda kv: (-kv[1]["documents"], kv[0]))


def records_text(counters: dict[str, int]) -> str:
    """Summarize what became of the input's records."""
    aside = counters.get("set_aside", 0)
    why = _ranked(counters, _ASIDE)
    hint = f"; {NAME_COLUMN}" if why and why[0][0].endswith(".no_text") else ""
    mended = _ranked(counters, _MENDED)
    broken = sum(count for _, count in mended)
    also = f"; {broken:,} are broken and were read as far as they go{_told(mended)}"
    left_out = counters.get(NOT_DRAWN_COUNT, 0)
    drawn = f"{left_out:,} were not drawn (readers.sample), " if left_out else ""
    return (
        f"{counters['records']:,} records read: {drawn}"
        f"{skipped(counters) - left_out:,} are not documents, "
        f"{aside:,} could not be read and were set aside{_told(why)}{hint}"
        f"{also if broken else ''}"
    )


def _ranked(counters: dict[str, int], prefix: str) -> list[tuple[str, int]]:
    counts = {k.removeprefix(prefix): v for k, v in counters.items() if k.startswith(prefix)}
    return sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))


def _told(ranked: list[tuple[str, int]]) -> str:
    shown = [f"{reason} {count:,}" for reason, count in ranked[:_SHOWN]]
    if len(ranked) > _SHOWN:
        shown.append(f"+{len(ranked) - _SHOWN} more")
    return f" ({', '.join(shown)})" if shown else ""
