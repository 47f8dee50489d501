"""Text as it flows into blocks: characters, white space, line breaks, formulas, inline elements.

The state of a scan is one record, `now` (STATE).
"""

from typing import Any, NamedTuple

import numpy as np

from curation.bytes import ascii as ch
from curation.bytes.code_points import code_point, last_character, put
from curation.bytes.search import LOWER
from curation.compiled import Bool, Bytes, Int, Int64s, borrowing, inlined, merged
from curation.extract import blocks as s
from curation.extract.lexing import reference
from curation.extract.markup import (
    BYTES,
    CAPITAL,
    CASE,
    LETTER,
    PLAIN,
    SMALL,
    SPACE,
    TAG,
    THREE,
    TWO,
)


class State:
    """The state of a scan, a record of whole numbers."""

    # How much there is so far.
    length: Int
    blocks: Int
    elements: Int
    tokens: Int
    atoms: Int
    linked_scripts: Int
    # The block under way.
    start: Int
    chars: Int
    link_chars: Int
    links: Int
    tags: Int
    bold_chars: Int
    formulas: Int
    flags: Int
    space_due: Int  # white space comes before the next character: BLANK, LINE_FEED, NO_WIDTH
    after_break: Int  # the last thing was a <br>
    atom_at: Int  # end of the last formula; -1: none
    atom_soft: Int  # it may give way to a better source of the same formula
    line_at: Int  # where the last line element of a listing began; -1: none did
    reading: Int  # where the reading (<rt>) that is open began; 0: none is
    braced: Int  # `}` is due behind a script
    tilted: Int  # where the last <i>, <em> or <var> ended
    # Inline elements: a link, where it began and how deep, and how many of others are open.
    linked: Int
    link_at: Int
    link_top: Int
    bold: Int
    code: Int
    seam: Int  # where the tags end that are between two runs of text
    seam_kind: Int  # and what they are: EDGE, BESIDE, ...
    ended_tag: Int  # of the last end tag of an inline element
    # Code.
    pre_top: Int  # depth of the outermost element that keeps white space; -1: none
    typed_top: Int  # how deep a font for code was asked for; -1: it wasn't
    indents: Int  # the block may be code: blanks that begin its lines are kept
    line_depth: Int  # spans open within one that is a line of a listing, itself included
    note_depth: Int  # the same of a note
    note_at: Int  # and where it began
    line_due: Int  # a line ended without a line break yet
    line_start: Int
    # The stack.
    top: Int
    element: Int
    over: Int  # open block elements beyond the depth that is kept
    # What is passed over.
    skip_depth: Int
    skip_math: Int
    without_scripts: Int  # where the <noscript> ends that is read
    skip_hash: Int  # of the tag of the element that is passed over
    class_hash: Int  # of the class of the last inline element that has one


STATE = np.dtype(
    [(n, np.uint64 if n.endswith("_hash") else np.int64) for n in State.__annotations__]
)


class Blocks(NamedTuple):
    """The columns `b_*` of Page, as far as they are filled."""

    start: Any
    end: Any
    element: Any
    chars: Any
    link_chars: Any
    links: Any
    tags: Any
    bold_chars: Any
    formulas: Any
    flags: Any


class Atoms(NamedTuple):
    """The columns `a_*` of Page."""

    at: Any
    kind: Any
    start: Any
    end: Any


class Flow(NamedTuple):
    """The text so far and what is in it."""

    text: Any  # uint8
    atoms: Atoms
    points: Any  # [2] code points of the last reference
    now: State


#: What is between two runs of text: the edge of an element, or the end of one and the beginning of
#: another, perhaps of another class, or two pieces of code. The more likely a style parts them.
EDGE, BESIDE, UNLIKE, CODES = 0, 1, 2, 3

