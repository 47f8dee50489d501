"""Format a document's rights for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def told(row: Mapping[str, Any]) -> list[str]:
    """Return lines that describe a document's columns `rights` and `response`, if present."""
    rights, response = row.get("rights"), row.get("response")
    lines = []
    if response is not None:
        known = (f"{name.replace('_', ' ')} {v}" for name, v in response.items() if v is not None)
        lines.append(f"response: {', '.join(known)}")
    if rights is not None:
        lines.append(f"licence: {rights['licence'] or 'none found'}")
        lines += map(told_signal, rights["signals"])
    return lines


def told_signal(signal: Mapping[str, str | None]) -> str:
    """Return one line that describes a signal: `directive in header for ccbot: noai`."""
    agent = f" for {signal['agent']}" if signal["agent"] else ""
    return f"{signal['kind']} in {signal['place']}{agent}: {signal['value'] or 'no rule applies'}"
