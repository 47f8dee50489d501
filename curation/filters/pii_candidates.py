"""Places in a batch where personal data may stand, found in one pass over its bytes.

Clean text costs this pass and nothing else; every place found is then judged in Python
(curation.filters.pii).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from curation.arrow import TextBuffers

MAIL = 0  # an @ with something on both sides
NUMBER = 1  # a run of digits and separators: 7 digits or three points in it
IPV6 = 2  # a run of hexadecimal digits and colons
CODE = 3  # two capitals and two digits, or six capitals and two digits
TOKEN = 4  # the prefix of a secret

_MIN_DIGITS = 7  # of the shortest telephone number
_LONGEST_CODE = 42  # IBAN of 34 characters in groups of four
_LONGEST_MAIL = 256

_ALNUM, _DIGIT, _UPPER, _HEX, _LOCAL = 1, 2, 4, 8, 16


def _byte_classes() -> npt.NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for b in range(128):
        char = chr(b)
        table[b] |= _ALNUM * char.isalnum()
        table[b] |= _DIGIT * char.isdigit()
        table[b] |= _UPPER * char.isupper()
        table[b] |= _HEX * (char in "0123456789abcdefABCDEF")
        table[b] |= _LOCAL * (char.isalnum() or char in "._%+'-")
    table[128:] |= _LOCAL
    return table


class Candidates(NamedTuple):
    """Byte spans in the batch's buffer, in ascending order of discovery."""

    kinds: npt.NDArray[np.int64]  # [k]
    documents: npt.NDArray[np.int64]  # [k]
    starts: npt.NDArray[np.int64]  # [k]
    ends: npt.NDArray[np.int64]  # [k]


class Prefixes(NamedTuple):
    """Prefix k is `data[offsets[k]:offsets[k + 1]]`; `pairs` marks how they begin."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    pairs: npt.NDArray[np.uint8]  # [65536]


def compile_prefixes(prefixes: Sequence[str]) -> Prefixes:
    """Pack ASCII prefixes of two characters or more."""
    raw = [prefix.encode() for prefix in prefixes]
    pairs = np.zeros(65536, np.uint8)
    for prefix in raw:
        pairs[prefix[0] << 8 | prefix[1]] = 1
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.int64)
    return Prefixes(np.frombuffer(b"".join(raw), np.uint8), offsets, pairs)


@numba.njit(inline="always")
def _dash_or_space(data, i, end):  # type: ignore[no-untyped-def]
    """Bytes of a no-break space (2), a hyphen or dash (3) at i, or 0."""
    if i + 1 < end and data[i] == 0xC2 and data[i + 1] == 0xA0:
        return 2
    if i + 2 < end and data[i] == 0xE2 and data[i + 1] == 0x80 and 0x90 <= data[i + 2] <= 0x93:
        return 3
    return 0


@numba.njit(cache=True, nogil=True)
def _number_end(data, start, end, classes):  # type: ignore[no-untyped-def]
    """(end, digits, points) of the run of digits with at most two separators between them."""
    i = start
    last = start
    digits = 0
    points = 0
    gap = 0
    while i < end:
        b = data[i]
        if classes[b] & _DIGIT:
            digits += 1
            gap = 0
            i += 1
            last = i
            continue
        size = 1
        if not (b == 32 or b == 45 or b == 46 or b == 47 or b == 40 or b == 41 or b == 43):
            size = _dash_or_space(data, i, end) if b >= 0x80 else 0
        gap += 1
        if size == 0 or gap > 2:
            break
        points += b == 46
        i += size
    return last, digits, points


@numba.njit(cache=True, nogil=True)
def _scan(data, offsets, classes, prefixes, most, kinds, documents, starts, ends):  # type: ignore[no-untyped-def]
    """Fill the four arrays; return how many candidates there are, which may exceed `most`."""
    n = 0
    for d in range(len(offsets) - 1):
        begin = offsets[d]
        end = offsets[d + 1]
        i = begin
        while i < end:
            b = data[i]
            kind = -1
            a = i
            z = i + 1
            step = i + 1
            c = classes[b]
            before = data[i - 1] if i > begin else np.uint8(32)
            inner = classes[before] & _ALNUM or before == 95
            if c & _DIGIT:
                z, digits, points = _number_end(data, i, end, classes)
                step = z
                while a > begin and (data[a - 1] == 43 or data[a - 1] == 40) and i - a < 2:
                    a -= 1
                if (digits >= _MIN_DIGITS or points >= 3) and (a < i or not inner):
                    kind = NUMBER
            elif b == 64:
                while a > begin and i - a < _LONGEST_MAIL and classes[data[a - 1]] & _LOCAL:
                    a -= 1
                while z < end and z - i < _LONGEST_MAIL and classes[data[z]] & _LOCAL:
                    z += 1
                while a < i and data[a] & 0xC0 == 0x80:  # the limit may cut a character
                    a += 1
                while z < end and data[z] & 0xC0 == 0x80:
                    z -= 1
                if a < i and z > i + 3:
                    kind = MAIL
            elif b == 58:
                colons = 0
                double = False
                while a > begin and i - a < 5 and classes[data[a - 1]] & _HEX:
                    a -= 1
                whole = a == begin or not (
                    classes[data[a - 1]] & _ALNUM or data[a - 1] == 58 or data[a - 1] == 95
                )
                z = i
                digits = 0
                while z < end and (classes[data[z]] & _HEX or data[z] == 58):
                    colons += data[z] == 58
                    double |= data[z] == 58 and z > a and data[z - 1] == 58
                    digits += classes[data[z]] & _DIGIT != 0
                    z += 1
                if z > i:
                    step = max(z, i + 1)
                if whole and (colons == 7 or (double and colons >= 3)) and digits:
                    kind = IPV6
            elif c & _UPPER and not inner:
                k = i + 1
                while k < end and k < i + 6 and classes[data[k]] & _UPPER:
                    k += 1
                letters = k - i
                if (
                    (letters == 2 or letters == 6)
                    and k + 1 < end
                    and classes[data[k]] & _DIGIT
                    and classes[data[k + 1]] & _DIGIT
                ):
                    kind = CODE
                    z = k + 2
                    while (
                        z < end
                        and z - i < _LONGEST_CODE
                        and (classes[data[z]] & (_DIGIT | _UPPER) or data[z] == 32)
                    ):
                        z += 1
                    step = k
            if kind < 0 and i + 1 < end and prefixes.pairs[np.int64(b) << 8 | data[i + 1]]:
                for p in range(len(prefixes.offsets) - 1):
                    u = prefixes.offsets[p]
                    size = prefixes.offsets[p + 1] - u
                    if i + size > end or (inner and data[i] != 45):
                        continue
                    k = 0
                    while k < size and data[i + k] == prefixes.data[u + k]:
                        k += 1
                    if k == size:
                        kind = TOKEN
                        z = i + size
                        break
            if kind >= 0:
                if n < most:
                    kinds[n] = kind
                    documents[n] = d
                    starts[n] = a
                    ends[n] = z
                n += 1
            i = step
    return n


_CLASSES = _byte_classes()


def find_candidates(texts: TextBuffers, prefixes: Prefixes) -> Candidates:
    """All places of a batch that are worth a closer look; kinds are MAIL, NUMBER, ..."""
    offsets, data = texts
    most = 1024
    while True:
        arrays = [np.empty(most, np.int64) for _ in range(4)]
        found = _scan(data, offsets, _CLASSES, prefixes, most, *arrays)
        if found <= most:
            return Candidates(*(array[:found] for array in arrays))
        most = found