_A, _B, _STRONG, _CODE = TAG["a"], TAG["b"], TAG["strong"], TAG["code"]
_BR, _WBR, _INPUT = TAG["br"], TAG["wbr"], TAG["input"]
_SPAN, _TT, _SAMP = TAG["span"], TAG["tt"], TAG["samp"]
_DEL, _S, _STRIKE, _RUBY, _RT = TAG["del"], TAG["s"], TAG["strike"], TAG["ruby"], TAG["rt"]
_LEFT, _RIGHT = ord("\uff08"), ord("\uff09")  # brackets around readings
_TAG_BYTES = 200  # longer tags in superscripts aren't looked into
_SCRIPT = 12  # characters; longer ones are fine print
_TEXT, _WHITE, _NOTHING, _JOINER, _DIRECTION, _NO_WIDTH_SPACE = range(6)
_RUN = PLAIN | TWO | THREE
# White space that is due: a blank, one that the source has as a line break, a place for one.
BLANK, LINE_FEED, NO_WIDTH = 1, 2, 3
_I, _EM, _VAR, _SUB, _SUP = TAG["i"], TAG["em"], TAG["var"], TAG["sub"], TAG["sup"]


@inlined
def _role(point: Int) -> Int:
    """Whether a character is white space, text, or nothing: controls, invisible and no characters."""
    if point <= ch.SPACE:
        return _WHITE if point == ch.SPACE or ch.TAB <= point <= ch.CR else _NOTHING
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


@merged
def _is_wide(point: Int) -> Bool:
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


@merged
def _has_no_blanks(point: Int) -> Bool:
    """Whether a character is one of Thai, Lao, Burmese or Khmer, which part words by U+200B."""
    return 0xE00 <= point <= 0xEFF or 0x1000 <= point <= 0x109F or 0x1780 <= point <= 0x17FF


@inlined
def _parted(text: Bytes, o: Int, due: Int, point: Int) -> Int:
    """Write the white space that is `due` between two characters; return where the text ends."""
    last = code_point(text, last_character(text, o - 4, o))[0]
    if due == NO_WIDTH:
        if _has_no_blanks(last) and _has_no_blanks(point):
            return put(text, o, np.int64(0x200B))
        return o
    if due == LINE_FEED and _is_wide(last) and _is_wide(point):
        return o
    text[o] = ch.SPACE
    return o + 1


@inlined
def _is_markup(src: Bytes, i: Int) -> Bool:
    """Whether markup begins at i."""
    if src[i] != ch.LESS:
        return False
    d = src[i + 1]
    return BYTES[d] & LETTER != 0 or d == ch.SLASH or d == ch.BANG or d == ch.QUESTION


@inlined
def _point_at(src: Bytes, n: Int, i: Int, points: Int64s) -> tuple[Int, Int, Int]:
    """The character at i, or the one or two that a reference there stands for, and where they end."""
    if src[i] == ch.AMPERSAND:
        size = reference(src, n, i, points)
        if size:
            return points[0], points[1], i + size
    point, size = code_point(src, i)
    return point, np.int64(0), i + size


@inlined
def _is_shown(role: Int, joins: Bool) -> Bool:
    """Whether a character is text; a joiner is where there is something that it `joins`."""
    return role == _TEXT or role == _DIRECTION or (role == _JOINER and joins)


@inlined
def _add_chars(now: State, chars: Int) -> None:
    now.chars += chars
    if now.linked:
        now.link_chars += chars
    if now.bold:
        now.bold_chars += chars


@merged
def _run_of_code(src: Bytes, n: Int, i: Int, flow: Flow) -> Int:
    """`run_of_text` where white space is kept."""
    text, now = flow.text, flow.now
    o, line_start, line_due = now.length, now.line_start, now.line_due != 0
    chars = 0
    while i < n and not _is_markup(src, i):
        point, second, i = _point_at(src, n, i, flow.points)
        while True:
            role = _role(point)
            feed = point == ch.LF or point == 0x85 or point == 0x2028 or point == 0x2029
            feed = feed or (point == ch.CR and src[i] != ch.LF)
            blank = role == _WHITE and point != ch.CR and not feed
            joins = o > now.start and now.space_due == 0 and text[o - 1] > ch.SPACE
            shown = _is_shown(role, joins)
            if feed or (line_due and (blank or shown)):
                text[o] = ch.LF
                o += 1
                line_due = False
                line_start = o
            if blank:
                text[o] = ch.TAB if point == ch.TAB else ch.SPACE
                o += 1
            elif shown:
                now.after_break = 0
                o = put(text, o, point)
                chars += role != _DIRECTION
            if second == 0:
                break
            point, second = second, np.int64(0)
    now.length, now.line_start, now.line_due = o, line_start, line_due
    _add_chars(now, chars)
    return i


