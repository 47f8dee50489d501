"""Readers: turn any input file into pages, set damage aside, and recover what can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.readers.charset import decode_html, decode_text
    from curation.readers.discover import InputFile, PassedOver, discover
    from curation.readers.ranges import (
        Checkpoint,
        RangeReader,
        Reading,
        Span,
        misread,
        spans,
        why_whole,
    )
    from curation.readers.read import read, read_at
    from curation.readers.records import Damage, Event, Page, Skipped
    from curation.readers.settings import ReaderSettings

__all__ = [
    "Checkpoint",
    "Damage",
    "Event",
    "InputFile",
    "Page",
    "PassedOver",
    "RangeReader",
    "ReaderSettings",
    "Reading",
    "Skipped",
    "Span",
    "decode_html",
    "decode_text",
    "discover",
    "misread",
    "read",
    "read_at",
    "spans",
    "why_whole",
]

_MODULES = {
    "charset": ("decode_html", "decode_text"),
    "discover": ("InputFile", "PassedOver", "discover"),
    "ranges": (
        "Checkpoint",
        "RangeReader",
        "Reading",
        "Span",
        "misread",
        "spans",
        "why_whole",
    ),
    "read": ("read", "read_at"),
    "records": ("Damage", "Event", "Page", "Skipped"),
    "settings": ("ReaderSettings",),
}
lazily(__name__, _MODULES)
