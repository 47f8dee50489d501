"""Value and threshold of a removal, for people."""

from __future__ import annotations

from datetime import UTC, datetime

#: Stage `dedup-urls` compares dates, which it writes as seconds since 1970.
_DATED = "url."


def value_text(reason: str, value: float | None) -> str:
    """A date where the reason compares dates, else a number of six digits; nothing for None."""
    if value is None:
        return ""
    if reason.startswith(_DATED):
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{value:.6g}"
