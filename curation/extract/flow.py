"""Text as it flows into blocks: characters, white space, line breaks, formulas, inline elements.

The state of a scan is one array, `now`, of whole numbers by the slots below. Rows of `blocks` and of
`atoms` are the columns of the same names in `scanned.Page`.
"""

from __future__ import annotations

import numpy as np

from curation.compiled import borrowing, inlined
from curation.extract.blocks import (
    CODE_CLASS,
    CODE_OFF,
    CODE_ON,
    CONTINUED,
    HAS_BREAK,
    IN_LINK,
    PRE,
)
from curation.extract.lexing import code_point, put, reference
from curation.extract.markup import BYTES, LETTER, LOWER, PLAIN, TAG

# Slots of `now`: how much there is so far,
LENGTH, BLOCKS, ELEMENTS, TOKENS, ATOMS, LINKED_SCRIPTS = 0, 1, 2, 3, 4, 5
# the block under way,
START, CHARS, LINK_CHARS, LINKS, TAGS, BOLD_CHARS, FORMULAS, FLAGS = 6, 7, 8, 9, 10, 11, 12, 13
SPACE_DUE = 14  # white space comes before the next character: BLANK, LINE_FEED or NO_WIDTH
AFTER_BREAK = 15  # the last thing was a <br>
ATOM_AT = 16  # end of the last formula; -1: none
ATOM_SOFT = 17  # it may be replaced by a better source of the same formula
# inline elements,
LINKED, LINK_TOP = 18, 19  # and how deep the link was opened
BOLD, CODE = 20, 21  # how many are open
# code,
PRE_TOP = 22  # depth of the outermost element that keeps white space; -1: none
LINE_DUE, LINE_START = 23, 24  # a line ended without a line break yet
# the stack,
TOP, OVER, ELEMENT = 25, 26, 27  # OVER: open block elements beyond the depth that is kept
# what is passed over.
SKIP_DEPTH, SKIP_MATH = 28, 29
# Where the link under way began; where the last end tag ended; whether a reading (<rt>) is open.
LINK_AT, ENDED, READING = 30, 31, 32
# Where the last line element of a listing began; how deep a font for code was asked for (-1: it
# wasn't); whether `}` is due behind a script; where the drawing of a formula that has no source
# began (-1: none does), and the kind of its atom.
LINE_AT, TYPED_TOP, BRACED, DRAWN_AT, DRAWN_KIND = 33, 34, 35, 36, 37
TILTED = 38  # where the last <i>, <em> or <var> ended
SLOTS = 39

# Rows of `blocks`.
B_START, B_END, B_ELEMENT, B_CHARS, B_LINK_CHARS, B_LINKS, B_TAGS, B_BOLD, B_FORMULAS, B_FLAGS = (
    range(10)
)
STATED = 2  # in ATOM_SOFT: the source of the formula, which may stand here in MathML, too
# Rows of `atoms`.
A_AT, A_KIND, A_START, A_END = range(4)

_A, _B, _STRONG, _CODE = TAG["a"], TAG["b"], TAG["strong"], TAG["code"]
_BR, _WBR, _INPUT = TAG["br"], TAG["wbr"], TAG["input"]
_DEL, _S, _STRIKE, _RUBY, _RT = TAG["del"], TAG["s"], TAG["strike"], TAG["ruby"], TAG["rt"]
_LEFT, _RIGHT = ord("\uff08"), ord("\uff09")  # brackets around readings
_TAG_BYTES = 200  # longer tags in superscripts aren't looked into
_SCRIPT = 12  # characters; longer ones are fine print
_TEXT, _WHITE, _NOTHING, _JOINER, _DIRECTION, _NO_WIDTH_SPACE = range(6)
# White space that is due: a blank, one that the source has as a line break, a place for one.
BLANK, LINE_FEED, NO_WIDTH = 1, 2, 3
_I, _EM, _VAR, _SUB, _SUP = TAG["i"], TAG["em"], TAG["var"], TAG["sub"], TAG["sup"]


