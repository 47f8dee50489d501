"""The bytes of HTML: names, attributes, comments, references, and what to look for in them.

All functions are compiled and take the page as `src` (uint8, padded so that looking ahead needs no
care) and its length `n`; positions are offsets into it.
"""

from typing import Any, NamedTuple

import numpy as np

from curation.bytes import ascii as ch
from curation.bytes.hash_tables import find
from curation.bytes.search import (
    HIGH,
    LOWER,
    ONES,
    bits_below,
    count_bytes,
    eight_at,
    eight_of,
    next_byte,
    stands_at,
)
from curation.compiled import Bool, Bytes, Int, Int64s, borrowing, inlined
from curation.extract.markup import (
    AT_LANGUAGE,
    ATTRIBUTE_KEYS,
    ATTRIBUTE_VALUES,
    BYTES,
    C1_POINTS,
    ENTITY_KEYS,
    ENTITY_POINTS,
    ENTITY_VALUES,
    FNV_PRIME,
    FNV_START,
    LETTER,
    LONGEST_ENTITY,
    NAME_END,
    SHORT_NAME,
    SPACE,
)

#: Attributes that are read: those of ATTRIBUTE, and the language.
ATTRIBUTES = AT_LANGUAGE + 1
_CDATA = np.frombuffer(b"cdata[", np.uint8)


class Given(NamedTuple):
    """The attributes of a start tag: the value of attribute k is `src[start[k]:end[k]]`."""

    start: Any  # [ATTRIBUTES], -1 for those that it doesn't have
    end: Any


#: Slots of `never`, what the page has no more of, so that it is looked for once: each quote, the end
#: of a comment.
_QUOTES, _COMMENT_END = 0, 2
NEVER = 3


@borrowing
def hash_lower(src: Bytes, i: Int, j: Int) -> Int:
    h = FNV_START
    for k in range(i, j):
        h = (h ^ np.uint64(LOWER[src[k]])) * FNV_PRIME
    return h


OPEN, _CLOSE, _DASHES = (eight_of.py_func(byte) for byte in (ch.LESS, ch.GREATER, ch.DASH))


@borrowing
def end_of(
    src: Bytes, n: Int, at: Int, name_start: Int, name_end: Int, no_end: Bytes, tag: Int
) -> Int:
    """Where `</name` starts, from `at`; -1 when it doesn't. A tag that never ends is searched for to
    the end of the page only once."""
    size = name_end - name_start
    last = n - size - 2
    i = n if no_end[tag] else next_byte(src, at, n, OPEN)
    while i <= last:
        if src[i + 1] == ch.SLASH:
            k = 0
            while k < size and LOWER[src[i + 2 + k]] == LOWER[src[name_start + k]]:
                k += 1
            if k == size and BYTES[src[i + 2 + size]] & NAME_END:
                return i
        i = next_byte(src, i + 1, n, OPEN)
    no_end[tag] = 1
    return -1


@borrowing
def contains(src: Bytes, i: Int, j: Int, word: Bytes) -> Bool:
    """Whether src[i:j] has the lower-case `word`, in any case."""
    last = j - len(word)
    while i <= last and not stands_at(src, i, j, word):
        i += 1
    return i <= last


@borrowing
def has_name(src: Bytes, i: Int, j: Int, word: Bytes) -> Bool:
    """Whether the class src[i:j] has the name `word` (lower case)."""
    size = len(word)
    start = i
    for k in range(i, j + 1):
        if k == j or BYTES[src[k]] & SPACE:
            if k - start == size and contains(src, start, k, word):
                return True
            start = k + 1
    return False


@inlined
def is_tag(src: Bytes, i: Int) -> Bool:
    """Whether the `<` at i begins a start tag or an end tag."""
    first = src[i + 1]
    if first == ch.SLASH:
        first = src[i + 2]
    return BYTES[first] & LETTER != 0