@inlined
def _white(src: Bytes, i: Int, space: Int) -> tuple[Int, Int]:
    """Pass over the white space at i; return where it ends, and what is due then."""
    due = LINE_FEED if space == LINE_FEED else BLANK
    while BYTES[src[i]] & SPACE:  # the padding is neither white nor plain
        if src[i] == ch.LF:
            due = LINE_FEED
        i += 1
    return i, due


@inlined
def _plain(src: Bytes, i: Int, text: Bytes, o: Int) -> tuple[Int, Int, Int]:
    """Take characters that are text whatever is around them; return where both end, and how many."""
    chars = 0
    c = src[i]
    while True:
        text[o] = c
        if BYTES[c] & PLAIN:
            chars += 1
        elif BYTES[c] & (TWO | THREE):
            chars += 1
            o += 1
            i += 1
            text[o] = src[i]
            if BYTES[c] & THREE:
                o += 1
                i += 1
                text[o] = src[i]
        elif c != ch.SPACE or not BYTES[src[i + 1]] & _RUN:
            return i, o, chars
        o += 1
        i += 1
        c = src[i]


@inlined
def _blank(text: Bytes, o: Int, space: Int, point: Int, now: State) -> tuple[Int, Int]:
    """Take a character of white space; return where the text ends, and what is due then."""
    indents = now.indents != 0 and (o == now.start or text[o - 1] <= ch.SPACE)
    if point != 0xA0 or not (now.code > 0 or now.typed_top >= 0 or indents):
        return o, LINE_FEED if point == ch.LF or space == LINE_FEED else BLANK
    if space and o > now.start and text[o - 1] != ch.LF:
        text[o] = ch.SPACE
        o += 1
    text[o] = ch.SPACE
    return o + 1, 0


@inlined
def run_of_text(src: Bytes, n: Int, i: Int, flow: Flow) -> Int:
    """Take the text from i to the next markup; return where that is."""
    text, now = flow.text, flow.now
    if now.pre_top >= 0:
        return _run_of_code(src, n, i, flow)
    o, start, space, atom_at = now.length, now.start, now.space_due, now.atom_at
    after_break = now.after_break != 0
    chars = 0
    while i < n:
        c = src[i]
        if BYTES[c] & SPACE:
            i, space = _white(src, i, space)
            continue
        if BYTES[c] & (PLAIN if space else _RUN):
            if space:
                if space != NO_WIDTH and (o == atom_at or (o > start and text[o - 1] != ch.LF)):
                    text[o] = ch.SPACE
                    o += 1
                space = 0
            after_break = False
            i, o, more = _plain(src, i, text, o)
            chars += more
            continue
        if c == ch.LESS and _is_markup(src, i):
            break
        point, second, i = _point_at(src, n, i, flow.points)
        while True:
            role = _role(point)
            if role == _WHITE:
                o, space = _blank(text, o, space, point, now)
            elif role == _NO_WIDTH_SPACE:
                space = space if space else NO_WIDTH
            elif _is_shown(role, o > start and space == 0 and text[o - 1] > ch.SPACE):
                if space and o == atom_at and space != NO_WIDTH:
                    text[o] = ch.SPACE
                    o += 1
                elif space and o > start and text[o - 1] != ch.LF:
                    o = _parted(text, o, space, point)
                space = 0
                after_break = False
                o = put(text, o, point)
                chars += role != _DIRECTION
            if second == 0:
                break
            point, second = second, np.int64(0)
    now.length = o
    now.space_due = space
    now.after_break = after_break
    _add_chars(now, chars)
    return i


@inlined
def new_line(text: Bytes, now: State) -> None:
    """Break a line of code."""
    text[now.length] = ch.LF
    now.length += 1
    now.line_due = 0
    now.line_start = now.length


