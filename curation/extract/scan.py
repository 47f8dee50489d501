"""One compiled pass from the bytes of a page to blocks of text and the elements that hold them.

No tree is built. A stack of open block elements, with the implied end tags of HTML, says what a run
of text stands in; inline elements are looked at and forgotten. A block is a run of inline text
directly under one block element. The pass is linear in the bytes, keeps at most `max_depth` open
elements (deeper ones are flattened into their ancestors) and at most `max_nodes` elements, blocks
or formulas; no input makes it fail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from curation.extract.markup import (
    ANCESTOR,
    ANCESTOR_OF_TAG,
    ATTRIBUTE,
    ATTRIBUTE_KEYS,
    ATTRIBUTE_VALUES,
    BYTES,
    C1_POINTS,
    ENTITY_KEYS,
    ENTITY_POINTS,
    ENTITY_VALUES,
    FLAG_PANEL,
    FLAG_PROPERTY,
    FLAG_SIDE,
    FNV_PRIME,
    FNV_START,
    LAST_BLOCK,
    LAST_SKIPPED,
    LETTER,
    LONGEST_ENTITY,
    LOWER,
    MARK_CODE,
    MARK_CODE_CELL,
    MARK_COPY,
    MARK_FORMULA,
    MARK_GUTTER,
    MARK_RENDERED,
    MARK_SCREEN_READER,
    MARKS,
    NAME_END,
    OTHER,
    PLAIN,
    SPACE,
    TAG,
    TAG_KEYS,
    TAG_VALUES,
    VALUE_FLAGS,
    find,
    fnv,
)

Ints = npt.NDArray[np.int32]

# Kinds of atoms: what stands inside a block and is no plain text.
MATHML, TEX_INLINE, TEX_DISPLAY, IMAGE_ALT, DATA_MATHML, SCRIPT_MATHML, ASCIIMATH, IMAGE_SOURCE = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
)
CODE_ON, CODE_OFF = 10, 11

# Bits of `Page.b_flags`.
PRE, CONTINUED, IN_LINK, HAS_BREAK = 1, 2, 4, 8

# Slots of `Page.facts`.
TITLE, LANGUAGE, OG_TYPE, GENERATOR, LINKED_DATA = 0, 2, 4, 6, 8
MAX_LINKED_DATA = 8
QUESTIONS = LINKED_DATA + 2 * MAX_LINKED_DATA  # 1: an element is of schema.org's type QAPage
FACTS = QUESTIONS + 1

STATUS_OK, STATUS_TOO_MANY, STATUS_UNCLOSED_HIDDEN = 0, 1, 2


class Page(NamedTuple):
    """A scanned page: n blocks, m elements, k class tokens, a atoms.

    Block b is `text[b_start[b]:b_end[b]]`, UTF-8 with white space collapsed (kept in code). Element
    0 is the body; parents come before children. An atom stands before byte `a_at` of the text;
    its source is `source[a_start:a_end]`.
    """

    status: int
    text: npt.NDArray[np.uint8]
    b_start: Ints  # [n]
    b_end: Ints  # [n]
    b_element: Ints  # [n]
    b_chars: Ints  # [n] characters without white space
    b_link_chars: Ints  # [n]
    b_links: Ints  # [n]
    b_tags: Ints  # [n] inline elements
    b_bold_chars: Ints  # [n]
    b_atoms: Ints  # [n] formulas
    b_flags: Ints  # [n]
    e_parent: Ints  # [m], -1 for the body
    e_tag: Ints  # [m]
    e_depth: Ints  # [m]
    e_above: Ints  # [m] bits of ANCESTOR, own tag included
    e_flags: Ints  # [m] bits of FLAG_*, own only
    e_signature: npt.NDArray[np.uint64]  # [m] of tag and class
    e_tokens: Ints  # [m + 1] where the class tokens of each element start
    e_class: Ints  # [m, 2] where its class stands in the source
    tokens: npt.NDArray[np.uint64]  # [k] hashes of class and id names and their parts
    a_at: Ints  # [a]
    a_kind: Ints
    a_start: Ints
    a_end: Ints
    facts: Ints  # [FACTS] spans of the source, and QUESTIONS


_A = TAG["a"]
_B, _STRONG = TAG["b"], TAG["strong"]
_CODE, _KBD, _SAMP, _TT = TAG["code"], TAG["kbd"], TAG["samp"], TAG["tt"]
_IMG, _BR, _WBR, _INPUT, _MATH = TAG["img"], TAG["br"], TAG["wbr"], TAG["input"], TAG["math"]
_SPAN, _Q = TAG["span"], TAG["q"]
_P, _DIV, _LI, _DD, _DT = TAG["p"], TAG["div"], TAG["li"], TAG["dd"], TAG["dt"]
_H1, _H6, _HR, _HTML, _BODY = TAG["h1"], TAG["h6"], TAG["hr"], TAG["html"], TAG["body"]
_TD, _TH, _TR, _TABLE = TAG["td"], TAG["th"], TAG["tr"], TAG["table"]
_THEAD, _TBODY, _TFOOT, _CAPTION = TAG["thead"], TAG["tbody"], TAG["tfoot"], TAG["caption"]
_UL, _OL, _DL, _ADDRESS = TAG["ul"], TAG["ol"], TAG["dl"], TAG["address"]
_PRE, _LISTING, _XMP = TAG["pre"], TAG["listing"], TAG["xmp"]
_MAIN, _ARTICLE, _BUTTON = TAG["main"], TAG["article"], TAG["button"]
_SCRIPT, _TITLE, _TEXTAREA = TAG["script"], TAG["title"], TAG["textarea"]
_NOSCRIPT = TAG["noscript"]
_HIDDEN, _GUTTER = ANCESTOR["hidden"], ANCESTOR["gutter"]
# Shorter <noscript> elements hold counting pixels, pictures loaded late and requests to turn scripts
# on; longer ones hold the page as those without scripts see it.
_LONG_NOSCRIPT = 2000  # bytes
_META_HASH = np.uint64(fnv(b"meta"))
_MARK_KEYS, _MARK_VALUES = MARKS
_VALUE_KEYS, _VALUE_VALUES = VALUE_FLAGS
_AT_CLASS, _AT_ID, _AT_ROLE = ATTRIBUTE["class"], ATTRIBUTE["id"], ATTRIBUTE["role"]
_AT_PROP, _AT_HIDDEN, _AT_STYLE = ATTRIBUTE["itemprop"], ATTRIBUTE["hidden"], ATTRIBUTE["style"]
_AT_ARIA, _AT_HREF, _AT_ALT = ATTRIBUTE["aria-hidden"], ATTRIBUTE["href"], ATTRIBUTE["alt"]
_AT_SRC, _AT_TYPE, _AT_MATHML = ATTRIBUTE["src"], ATTRIBUTE["type"], ATTRIBUTE["data-mathml"]
_AT_PROPERTY, _AT_NAME, _AT_CONTENT = (
    ATTRIBUTE["property"],
    ATTRIBUTE["name"],
    ATTRIBUTE["content"],
)
_AT_ITEMTYPE = ATTRIBUTE["itemtype"]
_AT_LANG = len(ATTRIBUTE)
_ATTRIBUTES = len(ATTRIBUTE) + 1
_LANG_HASH, _XML_LANG_HASH = np.uint64(fnv(b"lang")), np.uint64(fnv(b"xml:lang"))
_OG_TYPE_HASH, _GENERATOR_HASH = np.uint64(fnv(b"og:type")), np.uint64(fnv(b"generator"))
_TRUE_HASH = np.uint64(fnv(b"true"))
_UNTIL_FOUND_HASH = np.uint64(fnv(b"until-found"))
_KATEX_HTML_HASH = np.uint64(fnv(b"katex-html"))
_DOT, _SHARP = np.uint64(ord(".")), np.uint64(ord("#"))
_STEPS = 512  # how far an end tag looks for its start tag
_TOKENS_PER_ELEMENT = 32


@numba.njit(cache=True, nogil=True)
def _hash_lower(src, i, j):  # type: ignore[no-untyped-def]
    h = FNV_START
    for k in range(i, j):
        h = (h ^ np.uint64(LOWER[src[k]])) * FNV_PRIME
    return h


# Bytes are looked for eight at a time: `words` is the page as 64-bit words. Subtracting one from
# each byte borrows into the high bit of those that are zero (H. Warren, Hacker's Delight, 6-1).
_ONES, _HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_LOW_BITS = ~_HIGH
_OPEN = np.uint64(60) * _ONES  # <
_DASH = np.uint64(45) * _ONES


@numba.njit(cache=True, nogil=True)
def _count_open(words):  # type: ignore[no-untyped-def]
    """How many `<` the page has."""
    count = np.uint64(0)
    for k in range(len(words)):
        x = words[k] ^ _OPEN
        zero = ~(((x & _LOW_BITS) + _LOW_BITS) | x | _LOW_BITS)
        count += ((zero >> np.uint64(7)) * _ONES) >> np.uint64(56)
    return np.int64(count)


@numba.njit(cache=True, nogil=True)
def _next(src, words, i, n, byte, eight):  # type: ignore[no-untyped-def]
    """Where `byte` (`eight` of it in a word) comes next, from `i`; at least n when it doesn't."""
    while i < n:
        if i & 7 == 0:
            k = i >> 3
            last = n >> 3
            while k < last:
                x = words[k] ^ eight
                if (x - _ONES) & ~x & _HIGH:
                    break
                k += 1
            i = k << 3
        if src[i] == byte:
            break
        i += 1
    return i


