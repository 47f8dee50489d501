"""Text that was UTF-8, read as windows-1252 and encoded again ("Ã©" for "é"): mended where certain.

A run of characters is mended when its windows-1252 bytes are valid UTF-8. By chance such runs are
rare: they need a letter like "Ã" or "â" followed by signs that no spelling puts there.

Bytes 80 to 9F may have been read as the C1 controls of ISO-8859-1 ("â\\x80\\x99"), and windows-1252
has controls for five of them. No text keeps these, nor no-break spaces, so a page is mended before
it is scanned.
"""

import re

import numpy as np

_LOOKED_AT, _SOUND = 100, 0.8  # the first runs, and the share of them that must be UTF-8
#: What windows-1252 has for the bytes 80 to 9F; HTML reads numeric references so, too. 85, a line
#: end, and the five that it lacks stay.
_SIGNS = {b: bytes([b]).decode("cp1252", "ignore") or chr(b) for b in range(0x80, 0xA0)}
_BYTE_OF = {ord(sign): b for b, sign in _SIGNS.items()}
_CONTROL = re.compile("[\x80-\x9f]")
_HINT_LETTERS = "ÃÂÐÑÅÄåæãÎÏØÙ×"
_HINTS = (*_HINT_LETTERS, *map(chr, range(0x80, 0xA0)), "â€")
#: Text without these is never mended, nor is text without C1 controls.
FIRST_LETTERS = _HINT_LETTERS + "â"
_SPACED = "ÂÃÅÎÐ"
_LOST = re.compile(rb"[\x82\x83\x85\x8e\x90]\xc2\xa0")  # of those letters before a no-break space
# Letters such as "Ã", each with one to three signs behind it. The no-break space is behind many a
# word, so it is a sign only where no word ends.
_TAILS = "".join(_SIGNS.values()) + "\x80-\x9f\xa1-\xbf"
_PART = f"[\xc2-\xf4](?:[{_TAILS}]{{1,3}}+|(?<=[{_SPACED}])\xa0)"
_RUN = re.compile(f"{_PART}(?:{_PART})*+")


def mended(source: bytes) -> bytes:
    """A page (UTF-8), mended as by `repaired` where the scan would lose what is needed for it."""
    if not _loses(source):
        return source
    text = source.decode("utf-8", "surrogateescape")
    made = repaired(text)
    return source if made is text else made.encode("utf-8", "surrogateescape")


def _loses(source: bytes) -> bool:
    """Whether a page has C1 controls, or one of the spaced letters before a no-break space."""
    if not (b"\xc2" in source or b"\xc3" in source):
        return False
    data = np.frombuffer(source, np.uint8)
    if (data[np.flatnonzero(data[:-1] == 0xC2) + 1] < 0xA0).any():
        return True
    letters = np.flatnonzero(data[:-1] == 0xC3) + 1
    return any(_LOST.match(source, i) for i in letters[data[letters] <= 0x90].tolist())


def repaired(text: str) -> str:
    """The text with double-encoded runs mended; other text comes back as it is.

    C1 controls that are none of their bytes become the signs that windows-1252 has in their places.
    """
    if text.isascii() or not any(hint in text for hint in _HINTS):
        return text
    controls = len(_CONTROL.findall(text))
    made = _RUN.sub(lambda run: _utf8(run[0]) or run[0], text) if _is_certain(text) else text
    # Where controls are left they are signs of windows-1252, and runs are there by chance.
    left = len(_CONTROL.findall(made))
    if controls and 2 * left > controls:
        made, left = text, controls
    if left:
        made = _CONTROL.sub(lambda one: one[0] if one[0] == "\x85" else _SIGNS[ord(one[0])], made)
    return text if made == text else made


def _utf8(run: str) -> str:
    """The text whose UTF-8 are the windows-1252 bytes of a run; "" if they are no UTF-8."""
    try:
        return run.translate(_BYTE_OF).encode("latin-1").decode()
    except UnicodeDecodeError:
        return ""


def _is_certain(text: str) -> bool:
    """Whether the runs of a text are to be mended."""
    conclusive = longest = sound = 0  # of the first runs
    for seen, run in enumerate(_RUN.finditer(text), 1):
        # One tells nothing with no-break spaces, or if its signs are letters, too ("ääšš").
        if not (run[0].isalpha() or "\xa0" in run[0]):
            conclusive += 1
            longest = max(longest, len(run[0]))
            sound += bool(_utf8(run[0]))
        # Of very many, nearly all must be UTF-8: else they are there by chance, as in the bytes of a
        # picture read as text.
        if seen == _LOOKED_AT:
            if sound < _SOUND * conclusive:
                return False
            break
    # One short run may be meant; several, or one of three bytes, are not.
    return conclusive >= 2 or longest >= 3