@borrowing
def passed_over(src: Bytes, n: Int, i: Int, visible: Bool, never: Bytes) -> Int:
    """The position behind what begins with the `<` at i and is no tag: comments, declarations.

    The text of a CDATA section counts where it is `visible`, its brackets don't.
    """
    first = src[i + 1]
    if first == ch.BANG:
        if src[i + 2] == ch.DASH and src[i + 3] == ch.DASH:
            return _comment(src, n, i, never)
        if visible and src[i + 2] == ch.BRACKET and contains(src, i + 3, i + 9, _CDATA):
            return i + 9
    elif first != ch.QUESTION and first != ch.SLASH:
        return i + 1
    return min(n, next_byte(src, i, n, _CLOSE) + 1)


@borrowing
def _comment(src: Bytes, n: Int, i: Int, never: Bytes) -> Int:
    if src[i + 4] == ch.GREATER:
        return i + 5
    j = i + 2
    if not never[_COMMENT_END]:
        while j + 2 < n:
            j = next_byte(src, j + 1, n, _DASHES)
            if src[j] == ch.DASH and src[j + 1] == ch.DASH and j + 1 < n:
                k = j + 2
                if src[k] == ch.BANG:
                    k += 1
                if src[k] == ch.GREATER and k < n:
                    return k + 1
        never[_COMMENT_END] = 1
    return min(n, next_byte(src, i, n, _CLOSE) + 1)  # an unclosed comment ends at the next >


# What names end in, and a few bytes more: up to the blank, `/`, and `<` to `?`.
_BEHIND_BLANK, _FOUR = eight_of.py_func(ch.SPACE + 1), eight_of.py_func(4)
_SLASHES, _SIGNS = eight_of.py_func(ch.SLASH), eight_of.py_func(ch.LESS)
_FROM_A, _ABOVE_Z = eight_of.py_func(0x80 - ch.UPPER_A), eight_of.py_func(0x7F - ch.UPPER_Z)


@inlined
def _mixed(name: Int) -> Int:
    name *= FNV_PRIME
    return name ^ (name >> np.uint64(32))


@inlined
def _short_name(src: Bytes, i: Int) -> tuple[Int, Int]:
    """Size and hash (`name_hash`) of the name at i, in lower case, if it is short; else 0 and 0.

    Names end where `=` or NAME_END is; where this one ends in another byte, it is longer.
    """
    x = eight_at(src, i)
    slash = x ^ _SLASHES
    sign = x ^ _SIGNS  # less than four for those that are meant
    found = ((x - _BEHIND_BLANK) & ~x) | ((slash - ONES) & ~slash) | ((sign - _FOUR) & ~sign)
    found &= HIGH
    if found == 0:
        return 0, np.uint64(0)
    below = bits_below(found)
    name = x & below
    letters = name & ~HIGH
    capitals = ~name & ((letters + _FROM_A) ^ (letters + _ABOVE_Z)) & HIGH
    return count_bytes(below), _mixed(name | (capitals >> np.uint64(2)))


@borrowing
def _name_hash(src: Bytes, i: Int, j: Int) -> Int:
    """`name_hash` of src[i:j] in lower case."""
    short = j - i <= SHORT_NAME
    name = np.uint64(0)
    for k in range(i, j):
        short = short and src[k] != 0
        if short:
            name |= np.uint64(LOWER[src[k]]) << np.uint64(8 * (k - i))
    return _mixed(name) if short else hash_lower(src, i, j)


@inlined
def tag_name(src: Bytes, n: Int, i: Int) -> tuple[Int, Int]:
    """Hash of the tag name at i, in lower case, and where it ends."""
    size, name = _short_name(src, i)
    if size > 0 and BYTES[src[i + size]] & NAME_END:
        return name, i + size
    first = i
    while i < n and not BYTES[src[i]] & NAME_END:
        i += 1
    return _name_hash(src, first, i), i