@numba.njit(cache=True, nogil=True)
def _find_end(src, words, n, at, name_start, name_end):  # type: ignore[no-untyped-def]
    """Where `</name` starts, from `at`; -1 when it doesn't."""
    size = name_end - name_start
    last = n - size - 2
    i = _next(src, words, at, n, 60, _OPEN)
    while i <= last:
        if src[i + 1] == 47:
            k = 0
            while k < size and LOWER[src[i + 2 + k]] == LOWER[src[name_start + k]]:
                k += 1
            if k == size and BYTES[src[i + 2 + size]] & NAME_END:
                return i
        i = _next(src, words, i + 1, n, 60, _OPEN)
    return -1


@numba.njit(cache=True, nogil=True)
def _end_of(src, words, n, at, name_start, name_end, no_end, tag):  # type: ignore[no-untyped-def]
    """`_find_end`, which searches to the end of the page only once for a tag that never ends."""
    if no_end[tag]:
        return -1
    stop = _find_end(src, words, n, at, name_start, name_end)
    if stop < 0:
        no_end[tag] = 1
    return stop


@numba.njit(cache=True, nogil=True)
def _style(src, i, j):  # type: ignore[no-untyped-def]
    """1: `display:none` or `visibility:hidden`; 2: `white-space:pre`; 0: neither."""
    word = FNV_START  # of the current declaration, white space left out
    for k in range(i, j + 1):
        c = src[k] if k < j else np.uint8(59)
        if c == 59:  # ;
            if word == _DISPLAY_NONE or word == _DISPLAY_NONE_IMPORTANT or word == _INVISIBLE:
                return 1
            if word == _WHITE_SPACE_PRE:
                return 2
            word = FNV_START
        elif not BYTES[c] & SPACE:
            word = (word ^ np.uint64(LOWER[c])) * FNV_PRIME
    return 0


_DISPLAY_NONE = np.uint64(fnv(b"display:none"))
_DISPLAY_NONE_IMPORTANT = np.uint64(fnv(b"display:none!important"))
_INVISIBLE = np.uint64(fnv(b"visibility:hidden"))
_WHITE_SPACE_PRE = np.uint64(fnv(b"white-space:pre"))


@numba.njit(cache=True, nogil=True)
def _contains(src, i, j, word):  # type: ignore[no-untyped-def]
    """Whether src[i:j] has the lower-case `word`, in any case."""
    size = len(word)
    for k in range(i, j - size + 1):
        m = 0
        while m < size and LOWER[src[k + m]] == word[m]:
            m += 1
        if m == size:
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _has_name(src, i, j, word):  # type: ignore[no-untyped-def]
    """Whether the class src[i:j] has the name `word` (lower case)."""
    size = len(word)
    start = i
    for k in range(i, j + 1):
        if k == j or BYTES[src[k]] & SPACE:
            if k - start == size and _contains(src, start, k, word):
                return True
            start = k + 1
    return False


_FORMULA_SOURCES = tuple(
    np.frombuffer(word, np.uint8)
    for word in (b"latex", b"codecogs", b"mimetex", b"mathtex", b"math/render", b"cht=tx")
)
_S0, _S1, _S2, _S3, _S4, _S5 = _FORMULA_SOURCES
_MATH_TYPE = np.frombuffer(b"math/", np.uint8)
_DISPLAY = np.frombuffer(b"display", np.uint8)
_MML = np.frombuffer(b"mml", np.uint8)
_ASCII = np.frombuffer(b"ascii", np.uint8)
_QA_PAGE = np.frombuffer(b"schema.org/qapage", np.uint8)
_LD_JSON = np.frombuffer(b"ld+json", np.uint8)