@inlined
def _role(point):  # type: ignore[no-untyped-def]
    """Whether a character is white space, text, or nothing: controls, invisible and no characters."""
    if point <= 32:
        return _WHITE if point == 32 or 9 <= point <= 13 else _NOTHING
    if point < 127:
        return _TEXT
    if point < 0xB0:
        if point == 0xA0 or point == 0x85:
            return _WHITE
        return _NOTHING if point < 0xA0 or point == 0xAD else _TEXT
    if 0x2000 <= point <= 0x2064:
        if point <= 0x200D and point >= 0x200B:
            return _NO_WIDTH_SPACE if point == 0x200B else _JOINER
        if point >= 0x2060:
            return _NOTHING
        if point == 0x200E or point == 0x200F or 0x202A <= point <= 0x202E:
            return _DIRECTION
        line = point == 0x2028 or point == 0x2029
        white = point <= 0x200A or line or point == 0x202F or point == 0x205F
        return _WHITE if white else _TEXT
    if point == 0x3000:
        return _WHITE
    if 0xFFF9 <= point <= 0xFFFB or point == 0xFEFF or 0xFDD0 <= point <= 0xFDEF:
        return _NOTHING
    return _NOTHING if 0xD800 <= point <= 0xDFFF else _TEXT


@inlined
def _is_wide(point):  # type: ignore[no-untyped-def]
    """Whether a character is one of Chinese or Japanese, whose lines end without a blank."""
    if point < 0x2E80:
        return False
    return (
        (point <= 0xA4CF and not 0x3130 <= point <= 0x318F)  # Han, kana, their signs; not Hangul
        or 0xF900 <= point <= 0xFAFF
        or 0xFE30 <= point <= 0xFE4F
        or 0xFF01 <= point <= 0xFF60
        or 0x20000 <= point <= 0x3FFFF
    )  # fmt: skip


@inlined
def _has_no_blanks(point):  # type: ignore[no-untyped-def]
    """Whether a character is one of Thai, Lao, Burmese or Khmer, which part words by U+200B."""
    return 0xE00 <= point <= 0xEFF or 0x1000 <= point <= 0x109F or 0x1780 <= point <= 0x17FF


@inlined
def _last_point(text, o):  # type: ignore[no-untyped-def]
    """The character that ends at o, 0 where it is one of ASCII."""
    if text[o - 1] < 0x80:
        return np.int64(0)
    k = o - 2
    while k > o - 4 and text[k] & 0xC0 == 0x80:
        k -= 1
    return code_point(text, k)[0]


@inlined
def _parted(text, o, due, point):  # type: ignore[no-untyped-def]
    """Write the white space that is `due` between two characters; return where the text ends."""
    last = _last_point(text, o)
    if due == NO_WIDTH:
        if _has_no_blanks(last) and _has_no_blanks(point):
            return put(text, o, np.int64(0x200B))
        return o
    if due == LINE_FEED and _is_wide(last) and _is_wide(point):
        return o
    text[o] = 32
    return o + 1


@inlined
def run_of_text(src, n, i, text, points, now):  # type: ignore[no-untyped-def]
    """Take the text from i to the next markup into `text`; return where that is."""
    o = now[LENGTH]
    start = now[START]
    space = now[SPACE_DUE]
    atom_at = now[ATOM_AT]
    after_break = now[AFTER_BREAK] != 0
    line_due = now[LINE_DUE] != 0
    line_start = now[LINE_START]
    keep = now[PRE_TOP] >= 0
    code = now[CODE] > 0 or now[TYPED_TOP] >= 0
    chars = 0
    while i < n:
        c = src[i]
        if not keep and BYTES[c] & PLAIN:
            if space:
                if space != NO_WIDTH and (o == atom_at or (o > start and text[o - 1] != 10)):
                    text[o] = 32
                    o += 1
                space = 0
            after_break = False
            while True:  # the padding isn't plain
                if BYTES[c] & PLAIN:
                    chars += 1
                elif c != 32 or not BYTES[src[i + 1]] & PLAIN:
                    break
                text[o] = c
                o += 1
                i += 1
                c = src[i]
            continue
        second = np.int64(0)  # a reference may stand for two characters
        if c >= 128:
            point, size = code_point(src, i)
            i += size
        elif c == 60:
            d = src[i + 1]
            if BYTES[d] & LETTER or d == 47 or d == 33 or d == 63:
                break
            i += 1
            point = np.int64(60)
        elif c == 38:
            size = reference(src, n, i, points)
            point = points[0] if size else np.int64(38)
            second = points[1] if size else np.int64(0)
            i += max(size, 1)
        else:
            i += 1
            point = np.int64(c)
        while True:
            role = _role(point)
            if role == _WHITE:
                if keep:
                    new_line = point == 10 or point == 0x85 or point == 0x2028 or point == 0x2029
                    if new_line or (point == 13 and src[i] != 10):
                        text[o] = 10
                        o += 1
                        line_due = False
                        line_start = o
                    elif point != 13:
                        if line_due:
                            text[o] = 10
                            o += 1
                            line_due = False
                            line_start = o
                        text[o] = 9 if point == 9 else 32
                        o += 1
                elif code and point == 0xA0:
                    if space and o > start and text[o - 1] != 10:
                        text[o] = 32
                        o += 1
                    space = 0
                    text[o] = 32
                    o += 1
                else:
                    space = LINE_FEED if point == 10 or space == LINE_FEED else BLANK
            elif role == _NO_WIDTH_SPACE:
                if not keep and space == 0:
                    space = NO_WIDTH
            elif role == _TEXT or (
                role != _NOTHING
                and (role == _DIRECTION or (o > start and not space and text[o - 1] > 32))
            ):
                if keep:
                    if line_due:
                        text[o] = 10
                        o += 1
                        line_due = False
                        line_start = o
                elif space:
                    if o == atom_at and space != NO_WIDTH:
                        text[o] = 32
                        o += 1
                    elif o > start and text[o - 1] != 10:
                        o = _parted(text, o, space, point)
                    space = 0
                after_break = False
                o = put(text, o, point)
                chars += role != _DIRECTION
            if second == 0:
                break
            point = second
            second = np.int64(0)
    now[LENGTH] = o
    now[SPACE_DUE] = space
    now[AFTER_BREAK] = after_break
    now[LINE_DUE] = line_due
    now[LINE_START] = line_start
    now[CHARS] += chars
    if now[LINKED]:
        now[LINK_CHARS] += chars
    if now[BOLD]:
        now[BOLD_CHARS] += chars
    return i