@inlined
def _space(text: Bytes, now: State) -> None:
    """Write the white space that is due."""
    due = (now.space_due != 0) & (now.space_due != NO_WIDTH)
    if due & ((now.length > now.start) | (now.atom_at == now.length)):
        text[now.length] = ch.SPACE
        now.length += 1
    now.space_due = 0


@inlined
def atom(flow: Flow, kind: Int, start: Int, end: Int) -> None:
    """Note what is no text at the end of the text."""
    atoms, now = flow.atoms, flow.now
    atoms.at[now.atoms] = now.length
    atoms.kind[now.atoms] = kind
    atoms.start[now.atoms] = start
    atoms.end[now.atoms] = end
    now.atoms += 1


@inlined
def has_room(flow: Flow) -> Bool:
    """Whether one more atom is allowed."""
    return flow.now.atoms < len(flow.atoms.at) - 1


@borrowing
def formula(flow: Flow, kind: Int, start: Int, end: Int, soft: Int) -> None:
    """A formula is here, with its source in src[start:end]. A `soft` one gives way to a better
    source of the same formula."""
    now = flow.now
    _space(flow.text, now)
    atom(flow, kind, start, end)
    now.formulas += 1
    now.atom_at = now.length
    now.atom_soft = soft


@borrowing
def drop_soft(atoms: Atoms, now: State) -> None:
    """Take back the formula just read where a better source of the same one follows."""
    last = now.atoms - 1
    same = (now.atom_soft == 1) & (now.atom_at == now.length)
    if (last >= 0) & same & (atoms.at[max(last, 0)] >= now.start):
        now.atoms = last
        now.formulas -= 1


@borrowing
def line_break(text: Bytes, now: State) -> Bool:
    """A <br>: whether it is the second in a row, which ends the block."""
    if now.pre_top >= 0:
        new_line(text, now)
    elif now.code > 0:
        text[now.length] = ch.LF
        now.length += 1
        now.space_due = 0
    elif now.after_break:
        return True
    else:
        now.space_due = 0
        if now.length > now.start:
            if text[now.length - 1] != ch.LF:
                text[now.length] = ch.LF
                now.length += 1
            now.flags |= s.HAS_BREAK
        now.after_break = 1
    return False


@inlined
def _in_brackets(text: Bytes, now: State) -> Bool:
    """Whether the text so far ends in a bracket that opens, as <rp> has it before a reading."""
    o = now.length
    wide = text[o - 1] == 0x88 and text[o - 2] == 0xBC and text[o - 3] == 0xEF
    return text[o - 1] == ch.PAREN or (wide and o >= now.start + 3)


@inlined
def end_reading(text: Bytes, now: State) -> None:
    """The reading of a character ends, with a bracket where one was set before it."""
    if now.reading:
        if now.length == now.reading:  # it is empty
            now.length -= 3
        else:
            now.length = put(text, now.length, _RIGHT)
        now.reading = 0
        now.space_due = 0


@inlined
def _drop_sign(text: Bytes, now: State) -> None:
    """Take back a link that has nothing but a sign: to a heading itself, or back to the text."""
    at = now.link_at
    end = now.length
    if at < now.start or now.pre_top >= 0:
        return
    if at < end and text[at] == ch.SPACE:
        at += 1
    c = text[at]
    size = 0
    if c == ch.HASH or c == ch.CARET:  # # ^
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
        now.chars -= 1
        now.link_chars -= 1
    if size and after == end:
        now.length = now.link_at
        now.chars -= 1
        now.link_chars -= 1
        now.links -= 1
        now.space_due = 1


@inlined
def _mark(text: Bytes, now: State, sign: Int) -> None:
    text[now.length] = sign
    now.length += 1
    now.chars += 1
    if now.linked:
        now.link_chars += 1


