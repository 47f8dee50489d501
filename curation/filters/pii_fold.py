"""Digits, spaces and marks of other scripts as their ASCII forms, one character for one.

The patterns for numbers are written for ASCII; what they find in a folded text is at the same
characters of the text itself.
"""

from __future__ import annotations

#: Arabic-Indic, Persian, Devanagari and full-width digits begin here.
_ZEROS = "\u0660\u06f0\u0966\uff10"
_MARKS = str.maketrans(
    # no-break, narrow no-break and ideographic space; hyphens and dashes; full-width forms
    "\u00a0\u202f\u3000\u2010\u2011\u2012\u2013\uff0d\uff0b\uff08\uff09\uff0e\uff0f",
    "   -----+()./",
)
_NUMBERS = _MARKS | {ord(zero) + i: str(i) for zero in _ZEROS for i in range(10)}
# dashes end an address, so that they are left as they are
_ADDRESSES = str.maketrans("\uff20\uff0e", "@.")


def fold_number(text: str) -> str:
    """The text with digits, spaces, dashes, brackets, plus, slash and full stop in ASCII."""
    return text if text.isascii() else text.translate(_NUMBERS)


def fold_address(text: str) -> str:
    """The text with `@` and full stop in ASCII."""
    return text if text.isascii() else text.translate(_ADDRESSES)
