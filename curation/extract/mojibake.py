"""Text that was UTF-8, read as windows-1252 and encoded anew ("Ã©" for "é"): mended where certain.

A run of characters is mended when its windows-1252 bytes are valid UTF-8. By chance such runs are
rare: they need a letter like "Ã" or "â" followed by signs that no spelling puts there.
"""

from __future__ import annotations

import functools
import itertools

import regex

_BYTE = {
    bytes([b]).decode("cp1252"): b for b in range(128, 256) if b not in (129, 141, 143, 144, 157)
}
# Pages declared as windows-1252 hold the five undefined bytes as C1 controls; they are dropped from
# text, and a sequence that needs them can't be mended.
_LEADS = "".join(c for c, b in _BYTE.items() if 0xC2 <= b <= 0xF4)
_TAILS = "".join(c for c, b in _BYTE.items() if 0x80 <= b <= 0xBF)
_RUN = regex.compile(f"(?:[{regex.escape(_LEADS)}][{regex.escape(_TAILS)}]{{1,3}})+")
_LOOKED_AT, _SOUND = 100, 0.8  # the first runs, and the share of them that must be UTF-8
_HINTS = ("Ã", "â€", "Â", "Ð", "Ñ", "Å", "Ä", "å", "æ", "ã", "Î", "Ï", "Ø", "Ù", "×")


def repaired(text: str) -> str:
    """The text with double-encoded runs mended; other text comes back as it is."""
    if text.isascii() or not any(hint in text for hint in _HINTS):
        return text
    runs = [found.group() for found in itertools.islice(_RUN.finditer(text), _LOOKED_AT)]
    if not runs:
        return text
    # One short run may be meant; several, or one of three bytes, are not.
    if len(runs) < 2 and len(runs[0]) < 3:
        return text
    # Of very many, nearly all must be UTF-8: else they are there by chance, as in the bytes of a
    # picture that are read as text.
    sound = sum(_decoded(run) != run for run in runs)
    if len(runs) == _LOOKED_AT and sound < _SOUND * len(runs):
        return text
    return _RUN.sub(_mended, text)


def _mended(found: regex.Match[str]) -> str:
    return _decoded(found.group())


@functools.lru_cache(1 << 13)  # a text has the same few runs many times
def _decoded(run: str) -> str:
    try:
        return run.encode("cp1252").decode("utf-8")
    except UnicodeDecodeError:
        return run