@borrowing
def _script_of(src: Bytes, n: Int, i: Int) -> tuple[Int, Bool, Bool, Bool, Bool]:
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
        if c == ch.LESS:
            first, second = LOWER[src[k + 1]], LOWER[src[k + 2]]
            if (
                first == ch.SLASH and second == ch.LOWER_S and LOWER[src[k + 3]] == ch.LOWER_U
            ):  # </su
                return size, tilted, letter, sign, comma
            tilted = (
                tilted
                or first == ch.LOWER_I
                or first == ch.LOWER_V
                or (first == ch.LOWER_E and second == ch.LOWER_M)
            )
            while k < n and k < i + _TAG_BYTES and src[k] != ch.GREATER:
                k += 1
            k += 1
            continue
        if c == 0xE2 and src[k + 1] == 0x88 and src[k + 2] == 0x92:  # minus
            sign = True
            width = 3
        elif 0xCE <= c <= 0xCF or BYTES[c] & LETTER:  # Greek, Latin
            letter = True
            width = 2 if c >= 0x80 else 1
        elif c == ch.PLUS or c == ch.DASH or c == ch.STAR or c == ch.EQUALS:  # + - * =
            sign = True
        elif c == ch.COMMA:
            comma = True
        elif not ch.ZERO <= c <= ch.NINE and (c != ch.SPACE or size == 0):
            break
        size += 1
        k += width
    return np.int64(_SCRIPT + 1), tilted, letter, sign, comma


@inlined
def script(src: Bytes, n: Int, i: Int, text: Bytes, now: State, tag: Int) -> None:
    """A superscript or subscript opens right behind a character, its content from i on.

    Numbers set high are powers; sums, and what belongs to a variable, are scripts of formulas
    (`a_{n+1}`, `x^n`). Others are as they are typed: `H2O`, `1st`.
    """
    o = now.length
    if o == now.start or now.space_due or now.pre_top >= 0 or text[o - 1] <= ch.SPACE:
        return
    size, tilted, letter, sign, comma = _script_of(src, n, i)
    one = BYTES[text[o - 1]] & LETTER != 0
    word = one and o > now.start + 1 and BYTES[text[o - 2]] & LETTER != 0
    tilted = (tilted or now.tilted == o) and not word
    sums = letter and (sign or (comma and tag == _SUB))
    index = tag == _SUB and one and not word and letter and size == 1
    if 0 < size <= _SCRIPT and (sums or index or (tilted and (letter or tag == _SUB))):
        _mark(text, now, ch.CARET if tag == _SUP else ch.UNDERSCORE)
        if size > 1:
            _mark(text, now, ch.BRACE)
            now.braced = now.length
    elif tag == _SUP:
        _power(src, n, i, text, now)


@inlined
def _power(src: Bytes, n: Int, i: Int, text: Bytes, now: State) -> None:
    """Write `^` before a number that is set high."""
    k = i
    if src[k] == ch.LESS and src[k + 1] != ch.SLASH:
        while k < n and k < i + _TAG_BYTES and src[k] != ch.GREATER:
            k += 1
        k += 1
    sign = 0
    if src[k] == ch.PLUS or src[k] == ch.DASH:
        sign = 1
    elif src[k] == 0xE2 and src[k + 1] == 0x88 and src[k + 2] == 0x92:
        sign = 3
    if k + sign < n and ch.ZERO <= src[k + sign] <= ch.NINE:
        _mark(text, now, ch.CARET)


@inlined
def _case(point: Int) -> Int:
    return CASE[point] if point < len(CASE) else 0


@borrowing
def _words_meet(src: Bytes, i: Int, text: Bytes, now: State) -> Bool:
    """Whether a word ends at the end of the text and another begins in src[i:], by the letters and
    digits on both sides."""
    o = now.length
    before = last_character(text, now.start, o) - 1
    if before < now.start:
        return False
    last, first = code_point(text, before + 1)[0], np.int64(src[i])
    size = 1
    if first >= 0x80:
        first, size = code_point(src, i)
    second = np.int64(src[i + size])
    if second >= 0x80:
        second = code_point(src, i + size)[0]
    # The second character from the end may be of two bytes, of which its last is read.
    earlier = text[before]
    small = _case(last) == SMALL and (earlier >= 0x80 or CASE[earlier] == SMALL)
    word = _case(first) == CAPITAL and _case(second) == SMALL
    if small and word:
        return True
    if now.seam_kind < BESIDE:
        return False
    if word and _case(last) == SMALL and CASE[earlier] == CAPITAL:
        return True
    capitals = _case(last) == CAPITAL and (earlier >= 0x80 or CASE[earlier] == CAPITAL)
    ends, begins = ch.ZERO <= last <= ch.NINE, ch.ZERO <= first <= ch.NINE
    if (ends and word) or (capitals and begins):
        return True
    if now.seam_kind < UNLIKE:
        return False
    if now.seam_kind == CODES:
        return (ends or _case(last) != 0) and (begins or _case(first) != 0)
    return (begins and (ends or small)) or (capitals and word)


