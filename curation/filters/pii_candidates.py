"""Places in a batch where personal data may be, found in one pass over its bytes.

Clean text costs this pass and nothing else; every place found is then judged in Python
(curation.filters.pii).
"""

import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import TextBuffers
from curation.bytes.ascii import ALNUM, byte_set
from curation.compiled import Bool, Bytes, Int, Int64s, borrowing, inlined

MAIL = 0  # an @ with something on both sides
NUMBER = 1  # a run of digits (those of pii_fold too) and separators: 7 digits or three points in it
IPV6 = 2  # a run of hexadecimal digits and colons
CODE = 3  # two capitals and two digits, or six capitals and two digits
TOKEN = 4  # the prefix of a secret

_MIN_DIGITS = 7  # of the shortest telephone number
_LONGEST_MAIL = 256

_ALNUM, _DIGIT, _UPPER, _HEX, _LOCAL, _LEAD = 1, 2, 4, 8, 16, 32


_SETS = {
    _ALNUM: ALNUM,
    _DIGIT: byte_set(string.digits),
    _UPPER: byte_set(string.ascii_uppercase),
    _HEX: byte_set(string.hexdigits),
    _LOCAL: ALNUM | byte_set("._%+'-", beyond=True),
}
_CLASSES = np.array([bit * members for bit, members in _SETS.items()], np.uint8).sum(0, np.uint8)
# with which digits of other scripts and full-width @ begin
_CLASSES[[0xD9, 0xDB, 0xE0, 0xEF]] |= _LEAD


class Candidates(NamedTuple):
    """Byte spans in the batch's buffer, in ascending order of discovery."""

    kinds: npt.NDArray[np.int64]  # [k]
    documents: npt.NDArray[np.int64]  # [k]
    starts: npt.NDArray[np.int64]  # [k]
    ends: npt.NDArray[np.int64]  # [k]


_DASH, _COLON, _AT = 45, 58, 64
_PREFIX, _ANY = np.uint8(1), np.uint8(2)  # of a secret, and of any candidate