@inlined
def new_line(text, now):  # type: ignore[no-untyped-def]
    """Break a line of code."""
    text[now[LENGTH]] = 10
    now[LENGTH] += 1
    now[LINE_DUE] = 0
    now[LINE_START] = now[LENGTH]


@inlined
def _space(text, now):  # type: ignore[no-untyped-def]
    """Write the white space that is due."""
    due = (now[SPACE_DUE] != 0) & (now[SPACE_DUE] != NO_WIDTH)
    if due & ((now[LENGTH] > now[START]) | (now[ATOM_AT] == now[LENGTH])):
        text[now[LENGTH]] = 32
        now[LENGTH] += 1
    now[SPACE_DUE] = 0


@inlined
def _atom(atoms, now, kind, start, end):  # type: ignore[no-untyped-def]
    at = now[ATOMS]
    atoms[A_AT, at] = now[LENGTH]
    atoms[A_KIND, at] = kind
    atoms[A_START, at] = start
    atoms[A_END, at] = end
    now[ATOMS] += 1


@inlined
def has_room(atoms, now):  # type: ignore[no-untyped-def]
    """Whether one more atom is allowed."""
    return now[ATOMS] < atoms.shape[1] - 1


@borrowing
def formula(text, atoms, now, kind, start, end, soft):  # type: ignore[no-untyped-def]
    """A formula stands here, with its source in src[start:end]. A `soft` one gives way to a better
    source of the same formula; one that is STATED keeps its place."""
    _space(text, now)
    _atom(atoms, now, kind, start, end)
    now[FORMULAS] += 1
    now[ATOM_AT] = now[LENGTH]
    now[ATOM_SOFT] = soft


@borrowing
def drop_soft(atoms, now):  # type: ignore[no-untyped-def]
    """Take back the formula just read where a better source of the same one follows."""
    last = now[ATOMS] - 1
    same = (now[ATOM_SOFT] == 1) & (now[ATOM_AT] == now[LENGTH])
    if (last >= 0) & same & (atoms[A_AT, max(last, 0)] >= now[START]):
        now[ATOMS] = last
        now[FORMULAS] -= 1


@borrowing
def line_break(text, now):  # type: ignore[no-untyped-def]
    """A <br>: whether it is the second in a row, which ends the block."""
    if now[PRE_TOP] >= 0:
        new_line(text, now)
    elif now[CODE] > 0:
        text[now[LENGTH]] = 10
        now[LENGTH] += 1
        now[SPACE_DUE] = 0
    elif now[AFTER_BREAK]:
        return True
    else:
        now[SPACE_DUE] = 0
        if now[LENGTH] > now[START]:
            if text[now[LENGTH] - 1] != 10:
                text[now[LENGTH]] = 10
                now[LENGTH] += 1
            now[FLAGS] |= HAS_BREAK
        now[AFTER_BREAK] = 1
    return False


