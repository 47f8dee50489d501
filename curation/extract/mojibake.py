"""Text that was UTF-8, read as windows-1252 and encoded anew ("Ã©" for "é"): mended where certain.

A run of characters is mended when its windows-1252 bytes are valid UTF-8. By chance such runs are
rare: they need a letter like "Ã" or "â" followed by signs that no spelling puts there.
"""

from __future__ import annotations

import regex

_BYTE = {
    bytes([b]).decode("cp1252"): b for b in range(128, 256) if b not in (129, 141, 143, 144, 157)
}
# Pages declared as windows-1252 hold the five undefined bytes as C1 controls; they are dropped from
# text, and a sequence that needs them can't be mended.
_LEADS = "".join(c for c, b in _BYTE.items() if 0xC2 <= b <= 0xF4)
_TAILS = "".join(c for c, b in _BYTE.items() if 0x80 <= b <= 0xBF)
_RUN = regex.compile(f"(?:[{regex.escape(_LEADS)}][{regex.escape(_TAILS)}]{{1,3}})+")
_HINTS = ("Ã", "â€", "Â", "Ð", "Ñ", "Å", "Ä", "å", "æ", "ã", "Î", "Ï", "Ø", "Ù", "×")


def repaired(text: str) -> str:
    """The text with double-encoded runs mended; other text comes back as it is."""
    if text.isascii() or not any(hint in text for hint in _HINTS):
        return text
    runs = _RUN.findall(text)
    if not runs:
        return text
    # One short run may be meant; several, or one of three bytes, are not.
    if len(runs) < 2 and len(runs[0]) < 3:
        return text
    return _RUN.sub(_mended, text)


def _mended(found: regex.Match[str]) -> str:
    run = found.group()
    try:
        return bytes(_BYTE[character] for character in run).decode("utf-8")
    except UnicodeDecodeError:
        return run
