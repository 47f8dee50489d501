"""Last touches on extracted text: one normal form, no debris, no markup."""

from __future__ import annotations

import unicodedata

import regex

# Characters that carry no text: C0 and C1 controls but tab and newline, the byte-order mark,
# zero-width space, soft hyphen, word joiner, interlinear marks, and lone private-use icons. The
# zero-width joiners stay: Persian, Hindi and emoji need them.
_DEBRIS = regex.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u2060\ufeff\ufff9-\ufffb]")
_LINE_ENDS = regex.compile(r"\r\n?|\u2028|\u2029|\x85")
_TRAILING = regex.compile(r"[^\S\n]+(?=\n|\Z)")
_BLANK_LINES = regex.compile(r"\n{3,}")


def normal(text: str) -> str:
    """NFC."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


def clean(text: str) -> str:
    """NFC, plain line ends, no control or zero-width debris, at most one blank line in a row."""
    text = normal(text)
    text = _LINE_ENDS.sub("\n", text)
    text = _DEBRIS.sub("", text)
    text = _TRAILING.sub("", text)
    return _BLANK_LINES.sub("\n\n", text).strip("\n")