@inlined
def _in_brackets(text, now):  # type: ignore[no-untyped-def]
    """Whether the text so far ends in a bracket that opens, as <rp> has it before a reading."""
    o = now[LENGTH]
    wide = text[o - 1] == 0x88 and text[o - 2] == 0xBC and text[o - 3] == 0xEF
    return text[o - 1] == 40 or (wide and o >= now[START] + 3)


@inlined
def end_reading(text, now):  # type: ignore[no-untyped-def]
    """The reading of a character ends, with a bracket where one was set before it."""
    if now[READING]:
        if now[LENGTH] == now[READING]:  # nothing stands in it
            now[LENGTH] -= 3
        else:
            now[LENGTH] = put(text, now[LENGTH], _RIGHT)
        now[READING] = 0
        now[SPACE_DUE] = 0


@inlined
def _drop_sign(text, now):  # type: ignore[no-untyped-def]
    """Take back a link that has nothing but a sign: to a heading itself, or back to the text."""
    at = now[LINK_AT]
    end = now[LENGTH]
    if at < now[START] or now[PRE_TOP] >= 0:
        return
    if at < end and text[at] == 32:
        at += 1
    c = text[at]
    size = 0
    if c == 35 or c == 94:  # # ^
        size = 1
    elif c == 0xC2 and (text[at + 1] == 0xB6 or text[at + 1] == 0xA7):  # pilcrow, section
        size = 2
    elif c == 0xE2 and text[at + 1] == 0x86:  # arrows
        size = 3
    elif c == 0xF0 and text[at + 1] == 0x9F and text[at + 2] == 0x94:  # chains
        size = 4
    after = at + size
    if after + 3 == end and text[after] == 0xEF and text[after + 1] == 0xB8:
        after += 3  # a variation selector, which counts as a character
        now[CHARS] -= 1
        now[LINK_CHARS] -= 1
    if size and after == end:
        now[LENGTH] = now[LINK_AT]
        now[CHARS] -= 1
        now[LINK_CHARS] -= 1
        now[LINKS] -= 1
        now[SPACE_DUE] = 1


@inlined
def _mark(text, now, sign):  # type: ignore[no-untyped-def]
    text[now[LENGTH]] = sign
    now[LENGTH] += 1
    now[CHARS] += 1
    if now[LINKED]:
        now[LINK_CHARS] += 1


@borrowing
def _script_of(src, n, i):  # type: ignore[no-untyped-def]
    """The content of a superscript or subscript from i on: how many characters it has, whether it is
    in italics, has a letter, a sign of arithmetic, a comma. More than _SCRIPT characters: it is none
    that is understood."""
    size = 0
    tilted = False
    letter = False
    sign = False
    comma = False
    k = i
    while k < n and k < i + _TAG_BYTES and size <= _SCRIPT:
        c = src[k]
        width = 1
        if c == 60:
            first, second = LOWER[src[k + 1]], LOWER[src[k + 2]]
            if first == 47 and second == 115 and LOWER[src[k + 3]] == 117:  # </su
                return size, tilted, letter, sign, comma
            tilted = tilted or first == 105 or first == 118 or (first == 101 and second == 109)
            while k < n and k < i + _TAG_BYTES and src[k] != 62:
                k += 1
            k += 1
            continue
        if c == 0xE2 and src[k + 1] == 0x88 and src[k + 2] == 0x92:  # minus
            sign = True
            width = 3
        elif 0xCE <= c <= 0xCF or BYTES[c] & LETTER:  # Greek, Latin
            letter = True
            width = 2 if c >= 0x80 else 1
        elif c == 43 or c == 45 or c == 42 or c == 61:  # + - * =
            sign = True
        elif c == 44:
            comma = True
        elif not 48 <= c <= 57 and (c != 32 or size == 0):
            break
        size += 1
        k += width
    return np.int64(_SCRIPT + 1), tilted, letter, sign, comma