@inlined
def attributes(
    src: Bytes, n: Int, j: Int, opening: Bool, given: Given, never: Bytes
) -> tuple[Int, Bool]:
    """Read a tag from behind its name: where its `>` is, and whether a `/` precedes it.

    Of a start tag (`opening`), `given` gets the first value of each known attribute.
    """
    given.start[:] = -1
    self_closing = False
    while j < n and src[j] != ch.GREATER:
        c = src[j]
        if BYTES[c] & SPACE or c == ch.SLASH:
            self_closing = c == ch.SLASH and src[j + 1] == ch.GREATER
            j += 1
            continue
        first = j
        size, name = _short_name(src, j)
        behind = src[j + size]
        if size > 0 and (BYTES[behind] & NAME_END or behind == ch.EQUALS):
            j += size
        else:
            while j < n and (not (BYTES[src[j]] & NAME_END or src[j] == ch.EQUALS) or j == first):
                j += 1
            name = _name_hash(src, first, j)
        k = j
        while k < n and BYTES[src[k]] & SPACE:
            k += 1
        start = j
        end = j
        if k < n and src[k] == ch.EQUALS:
            start, end, j = _value(src, n, k + 1, never)
        if opening:
            which = find(ATTRIBUTE_KEYS, ATTRIBUTE_VALUES, name)
            if which >= 0 and given.start[which] < 0:
                given.start[which] = start
                given.end[which] = end
    return j, self_closing


@inlined
def _value(src: Bytes, n: Int, j: Int, never: Bytes) -> tuple[Int, Int, Int]:
    """Start and end of the value behind a `=`, and where reading goes on."""
    while j < n and BYTES[src[j]] & SPACE:
        j += 1
    quote = src[j]
    quoted = (quote == ch.QUOTE) | (quote == ch.APOSTROPHE)
    which = _QUOTES + (quote == ch.APOSTROPHE)
    start = j + quoted
    end = n
    if quoted and not never[which]:
        end = next_byte(src, start, n, eight_of(quote))
        never[which] = end >= n
    behind = end + 1
    if end >= n:  # no quotes; one that is unclosed ends with its tag
        end = start
        while end < n and src[end] != ch.GREATER and (quoted or not BYTES[src[end]] & SPACE):
            end += 1
        behind = end
    return start, end, behind


@borrowing
def reference(src: Bytes, n: Int, i: Int, points: Int64s) -> Int:
    """Read the reference at src[i] == '&': bytes it takes (0: none) and its code points."""
    points[1] = 0
    k = i + 1
    if src[k] == ch.HASH:
        k += 1
        value = np.int64(0)
        base = 16 if LOWER[src[k]] == ch.LOWER_X else 10
        k += base == 16
        start = k
        while k < n:
            c = np.int64(LOWER[src[k]])
            if ch.ZERO <= c <= ch.NINE:
                digit = c - 48
            elif base == 16 and ch.LOWER_A <= c <= ch.LOWER_F:
                digit = c - 87
            else:
                break
            value = min(value * base + digit, np.int64(0x110000))
            k += 1
        if k == start:
            return 0
        if src[k] == ch.SEMICOLON:
            k += 1
        if 128 <= value <= 159:
            value = C1_POINTS[value - 128]
        if value == 0 or value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            value = np.int64(0xFFFD)
        points[0] = value
        return k - i
    h = FNV_START
    best = np.int64(-1)
    length = 0
    stop = min(n, i + 1 + LONGEST_ENTITY)
    while k < stop:
        c = src[k]
        if c == ch.SEMICOLON:
            h = (h ^ np.uint64(59)) * FNV_PRIME
            full = find(ENTITY_KEYS, ENTITY_VALUES, h)
            if full >= 0:
                best = full
                length = k + 1 - i
            break
        if not (BYTES[c] & LETTER or ch.ZERO <= c <= ch.NINE):
            break
        h = (h ^ np.uint64(c)) * FNV_PRIME
        k += 1
        if k - i > 2 and k - i < 8:  # names without semicolon have two to six letters
            short = find(ENTITY_KEYS, ENTITY_VALUES, h)
            if short >= 0:
                best = short
                length = k - i
    if best < 0:
        return 0
    points[0] = ENTITY_POINTS[best, 0]
    points[1] = ENTITY_POINTS[best, 1]
    return length