@numba.njit(cache=True, nogil=True)
def _formula_image(src, alt_start, alt_end, src_start, src_end):  # type: ignore[no-untyped-def]
    """Whether an image shows a formula, by its address or by TeX in its alternative text."""
    for k in range(alt_start, alt_end - 1):
        if src[k] == 92 and BYTES[src[k + 1]] & LETTER:
            return True
    if alt_end - alt_start > 2 and src[alt_start] == 36 and src[alt_end - 1] == 36:
        return True
    return (
        _contains(src, src_start, src_end, _S0)
        or _contains(src, src_start, src_end, _S1)
        or _contains(src, src_start, src_end, _S2)
        or _contains(src, src_start, src_end, _S3)
        or _contains(src, src_start, src_end, _S4)
        or _contains(src, src_start, src_end, _S5)
    )


@numba.njit(cache=True, nogil=True)
def _entity(src, n, i, points):  # type: ignore[no-untyped-def]
    """Read the reference at src[i] == '&': bytes it takes (0: none) and its code points."""
    points[1] = 0
    k = i + 1
    if src[k] == 35:  # '#'
        k += 1
        value = np.int64(0)
        start = k
        if src[k] == 120 or src[k] == 88:
            k += 1
            start = k
            while k < n:
                c = np.int64(LOWER[src[k]])
                if 48 <= c <= 57:
                    value = value * 16 + c - 48
                elif 97 <= c <= 102:
                    value = value * 16 + c - 87
                else:
                    break
                if value > 0x10FFFF:
                    value = np.int64(0x110000)
                k += 1
        else:
            while k < n and 48 <= src[k] <= 57:
                value = value * 10 + np.int64(src[k]) - 48
                if value > 0x10FFFF:
                    value = np.int64(0x110000)
                k += 1
        if k == start:
            return 0
        if src[k] == 59:
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
        if c == 59:
            h = (h ^ np.uint64(59)) * FNV_PRIME
            full = find(ENTITY_KEYS, ENTITY_VALUES, h)
            if full >= 0:
                best = full
                length = k + 1 - i
            break
        if not (BYTES[c] & LETTER or 48 <= c <= 57):
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


@numba.njit(cache=True, nogil=True)
def _put(text, o, point):  # type: ignore[no-untyped-def]
    """Write a code point as UTF-8 at text[o]; return the position behind it."""
    if point < 0x80:
        text[o] = point
        return o + 1
    if point < 0x800:
        text[o] = 0xC0 | (point >> 6)
        text[o + 1] = 0x80 | (point & 63)
        return o + 2
    if point < 0x10000:
        text[o] = 0xE0 | (point >> 12)
        text[o + 1] = 0x80 | ((point >> 6) & 63)
        text[o + 2] = 0x80 | (point & 63)
        return o + 3
    text[o] = 0xF0 | (point >> 18)
    text[o + 1] = 0x80 | ((point >> 12) & 63)
    text[o + 2] = 0x80 | ((point >> 6) & 63)
    text[o + 3] = 0x80 | (point & 63)
    return o + 4


@numba.njit(cache=True, nogil=True)
def _class_tokens(src, i, j, prefix, tokens, count, limit):  # type: ignore[no-untyped-def]
    """Hash the names in a class or id and their parts into `tokens`; return count and mark.

    A name counts whole (after `prefix`, runs of digits as one 0) and in parts split at anything but
    letters and digits and before capitals that follow small letters. The mark is the first found
    in MARKS.
    """
    mark = np.int64(-1)
    k = i
    while k < j and count < limit:
        while k < j and BYTES[src[k]] & SPACE:
            k += 1
        start = k
        while k < j and not BYTES[src[k]] & SPACE:
            k += 1
        if k == start or k - start > 60:
            continue
        whole = (FNV_START ^ prefix) * FNV_PRIME
        exact = FNV_START
        part = FNV_START
        part_length = 0
        parts = 0
        previous = np.uint8(0)
        for m in range(start, k):
            c = src[m]
            low = LOWER[c]
            exact = (exact ^ np.uint64(low)) * FNV_PRIME
            digit = 48 <= c <= 57
            if digit:
                low = np.uint8(48)
            if not (digit and 48 <= previous <= 57):
                whole = (whole ^ np.uint64(low)) * FNV_PRIME
            word = digit or BYTES[c] & LETTER or c >= 128
            upper = 65 <= c <= 90
            after_small = 97 <= previous <= 122 or 48 <= previous <= 57
            if part_length and (not word or (upper and after_small)):
                if part_length > 1 and count < limit:
                    tokens[count] = part
                    count += 1
                    parts += 1
                part = FNV_START
                part_length = 0
            if word and not (digit and 48 <= previous <= 57 and part_length):
                part = (part ^ np.uint64(low)) * FNV_PRIME
                part_length += 1
            previous = c
        if part_length > 1 and count < limit:
            tokens[count] = part
            count += 1
        if count < limit:
            tokens[count] = whole
            count += 1
        if mark < 0:
            mark = find(_MARK_KEYS, _MARK_VALUES, exact)
    return count, mark


