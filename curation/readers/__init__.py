"""Readers: any input file as pages, damage set aside, nothing lost that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.readers.charset import decode_html, decode_text
    from curation.readers.discover import InputFile, PassedOver, discover
    from curation.readers.read import read, read_at
    from curation.readers.records import Damage, Event, Page, Skipped
    from curation.readers.settings import ReaderSettings

__all__ = [
    "Damage",
    "Event",
    "InputFile",
    "Page",
    "PassedOver",
    "ReaderSettings",
    "Skipped",
    "decode_html",
    "decode_text",
    "discover",
    "read",
    "read_at",
]

_MODULES = {
    "charset": ("decode_html", "decode_text"),
    "discover": ("InputFile", "PassedOver", "discover"),
    "read": ("read", "read_at"),
    "records": ("Damage", "Event", "Page", "Skipped"),
    "settings": ("ReaderSettings",),
}
lazily(__name__, _MODULES)