@inlined
def script(src, n, i, text, now, tag):  # type: ignore[no-untyped-def]
    """A superscript or subscript opens right behind a character, its content from i on.

    Numbers set high are powers; sums, and what belongs to a variable, are scripts of formulas
    (`a_{n+1}`, `x^n`). Others are as they are typed: `H2O`, `1st`.
    """
    o = now[LENGTH]
    if o == now[START] or now[SPACE_DUE] or now[PRE_TOP] >= 0 or text[o - 1] <= 32:
        return
    size, tilted, letter, sign, comma = _script_of(src, n, i)
    one = BYTES[text[o - 1]] & LETTER != 0
    word = one and o > now[START] + 1 and BYTES[text[o - 2]] & LETTER != 0
    tilted = (tilted or now[TILTED] == o) and not word
    sums = letter and (sign or (comma and tag == _SUB))
    index = tag == _SUB and one and not word and letter and size == 1
    if 0 < size <= _SCRIPT and (sums or index or (tilted and (letter or tag == _SUB))):
        _mark(text, now, 94 if tag == _SUP else 95)
        if size > 1:
            _mark(text, now, 123)
            now[BRACED] = now[LENGTH]
    elif tag == _SUP:
        _power(src, n, i, text, now)


@inlined
def _power(src, n, i, text, now):  # type: ignore[no-untyped-def]
    """Write `^` before a number that is set high."""
    k = i
    if src[k] == 60 and src[k + 1] != 47:
        while k < n and k < i + _TAG_BYTES and src[k] != 62:
            k += 1
        k += 1
    sign = 0
    if src[k] == 43 or src[k] == 45:
        sign = 1
    elif src[k] == 0xE2 and src[k + 1] == 0x88 and src[k + 2] == 0x92:
        sign = 3
    if k + sign < n and 48 <= src[k + sign] <= 57:
        _mark(text, now, 94)


@inlined
def keep_apart(src, at, i, text, now):  # type: ignore[no-untyped-def]
    """An inline element opens at `at`, its content from i on, right behind the end of another.

    Such elements are often set apart by style only: a small letter or digit before a capital with a
    small one behind it, and capitals before a digit, are the ends of words there.
    """
    o = now[LENGTH]
    if now[ENDED] != at or o - now[START] < 2 or now[PRE_TOP] >= 0 or now[CODE] > 0:
        return
    before = text[o - 1]
    earlier = text[o - 2]
    c = src[i]
    small = 97 <= before <= 122 and 97 <= LOWER[earlier] <= 122
    word = 65 <= c <= 90 and 97 <= src[i + 1] <= 122
    capitals = 65 <= before <= 90 and 65 <= earlier <= 90
    if ((small or 48 <= before <= 57) and word) or (capitals and 48 <= c <= 57):
        now[SPACE_DUE] = 1


@borrowing
def picture_of_sign(src, alt, alt_end, text, now):  # type: ignore[no-untyped-def]
    """An image stands for the sign in its alternative text, as those of emoji do."""
    _space(text, now)
    o = now[LENGTH]
    for k in range(alt, alt_end):
        text[o] = src[k]
        o += 1
    now[LENGTH] = o
    now[CHARS] += 1
    now[AFTER_BREAK] = 0


@inlined
def line_element(text, now):  # type: ignore[no-untyped-def]
    """An element opens that holds a line of a listing: a line begins if none has since the last."""
    if now[LINE_AT] >= now[START] and now[LINE_START] <= now[LINE_AT]:
        new_line(text, now)
    now[LINE_AT] = now[LENGTH]


@borrowing
def verbatim(src, i, stop, text, points, now):  # type: ignore[no-untyped-def]
    """Take text from i to `stop` that has references, but no markup."""
    while i < stop:
        i = run_of_text(src, stop, i, text, points, now)
        if i < stop:
            text[now[LENGTH]] = src[i]
            now[LENGTH] += 1
            now[CHARS] += 1
            i += 1


@borrowing
def alternative(src, i, stop, text, points, now):  # type: ignore[no-untyped-def]
    """Take the alternative text of an image, in src[i:stop], as words."""
    now[SPACE_DUE] = BLANK
    _space(text, now)
    around = now[PRE_TOP]
    now[PRE_TOP] = now[TOP]  # the text has no markup, and is read to its end
    verbatim(src, i, stop, text, points, now)
    now[PRE_TOP] = around
    now[SPACE_DUE] = BLANK


@inlined
def class_of_code(atoms, now, start, end):  # type: ignore[no-untyped-def]
    """A <code> with a class opens in a listing: the class may say the language."""
    if has_room(atoms, now):
        _atom(atoms, now, CODE_CLASS, start, end)