@numba.njit(cache=True, nogil=True)
def _scan(src, words, n, max_depth, max_nodes, keep_hidden):  # type: ignore[no-untyped-def]
    nodes = min(_count_open(words), max_nodes) + 2
    text = np.empty(n + n // 4 + 64, np.uint8)
    b_start = np.empty(nodes, np.int32)
    b_end = np.empty(nodes, np.int32)
    b_element = np.empty(nodes, np.int32)
    b_chars = np.empty(nodes, np.int32)
    b_link_chars = np.empty(nodes, np.int32)
    b_links = np.empty(nodes, np.int32)
    b_tags = np.empty(nodes, np.int32)
    b_bold = np.empty(nodes, np.int32)
    b_atoms = np.empty(nodes, np.int32)
    b_flags = np.empty(nodes, np.int32)
    e_parent = np.empty(nodes, np.int32)
    e_tag = np.empty(nodes, np.int32)
    e_depth = np.empty(nodes, np.int32)
    e_above = np.empty(nodes, np.int32)
    e_flags = np.empty(nodes, np.int32)
    e_sig = np.empty(nodes, np.uint64)
    e_tokens = np.empty(nodes + 1, np.int32)
    e_class = np.zeros((nodes, 2), np.int32)
    tokens = np.empty(nodes * _TOKENS_PER_ELEMENT, np.uint64)
    a_at = np.empty(nodes, np.int32)
    a_kind = np.empty(nodes, np.int32)
    a_start = np.empty(nodes, np.int32)
    a_end = np.empty(nodes, np.int32)
    facts = np.zeros(FACTS, np.int32)
    stack_tag = np.empty(max_depth + 2, np.int32)
    stack_element = np.empty(max_depth + 2, np.int32)
    stack_at = np.zeros(max_depth + 2, np.int64)  # in code, where the text of the element starts
    open_count = np.zeros(OTHER + 1, np.int64)
    av_start = np.zeros(_ATTRIBUTES, np.int64)
    av_end = np.zeros(_ATTRIBUTES, np.int64)
    points = np.zeros(2, np.int64)

    status = STATUS_OK
    o = 0
    nb = 0
    na = 0
    nt = 0
    linked = 0
    # the body, whether or not the page has one
    ne = 1
    e_parent[0] = -1
    e_tag[0] = _BODY
    e_depth[0] = 0
    e_above[0] = 0
    e_flags[0] = 0
    e_sig[0] = np.uint64(0)
    e_tokens[0] = 0
    e_tokens[1] = 0
    stack_tag[0] = _BODY
    stack_element[0] = 0
    top = 0
    over = 0  # open block elements beyond max_depth
    element = 0
    # the block under way
    start = 0
    chars = 0
    link_chars = 0
    links = 0
    tags = 0
    bold_chars = 0
    atoms = 0
    flags = 0
    space = False  # white space is due before the next character
    in_link = False
    link_top = 0  # depth at which the link was opened
    bold = 0
    code = 0  # open <code>
    pre_top = -1  # depth of the outermost element that keeps white space; -1: none
    line_due = False  # in code, a line ended without a line break yet
    line_start = 0
    after_break = False  # the last thing was a <br>
    atom_at = -1  # end of the last atom
    atom_soft = False  # the last atom may be replaced by a better source of the same formula
    # a subtree that is passed over
    skip_hash = np.uint64(0)
    skip_depth = 0
    skip_math = False
    no_quote = np.zeros(2, np.uint8)  # nothing more of this kind comes
    no_comment_end = False
    no_end = np.zeros(OTHER + 1, np.uint8)

    i = 0
    while True:
        flush = False
        # ---------------------------------------------------------------- text
        if i < n and skip_depth == 0:
            keep = pre_top >= 0
            while i < n:
                c = src[i]
                if not keep and BYTES[c] & PLAIN:
                    if space:
                        if o > start and text[o - 1] != 10:
                            text[o] = 32
                            o += 1
                        space = False
                    after_break = False
                    first = i
                    while BYTES[c] & PLAIN:  # the padding isn't
                        text[o] = c
                        o += 1
                        i += 1
                        c = src[i]
                    chars += i - first
                    if in_link:
                        link_chars += i - first
                    if bold:
                        bold_chars += i - first
                    continue
                if c < 128:
                    if c == 60:
                        d = src[i + 1]
                        if BYTES[d] & LETTER or d == 47 or d == 33 or d == 63:
                            break
                        i += 1
                        point = np.int64(60)
                    elif c == 38:
                        size = _entity(src, n, i, points)
                        if size:
                            i += size
                            point = points[0]
                        else:
                            i += 1
                            point = np.int64(38)
                    else:
                        i += 1
                        point = np.int64(c)
                    size = 1
                elif c < 0xE0:
                    point = (np.int64(c & 31) << 6) | np.int64(src[i + 1] & 63)
                    i += 2
                elif c < 0xF0:
                    point = (
                        (np.int64(c & 15) << 12)
                        | (np.int64(src[i + 1] & 63) << 6)
                        | np.int64(src[i + 2] & 63)
                    )
                    i += 3
                else:
                    point = (
                        (np.int64(c & 7) << 18)
                        | (np.int64(src[i + 1] & 63) << 12)
                        | (np.int64(src[i + 2] & 63) << 6)
                        | np.int64(src[i + 3] & 63)
                    )
                    i += 4
                while True:
                    white = False
                    drop = False
                    if point <= 32:
                        white = point == 32 or (9 <= point <= 13)
                        drop = not white
                    elif point >= 127:
                        if point < 0xB0:
                            white = point == 0xA0 or point == 0x85
                            drop = point < 0xA0 or point == 0xAD
                        elif 0x2000 <= point <= 0x2064:
                            white = point <= 0x200A or point == 0x2028 or point == 0x2029
                            white = white or point == 0x202F or point == 0x205F
                            drop = point == 0x200B or point >= 0x2060
                        elif point == 0x3000:
                            white = True
                        elif point >= 0xFFF9 and (point <= 0xFFFB):
                            drop = True
                        elif point == 0xFEFF or 0xFDD0 <= point <= 0xFDEF:
                            drop = True
                        elif 0xD800 <= point <= 0xDFFF:
                            drop = True
                    if white:
                        if keep:
                            if point == 10 or point == 0x2028 or point == 0x2029 or point == 0x85:
                                text[o] = 10
                                o += 1
                                line_due = False
                                line_start = o
                            elif point == 13:
                                if src[i] != 10:
                                    text[o] = 10
                                    o += 1
                                    line_due = False
                                    line_start = o
                            else:
                                if line_due:
                                    text[o] = 10
                                    o += 1
                                    line_due = False
                                    line_start = o
                                text[o] = 9 if point == 9 else 32
                                o += 1
                        elif code > 0 and point == 0xA0:
                            if space and o > start:
                                text[o] = 32
                                o += 1
                                space = False
                            text[o] = 32
                            o += 1
                        else:
                            space = True
                    elif not drop:
                        if keep:
                            if line_due:
                                text[o] = 10
                                o += 1
                                line_due = False
                                line_start = o
                        elif space:
                            if o > start and text[o - 1] != 10:
                                text[o] = 32
                                o += 1
                            space = False
                        if after_break:
                            after_break = False
                        if point < 128:
                            text[o] = point
                            o += 1
                        else:
                            o = _put(text, o, point)
                        chars += 1
                        if in_link:
                            link_chars += 1
                        if bold:
                            bold_chars += 1
                    if c == 38 and points[1] != 0:
                        point = points[1]
                        points[1] = 0
                        continue
                    break
        elif i < n:
            i = min(n, _next(src, words, i, n, 60, _OPEN))
        ended = i >= n
        # ---------------------------------------------------------------- markup
        opening = False
        name_hash = np.uint64(0)
        tag = OTHER
        at = i
        end_tag = False
        self_closing = False
        is_markup = False
        if not ended:
            d = src[i + 1]
            if d == 33:  # '!'
                if src[i + 2] == 45 and src[i + 3] == 45:
                    j = i + 4
                    if src[j] == 62:
                        i = j + 1
                        continue
                    j = i + 2
                    found = False
                    if not no_comment_end:
                        while j + 2 < n:
                            j = _next(src, words, j + 1, n, 45, _DASH)
                            if src[j] == 45 and src[j + 1] == 45 and j + 1 < n:
                                k = j + 2
                                if src[k] == 33:
                                    k += 1
                                if src[k] == 62 and k < n:
                                    i = k + 1
                                    found = True
                                    break
                        no_comment_end = not found
                    if not found:  # an unclosed comment ends at the next '>'
                        while i < n and src[i] != 62:
                            i += 1
                        i = min(n, i + 1)
                    continue
                if skip_depth == 0 and src[i + 2] == 91 and _contains(src, i + 3, i + 9, _CDATA):
                    i += 9  # the text of a CDATA section counts, its brackets don't
                    continue
                while i < n and src[i] != 62:
                    i += 1
                i = min(n, i + 1)
                continue
            if d == 63:
                while i < n and src[i] != 62:
                    i += 1
                i = min(n, i + 1)
                continue
            j = i + 1
            if d == 47:
                end_tag = True
                j += 1
                if not BYTES[src[j]] & LETTER:
                    while i < n and src[i] != 62:
                        i += 1
                    i = min(n, i + 1)
                    continue
            elif not BYTES[d] & LETTER:
                i += 1
                continue
            is_markup = True
            name_start = j
            name_hash = FNV_START
            while j < n and not BYTES[src[j]] & NAME_END:
                name_hash = (name_hash ^ np.uint64(LOWER[src[j]])) * FNV_PRIME
                j += 1
            name_end = j
            tag = find(TAG_KEYS, TAG_VALUES, name_hash)
            if tag < 0:
                tag = OTHER
            opening = not end_tag
            # attributes
            av_start[:] = -1
            while j < n and src[j] != 62:
                c = src[j]
                if BYTES[c] & SPACE or c == 47:
                    self_closing = c == 47 and src[j + 1] == 62
                    j += 1
                    continue
                h = FNV_START
                attribute_start = j
                while j < n and (
                    not (BYTES[src[j]] & NAME_END or src[j] == 61) or j == attribute_start
                ):
                    h = (h ^ np.uint64(LOWER[src[j]])) * FNV_PRIME
                    j += 1
                k = j
                while k < n and BYTES[src[k]] & SPACE:
                    k += 1
                value_start = j
                value_end = j
                if k < n and src[k] == 61:
                    j = k + 1
                    while j < n and BYTES[src[j]] & SPACE:
                        j += 1
                    q = src[j]
                    if q == 34 or q == 39:
                        which = 0 if q == 34 else 1
                        j += 1
                        value_start = j
                        if no_quote[which]:
                            j = n
                        else:
                            while j < n and src[j] != q:
                                j += 1
                        value_end = j
                        if j >= n:  # an unclosed quote ends with its tag
                            no_quote[which] = 1
                            j = value_start
                            while j < n and src[j] != 62:
                                j += 1
                            value_end = j
                        else:
                            j += 1
                    else:
                        value_start = j
                        while j < n and src[j] != 62 and not BYTES[src[j]] & SPACE:
                            j += 1
                        value_end = j
                if opening:
                    which = find(ATTRIBUTE_KEYS, ATTRIBUTE_VALUES, h)
                    if which < 0 and (h == _LANG_HASH or h == _XML_LANG_HASH):
                        which = _AT_LANG
                    if which >= 0 and av_start[which] < 0:
                        av_start[which] = value_start
                        av_end[which] = value_end
            i = min(n, j + 1)
            if av_start[_AT_ITEMTYPE] >= 0 and _contains(
                src, av_start[_AT_ITEMTYPE], av_end[_AT_ITEMTYPE], _QA_PAGE
            ):
                facts[QUESTIONS] = 1

            if tag > LAST_BLOCK and tag <= LAST_SKIPPED:
                if end_tag:
                    continue
                stop = -1
                if not self_closing or tag == _SCRIPT or tag == _TITLE:
                    stop = _end_of(src, words, n, i, name_start, name_end, no_end, tag)
                if stop < 0:
                    if tag == _TITLE and facts[TITLE] == 0:  # an unclosed title ends at a tag
                        stop = i
                        while stop < n and src[stop] != 60:
                            stop += 1
                    else:
                        continue
                inner = i
                i = stop
                if tag == _TITLE:
                    if facts[TITLE] == 0:
                        facts[TITLE] = inner
                        facts[TITLE + 1] = stop
                elif tag == _SCRIPT and av_start[_AT_TYPE] >= 0:
                    ts = av_start[_AT_TYPE]
                    te = av_end[_AT_TYPE]
                    if _contains(src, ts, te, _MATH_TYPE) and (skip_depth == 0 or skip_math):
                        kind = TEX_INLINE
                        if _contains(src, ts, te, _MML):
                            kind = SCRIPT_MATHML
                        elif _contains(src, ts, te, _ASCII):
                            kind = ASCIIMATH
                        elif _contains(src, ts, te, _DISPLAY):
                            kind = TEX_DISPLAY
                        if na > 0 and atom_soft and atom_at == o and a_at[na - 1] >= start:
                            na -= 1
                            atoms -= 1
                        if na >= nodes - 1:
                            status = STATUS_TOO_MANY
                            break
                        if space and o > start:
                            text[o] = 32
                            o += 1
                        space = False
                        a_at[na] = o
                        a_kind[na] = kind
                        a_start[na] = inner
                        a_end[na] = stop
                        na += 1
                        atoms += 1
                        atom_at = o
                        atom_soft = False
                    elif _contains(src, ts, te, _LD_JSON) and linked < MAX_LINKED_DATA:
                        facts[LINKED_DATA + 2 * linked] = inner
                        facts[LINKED_DATA + 2 * linked + 1] = stop
                        linked += 1
                continue

            if tag == _NOSCRIPT and skip_depth == 0:
                if end_tag:
                    if open_count[_NOSCRIPT] == 0:
                        continue
                else:
                    stop = _end_of(src, words, n, i, name_start, name_end, no_end, tag)
                    if stop < 0:
                        continue
                    if stop - i < _LONG_NOSCRIPT:
                        i = stop
                        continue

            if skip_depth > 0:
                if name_hash == skip_hash and not self_closing:
                    skip_depth += -1 if end_tag else 1
                    continue
                if not (skip_math and tag == _MATH and opening):
                    continue

            if tag == _MATH:
                if end_tag:
                    continue
                stop = _end_of(src, words, n, i, name_start, name_end, no_end, tag)
                if stop < 0:
                    continue
                if na >= nodes - 1:
                    status = STATUS_TOO_MANY
                    break
                soft = skip_depth > 0 and skip_hash != np.uint64(0)
                if na > 0 and atom_soft and atom_at == o and a_at[na - 1] >= start:
                    na -= 1
                    atoms -= 1
                if space and o > start:
                    text[o] = 32
                    o += 1
                space = False
                a_at[na] = o
                a_kind[na] = MATHML
                a_start[na] = at
                a_end[na] = stop
                na += 1
                atoms += 1
                atom_at = o
                atom_soft = soft
                i = stop
                continue

            if tag == OTHER and opening and name_hash == _META_HASH:
                if av_start[_AT_CONTENT] >= 0:
                    key = np.uint64(0)
                    if av_start[_AT_PROPERTY] >= 0:
                        key = _hash_lower(src, av_start[_AT_PROPERTY], av_end[_AT_PROPERTY])
                    elif av_start[_AT_NAME] >= 0:
                        key = _hash_lower(src, av_start[_AT_NAME], av_end[_AT_NAME])
                    if key == _OG_TYPE_HASH and facts[OG_TYPE] == 0:
                        facts[OG_TYPE] = av_start[_AT_CONTENT]
                        facts[OG_TYPE + 1] = av_end[_AT_CONTENT]
                    elif key == _GENERATOR_HASH and facts[GENERATOR] == 0:
                        facts[GENERATOR] = av_start[_AT_CONTENT]
                        facts[GENERATOR + 1] = av_end[_AT_CONTENT]
                continue

        # ---------------------------------------------------------------- element
        block_tag = is_markup and tag <= LAST_BLOCK
        mark = np.int64(-1)
        first_token = nt
        keeps_space = False
        extra_above = 0
        if is_markup and opening:
            # what its attributes say
            token_limit = min(len(tokens), nt + _TOKENS_PER_ELEMENT)
            if av_start[_AT_CLASS] >= 0:
                nt, mark = _class_tokens(
                    src, av_start[_AT_CLASS], av_end[_AT_CLASS], _DOT, tokens, nt, token_limit
                )
            if block_tag and av_start[_AT_ID] >= 0:
                nt, _ = _class_tokens(
                    src, av_start[_AT_ID], av_end[_AT_ID], _SHARP, tokens, nt, token_limit
                )
            hidden = False
            rendered = False
            if tag != _BODY and tag != _HTML:
                if av_start[_AT_HIDDEN] >= 0:
                    hidden = (
                        _hash_lower(src, av_start[_AT_HIDDEN], av_end[_AT_HIDDEN])
                        != _UNTIL_FOUND_HASH
                    )
                if av_start[_AT_ARIA] >= 0:
                    hidden = (
                        hidden
                        or _hash_lower(src, av_start[_AT_ARIA], av_end[_AT_ARIA]) == _TRUE_HASH
                    )
                if av_start[_AT_STYLE] >= 0:
                    style = _style(src, av_start[_AT_STYLE], av_end[_AT_STYLE])
                    hidden = hidden or style == 1
                    keeps_space = style == 2 and block_tag
                if keep_hidden or tag == _MAIN or tag == _ARTICLE:
                    hidden = False
                if hidden and block_tag and pre_top < 0:
                    # Scripts open panels, accordions and whole pages: the model decides.
                    hidden = False
                    extra_above = _HIDDEN
                if mark == MARK_GUTTER:
                    if block_tag and pre_top < 0:
                        extra_above |= _GUTTER  # or a column of the layout, which has words
                    else:
                        # Prism names the listing itself so, others its gutter.
                        hidden = hidden or not (tag == _PRE or tag == _CODE or tag == _TABLE)
                elif mark == MARK_COPY:
                    hidden = hidden or pre_top >= 0
                elif mark == MARK_SCREEN_READER:
                    hidden = hidden or not block_tag
                elif mark == MARK_RENDERED:
                    # "mathjax" on a block asks for formulas to be drawn in it.
                    rendered = not block_tag or not _has_name(
                        src, av_start[_AT_CLASS], av_end[_AT_CLASS], _MATHJAX
                    )
                elif mark == MARK_CODE:
                    keeps_space = keeps_space or block_tag
                elif mark == MARK_CODE_CELL:
                    keeps_space = keeps_space or tag == _TD
            if rendered:
                # The drawing of a formula: its source stands before it (KaTeX) or behind (MathJax).
                first = LOWER[src[av_start[_AT_CLASS]]]
                if av_start[_AT_MATHML] >= 0 and na < nodes - 1:
                    if space and o > start:
                        text[o] = 32
                        o += 1
                    space = False
                    a_at[na] = o
                    a_kind[na] = DATA_MATHML
                    a_start[na] = av_start[_AT_MATHML]
                    a_end[na] = av_end[_AT_MATHML]
                    na += 1
                    atoms += 1
                    atom_at = o
                    atom_soft = True
                elif first == 107 and atom_at != o:  # katex-html alone
                    rendered = False
                hidden = hidden or rendered
            if hidden and not self_closing:
                if tag != _BR and tag != _IMG and tag != _INPUT and tag != _WBR and tag != _HR:
                    skip_hash = name_hash
                    skip_depth = 1
                    skip_math = not block_tag or rendered
                    nt = first_token
                    continue
                if tag != _BR:
                    continue
            if tag == _HTML or tag == _BODY:
                if tag == _HTML and av_start[_AT_LANG] >= 0 and facts[LANGUAGE] == 0:
                    facts[LANGUAGE] = av_start[_AT_LANG]
                    facts[LANGUAGE + 1] = av_end[_AT_LANG]
                if tag == _BODY and nt > first_token and e_tokens[1] == 0 and ne == 1:
                    e_tokens[1] = nt
                else:
                    nt = first_token
                continue

        # ---------------------------------------------------------------- inline
        if is_markup and not block_tag:
            nt = first_token
            if opening:
                if tag == _BR:
                    if pre_top >= 0:
                        text[o] = 10
                        o += 1
                        line_due = False
                        line_start = o
                    elif code > 0:
                        text[o] = 10
                        o += 1
                        space = False
                    elif after_break:
                        flush = True
                    else:
                        space = False
                        if o > start:
                            if text[o - 1] != 10:
                                text[o] = 10
                                o += 1
                            flags |= HAS_BREAK
                        after_break = True
                    if not flush:
                        continue
                elif tag == _IMG:
                    alt = av_start[_AT_ALT]
                    if alt >= 0 or mark == MARK_FORMULA or av_start[_AT_SRC] >= 0:
                        ss = av_start[_AT_SRC]
                        se = av_end[_AT_SRC] if ss >= 0 else ss
                        ae = av_end[_AT_ALT] if alt >= 0 else alt
                        if (
                            (mark == MARK_FORMULA or _formula_image(src, alt, ae, ss, se))
                            and na < nodes - 1
                            and atom_at != o
                        ):
                            if space and o > start:
                                text[o] = 32
                                o += 1
                            space = False
                            a_at[na] = o
                            if ae > alt:
                                a_kind[na] = IMAGE_ALT
                                a_start[na] = alt
                                a_end[na] = ae
                            else:
                                a_kind[na] = IMAGE_SOURCE
                                a_start[na] = max(ss, 0)
                                a_end[na] = max(se, 0)
                            na += 1
                            atoms += 1
                            atom_at = o
                            atom_soft = False
                    continue
                elif tag == _WBR or tag == _INPUT:
                    continue
                else:
                    tags += 1
                    if tag == _A:
                        if av_start[_AT_HREF] >= 0:
                            if not in_link:
                                links += 1
                            in_link = True
                            link_top = top
                    elif tag == _B or tag == _STRONG:
                        bold += 1
                    elif tag == _CODE and pre_top < 0:
                        if code == 0 and na < nodes - 1:
                            if space and o > start:
                                text[o] = 32
                                o += 1
                            space = False
                            a_at[na] = o
                            a_kind[na] = CODE_ON
                            a_start[na] = 0
                            a_end[na] = 0
                            na += 1
                        code += 1
                    continue
            else:
                if tag == _A:
                    in_link = False
                elif (tag == _B or tag == _STRONG) and bold > 0:
                    bold -= 1
                elif tag == _CODE and code > 0:
                    code -= 1
                    if code == 0 and na < nodes - 1:
                        a_at[na] = o
                        a_kind[na] = CODE_OFF
                        a_start[na] = 0
                        a_end[na] = 0
                        na += 1
                elif tag == _BR:
                    space = True
                continue

        # ---------------------------------------------------------------- inside code: lines
        if block_tag and pre_top >= 0:
            closes_pre = False
            if end_tag:
                # Only the end of the element itself, or of one around it, ends the code.
                k = top
                while k > pre_top and stack_tag[k] != tag:
                    k -= 1
                if over == 0 and stack_tag[k] != tag and open_count[tag] > 0:
                    closes_pre = True
                elif k == pre_top and stack_tag[k] == tag and over == 0:
                    closes_pre = True
                if tag == _P or tag == _HR:
                    closes_pre = False
            elif tag == _PRE and stack_tag[pre_top] == _PRE and top == pre_top:
                closes_pre = True  # <pre> inside <pre>: the first was not closed
            if not closes_pre:
                nt = first_token
                if opening:
                    if line_due or o > line_start:
                        text[o] = 10
                        o += 1
                        line_start = o
                    line_due = False
                    if tag != _HR and not self_closing and top < max_depth:
                        top += 1
                        stack_tag[top] = tag
                        stack_element[top] = element
                        stack_at[top] = o
                        open_count[tag] += 1
                    elif tag != _HR:
                        over += 1
                else:
                    opened = np.int64(-1)
                    if over > 0:
                        over -= 1
                    else:
                        k = top
                        while k > pre_top and stack_tag[k] != tag:
                            k -= 1
                        if k > pre_top:
                            opened = stack_at[k]
                            while top >= k:
                                open_count[stack_tag[top]] -= 1
                                top -= 1
                    if not (0 <= opened < o and text[o - 1] == 10):
                        line_due = o > start
                continue

        # ---------------------------------------------------------------- close the block
        if block_tag or flush or ended:
            if chars > 0 or atoms > 0:
                if nb >= nodes - 1:
                    status = STATUS_TOO_MANY
                    break
                e = o
                while e > start and (text[e - 1] == 10 or text[e - 1] == 32):
                    e -= 1
                b_start[nb] = start
                b_end[nb] = e
                b_element[nb] = element
                b_chars[nb] = chars
                b_link_chars[nb] = link_chars
                b_links[nb] = links
                b_tags[nb] = tags
                b_bold[nb] = bold_chars
                b_atoms[nb] = atoms
                if pre_top >= 0:
                    flags |= PRE
                if in_link:
                    flags |= IN_LINK
                b_flags[nb] = flags
                nb += 1
                o = e
                text[o] = 10
                o += 1
            else:
                o = start
                while na > 0 and a_at[na - 1] >= start and a_kind[na - 1] < CODE_ON:
                    na -= 1
            for k in range(na - 1, -1, -1):  # atoms behind trimmed white space
                if a_at[k] < o:
                    break
                a_at[k] = max(start, o - 1)
            start = o
            line_start = o
            line_due = False
            chars = 0
            link_chars = 0
            links = 1 if in_link else 0
            tags = 0
            bold_chars = 0
            atoms = 0
            space = False
            atom_at = -1
            flags = CONTINUED if flush else 0
            after_break = False
            if ended:
                break
            if flush:
                continue
            bold = 0

        # ---------------------------------------------------------------- the stack
        if opening:
            if tag == _HR:
                nt = first_token
                continue
            # implied end tags
            if over == 0 and top > 0:
                if stack_tag[top] == _P:
                    open_count[_P] -= 1
                    top -= 1
                target = -1
                if tag == _LI and open_count[_LI] > 0:
                    k = top
                    while k > 0 and (stack_tag[k] == _P or stack_tag[k] == _DIV):
                        k -= 1
                    if stack_tag[k] == _LI:
                        target = k
                elif tag == _DD or tag == _DT:
                    k = top
                    while k > 0 and (stack_tag[k] == _P or stack_tag[k] == _DIV):
                        k -= 1
                    if stack_tag[k] == _DD or stack_tag[k] == _DT:
                        target = k
                elif _H1 <= tag <= _H6:
                    if _H1 <= stack_tag[top] <= _H6:
                        target = top
                elif tag == _TD or tag == _TH:
                    k = top
                    steps = 0
                    while k > 0 and stack_tag[k] != _TABLE and stack_tag[k] != _TR:
                        if stack_tag[k] == _TD or stack_tag[k] == _TH:
                            target = k
                        k -= 1
                        steps += 1
                        if steps > _STEPS:
                            break
                    if stack_tag[k] != _TR and stack_tag[k] != _TABLE:
                        target = -1
                elif tag == _TR or tag == _TBODY or tag == _THEAD or tag == _TFOOT:
                    k = top
                    steps = 0
                    while k > 0 and stack_tag[k] != _TABLE:
                        t = stack_tag[k]
                        if t == _TR or t == _TD or t == _TH or t == _CAPTION:
                            target = k
                        elif tag != _TR and (t == _TBODY or t == _THEAD or t == _TFOOT):
                            target = k
                        k -= 1
                        steps += 1
                        if steps > _STEPS:
                            break
                    if stack_tag[k] != _TABLE:
                        target = -1
                elif tag == _BUTTON and stack_tag[top] == _BUTTON:
                    target = top
                if target >= 0:
                    while top >= target:
                        open_count[stack_tag[top]] -= 1
                        top -= 1
                element = stack_element[top]
                if in_link and top < link_top:
                    in_link = False
                    links = 0
            if self_closing and (tag == _DIV or tag == _P or tag == _LI):
                self_closing = False  # HTML doesn't know it; XHTML that does writes empty ones
            if top >= max_depth:
                over += 1
                nt = first_token
                continue
            if ne >= nodes - 1:
                status = STATUS_TOO_MANY
                break
            e_parent[ne] = element
            e_tag[ne] = tag
            e_depth[ne] = top + 1
            e_above[ne] = e_above[element] | ANCESTOR_OF_TAG[tag] | extra_above
            bits = 0
            if av_start[_AT_ROLE] >= 0:
                value = find(
                    _VALUE_KEYS,
                    _VALUE_VALUES,
                    _hash_lower(src, av_start[_AT_ROLE], av_end[_AT_ROLE]),
                )
                if value > 0 and (value <= FLAG_SIDE or value == FLAG_PANEL):
                    bits |= value
            if av_start[_AT_PROP] >= 0:
                value = find(
                    _VALUE_KEYS,
                    _VALUE_VALUES,
                    _hash_lower(src, av_start[_AT_PROP], av_end[_AT_PROP]),
                )
                bits |= value if value > FLAG_SIDE else FLAG_PROPERTY
            e_flags[ne] = bits
            sig = (FNV_START ^ np.uint64(tag)) * FNV_PRIME
            if av_start[_AT_CLASS] >= 0:
                e_class[ne, 0] = av_start[_AT_CLASS]
                e_class[ne, 1] = av_end[_AT_CLASS]
                for k in range(av_start[_AT_CLASS], av_end[_AT_CLASS]):
                    sig = (sig ^ np.uint64(src[k])) * FNV_PRIME
            e_sig[ne] = sig
            e_tokens[ne + 1] = nt
            element = ne
            ne += 1
            top += 1
            stack_tag[top] = tag
            stack_element[top] = element
            open_count[tag] += 1
            if pre_top < 0 and (keeps_space or tag == _PRE or tag == _LISTING or tag == _XMP):
                pre_top = top
                code = 0
                if i < n and src[i] == 13:
                    i += 1
                if i < n and src[i] == 10:
                    i += 1  # the first line break of <pre> doesn't count
        else:
            nt = first_token
            if over > 0:
                over -= 1
            elif open_count[tag] > 0 or _H1 <= tag <= _H6:
                table_part = (
                    tag == _TABLE
                    or tag == _TR
                    or tag == _TD
                    or tag == _TH
                    or tag == _TBODY
                    or tag == _THEAD
                    or tag == _TFOOT
                )
                heading = _H1 <= tag <= _H6
                k = top
                steps = 0
                while k > 0 and steps < _STEPS:
                    t = stack_tag[k]
                    if t == tag or (heading and _H1 <= t <= _H6):
                        break
                    if table_part:
                        if t == _TABLE:
                            k = 0
                            break
                    elif t == _TD or t == _TH or t == _TABLE or t == _CAPTION:
                        k = 0
                        break
                    if tag == _LI and (t == _UL or t == _OL):
                        k = 0
                        break
                    k -= 1
                    steps += 1
                if k > 0 and steps < _STEPS:
                    while top >= k:
                        open_count[stack_tag[top]] -= 1
                        top -= 1
            element = stack_element[top]
            if top < pre_top:
                pre_top = -1
            if in_link and top < link_top and (tag == _TD or tag == _TABLE or tag == _TR):
                in_link = False
                links = 0
    if status == STATUS_OK and skip_depth > 0:
        status = STATUS_UNCLOSED_HIDDEN
    return (
        status,
        text[:o],
        b_start[:nb],
        b_end[:nb],
        b_element[:nb],
        b_chars[:nb],
        b_link_chars[:nb],
        b_links[:nb],
        b_tags[:nb],
        b_bold[:nb],
        b_atoms[:nb],
        b_flags[:nb],
        e_parent[:ne],
        e_tag[:ne],
        e_depth[:ne],
        e_above[:ne],
        e_flags[:ne],
        e_sig[:ne],
        e_tokens[: ne + 1],
        e_class[:ne],
        tokens[:nt],
        a_at[:na],
        a_kind[:na],
        a_start[:na],
        a_end[:na],
        facts,
    )


_CDATA = np.frombuffer(b"cdata[", np.uint8)
_MATHJAX = np.frombuffer(b"mathjax", np.uint8)
_PADDING = 16  # bytes at least, so that looking ahead needs no care


def scan(content: bytes, max_depth: int, max_nodes: int, keep_hidden: bool = False) -> Page:
    """Scan a page, UTF-8 without a byte order mark.

    `keep_hidden` treats hidden elements as visible. The status is STATUS_TOO_MANY when the page
    has more than `max_nodes` elements, blocks or formulas, and STATUS_UNCLOSED_HIDDEN when a hidden
    element ran to the end of the page.
    """
    padded = content + bytes(_PADDING + -len(content) % 8)
    source, words = np.frombuffer(padded, np.uint8), np.frombuffer(padded, np.uint64)
    parts: tuple[Any, ...] = _scan(source, words, len(content), max_depth, max_nodes, keep_hidden)
    return Page(*parts)
