"""Strings that UTF-8 can't hold."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """The text with U+FFFD in place of lone surrogates.

    JSON may state them (`"\\ud83d"`, half a pair), but neither UTF-8 nor Arrow has bytes for them.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
