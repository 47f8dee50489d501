"""Text that was UTF-8, read as windows-1252 and encoded anew ("Ã©" for "é"): mended where certain.

A run of characters is mended when its windows-1252 bytes are valid UTF-8. By chance such runs are
rare: they need a letter like "Ã" or "â" followed by signs that no spelling puts there.

Bytes 80 to 9F may have been read as the C1 controls of ISO-8859-1 ("â\x80\x99"), and windows-1252
has controls for five of them. No text keeps these, nor no-break spaces, so a page is mended before
it is scanned.
"""

from __future__ import annotations

import functools
import itertools
import re

import numba
import numpy as np
import regex

_WINDOWS = {bytes([b]).decode("cp1252", "ignore"): b for b in range(128, 256)}
_C1 = {chr(b): b for b in range(0x80, 0xA0)}
_BYTE = {sign: b for sign, b in (_WINDOWS | _C1).items() if sign}
_LEADS = "".join(c for c, b in _BYTE.items() if 0xC2 <= b <= 0xF4)
# A no-break space stands behind many a word: it is a tail only where no word ends.
_TAILS = "".join(c for c, b in _BYTE.items() if 0x80 <= b <= 0xBF and c != "\xa0")
_SPACED = "ÂÃÅÎÐ"
_RUN = regex.compile(
    f"(?:[{regex.escape(_LEADS)}][{regex.escape(_TAILS)}]{{1,3}}|[{_SPACED}]\xa0)+"
)
_LOOKED_AT, _SOUND = 100, 0.8  # the first runs, and the share of them that must be UTF-8
_HINTS = ("Ã", "â€", "Â", "Ð", "Ñ", "Å", "Ä", "å", "æ", "ã", "Î", "Ï", "Ø", "Ù", "×")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
# What a control stands for where it is no part of a run: HTML reads numeric references so, too.
_CONTROLS = {chr(b): s for s, b in _WINDOWS.items() if s and b < 0xA0 and b != 0x85}
_HIGH = np.uint64(0x8080808080808080)
_SPACED_BYTES = np.zeros(256, np.bool_)
_SPACED_BYTES[[letter.encode()[1] for letter in _SPACED]] = True


def mended(source: bytes) -> bytes:
    """A page (UTF-8), `repaired` where the scan would lose what is needed for it."""
    words = np.frombuffer(source, np.uint64, len(source) // 8)
    if not _would_lose(np.frombuffer(source, np.uint8), words):
        return source
    text = source.decode("utf-8", "surrogateescape")
    return repaired(text).encode("utf-8", "surrogateescape")


@numba.njit(cache=True, nogil=True)
def _would_lose(source, words):  # type: ignore[no-untyped-def]
    """Whether UTF-8, of which `words` are the first eights, has C1 controls, or `_SPACED` before a
    no-break space.
    """
    i = 0
    while i < len(source) - 1:
        if i & 7 == 0:
            k = i >> 3
            while k < len(words) and words[k] & _HIGH == 0:
                k += 1
            i = k << 3
            if i >= len(source) - 1:
                break
        if source[i] == 0xC2 and source[i + 1] < 0xA0:
            return True
        if source[i] == 0xC3 and _SPACED_BYTES[source[i + 1]] and i + 3 < len(source):
            if source[i + 2] == 0xC2 and source[i + 3] == 0xA0:
                return True
        i += 1
    return False


def repaired(text: str) -> str:
    """The text with double-encoded runs mended; other text comes back as it is.

    C1 controls that are none of their bytes become the signs that windows-1252 has in their places.
    """
    if text.isascii():
        return text
    # Nothing else is looked at: the markup of a page is mostly ASCII, and no run crosses it.
    signs = "\n".join(_BEYOND_ASCII.findall(text))
    fixed = _with_controls(signs)
    if fixed == signs:
        return text
    parts = iter(fixed.split("\n"))
    return _BEYOND_ASCII.sub(lambda _: next(parts), text)


def _with_controls(text: str) -> str:
    if controls := _count(text):
        fixed = _repaired(text)
        # Where they are left they are signs of windows-1252, and runs are there by chance.
        text = text if 2 * _count(fixed) > controls else fixed
        for control, sign in _CONTROLS.items():
            text = text.replace(control, sign)
        return text
    return _repaired(text) if any(hint in text for hint in _HINTS) else text


def _count(text: str) -> int:
    """Number of C1 controls."""
    return sum(map(text.count, _C1))


def _repaired(text: str) -> str:
    looked_at = [found.group() for found in itertools.islice(_RUN.finditer(text), _LOOKED_AT)]
    # One short run may be meant; several, or one of three bytes, are not, unless they are letters
    # throughout ("ääšš").
    runs = [run for run in looked_at if "\xa0" not in run and not run.isalpha()]
    if len(runs) < 2 and max(map(len, runs), default=0) < 3:
        return text
    # Of very many, nearly all must be UTF-8: else they are there by chance, as in the bytes of a
    # picture that are read as text.
    sound = sum(_decoded(run) != run for run in runs)
    if len(looked_at) == _LOOKED_AT and sound < _SOUND * len(runs):
        return text
    return _RUN.sub(_mended, text)


def _mended(found: regex.Match[str]) -> str:
    return _decoded(found.group())


@functools.lru_cache(1 << 13)  # a text has the same few runs many times
def _decoded(run: str) -> str:
    try:
        return bytes(map(_BYTE.__getitem__, run)).decode("utf-8")
    except UnicodeDecodeError:
        return run