@inlined
def keep_apart(src: Bytes, i: Int, text: Bytes, now: State) -> None:
    """Set a space between two runs of text that tags part, and often their style, where these are
    words; the tags end at i."""
    now.seam = i
    if now.length - now.start < 2 or now.pre_top >= 0 or now.code > 0 or now.space_due:
        return
    if text[now.length - 1] > ch.SPACE and src[i] > ch.SPACE and src[i] != ch.LESS:
        if _words_meet(src, i, text, now):
            now.space_due = BLANK


@inlined
def inline_opened(
    src: Bytes, at: Int, i: Int, tag: Int, hashed: Int, text: Bytes, now: State
) -> None:
    """An inline element, its tag in src[at:i], its class of this hash, opens: a word may begin in it."""
    if tag == _SUB or tag == _SUP:
        return
    kind = EDGE
    if now.seam == at:
        unlike = hashed != 0 and now.class_hash != 0 and hashed != now.class_hash
        kind = UNLIKE if unlike else BESIDE
        if tag == _CODE and now.ended_tag == _CODE:
            kind = CODES
        kind = max(now.seam_kind, kind)
    now.seam_kind = kind
    keep_apart(src, i, text, now)
    if hashed != 0:
        now.class_hash = hashed


@inlined
def inline_closed(src: Bytes, at: Int, i: Int, tag: Int, text: Bytes, now: State) -> None:
    """An inline element ended, or an image, its tag in src[at:i]: a word may begin behind it."""
    if now.seam != at:
        now.seam_kind = EDGE
    now.ended_tag = tag
    keep_apart(src, i, text, now)


@borrowing
def picture_of_sign(src: Bytes, alt: Int, alt_end: Int, text: Bytes, now: State) -> None:
    """An image stands for the sign in its alternative text, as those of emoji do."""
    _space(text, now)
    o = now.length
    for k in range(alt, alt_end):
        text[o] = src[k]
        o += 1
    now.length = o
    now.chars += 1
    now.after_break = 0


@inlined
def line_element(text: Bytes, now: State) -> None:
    """An element opens that holds a line of a listing: a line begins if none has since the last."""
    if now.line_at >= now.start and now.line_start <= now.line_at:
        new_line(text, now)
    now.line_at = now.length
    now.line_depth = max(now.line_depth, 1)


@inlined
def _line_ended(now: State) -> None:
    """The element of a line of a listing ends: other text begins a line."""
    now.line_depth -= 1
    if now.line_depth == 0 and now.length > now.line_start:
        now.line_due = now.pre_top >= 0


@inlined
def note_opened(text: Bytes, now: State) -> None:
    """A note opens in the middle of a sentence: it is set in brackets."""
    if now.length == now.start or now.note_depth or now.pre_top >= 0:
        return
    now.space_due = BLANK
    _space(text, now)
    text[now.length] = ch.PAREN
    now.length += 1
    now.note_at = now.length
    now.note_depth = 1


@inlined
def _note_ended(text: Bytes, now: State) -> None:
    now.note_depth -= 1
    if now.note_depth:
        return
    now.space_due = 0
    if now.length == now.note_at and now.atom_at != now.length:
        now.length -= 2  # nothing is in it
    else:
        text[now.length] = ch.END_PAREN
        now.length += 1


@borrowing
def verbatim(src: Bytes, i: Int, stop: Int, flow: Flow) -> None:
    """Take text from i to `stop` that has references, but no markup."""
    text, now = flow.text, flow.now
    while i < stop:
        i = run_of_text(src, stop, i, flow)
        if i < stop:
            text[now.length] = src[i]
            now.length += 1
            now.chars += 1
            i += 1


