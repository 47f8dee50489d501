"""Functions that fail as native code does; a module of its own, for child processes."""

from __future__ import annotations

import os

from curation.extract import Extraction
from curation.extract.extract_settings import ExtractSettings
from curation.extract.safe import Failed, Refused, extract_page
from curation.readers.records import Page


def shout(word: str) -> str:
    """The word in capitals; `abort` and `exit` end the process, `once` the first time."""
    if word == "abort":
        os.abort()
    if word == "exit":
        os._exit(3)
    if word.startswith("once "):
        try:
            os.mkdir(word.removeprefix("once "))
        except FileExistsError:
            return "SECOND TIME"
        os.abort()
    return word.upper()


def crashing(settings: ExtractSettings, page: Page) -> Extraction | Refused | Failed:
    """An engine that ends its process over pages with a mark."""
    if b"abort-here" in page.content:
        os.abort()
    return extract_page(settings, page)


def hungry(size: int) -> int:
    """Take so many bytes; 0 when there aren't any."""
    try:
        return len(bytearray(size))
    except MemoryError:
        return 0


def busy(turns: int) -> int:
    """Turn so often."""
    return sum(1 for _ in range(turns))
