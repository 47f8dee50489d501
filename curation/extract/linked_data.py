"""JSON-LD of a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from curation.extract import blocks as s


def linked_data(source: bytes, page: s.Page, marks: Sequence[bytes]) -> Iterator[Any]:
    """Yield what the page's JSON-LD scripts hold that have one of `marks`, those that are JSON."""
    for slot in range(s.LINKED_DATA, s.ITEM_TYPES, 2):
        start, end = page.facts[slot], page.facts[slot + 1]
        data = source[start:end]
        if not start or not any(mark in data for mark in marks):
            continue
        try:
            yield json.loads(data.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            continue
