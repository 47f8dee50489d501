"""Text that is in normal form and has no double-encoded letters, as a look at each character tells.

Most text is, and is spared `mojibake.repaired` and `clean.normal`.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import code_point
from curation.compiled import Bool, Bytes, borrowing
from curation.extract.clean import IS_MARK
from curation.extract.mojibake import FIRST_LETTERS

_TABLE = 0x3000
_JAMO = slice(0x1100, 0x1200)  # which compose by rule, without an entry of their own
# Beyond the table: Han without its compatibility forms, kana, Hangul syllables, full-width forms.
_SETTLED = ((0x3001, 0x3029), (0x3041, 0x3096), (0x309D, 0x30FF), (0x3400, 0x9FFF),
            (0xAC00, 0xD7A3), (0xFF01, 0xFFEE))  # fmt: skip


def _unnormalized() -> npt.NDArray[np.bool_]:
    """Which code points have another normal form, take part in one, or begin a double encoding."""
    table = IS_MARK[:_TABLE].astype(np.bool_)
    table[_JAMO] = True
    table[0x80:0xA0] = True
    table[[ord(letter) for letter in FIRST_LETTERS]] = True
    signs = [*map(chr, range(0xC0, _TABLE))]
    table[0xC0:] |= [sign != unicodedata.normalize("NFC", sign) for sign in signs]
    for decomposition in filter(None, map(unicodedata.decomposition, signs)):
        parts = decomposition.split()
        if len(parts) == 2 and parts[0][0] != "<" and (second := int(parts[1], 16)) < _TABLE:
            table[second] = True
    return table


_UNNORMALIZED = _unnormalized()
_STARTS = np.array([first for first, _ in _SETTLED])
_ENDS = np.array([last for _, last in _SETTLED])


@borrowing
def is_normalized(data: Bytes) -> Bool:
    """Whether UTF-8 (uint8 array) surely comes back from `repaired` and `normal` as it is."""
    i = 0
    while i < len(data):
        if data[i] < 0x80:
            i += 1
            continue
        point, size = code_point(data, i)
        i += size
        if point < _TABLE:
            if _UNNORMALIZED[point]:
                return False
            continue
        known = False
        for k in range(len(_STARTS)):
            known = known or _STARTS[k] <= point <= _ENDS[k]
        if not known:
            return False
    return True