class Prefixes(NamedTuple):
    """Prefix k is `data[offsets[k]:offsets[k + 1]]`."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    pairs: npt.NDArray[np.uint8]  # [65536] bits of what begins with two bytes


def compile_prefixes(prefixes: Sequence[str]) -> Prefixes:
    """Pack ASCII prefixes of two characters or more."""
    raw = [prefix.encode() for prefix in prefixes]
    pairs = np.zeros((256, 256), np.uint8)
    pairs[_SETS[_DIGIT]] = pairs[0xD9, 0xA0:0xAA] = pairs[0xDB, 0xB0:0xBA] = _ANY
    pairs[0xE0, 0xA5] = pairs[0xEF, 0xBC] = _ANY
    pairs[np.ix_(_SETS[_UPPER], _SETS[_UPPER])] = pairs[_AT, _SETS[_LOCAL]] = _ANY
    pairs[_COLON, _SETS[_HEX]] = pairs[_COLON, _COLON] = _ANY
    for prefix in raw:
        pairs[prefix[0], prefix[1]] = _PREFIX | _ANY
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.int64)
    return Prefixes(np.frombuffer(b"".join(raw), np.uint8), offsets, pairs.reshape(-1))


@inlined
def _other_digit(data: Bytes, i: Int, end: Int) -> Int:
    """Bytes of an Arabic-Indic, Persian (2), Devanagari or full-width digit (3) at i, or 0."""
    if i + 1 >= end:
        return 0
    b, second = data[i], data[i + 1]
    if b == 0xD9:
        return 2 if 0xA0 <= second <= 0xA9 else 0
    if b == 0xDB:
        return 2 if 0xB0 <= second <= 0xB9 else 0
    if i + 2 >= end:
        return 0
    if b == 0xE0:
        return 3 if second == 0xA5 and 0xA6 <= data[i + 2] <= 0xAF else 0
    return 3 if b == 0xEF and second == 0xBC and 0x90 <= data[i + 2] <= 0x99 else 0


@inlined
def _full_width(data: Bytes, i: Int, end: Int, third: Int) -> Bool:
    """Whether a character of U+FF00 to U+FF3F is at i whose last byte is `third`."""
    return i + 2 < end and data[i] == 0xEF and data[i + 1] == 0xBC and data[i + 2] == third


@borrowing
def _separator(data: Bytes, i: Int, end: Int) -> tuple[Int, Bool]:
    """(bytes, whether it is a full stop) of a separator in numbers at i; 0 bytes for none."""
    b = data[i]
    if b < 0x80:
        joins = b == 32 or b == 45 or b == 46 or b == 47 or b == 40 or b == 41 or b == 43
        return (1 if joins else 0), b == 46
    if b == 0xC2:
        return (2 if i + 1 < end and data[i + 1] == 0xA0 else 0), False
    if i + 2 >= end:
        return 0, False
    second, third = data[i + 1], data[i + 2]
    if b == 0xE2 and second == 0x80:  # hyphens and dashes, narrow no-break space
        return (3 if 0x90 <= third <= 0x93 or third == 0xAF else 0), False
    if b == 0xE3 and second == 0x80:  # ideographic space
        return (3 if third == 0x80 else 0), False
    if b == 0xEF and second == 0xBC:  # full-width ( ) + - . /
        joins = 0x88 <= third <= 0x8F and third != 0x8A and third != 0x8C
        return (3 if joins else 0), third == 0x8E
    return 0, False


@inlined
def _opening(data: Bytes, begin: Int, i: Int) -> Int:
    """Bytes of a plus or an opening bracket that ends before i, or 0."""
    if i > begin and (data[i - 1] == 43 or data[i - 1] == 40):
        return 1
    if i - 3 >= begin and (_full_width(data, i - 3, i, 0x8B) or _full_width(data, i - 3, i, 0x88)):
        return 3
    return 0


@borrowing
def _number_end(data: Bytes, start: Int, end: Int, classes: Bytes) -> tuple[Int, Int, Int]:
    """(end, digits, points between them) of the run of digits with at most two separators between
    them, or with one sign between two blanks."""
    i = start
    last = start
    digits = 0
    points = passed = 0
    gap = blanks = 0
    point_before = False
    while i < end:
        c = classes[data[i]]
        size = 1 if c & _DIGIT else _other_digit(data, i, end) if c & _LEAD else 0
        if size:
            digits += 1
            points = passed
            gap = 0
            i += size
            last = i
            continue
        size, point = _separator(data, i, end)
        gap += 1
        blank = data[i] == 32 or data[i] == 0xC2  # no-break space
        blanks = blank + (blanks if gap > 1 else 0)
        if size == 0 or (gap > 2 and (gap > 3 or blanks < 2 or not blank or point_before)):
            break
        point_before = point
        passed += point
        i += size
    return last, digits, points


@borrowing
def _mail(
    data: Bytes, begin: Int, end: Int, i: Int, at: Int, classes: Bytes
) -> tuple[Int, Int, Int]:
    """(kind or -1, start, end) of what surrounds an `@` of `at` bytes at i."""
    a = i
    z = i + at
    while a > begin and i - a < _LONGEST_MAIL and classes[data[a - 1]] & _LOCAL:
        if a - 3 >= begin and _full_width(data, a - 3, a, 0xA0):
            break
        a -= 1
    while z < end and z - i < _LONGEST_MAIL and classes[data[z]] & _LOCAL:
        if _full_width(data, z, end, 0xA0):
            break
        z += 1
    while a < i and data[a] & 0xC0 == 0x80:  # the limit may cut a character
        a += 1
    while z < end and data[z] & 0xC0 == 0x80:
        z -= 1
    return (MAIL if a < i and z > i + at + 2 else -1), a, z


@borrowing
def _ip6(data: Bytes, begin: Int, end: Int, i: Int, classes: Bytes) -> tuple[Int, Int, Int]:
    """(kind or -1, start, end) of the hexadecimal digits and colons about the colon at i."""
    a = i
    while a > begin and i - a < 5 and classes[data[a - 1]] & _HEX:
        a -= 1
    whole = a == begin or not (
        classes[data[a - 1]] & _ALNUM or data[a - 1] == 58 or data[a - 1] == 95
    )
    z = i
    colons = 0
    digits = 0
    double = False
    while z < end and (classes[data[z]] & _HEX or data[z] == 58):
        colons += data[z] == 58
        double |= data[z] == 58 and z > a and data[z - 1] == 58
        digits += classes[data[z]] & _DIGIT != 0
        z += 1
    return (IPV6 if whole and (colons == 7 or (double and colons >= 2)) and digits else -1), a, z


@inlined
def _capitals(data: Bytes, i: Int, end: Int, classes: Bytes) -> Int:
    """End of the two or six capitals at i that two digits follow, or -1."""
    k = i + 1
    while k < end and k < i + 6 and classes[data[k]] & _UPPER:
        k += 1
    if k - i != 2 and k - i != 6:
        return -1
    digits = k + 1 < end and classes[data[k]] & _DIGIT and classes[data[k + 1]] & _DIGIT
    return k if digits else -1


@borrowing
def _prefix_end(data: Bytes, i: Int, end: Int, inner: Int, joined: Bool, prefixes: Prefixes) -> Int:
    """End of the first prefix that is at i, or -1.

    None begins `inner`, within a word, and none that ends in a dash where it is `joined` by one to
    a word before: in `sk-sk-sk-...` the first is the only one, so that no part is read again.
    """
    for p in range(len(prefixes.offsets) - 1):
        u = prefixes.offsets[p]
        size = prefixes.offsets[p + 1] - u
        if i + size > end or (inner and data[i] != _DASH):
            continue
        if joined and prefixes.data[u + size - 1] == _DASH:
            continue
        k = 0
        while k < size and data[i + k] == prefixes.data[u + k]:
            k += 1
        if k == size:
            return i + size
    return -1


@borrowing
def _scan(
    data: Bytes, offsets: Int64s, classes: Bytes, prefixes: Prefixes, found: Candidates
) -> Int:
    """Fill the arrays of `found`; return how many candidates there are, which may be more."""
    n = 0
    for d in range(len(offsets) - 1):
        begin = offsets[d]
        end = offsets[d + 1]
        i = begin
        while i < end:
            pair = _ANY
            while i + 1 < end:
                first, after = np.uint64(data[np.uint64(i)]), np.uint64(i + 1)
                pair = prefixes.pairs[first << np.uint64(8) | data[after]]
                if pair:
                    break
                i += 1
            b = data[i]
            c = classes[b]
            digit = c & _DIGIT
            at = 1 if b == 64 else 0
            if c & _LEAD:
                digit = _other_digit(data, i, end)
                at = 3 if _full_width(data, i, end, 0xA0) else 0
                if not digit and not at:
                    i += 1
                    continue
            kind = -1
            a = i
            z = i + 1
            step = i + 1
            before = data[i - 1] if i > begin else np.uint8(32)
            inner = classes[before] & _ALNUM or before == 95
            if digit:
                z, digits, points = _number_end(data, i, end, classes)
                step = z
                for _ in range(2):
                    a -= _opening(data, begin, a)
                if (digits >= _MIN_DIGITS or points >= 3) and (a < i or not inner):
                    kind = NUMBER
                elif inner:  # the first digits are a name's, as in `Tel2 +49 30 1234567`
                    k = i
                    while k < z and classes[data[k]] & _DIGIT:
                        k += 1
                    step = k if k < z and data[k] == 32 else z
            elif at:
                kind, a, z = _mail(data, begin, end, i, at, classes)
            elif b == 58:
                kind, a, z = _ip6(data, begin, end, i, classes)
                step = z
            elif c & _UPPER and not inner:
                k = _capitals(data, i, end, classes)
                if k >= 0:
                    kind = CODE
                    z = k + 2
                    step = k
            if kind < 0 and i + 1 < end and pair & _PREFIX:
                joined = before == _DASH and i - 1 > begin and classes[data[i - 2]] & _ALNUM != 0
                stop = _prefix_end(data, i, end, inner, joined, prefixes)
                if stop >= 0:
                    kind = TOKEN
                    z = stop
            if kind >= 0:
                if n < len(found.kinds):
                    found.kinds[n] = kind
                    found.documents[n] = d
                    found.starts[n] = a
                    found.ends[n] = z
                n += 1
            i = step
    return n


def find_candidates(texts: TextBuffers, prefixes: Prefixes) -> Candidates:
    """All places of a batch that are worth a closer look; kinds are MAIL, NUMBER, ..."""
    offsets, data = texts
    most = 1024 + len(data) // 64  # room that is not used takes no memory
    while True:
        found = Candidates(*(np.empty(most, np.int64) for _ in range(4)))
        n = _scan(data, offsets, _CLASSES, prefixes, found)
        if n <= most:
            return Candidates(*(array[:n] for array in found))
        most = n