@inlined
def inline_start(flow: Flow, tag: Int, has_address: Bool) -> None:
    """An inline element opens. `has_address`: it has an `href`."""
    if tag == _WBR or tag == _INPUT:
        return
    text, now = flow.text, flow.now
    now.tags += 1
    if tag == _SPAN:
        now.line_depth += now.line_depth > 0
        now.note_depth += now.note_depth > 0
    elif tag == _A:
        if has_address:
            if not now.linked:
                now.links += 1
            now.linked = 1
            now.link_top = now.top
            now.link_at = now.length
    elif tag == _B or tag == _STRONG:
        now.bold += 1
    elif tag == _CODE and now.pre_top < 0:
        if now.code == 0 and has_room(flow):
            _space(text, now)
            atom(flow, s.CODE_ON, 0, 0)
        now.code += 1
    elif tag == _RT:
        end_reading(text, now)
        if now.pre_top < 0 and now.length > now.start and not _in_brackets(text, now):
            now.length = put(text, now.length, _LEFT)
            now.reading = now.length
            now.space_due = 0


@inlined
def inline_end(flow: Flow, tag: Int) -> None:
    """An inline element ends."""
    text, now = flow.text, flow.now
    if tag == _SPAN:
        if now.line_depth:
            _line_ended(now)
        if now.note_depth:
            _note_ended(text, now)
    elif tag == _A:
        if now.linked:
            _drop_sign(text, now)
        now.linked = 0
    elif (tag == _B or tag == _STRONG) and now.bold > 0:
        now.bold -= 1
    elif tag == _CODE and now.code > 0:
        now.code -= 1
        if now.code == 0 and has_room(flow):
            atom(flow, s.CODE_OFF, 0, 0)
    elif tag == _RT or tag == _RUBY:
        end_reading(text, now)
    elif tag == _I or tag == _EM or tag == _VAR:
        now.tilted = now.length
    elif tag == _TT or tag == _SAMP:
        now.indents = 0
    elif tag == _SUP or tag == _SUB:
        if now.braced:
            _mark(text, now, ch.END_BRACE)
            now.braced = 0
    elif tag == _BR or tag == _DEL or tag == _S or tag == _STRIKE:
        now.space_due = 1


@inlined
def close_block(flow: Flow, blocks: Blocks, continued: Bool) -> Bool:
    """End the block under way and begin the next; False when there are too many.

    `continued`: the next one is in the same element.
    """
    text, atoms, now = flow.text, flow.atoms, flow.now
    start = now.start
    end = now.length
    if now.chars > 0 or now.formulas > 0:
        b = now.blocks
        if b >= len(blocks.start) - 1:
            return False
        while end > start and (text[end - 1] == ch.LF or text[end - 1] == ch.SPACE):
            if end == now.atom_at:
                break  # the blank before a formula that ends the block
            end -= 1
        flags = now.flags
        if now.pre_top >= 0:
            flags |= s.PRE
        if now.linked:
            flags |= s.IN_LINK
        blocks.start[b] = start
        blocks.end[b] = end
        blocks.element[b] = now.element
        blocks.chars[b] = now.chars
        blocks.link_chars[b] = now.link_chars
        blocks.links[b] = now.links
        blocks.tags[b] = now.tags
        blocks.bold_chars[b] = now.bold_chars
        blocks.formulas[b] = now.formulas
        blocks.flags[b] = flags
        now.blocks += 1
        text[end] = ch.LF
        end += 1
    else:
        end = start
        last = now.atoms - 1
        while last >= 0 and atoms.at[last] >= start and atoms.kind[last] < s.CODE_ON:
            last -= 1
        now.atoms = last + 1
    for k in range(now.atoms - 1, -1, -1):  # atoms behind trimmed white space
        if atoms.at[k] < end:
            break
        atoms.at[k] = max(start, end - 1)
    now.length = now.start = now.line_start = end
    now.chars = now.link_chars = now.tags = now.bold_chars = now.formulas = 0
    now.links = now.linked
    now.space_due = now.after_break = now.line_due = now.reading = now.braced = now.tilted = 0
    now.line_depth = now.note_depth = 0
    if not continued:
        now.indents = 0
    now.atom_at = now.line_at = -1
    now.flags = s.CONTINUED if continued else 0
    return True