@inlined
def inline_start(text, atoms, now, tag, has_address):  # type: ignore[no-untyped-def]
    """An inline element opens. `has_address`: it has an `href`."""
    if tag == _WBR or tag == _INPUT:
        return
    now[TAGS] += 1
    if tag == _A:
        if has_address:
            if not now[LINKED]:
                now[LINKS] += 1
            now[LINKED] = 1
            now[LINK_TOP] = now[TOP]
            now[LINK_AT] = now[LENGTH]
    elif tag == _B or tag == _STRONG:
        now[BOLD] += 1
    elif tag == _CODE and now[PRE_TOP] < 0:
        if now[CODE] == 0 and has_room(atoms, now):
            _space(text, now)
            _atom(atoms, now, CODE_ON, 0, 0)
        now[CODE] += 1
    elif tag == _RT:
        end_reading(text, now)
        if now[PRE_TOP] < 0 and now[LENGTH] > now[START] and not _in_brackets(text, now):
            now[LENGTH] = put(text, now[LENGTH], _LEFT)
            now[READING] = now[LENGTH]
            now[SPACE_DUE] = 0


@inlined
def inline_end(text, atoms, now, tag):  # type: ignore[no-untyped-def]
    """An inline element ends."""
    if tag == _A:
        if now[LINKED]:
            _drop_sign(text, now)
        now[LINKED] = 0
    elif (tag == _B or tag == _STRONG) and now[BOLD] > 0:
        now[BOLD] -= 1
    elif tag == _CODE and now[CODE] > 0:
        now[CODE] -= 1
        if now[CODE] == 0 and has_room(atoms, now):
            _atom(atoms, now, CODE_OFF, 0, 0)
    elif tag == _RT or tag == _RUBY:
        end_reading(text, now)
    elif tag == _I or tag == _EM or tag == _VAR:
        now[TILTED] = now[LENGTH]
    elif tag == _SUP or tag == _SUB:
        if now[BRACED]:
            _mark(text, now, 125)
            now[BRACED] = 0
    elif tag == _BR or tag == _DEL or tag == _S or tag == _STRIKE:
        now[SPACE_DUE] = 1


@inlined
def close_block(text, blocks, atoms, now, continued):  # type: ignore[no-untyped-def]
    """End the block under way and begin the next; False when there are too many.

    `continued`: the next one stands in the same element.
    """
    start = now[START]
    end = now[LENGTH]
    if now[CHARS] > 0 or now[FORMULAS] > 0:
        b = now[BLOCKS]
        if b >= blocks.shape[1] - 1:
            return False
        while end > start and (text[end - 1] == 10 or text[end - 1] == 32):
            if end == now[ATOM_AT]:
                break  # the blank before a formula that ends the block
            end -= 1
        flags = now[FLAGS]
        if now[PRE_TOP] >= 0:
            flags |= PRE
        if now[LINKED]:
            flags |= IN_LINK
        blocks[B_START, b] = start
        blocks[B_END, b] = end
        blocks[B_ELEMENT, b] = now[ELEMENT]
        blocks[B_CHARS, b] = now[CHARS]
        blocks[B_LINK_CHARS, b] = now[LINK_CHARS]
        blocks[B_LINKS, b] = now[LINKS]
        blocks[B_TAGS, b] = now[TAGS]
        blocks[B_BOLD, b] = now[BOLD_CHARS]
        blocks[B_FORMULAS, b] = now[FORMULAS]
        blocks[B_FLAGS, b] = flags
        now[BLOCKS] += 1
        text[end] = 10
        end += 1
    else:
        end = start
        last = now[ATOMS] - 1
        while last >= 0 and atoms[A_AT, last] >= start and atoms[A_KIND, last] < CODE_ON:
            last -= 1
        now[ATOMS] = last + 1
    for k in range(now[ATOMS] - 1, -1, -1):  # atoms behind trimmed white space
        if atoms[A_AT, k] < end:
            break
        atoms[A_AT, k] = max(start, end - 1)
    now[LENGTH] = end
    now[START] = end
    now[LINE_START] = end
    now[CHARS : SPACE_DUE + 1] = 0
    now[LINKS] = now[LINKED]
    now[LINE_DUE] = 0
    now[ATOM_AT] = -1
    now[FLAGS] = CONTINUED if continued else 0
    now[READING] = 0
    now[BRACED] = 0
    now[TILTED] = 0
    now[LINE_AT] = -1
    now[AFTER_BREAK] = 0
    return True
