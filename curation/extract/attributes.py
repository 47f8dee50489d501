"""What the attributes of a start tag say of its element: names, visibility, kind, formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from curation.bytes import ascii as ch
from curation.bytes.hash_tables import find, of_hashes
from curation.bytes.search import LOWER, stands_at
from curation.compiled import Bool, Bytes, Int, Uint64s, borrowing, inlined
from curation.extract.lexing import contains, has_name, hash_lower
from curation.extract.markup import (
    ANCESTOR,
    ATTRIBUTE,
    BYTES,
    FLAG_PANEL,
    FLAG_PROPERTY,
    FLAG_SIDE,
    FLAG_UNFOLDS,
    FNV_PRIME,
    FNV_START,
    LETTER,
    MARK_CODE,
    MARK_CODE_CELL,
    MARK_COPY,
    MARK_FRAGMENT,
    MARK_GUTTER,
    MARK_NAMED_CODE,
    MARK_NUMBERS,
    MARK_RENDERED,
    MARK_SCREEN_READER,
    MARK_SHOWN,
    MARKS,
    SPACE,
    TAG,
    VALUE_FLAGS,
    fnv,
)
from curation.hashing import xxh64

if TYPE_CHECKING:
    from curation.extract.lexing import Given

_MAIN, _ARTICLE, _BODY, _HTML = TAG["main"], TAG["article"], TAG["body"], TAG["html"]
_PRE, _CODE, _TABLE, _TD, _RB = TAG["pre"], TAG["code"], TAG["table"], TAG["td"], TAG["rb"]
_LISTINGS = _PRE, _CODE, _TABLE
_HIDDEN, _GUTTER = ANCESTOR["hidden"], ANCESTOR["gutter"]
_AT_CLASS, _AT_ID, _AT_ROLE = ATTRIBUTE["class"], ATTRIBUTE["id"], ATTRIBUTE["role"]
_AT_PROP, _AT_HIDDEN, _AT_STYLE = ATTRIBUTE["itemprop"], ATTRIBUTE["hidden"], ATTRIBUTE["style"]
_AT_ARIA, _AT_FACE = ATTRIBUTE["aria-hidden"], ATTRIBUTE["face"]
_AT_EXPANDED = ATTRIBUTE["aria-expanded"]
_MARK_KEYS, _MARK_VALUES = MARKS
_VALUE_KEYS, _VALUE_VALUES = VALUE_FLAGS
_TRUE_HASH = np.uint64(fnv(b"true"))
_UNTIL_FOUND_HASH = np.uint64(fnv(b"until-found"))
_MATHJAX = np.frombuffer(b"mathjax", np.uint8)
_DOT, _SHARP = np.uint64(ord(".")), np.uint64(ord("#"))
_TOKENS_PER_ELEMENT = 32
_NAME_BYTES = 60  # longer names are no words
# First parts of names that tell what an element has, not what it is: `has-comments`, `no-sidebar`.
_HAS, _NO, _WITH, _WITHOUT = (np.uint64(fnv(w)) for w in (b"has", b"no", b"with", b"without"))
_CODE_PART = np.uint64(fnv(b"code"))


KNOWN = 1 << 8  # classes
KNOWN_TOKENS = KNOWN * _TOKENS_PER_ELEMENT


class Known(NamedTuple):
    """What a class says, kept by the last bits of its hash for the elements behind that have the same."""

    hashes: Any  # [KNOWN]
    sizes: Any  # [KNOWN] how many names it has
    marks: Any  # [KNOWN]
    kinds: Any  # [KNOWN] hash of the class without the numbers that tell elements of a kind apart
    tokens: Any  # [KNOWN_TOKENS] the names


@inlined
def class_hash(src: Bytes, given: Given) -> Int:
    """Hash of the class of an element, 0 where it has none."""
    if given.start[_AT_CLASS] < 0 or given.end[_AT_CLASS] == given.start[_AT_CLASS]:
        return np.uint64(0)
    return xxh64(src, given.start[_AT_CLASS], given.end[_AT_CLASS], np.uint64(0))


@inlined
def names(
    src: Bytes, given: Given, hashed: Int, with_id: Bool, tokens: Uint64s, count: Int, known: Known
) -> tuple[Int, Int, Int]:
    """Hash the names of class (of hash `hashed`) and id into `tokens` from `count` on.

    Return count, mark and kind.
    """
    mark = np.int64(-1)
    kind = np.uint64(0)
    limit = min(len(tokens), count + _TOKENS_PER_ELEMENT)
    if hashed != 0:
        slot = np.int64(hashed & np.uint64(KNOWN - 1))
        first = slot * _TOKENS_PER_ELEMENT
        if known.hashes[slot] != hashed:
            end, known.marks[slot] = _class_tokens(
                src, given.start[_AT_CLASS], given.end[_AT_CLASS], _DOT, known.tokens, first,
                first + _TOKENS_PER_ELEMENT,
            )  # fmt: skip
            known.sizes[slot] = end - first
            known.kinds[slot] = _kind(src, given.start[_AT_CLASS], given.end[_AT_CLASS])
            known.hashes[slot] = hashed
        size = min(known.sizes[slot], limit - count)
        for k in range(size):
            tokens[count + k] = known.tokens[first + k]
        count += size
        mark = np.int64(known.marks[slot])
        kind = known.kinds[slot]
    if with_id and given.start[_AT_ID] >= 0:
        count, _ = _class_tokens(
            src, given.start[_AT_ID], given.end[_AT_ID], _SHARP, tokens, count, limit
        )
    return count, mark, kind


_DIGIT, _WORD, _CAPITAL, _SMALL = 1, 2, 4, 8  # digits are small letters, too
_LETTER = _WORD | _SMALL
_IN_NAMES = np.zeros(256, np.uint8)
_IN_NAMES[48:58] = _DIGIT | _WORD | _SMALL
_IN_NAMES[65:91] = _WORD | _CAPITAL
_IN_NAMES[97:123] = _WORD | _SMALL
_IN_NAMES[128:] = _WORD


@borrowing
def _kind(src: Bytes, i: Int, j: Int) -> Int:
    """Hash of a class in which numbers of elements are left out: `post-1234`, `memitem:a105e5244132`.

    Such a number has three digits or more, and nothing else or six characters or more; those of
    columns and sizes (`col-md-8`, `w-75`) have fewer.
    """
    kind = before = FNV_START
    start = i
    digits = 0
    for k in range(i, j + 1):
        bits = _IN_NAMES[src[k]] if k < j else np.uint8(0)
        if bits & _WORD:
            digits += bits & _DIGIT
            kind = (kind ^ np.uint64(src[k])) * FNV_PRIME
            continue
        if digits > 2 and (digits == k - start or k - start > 5):
            kind = before
        kind = before = (kind ^ np.uint64(ch.SPACE if k == j else src[k])) * FNV_PRIME
        start = k + 1
        digits = 0
    return kind


@inlined
def _with_part(tokens: Uint64s, count: Int, limit: Int, part: Int, size: Int) -> Int:
    """Add the part of a name that has more than one letter; return how many there are."""
    if size > 1 and count < limit:
        tokens[count] = part
        return count + 1
    return count


@borrowing
def _name_tokens(
    name: Bytes, prefix: Int, tokens: Uint64s, count: Int, limit: Int
) -> tuple[Int, Int, Bool]:
    """Hash a name and its parts into `tokens`; return count, hash of the name, whether it has `code`.

    It counts whole (after `prefix`, runs of digits as one 0) and in parts split at anything but
    letters and digits and before capitals that follow small letters, unless they tell what the
    element has.
    """
    whole = (FNV_START ^ prefix) * FNV_PRIME
    exact = part = FNV_START
    first, size = count, 0  # of the part
    has = code = False
    before = np.uint8(0)
    for byte in name:
        low = LOWER[byte]
        exact = (exact ^ np.uint64(low)) * FNV_PRIME
        bits = _IN_NAMES[byte]
        if bits == _LETTER:  # as most are
            whole = (whole ^ np.uint64(low)) * FNV_PRIME
            part = (part ^ np.uint64(low)) * FNV_PRIME
            size += 1
            before = bits
            continue
        again = bits & before & _DIGIT != 0
        low = np.uint8(ch.ZERO) if bits & _DIGIT else low
        if not again:
            whole = (whole ^ np.uint64(low)) * FNV_PRIME
        if size and (not bits & _WORD or (bits & _CAPITAL and before & _SMALL)):
            if count == first and not has:
                has = part == _HAS or part == _NO or part == _WITH or part == _WITHOUT
            code = code or (part == _CODE_PART and not has)
            count = _with_part(tokens, count, limit, part, 0 if has else size)
            part = FNV_START
            size = 0
        if bits & _WORD and not (again and size):
            part = (part ^ np.uint64(low)) * FNV_PRIME
            size += 1
        before = bits
    code = code or (part == _CODE_PART and not has)
    count = _with_part(tokens, count, limit, part, 0 if has else size)
    return _with_part(tokens, count, limit, whole, len(name) + 1), exact, code


@borrowing
def _class_tokens(
    src: Bytes, i: Int, j: Int, prefix: Int, tokens: Uint64s, count: Int, limit: Int
) -> tuple[Int, Int]:
    """Hash the names in a class or id and their parts into `tokens`; return count and mark.

    The mark is the first found in MARKS, or else that of names with the part `code`.
    """
    mark = np.int64(-1)
    code = False
    k = i
    while k < j and count < limit:
        while k < j and BYTES[src[k]] & SPACE:
            k += 1
        start = k
        while k < j and not BYTES[src[k]] & SPACE:
            k += 1
        if k == start or k - start > _NAME_BYTES:
            continue
        count, exact, of_code = _name_tokens(src[start:k], prefix, tokens, count, limit)
        code = code or of_code
        if mark < 0:
            mark = find(_MARK_KEYS, _MARK_VALUES, exact)
    return count, np.int64(MARK_NAMED_CODE) if mark < 0 and code else mark


@borrowing
def _style(src: Bytes, i: Int, j: Int) -> Int:
    """STYLE_HIDDEN, STYLE_WAITS, STYLE_PRE, STYLE_TYPED or 0."""
    word = FNV_START  # of the current declaration, white space left out
    typed = False
    font = -1  # where the value of `font-family` begins
    found = np.int64(0)  # bits of the declarations
    for k in range(i, j + 1):
        c = src[k] if k < j else np.uint8(ch.SEMICOLON)
        if c == ch.SEMICOLON and font >= 0 and stands_at(src, k - len(_QUOTE), j, _QUOTE):
            continue  # a quotation mark around the name of a font
        if word == _CLIPPED:
            found |= _HIDES
        if c == ch.COLON or c == ch.SEMICOLON:
            bits = max(find(_STYLE_KEYS, _STYLE_BITS, word), 0)
            font = k + 1 if c == ch.COLON and bits & _FONT else font
            found |= bits
        if c == ch.SEMICOLON:
            if font >= 0:
                typed = typed or _of_one_width(src, font, k)
                font = -1
            word = FNV_START
        elif not BYTES[c] & SPACE:
            word = (word ^ np.uint64(LOWER[c])) * FNV_PRIME
    if found & _HIDES or found & _TINY == _TINY:
        return STYLE_HIDDEN
    if found & _INVISIBLE:
        return STYLE_WAITS if found & _PLACED else STYLE_HIDDEN
    if found & _PRE_SPACE or (typed and found & _WRAPPED):
        return STYLE_PRE
    return STYLE_TYPED if typed else 0


@borrowing
def _of_one_width(src: Bytes, i: Int, j: Int) -> Bool:
    """Whether a list of fonts has one for code."""
    return (
        contains(src, i, j, _MONOSPACE) or contains(src, i, j, _COURIER)
        or contains(src, i, j, _CONSOLAS) or contains(src, i, j, _MENLO)
    )  # fmt: skip


STYLE_HIDDEN = 1  # `display:none`, `visibility:hidden`, far off the page or clipped
STYLE_WAITS = 2  # invisible, but laid out as it shall be shown
STYLE_PRE = 3  # `white-space:pre`, or `pre-wrap` in a font for code
STYLE_TYPED = 4  # in a font for code

# What declarations do, and the beginnings of some.
_HIDES, _INVISIBLE, _PLACED, _NARROW, _LOW, _PRE_SPACE, _WRAPPED, _FONT = (1 << k for k in range(8))
_TINY = _NARROW | _LOW  # what screen readers get only
_STYLES = {
    _HIDES: "display:none display:none!important left:-9999px left:-10000px clip",
    _INVISIBLE: "visibility:hidden",
    _PLACED: "display:block display:inline",
    _NARROW: "width:1px",
    _LOW: "height:1px",
    _PRE_SPACE: "white-space:pre",
    _WRAPPED: "white-space:pre-wrap",
    _FONT: "font font-family",
}
_STYLE_KEYS, _STYLE_BITS = of_hashes(
    {fnv(word.encode()): bits for bits, words in _STYLES.items() for word in words.split()}
)
_CLIPPED = np.uint64(fnv(b"clip-path:inset(50%"))
_QUOTE = np.frombuffer(b"&quot", np.uint8)
_MONOSPACE, _COURIER, _CONSOLAS, _MENLO = (
    np.frombuffer(name, np.uint8) for name in (b"monospace", b"courier", b"consolas", b"menlo")
)


@inlined
def _by_attributes(src: Bytes, given: Given, is_block: Bool) -> tuple[Bool, Bool, Bool]:
    """Whether attributes hide an element, keep white space in it, set it in a font for code."""
    hidden = keeps_space = typed = False
    if given.start[_AT_HIDDEN] >= 0:
        value = hash_lower(src, given.start[_AT_HIDDEN], given.end[_AT_HIDDEN])
        hidden = value != _UNTIL_FOUND_HASH
    if given.start[_AT_ARIA] >= 0:
        value = hash_lower(src, given.start[_AT_ARIA], given.end[_AT_ARIA])
        hidden = hidden or value == _TRUE_HASH
    if given.start[_AT_STYLE] >= 0:
        style = _style(src, given.start[_AT_STYLE], given.end[_AT_STYLE])
        # Scripts that draw formulas keep texts in <span> out of sight until they are done.
        hidden = hidden or style == STYLE_HIDDEN or (style == STYLE_WAITS and is_block)
        keeps_space = style == STYLE_PRE and is_block
        typed = style == STYLE_TYPED
    if given.start[_AT_FACE] >= 0:
        typed = _of_one_width(src, given.start[_AT_FACE], given.end[_AT_FACE])
    return hidden, keeps_space, typed


@inlined
def visibility(
    src: Bytes,
    given: Given,
    tag: Int,
    mark: Int,
    is_block: Bool,
    in_code: Bool,
    keep_hidden: Bool,
    lines_follow: Bool,
) -> tuple[Bool, Bool, Bool, Bool, Int]:
    """Of an element: hidden, the drawing of a formula, keeps white space, is in a font for code, bits
    for `e_above`."""
    if tag == _BODY or tag == _HTML:
        return False, False, False, False, 0
    hidden, keeps_space, typed = _by_attributes(src, given, is_block)
    rendered = False
    above = 0
    if keep_hidden or tag == _MAIN or tag == _ARTICLE or tag == _RB or mark == MARK_SHOWN:
        hidden = False  # Wikisource keeps the words below readings, <rb>, from screen readers
    if hidden and is_block and not in_code:
        # Scripts open panels, accordions and whole pages: the model decides.
        hidden = False
        above = _HIDDEN
    if mark == MARK_GUTTER:
        if is_block and not in_code:
            above |= _GUTTER  # or a column of the layout, which has words
        else:
            # Prism names the listing itself so, others its gutter.
            hidden = hidden or tag not in _LISTINGS
    elif mark == MARK_NUMBERS:
        hidden = True
    elif mark == MARK_COPY:
        hidden = hidden or in_code
    elif mark == MARK_SCREEN_READER:
        hidden = hidden or not is_block
        above |= 0 if keep_hidden else _HIDDEN
    elif mark == MARK_RENDERED:
        # "mathjax" on a block asks for formulas to be drawn in it.
        rendered = not is_block or not has_name(
            src, given.start[_AT_CLASS], given.end[_AT_CLASS], _MATHJAX
        )
    elif mark == MARK_CODE_CELL:
        keeps_space = keeps_space or (tag == _TD and lines_follow)
    elif mark == MARK_CODE or mark == MARK_FRAGMENT:
        keeps_space = keeps_space or (is_block and lines_follow)
    return hidden, rendered, keeps_space, typed, above


@inlined
def kinds(src: Bytes, given: Given) -> Int:
    """Bits of FLAG_* by `role`, `itemprop` and `aria-expanded`."""
    bits = FLAG_UNFOLDS if given.start[_AT_EXPANDED] >= 0 else 0
    if given.start[_AT_ROLE] >= 0:
        value = find(
            _VALUE_KEYS, _VALUE_VALUES, hash_lower(src, given.start[_AT_ROLE], given.end[_AT_ROLE])
        )
        if value > 0 and (value <= FLAG_SIDE or value == FLAG_PANEL):
            bits |= value
    if given.start[_AT_PROP] >= 0:
        value = find(
            _VALUE_KEYS, _VALUE_VALUES, hash_lower(src, given.start[_AT_PROP], given.end[_AT_PROP])
        )
        bits |= value if value > FLAG_SIDE else FLAG_PROPERTY
    return bits


_CELL, _GRID_CELL = np.uint64(fnv(b"cell")), np.uint64(fnv(b"gridcell"))
_COLUMN_HEAD, _ROW_HEAD = np.uint64(fnv(b"columnheader")), np.uint64(fnv(b"rowheader"))


@borrowing
def is_cell(src: Bytes, given: Given) -> Bool:
    """Whether the role of an element is that of a cell of a table."""
    role = hash_lower(src, given.start[_AT_ROLE], given.end[_AT_ROLE])
    return role == _CELL or role == _GRID_CELL or role == _COLUMN_HEAD or role == _ROW_HEAD


_FORMULA_SOURCES = tuple(
    np.frombuffer(word, np.uint8)
    for word in (
        b"latex", b"codecogs", b"mimetex", b"mathtex", b"math/render", b"cht=tx", b"equation?tex",
        b"render/math",
    )
)  # fmt: skip
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7 = _FORMULA_SOURCES
_BEGINS = np.zeros(256, np.bool_)  # one of them, as does its capital
_BEGINS[[letter for word in _FORMULA_SOURCES for letter in (word[0], word[0] - 32)]] = True


@borrowing
def formula_image(src: Bytes, alt_start: Int, alt_end: Int, src_start: Int, src_end: Int) -> Bool:
    """Whether an image shows a formula, by its address or by TeX in its alternative text."""
    for k in range(alt_start, alt_end - 1):
        if src[k] == ch.BACKSLASH and BYTES[src[k + 1]] & LETTER:
            return True
    if alt_end - alt_start > 2 and src[alt_start] == ch.DOLLAR and src[alt_end - 1] == ch.DOLLAR:
        return True
    for k in range(src_start, src_end):
        if _BEGINS[src[k]] and (
            stands_at(src, k, src_end, _S0)
            or stands_at(src, k, src_end, _S1)
            or stands_at(src, k, src_end, _S2)
            or stands_at(src, k, src_end, _S3)
            or stands_at(src, k, src_end, _S4)
            or stands_at(src, k, src_end, _S5)
            or stands_at(src, k, src_end, _S6)
            or stands_at(src, k, src_end, _S7)
        ):
            return True
    return _equation(src, alt_start, alt_end)


_LETTERS = 4  # in a row, which no name of a variable has


@borrowing
def _equation(src: Bytes, i: Int, j: Int) -> Bool:
    """Whether an alternative text is an equation written without TeX: `x = y + z`, `a ≤ b`.

    It has a sign that relates two sides, and no words.
    """
    if not 2 < j - i <= 200:
        return False
    related = False
    letters = 0
    for k in range(i, j):
        c = src[k]
        letters = letters + 1 if BYTES[c] & LETTER else 0
        if (
            letters >= _LETTERS
            or c == ch.SEMICOLON
            or c == ch.SLASH
            or c == ch.QUESTION
            or c == ch.QUOTE
        ):
            return False
        between = (k > i) & (k < j - 1)
        related = related or (between and c == ch.EQUALS)
        if c == 0xE2 and src[k + 1] == 0x89 and src[k + 2] >= 0xA0:  # relations of U+2260 to U+227F
            related = True
        if c >= 0xE3:  # Han and kana
            return False
    return related
