"""A cheap test of whether a text is program code or mathematics, which fail rules for prose."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from curation.arrow import Texts
from curation.filters.names import CONTENT
from curation.filters.scratch import allocate
from curation.text import characters as ch
from curation.text.ascii import ALNUM as _ALNUM
from curation.text.ascii import byte_set
from curation.text.buffers import read_only
from curation.text.lines import characters, feed_lines, strip_left, strip_right
from curation.text.words import code_point

_MATH = ch.MATH
_SEMICOLON, _OPEN, _CLOSE, _PAREN, _COLON = 0x3B, 0x7B, 0x7D, 0x29, 0x3A
_COMMA, _EQUALS, _PAREN_OPEN = 0x2C, 0x3D, 0x28
_BACKSLASH, _DOLLAR, _CARET, _UNDERSCORE, _BRACKET = 0x5C, 0x24, 0x5E, 0x5F, 0x5B
_HASH, _SLASH, _STAR = 0x23, 0x2F, 0x2A
_CODE_MARKS = byte_set("([=_")
_MATH_MARKS = byte_set("^$=\\")
_MATH_MARKS[[0xE2, 0xF0]] = True  # lead bytes of mathematical symbols
#: What stands before and behind the `^` of a power, letters and digits aside.
_BASES = byte_set(")]}|'")
_POWERS = byte_set("{([-+*\\")
#: Blocks of arrows, which lead to other pages more often than to conclusions.
_ARROWS = ((0x2190, 0x2200), (0x27F0, 0x2800), (0x2900, 0x2980), (0x2B00, 0x2C00))
#: Marks that a text needs to be mathematics at all.
_FEWEST = 2
#: Code marks that a line needs to count as code; each is a bracket pair, operator or indentation.
_MARKS = 2


@numba.njit(cache=True, nogil=True)
def _looks_like_code(data, raw, start, end):  # type: ignore[no-untyped-def]
    """Whether the stripped line data[start:end], whose indentation begins at `raw`, is code.

    It ends as statements end, or shows two of: indentation, a call or index directly behind a
    name, an assignment, a name with an inner underscore, an arrow or a comment sign.
    """
    last = data[end - 1]
    if last in (_SEMICOLON, _OPEN, _CLOSE):
        return True
    before = data[end - 2] if end - start > 1 else np.uint8(0)
    if last == _COLON and before == _PAREN:
        return True
    marks = np.int64(start - raw >= 2 or (start > raw and data[raw] == 9))
    first = data[start]
    second = data[start + 1] if start + 1 < end else np.uint8(0)
    if first == _SLASH and second in (_SLASH, _STAR):
        return True
    marks += first == _HASH and second != _HASH
    call = 0
    assigned = 0
    joined = 0
    for i in range(start + 1, end - 1):
        b = data[i]
        if not _CODE_MARKS[b]:
            continue
        name = data[i - 1] | 32
        named = 97 <= name <= 122 or 48 <= data[i - 1] <= 57
        if b in (_PAREN_OPEN, _BRACKET) and named:
            call = 1
        elif b == _EQUALS:
            assigned = 1
        elif b == _UNDERSCORE and named:
            joined = 1
    return marks + call + assigned + joined >= _MARKS


@numba.njit(inline="always")
def _equation(data, begin, i):  # type: ignore[no-untyped-def]
    """Whether a digit or a closing bracket stands before the `=` at i, a space aside."""
    k = i - 1
    if k > begin and data[k] == 32:
        k -= 1
    return k >= begin and (48 <= data[k] <= 57 or data[k] == _PAREN)


@numba.njit(inline="always")
def _power(data, begin, end, i):  # type: ignore[no-untyped-def]
    """Whether the `^` at i stands between a base and an exponent, and is no face (`^^`)."""
    if i == begin or i + 1 >= end:
        return False
    a = data[i - 1]
    b = data[i + 1]
    return (_ALNUM[a] or _BASES[a] or a >= 0x80) and (_ALNUM[b] or _POWERS[b] or b >= 0x80)


@numba.njit(inline="always")
def _symbol(c, properties):  # type: ignore[no-untyped-def]
    """Whether a code point outside ASCII is a mathematical symbol other than an arrow."""
    if not properties[c] & _MATH:
        return False
    for first, end in _ARROWS:  # noqa: SIM110
        if first <= c < end:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def measure_content(data, begin, end, properties, n_lines, lines, text_chars, out):  # type: ignore[no-untyped-def]
    """Fill out[0:2]: share of non-blank lines that look like code, and mathematical marks per
    character (TeX commands, `$` but of prices, `^` of powers, `=` behind a number, mathematical
    symbols outside ASCII but arrows; a single mark is none). NaN in a blank text."""
    filled = 0
    code = 0
    for k in range(n_lines):
        a = strip_left(data, lines.starts[k], lines.ends[k], properties)
        if a == lines.ends[k]:
            continue
        b = strip_right(data, a, lines.ends[k], properties)
        filled += 1
        code += _looks_like_code(data, lines.starts[k], a, b)
    marks = 0
    for i in range(begin, end):
        b = data[i]
        if not _MATH_MARKS[b]:
            continue
        if b < 0x80:
            if b == _CARET:
                marks += _power(data, begin, end, i)
            elif b == _DOLLAR:  # a price goes on with a digit
                marks += not (i + 1 < end and 48 <= data[i + 1] <= 57)
            elif b == _EQUALS:
                marks += _equation(data, begin, i)
            elif b == _BACKSLASH and i + 1 < end:
                letter = data[i + 1] | 32
                marks += 97 <= letter <= 122
        elif b == 0xE2 or b == 0xF0:
            marks += _symbol(code_point(data, i)[0], properties)
    if marks < _FEWEST:
        marks = 0
    out[0] = code / filled if filled else np.nan
    out[1] = marks / text_chars if text_chars else np.nan


@numba.njit(cache=True, nogil=True)
def _measure_batch(data, offsets, properties, lines, out):  # type: ignore[no-untyped-def]
    for d in range(len(offsets) - 1):
        begin = offsets[d]
        end = offsets[d + 1]
        n_lines = feed_lines(data, begin, end, lines.starts, lines.ends)
        chars = characters(data, begin, end)
        measure_content(data, begin, end, properties, n_lines, lines, chars, out[d])


def content_signals(texts: Texts) -> dict[str, npt.NDArray[np.float64]]:
    """`names.CONTENT` of every text, where nothing else is to be measured: float64 [n] each."""
    offsets, data = read_only(texts)
    out = np.empty((len(offsets) - 1, len(CONTENT)), np.float64)
    most = int(np.diff(offsets).max(initial=0))
    _measure_batch(data, offsets, ch.properties(), allocate(most).lines, out)
    return {name: out[:, k].copy() for k, name in enumerate(CONTENT)}
