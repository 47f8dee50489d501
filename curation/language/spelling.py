"""Spellings of one text that say nothing of its language, and what becomes of them.

Decomposed letters, presentation forms of fonts, points on Arabic and Hebrew letters, breathings of
Greek, soft hyphens: a model that has seen the usual spelling finds every run of letters strange in
the other, and takes a psalm with vowel signs for a language that nobody knows.
"""

from __future__ import annotations

import functools
import unicodedata

import numpy as np
import numpy.typing as npt

from curation.kernels import kept
from curation.text.characters import bits_of, lower_case

#: Kinds of code points, as bits: left out; in need of a normal form; in need of NFKC.
OPTIONAL, DECOMPOSED, PRESENTED = 1, 2, 4
#: What an optional code point becomes in `folded`.
LEFT_OUT = 0xFFFFFFFF

_PATTERNS = (
    # Soft hyphen, joiners of graphemes, marks of direction; tatweel, vowel signs and signs of
    # recitation of Arabic; points and accents of Hebrew.
    (
        OPTIONAL,
        r"[\u00ad\u034f\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
        r"\u0640\u064b-\u0652\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
        r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]",
    ),
    (DECOMPOSED, r"[\p{NFC_QC=No}\p{NFC_QC=Maybe}\P{ccc=0}]"),
    # Ligatures and forms of Latin, Armenian, Hebrew and Arabic letters, letters of mathematics.
    # Not full-width forms: Chinese punctuation is among them.
    (PRESENTED, r"[[\ufb00-\ufdef\ufe70-\ufefc\U0001d400-\U0001d7ff]&&\p{NFKC_QC=No}]"),
)
_GREEK_EXTENDED = range(0x1F00, 0x2000)
_ACCENTS = {"\u0300", "\u0301", "\u0342"}  # grave, acute, circumflex: all one accent today
_ACUTE, _DIAERESIS = "\u0301", "\u0308"


@functools.cache
@kept
def kinds() -> npt.NDArray[np.uint8]:
    """Bits of every code point: uint8 [0x110000]."""
    table = bits_of(_PATTERNS).astype(np.uint8)
    table[(table & OPTIONAL) != 0] = OPTIONAL
    table.flags.writeable = False
    return table


@functools.cache
@kept
def folded() -> npt.NDArray[np.uint32]:
    """Lower-case form of every code point: uint32 [0x110000], `LEFT_OUT` where it is optional.

    Greek letters have one accent and no breathing.
    """
    table = lower_case().copy()
    for code in _GREEK_EXTENDED:
        letter, *marks = list(unicodedata.normalize("NFD", chr(code).lower()))
        if letter.isalpha():
            accent = _ACUTE if _ACCENTS & set(marks) else ""
            diaeresis = _DIAERESIS if _DIAERESIS in marks else ""
            table[code] = ord(unicodedata.normalize("NFC", letter + diaeresis + accent))
    table[kinds() == OPTIONAL] = LEFT_OUT
    table.flags.writeable = False
    return table
