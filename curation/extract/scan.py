"""One compiled pass from the bytes of a page to blocks of text and the elements that hold them.

No tree is built. A stack of open block elements, with the implied end tags of HTML, says what a run
of text stands in; inline elements are looked at and forgotten. A block is a run of inline text
directly under one block element. The pass is linear in the bytes, keeps at most `max_depth` open
elements (deeper ones are flattened into their ancestors) and at most `max_nodes` elements, blocks
or formulas; no input makes it fail.

`lexing` reads bytes, `said` what attributes say, `flow` makes blocks of text, `nesting` keeps the
stack; here is the loop over the tags.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.compiled import borrowing, inlined, kernel
from curation.extract.attributes import (
    KNOWN,
    KNOWN_ROWS,
    KNOWN_TOKENS,
    class_hash,
    formula_image,
    kinds,
    names,
    visibility,
)
from curation.extract.blocks import (
    ASCIIMATH,
    DATA_JSON,
    DATA_MATHML,
    FACTS,
    GENERATOR,
    HTML_DISPLAY,
    HTML_INLINE,
    IMAGE,
    KATEX_DISPLAY,
    KATEX_INLINE,
    LANGUAGE,
    LINKED_DATA,
    MATHML,
    MAX_LINKED_DATA,
    OG_TITLE,
    OG_TYPE,
    QUESTIONS,
    SCRIPT_MATHML,
    STATUS_OK,
    STATUS_TOO_MANY,
    STATUS_UNCLOSED_HIDDEN,
    TEX_DISPLAY,
    TEX_INLINE,
    TITLE,
    Page,
)
from curation.extract.flow import (
    A_AT,
    A_END,
    A_KIND,
    A_START,
    ATOM_AT,
    ATOM_SOFT,
    ATOMS,
    B_BOLD,
    B_CHARS,
    B_ELEMENT,
    B_END,
    B_FLAGS,
    B_FORMULAS,
    B_LINK_CHARS,
    B_LINKS,
    B_START,
    B_TAGS,
    BLOCKS,
    BOLD,
    CODE,
    DRAWN_AT,
    DRAWN_KIND,
    ELEMENT,
    ELEMENTS,
    ENDED,
    LENGTH,
    LINE_AT,
    LINKED_SCRIPTS,
    OVER,
    PRE_TOP,
    SKIP_DEPTH,
    SKIP_MATH,
    SLOTS,
    STATED,
    TOKENS,
    TOP,
    TYPED_TOP,
    alternative,
    class_of_code,
    close_block,
    drop_soft,
    formula,
    has_room,
    inline_end,
    inline_start,
    keep_apart,
    line_break,
    line_element,
    picture_of_sign,
    run_of_text,
    script,
    verbatim,
)
from curation.extract.lexing import (
    AT_LANGUAGE,
    ATTRIBUTES,
    NEVER,
    OPEN,
    attributes,
    contains,
    count_open,
    end_of,
    has_name,
    hash_lower,
    is_tag,
    next_byte,
    passed_over,
    stands_at,
    tag_name,
)
from curation.extract.markup import (
    ANCESTOR_OF_TAG,
    ATTRIBUTE,
    BYTES,
    FNV_PRIME,
    LAST_BLOCK,
    LAST_SKIPPED,
    LETTER,
    LOWER,
    MARK_CODE_CELL,
    MARK_FORMULA,
    MARK_FRAGMENT,
    MARK_LINE,
    OTHER,
    TAG,
    TAG_KEYS,
    TAG_VALUES,
    find,
    fnv,
)
from curation.extract.nesting import (
    end_element,
    end_implied,
    ends_code,
    line_of_code,
    push,
)

_IMG, _BR, _WBR, _INPUT, _MATH = TAG["img"], TAG["br"], TAG["wbr"], TAG["input"], TAG["math"]
_HR, _HTML, _BODY = TAG["hr"], TAG["html"], TAG["body"]
_BUTTON, _P, _CODE, _SUP = TAG["button"], TAG["p"], TAG["code"], TAG["sup"]
_SUB, _SPAN, _TEX_MATH, _DIV = TAG["sub"], TAG["span"], TAG["tex-math"], TAG["div"]
_SVG, _TEXTAREA, _TD, _TH = TAG["svg"], TAG["textarea"], TAG["td"], TAG["th"]
_PRE, _LISTING, _XMP = TAG["pre"], TAG["listing"], TAG["xmp"]
_SCRIPT, _TITLE, _NOSCRIPT = TAG["script"], TAG["title"], TAG["noscript"]
_AT_CLASS, _AT_HREF, _AT_ALT = ATTRIBUTE["class"], ATTRIBUTE["href"], ATTRIBUTE["alt"]
_AT_SRC, _AT_TYPE, _AT_MATHML = ATTRIBUTE["src"], ATTRIBUTE["type"], ATTRIBUTE["data-mathml"]
_AT_PROPERTY, _AT_NAME = ATTRIBUTE["property"], ATTRIBUTE["name"]
_AT_CONTENT, _AT_ITEMTYPE = ATTRIBUTE["content"], ATTRIBUTE["itemtype"]
_AT_LATEX, _AT_TEX, _AT_LABEL = (
    ATTRIBUTE["data-latex"],
    ATTRIBUTE["data-tex"],
    ATTRIBUTE["aria-label"],
)
_AT_DATA, _AT_READONLY = ATTRIBUTE["data-attrs"], ATTRIBUTE["readonly"]
_AT_LINE, _AT_HIDDEN, _AT_ID = ATTRIBUTE["data-line"], ATTRIBUTE["hidden"], ATTRIBUTE["id"]
_META_HASH = np.uint64(fnv(b"meta"))
_OG_TYPE_HASH, _GENERATOR_HASH = np.uint64(fnv(b"og:type")), np.uint64(fnv(b"generator"))
_OG_TITLE_HASH = np.uint64(fnv(b"og:title"))
_MATH_TYPE, _DISPLAY = np.frombuffer(b"math/", np.uint8), np.frombuffer(b"display", np.uint8)
_MML, _ASCII = np.frombuffer(b"mml", np.uint8), np.frombuffer(b"ascii", np.uint8)
_QA_PAGE = np.frombuffer(b"schema.org/qapage", np.uint8)
_LD_JSON = np.frombuffer(b"ld+json", np.uint8)
_COLON_MATH = np.frombuffer(b":math", np.uint8)
_MJX_MATH = np.frombuffer(b"mjx-math", np.uint8)
_DATA_LATEX = np.frombuffer(b'data-latex="', np.uint8)
_EXPRESSION = np.frombuffer(b"persistentexpression", np.uint8)
_OF_DISPLAY, _IN_DISPLAY, _DISPLAYED = (
    np.frombuffer(word, np.uint8) for word in (b"_display", b"-display", b'display="true"')
)
_KATEX_SHOWN = np.frombuffer(b"katex-display", np.uint8)
_KATEX_MATHML = np.frombuffer(b"katex-mathml", np.uint8)
_TITLE_TAG = np.frombuffer(b"<title", np.uint8)
_LINE_DIV = np.frombuffer(b'<div class="line"', np.uint8)
_CURSOR = np.frombuffer(b"read-only-cursor", np.uint8)  # GitHub's, over the code that it shows
_COLSPAN, _ROWSPAN = np.frombuffer(b"colspan=", np.uint8), np.frombuffer(b"rowspan=", np.uint8)
_RENDER_MATH = np.frombuffer(b"js-render-math", np.uint8)  # GitLab
_CODE_TAG, _CODE_END = np.frombuffer(b"<code", np.uint8), np.frombuffer(b"</code", np.uint8)
_MOST_SPAN = 1000  # columns (HTML standard); rows are as limited here
_TEX_BYTES = 2000  # of an element that has nothing but a formula
_ABOVE = 80  # bytes before a drawing, where the element around it begins
_EMOJI = np.frombuffer(b"emoji", np.uint8)
_SIGN_BYTES = 40  # of a sign with its selectors and joiners
_TOKENS_ROOM = 32  # class tokens for each element that there is room for
_PADDING = 16  # bytes at least, so that looking ahead needs no care


@borrowing
def _note(facts, slot, start, end):  # type: ignore[no-untyped-def]
    """Keep the first span of the source that says a fact."""
    if facts[slot] == 0:
        facts[slot] = start
        facts[slot + 1] = end


@borrowing
def _meta(src, av_start, av_end, facts):  # type: ignore[no-untyped-def]
    """What a <meta> says of the page."""
    if av_start[_AT_CONTENT] < 0:
        return
    which = _AT_PROPERTY if av_start[_AT_PROPERTY] >= 0 else _AT_NAME
    if av_start[which] < 0:
        return
    key = hash_lower(src, av_start[which], av_end[which])
    if key == _OG_TYPE_HASH:
        _note(facts, OG_TYPE, av_start[_AT_CONTENT], av_end[_AT_CONTENT])
    elif key == _OG_TITLE_HASH:
        _note(facts, OG_TITLE, av_start[_AT_CONTENT], av_end[_AT_CONTENT])
    elif key == _GENERATOR_HASH:
        _note(facts, GENERATOR, av_start[_AT_CONTENT], av_end[_AT_CONTENT])


@borrowing
def _script(src, av_start, av_end, start, end, text, atoms, facts, now):  # type: ignore[no-untyped-def]
    """A script may be the source of a formula, or linked data. False: too many formulas."""
    if av_start[_AT_TYPE] < 0:
        return True
    first = av_start[_AT_TYPE]
    last = av_end[_AT_TYPE]
    if contains(src, first, last, _MATH_TYPE) and (now[SKIP_DEPTH] == 0 or now[SKIP_MATH]):
        kind = TEX_INLINE
        if contains(src, first, last, _MML):
            kind = SCRIPT_MATHML
        elif contains(src, first, last, _ASCII):
            kind = ASCIIMATH
        elif contains(src, first, last, _DISPLAY):
            kind = TEX_DISPLAY
        drop_soft(atoms, now)
        if not has_room(atoms, now):
            return False
        formula(text, atoms, now, kind, start, end, False)
    elif contains(src, first, last, _LD_JSON) and now[LINKED_SCRIPTS] < MAX_LINKED_DATA:
        slot = LINKED_DATA + 2 * now[LINKED_SCRIPTS]
        facts[slot] = start
        facts[slot + 1] = end
        now[LINKED_SCRIPTS] += 1
    return True


@borrowing
def _image(src, at, i, av_start, av_end, mark, text, atoms, now):  # type: ignore[no-untyped-def]
    """An image, its tag in src[at:i], may be a formula."""
    alt = av_start[_AT_ALT]
    if alt >= 0 and av_start[_AT_CLASS] >= 0 and 0 < av_end[_AT_ALT] - alt <= _SIGN_BYTES:
        first, last = av_start[_AT_CLASS], av_end[_AT_CLASS]
        if src[alt] >= 0x80 and contains(src, first, last, _EMOJI):
            picture_of_sign(src, alt, av_end[_AT_ALT], text, now)
            return
    address = av_start[_AT_SRC]
    written = av_start[_AT_MATHML] >= 0
    if alt < 0 and address < 0 and mark != MARK_FORMULA and not written:
        return
    alt_end = av_end[_AT_ALT] if alt >= 0 else alt
    address_end = av_end[_AT_SRC] if address >= 0 else address
    shows = written or mark == MARK_FORMULA
    shows = shows or formula_image(src, alt, alt_end, address, address_end)
    if shows and has_room(atoms, now) and not _just_said(now):
        formula(text, atoms, now, IMAGE, at, i, False)


@inlined
def _just_said(now):  # type: ignore[no-untyped-def]
    """Whether a formula stands right here, which another form of it would say again."""
    return now[ATOM_AT] == now[LENGTH]


@borrowing
def _drawing(src, at, i, av_start, av_end, text, atoms, now):  # type: ignore[no-untyped-def]
    """The drawing of a formula begins, its tag in src[at:i], and is passed over.

    Its source stands before it (KaTeX), behind it, or in an attribute (MathJax). The drawing of
    KaTeX without its source is all there is, and the source of its atom.
    """
    shown = contains(src, at, i, _OF_DISPLAY) or contains(src, at, i, _IN_DISPLAY)
    shown = shown or contains(src, at, i, _DISPLAYED)
    now[DRAWN_AT] = -1
    now[DRAWN_KIND] = HTML_DISPLAY if shown else HTML_INLINE
    if av_start[_AT_MATHML] >= 0 and has_room(atoms, now):
        formula(text, atoms, now, DATA_MATHML, av_start[_AT_MATHML], av_end[_AT_MATHML], True)
    elif LOWER[src[av_start[_AT_CLASS]]] == 107 and not _just_said(now):  # k
        now[DRAWN_AT] = at
        shown = contains(src, max(0, at - _ABOVE), at, _KATEX_SHOWN)
        now[DRAWN_KIND] = KATEX_DISPLAY if shown else KATEX_INLINE


@borrowing
def _drawn(src, av_start, av_end, text, atoms, now):  # type: ignore[no-untyped-def]
    """An element within the drawing of a formula may have its source in an attribute."""
    start, end = av_start[_AT_LATEX], av_end[_AT_LATEX]
    if start < 0 and av_start[_AT_LABEL] >= 0 and av_start[_AT_CLASS] >= 0:
        if contains(src, av_start[_AT_CLASS], av_end[_AT_CLASS], _MJX_MATH):
            start, end = av_start[_AT_LABEL], av_end[_AT_LABEL]
    if start >= 0 and end > start and has_room(atoms, now) and not _just_said(now):
        formula(text, atoms, now, now[DRAWN_KIND], start, end, True)


@borrowing
def _vector_drawing(src, i, stop, text, atoms, now):  # type: ignore[no-untyped-def]
    """An <svg>, its content in src[i:stop], may be a formula by its title or by what MathJax notes."""
    if not has_room(atoms, now) or _just_said(now):
        return
    last = min(stop, i + _TEX_BYTES)
    k = i
    if now[SKIP_DEPTH]:
        while k < last and not stands_at(src, k, stop, _DATA_LATEX):
            k += 1
        k += len(_DATA_LATEX)
        end = 34
    else:
        while k < last and src[k] <= 32:
            k += 1
        if not stands_at(src, k, stop, _TITLE_TAG):
            return
        while k < last and src[k] != 62:
            k += 1
        k += 1
        end = 60
    first = k
    tex = now[SKIP_DEPTH] > 0
    while k < last and src[k] != end:
        tex = tex or (src[k] == 92 and BYTES[src[k + 1]] & LETTER != 0)
        k += 1
    if tex and first < k < last:
        kind = now[DRAWN_KIND] if now[SKIP_DEPTH] else HTML_INLINE
        formula(text, atoms, now, kind, first, k, True)


@borrowing
def _tex_end(src, n, i, stated, in_code):  # type: ignore[no-untyped-def]
    """Where the content of an element from i on ends if it is nothing but TeX, -1 if it isn't.

    `stated`: it surely is TeX. Elsewhere signs of it are asked for, and no delimiters. `in_code`:
    the element is a <code>, in others one may stand around the formula.
    """
    tex = stated
    k = i
    while k < min(n, i + _TEX_BYTES):
        c = src[k]
        if c == 60:
            if in_code or not (stands_at(src, k, n, _CODE_TAG) or stands_at(src, k, n, _CODE_END)):
                return k if tex and src[k + 1] == 47 else -1
        elif c == 36 or (
            c == 92 and (src[k + 1] == 40 or src[k + 1] == 91)
        ):  # dollar, TeX's brackets
            if not stated:
                return -1
        elif c == 94 or c == 95 or c == 61 or c == 92:  # ^ _ = and backslash
            tex = True
        k += 1
    return -1


@borrowing
def _behind_copy(src, n, i):  # type: ignore[no-untyped-def]
    """The end of the text behind a </math> at i, which CSDN has a second time there."""
    last = min(n, i + _TEX_BYTES)
    k = i
    while k < last and src[k] != 62:
        k += 1
    k += 1
    while k < last and src[k] != 60:
        k += 1
    return k if k < last else i


@borrowing
def _lines_follow(src, n, i):  # type: ignore[no-untyped-def]
    """Whether a line of a listing of Doxygen begins at i."""
    while i < n and src[i] <= 32:
        i += 1
    return stands_at(src, i, n, _LINE_DIV)


@borrowing
def _span(src, at, i):  # type: ignore[no-untyped-def]
    """Columns and rows of a cell, its tag in src[at:i], as `Page.e_span`."""
    columns = _number_behind(src, at, i, _COLSPAN)
    rows = _number_behind(src, at, i, _ROWSPAN)
    return 0 if columns == 1 and rows == 1 else columns + (rows << 16)


@borrowing
def _number_behind(src, at, i, word):  # type: ignore[no-untyped-def]
    k = at
    while k < i and not stands_at(src, k, i, word):
        k += 1
    k += len(word)
    if k < i and (src[k] == 34 or src[k] == 39):
        k += 1
    number = 0
    while k < i and 48 <= src[k] <= 57 and number <= _MOST_SPAN:
        number = number * 10 + np.int64(src[k]) - 48
        k += 1
    return min(max(number, 1), _MOST_SPAN)


@borrowing
def _title(src, n, i, stop, facts):  # type: ignore[no-untyped-def]
    """Keep the title at i, whose end tag is at `stop`; return where it ends, -1 if nowhere.

    The first one ends at the next tag where it is not closed.
    """
    if stop < 0:
        if facts[TITLE] != 0:
            return -1
        stop = i
        while stop < n and src[stop] != 60:
            stop += 1
    _note(facts, TITLE, i, stop)
    return stop


@borrowing
def _root(av_start, av_end, tag, first_token, elements, facts, now):  # type: ignore[no-untyped-def]
    """What <html> and <body> say: the page's language, and the names of a body before all else."""
    if tag == _HTML and av_start[AT_LANGUAGE] >= 0:
        _note(facts, LANGUAGE, av_start[AT_LANGUAGE], av_end[AT_LANGUAGE])
    first = elements[_TOKENS, 1] == 0 and now[ELEMENTS] == 1
    if tag == _BODY and now[TOKENS] > first_token and first:
        elements[_TOKENS, 1] = now[TOKENS]
    else:
        now[TOKENS] = first_token


@inlined
def _inline(src, n, at, i, tag, mark, av_start, av_end, text, atoms, now):  # type: ignore[no-untyped-def]
    """An inline element begins, its tag in src[at:i]. Whether it ends the block, as lines do."""
    if tag == _BR:
        return line_break(text, now)
    if tag == _IMG:
        _image(src, at, i, av_start, av_end, mark, text, atoms, now)
    elif now[PRE_TOP] >= 0 and (mark == MARK_LINE or av_start[_AT_LINE] >= 0):
        line_element(text, now)
    elif tag == _CODE and now[PRE_TOP] >= 0:
        if av_start[_AT_CLASS] >= 0:
            class_of_code(atoms, now, av_start[_AT_CLASS], av_end[_AT_CLASS])
    else:
        keep_apart(src, at, i, text, now)
        if tag == _SUP or tag == _SUB:
            script(src, n, i, text, now, tag)
        inline_start(text, atoms, now, tag, av_start[_AT_HREF] >= 0)
    return False


@inlined
def _open(  # type: ignore[no-untyped-def]
    src, at, i, av_start, av_end, tag, hashed, above, elements, signatures, classes,
    stack_tag, stack_element, open_count, now,
):  # fmt: skip
    """Add a block element, its tag in src[at:i]. False when there are too many."""
    e = now[ELEMENTS]
    if e >= len(signatures) - 1:
        return False
    parent = now[ELEMENT]
    elements[_PARENT, e] = parent
    elements[_TAG, e] = tag
    elements[_DEPTH, e] = now[TOP] + 1
    elements[_ANCESTORS, e] = elements[_ANCESTORS, parent] | ANCESTOR_OF_TAG[tag] | above
    elements[_KINDS, e] = kinds(src, av_start, av_end)
    elements[_TOKENS, e + 1] = now[TOKENS]
    elements[_AT, e] = at
    elements[_SPAN_OF, e] = _span(src, at, i) if tag == _TD or tag == _TH else 0
    signatures[e] = (hashed ^ np.uint64(tag)) * FNV_PRIME
    if av_start[_AT_CLASS] >= 0:
        classes[e, 0] = av_start[_AT_CLASS]
        classes[e, 1] = av_end[_AT_CLASS]
    now[ELEMENT] = e
    now[ELEMENTS] += 1
    push(stack_tag, stack_element, open_count, now, tag, e)
    return True


# Rows of `elements`, the columns `e_*` of Page.
_PARENT, _TAG, _DEPTH, _ANCESTORS, _KINDS, _TOKENS, _AT, _SPAN_OF = range(8)


@kernel
def _scan(src, words, n, max_depth, max_nodes, noscript_bytes, keep_hidden, images):  # type: ignore[no-untyped-def]
    nodes = min(count_open(words), max_nodes) + 2
    text = np.empty(n + n // 4 + 64, np.uint8)
    blocks = np.empty((10, nodes), np.int32)
    elements = np.empty((8, nodes + 1), np.int32)
    signatures = np.empty(nodes, np.uint64)
    classes = np.zeros((nodes, 2), np.int32)
    tokens = np.empty(nodes * _TOKENS_ROOM, np.uint64)
    atoms = np.empty((4, nodes), np.int32)
    facts = np.zeros(FACTS, np.int32)
    stack_tag = np.zeros(max_depth + 2, np.int64)
    stack_element = np.zeros(max_depth + 2, np.int64)
    stack_text = np.zeros(max_depth + 2, np.int64)
    open_count = np.zeros(OTHER + 1, np.int64)
    av_start = np.zeros(ATTRIBUTES, np.int64)
    av_end = np.zeros(ATTRIBUTES, np.int64)
    known_hashes = np.zeros(KNOWN, np.uint64)
    known = np.empty((KNOWN_ROWS, KNOWN), np.int32)
    known_tokens = np.empty(KNOWN_TOKENS, np.uint64)
    points = np.zeros(2, np.int64)
    never = np.zeros(NEVER, np.uint8)
    no_end = np.zeros(OTHER + 1, np.uint8)
    now = np.zeros(SLOTS, np.int64)
    now[ATOM_AT] = -1
    now[PRE_TOP] = -1
    now[TYPED_TOP] = -1
    now[LINE_AT] = -1
    now[DRAWN_AT] = -1
    # the body, whether or not the page has one
    now[ELEMENTS] = 1
    elements[:, 0] = 0
    elements[_PARENT, 0] = -1
    elements[_TAG, 0] = _BODY
    elements[_AT, 0] = 0
    elements[_SPAN_OF, 0] = 0
    elements[_TOKENS, 1] = 0
    signatures[0] = 0
    stack_tag[0] = _BODY

    status = STATUS_OK
    skip_hash = np.uint64(0)  # tag of the subtree that is passed over
    i = 0
    while True:
        if now[SKIP_DEPTH] == 0:
            i = run_of_text(src, n, i, text, points, now)
        else:
            i = min(n, next_byte(src, words, i, n, 60, OPEN))
        if i >= n:
            if not close_block(text, blocks, atoms, now, False):
                status = STATUS_TOO_MANY
            break
        if not is_tag(src, i):
            i = passed_over(src, words, n, i, now[SKIP_DEPTH] == 0, never)
            continue
        at = i
        opening = src[i + 1] != 47
        name_start = i + 1 if opening else i + 2
        name, name_end = tag_name(src, n, name_start)
        tag = find(TAG_KEYS, TAG_VALUES, name)
        if tag < 0:
            colon = name_end - len(_COLON_MATH)
            tag = (
                _MATH
                if colon > name_start and stands_at(src, colon, name_end, _COLON_MATH)
                else OTHER
            )
        j, self_closing = attributes(src, n, name_end, opening, av_start, av_end, never)
        i = min(n, j + 1)
        if av_start[_AT_ITEMTYPE] >= 0 and contains(
            src, av_start[_AT_ITEMTYPE], av_end[_AT_ITEMTYPE], _QA_PAGE
        ):
            facts[QUESTIONS] = 1

        # ------------------------------------------------- elements whose content is no markup
        if LAST_BLOCK < tag <= LAST_SKIPPED:
            if not opening or (self_closing and tag != _SCRIPT and tag != _TITLE):
                continue
            stop = end_of(src, words, n, i, name_start, name_end, no_end, tag)
            if tag == _TITLE:
                stop = _title(src, n, i, stop, facts)
            elif tag == _SVG and (now[SKIP_DEPTH] == 0 or now[SKIP_MATH]):
                _vector_drawing(src, i, stop, text, atoms, now)
            elif tag == _TEXTAREA and av_start[_AT_READONLY] >= 0 and now[SKIP_DEPTH] == 0:
                shown = av_start[_AT_HIDDEN] < 0 and not (
                    av_start[_AT_ID] >= 0
                    and contains(src, av_start[_AT_ID], av_end[_AT_ID], _CURSOR)
                )
                if shown and stop > i and now[PRE_TOP] < 0 and now[TOP] < max_depth:
                    enough = close_block(text, blocks, atoms, now, False)
                    first_token = now[TOKENS]
                    enough = enough and _open(
                        src, at, i, av_start, av_end, _PRE, np.uint64(0), 0, elements, signatures,
                        classes, stack_tag, stack_element, open_count, now,
                    )  # fmt: skip
                    if not enough:
                        status = STATUS_TOO_MANY
                        break
                    now[PRE_TOP] = now[TOP]
                    now[CODE] = 0
                    verbatim(src, i + (src[i] == 10), stop, text, points, now)
                    if not close_block(text, blocks, atoms, now, False):
                        status = STATUS_TOO_MANY
                        break
                    end_element(stack_tag, stack_element, open_count, now, _PRE)
            elif tag == _SCRIPT and stop >= 0:
                if not _script(src, av_start, av_end, i, stop, text, atoms, facts, now):
                    status = STATUS_TOO_MANY
                    break
            i = max(i, stop)
            continue

        if tag == _NOSCRIPT and now[SKIP_DEPTH] == 0:
            if opening:
                stop = end_of(src, words, n, i, name_start, name_end, no_end, tag)
                long = stop >= i + noscript_bytes or (keep_hidden and stop >= 0)
                if stop >= 0 and not long:
                    i = stop
                if not long:
                    continue
            elif open_count[_NOSCRIPT] == 0:
                continue

        if now[SKIP_DEPTH] > 0:
            if name == skip_hash and not self_closing:
                now[SKIP_DEPTH] += 1 if opening else -1
                if now[SKIP_DEPTH] == 0 and now[DRAWN_AT] >= 0 and has_room(atoms, now):
                    formula(text, atoms, now, now[DRAWN_KIND], now[DRAWN_AT], at, False)
            if now[SKIP_MATH] and opening:
                _drawn(src, av_start, av_end, text, atoms, now)
            if not (now[SKIP_MATH] and tag == _MATH and opening):
                continue

        if tag == _MATH:
            stop = -1
            if opening:
                stop = end_of(src, words, n, i, name_start, name_end, no_end, tag)
            if stop < 0:
                continue
            if not has_room(atoms, now):
                status = STATUS_TOO_MANY
                break
            drop_soft(atoms, now)
            if now[ATOM_SOFT] != STATED or not _just_said(now):
                formula(text, atoms, now, MATHML, at, stop, now[SKIP_DEPTH] > 0)
            i = stop
            if contains(src, max(0, at - _ABOVE), at, _KATEX_MATHML):
                i = _behind_copy(src, n, i)
            continue

        if name == _META_HASH and opening:
            _meta(src, av_start, av_end, facts)
            continue

        # ------------------------------------------------- what the element is
        is_block = tag <= LAST_BLOCK
        if tag == _BUTTON and stack_tag[now[TOP]] == _P:  # the text says which one to press
            is_block = False
        first_token = now[TOKENS]
        mark = np.int64(-1)
        hashed = np.uint64(0)
        keeps_space = False
        typed = False
        hidden = False
        above = 0
        tex_end = np.int64(-1)  # of an element that has nothing but TeX
        if opening:
            hashed = class_hash(src, av_start, av_end)
            now[TOKENS], mark = names(
                src, av_start, av_end, hashed, is_block, tokens, first_token,
                known_hashes, known, known_tokens,
            )  # fmt: skip
            hidden, rendered, keeps_space, typed, above = visibility(
                src, av_start, av_end, tag, mark, is_block, now[PRE_TOP] >= 0, keep_hidden,
                mark == MARK_FRAGMENT and _lines_follow(src, n, i),
            )  # fmt: skip
            if rendered:
                _drawing(src, at, i, av_start, av_end, text, atoms, now)
                hidden = True
            elif hidden:
                hidden = tag != _IMG or mark != MARK_FORMULA
                now[DRAWN_AT] = -1
                now[DRAWN_KIND] = HTML_INLINE
            if hidden and not self_closing:
                if tag != _BR and tag != _IMG and tag != _INPUT and tag != _WBR and tag != _HR:
                    skip_hash = name
                    now[SKIP_DEPTH] = 1
                    now[SKIP_MATH] = not is_block or rendered
                    now[TOKENS] = first_token
                    continue
                if tag != _BR:
                    continue
            if tag == _HTML or tag == _BODY:
                _root(av_start, av_end, tag, first_token, elements, facts, now)
                continue

        # ------------------------------------------------- inline
        flush = False
        if opening and now[PRE_TOP] < 0:
            drawn_later = mark == MARK_FORMULA or (
                mark == MARK_CODE_CELL
                and has_name(src, av_start[_AT_CLASS], av_end[_AT_CLASS], _RENDER_MATH)
            )
            if drawn_later or tag == _TEX_MATH:
                tex_end = _tex_end(src, n, i, tag == _TEX_MATH, tag == _CODE)
        if not is_block:
            now[TOKENS] = first_token
            if opening and tag == _SPAN and av_start[_AT_TEX] >= 0 and has_room(atoms, now):
                formula(text, atoms, now, HTML_INLINE, av_start[_AT_TEX], av_end[_AT_TEX], False)
                skip_hash = name
                now[SKIP_DEPTH] = 1
                now[SKIP_MATH] = 0
                now[DRAWN_AT] = -1
                continue
            if opening and tex_end > i and has_room(atoms, now):
                if tag == _TEX_MATH and _just_said(now):
                    now[ATOM_SOFT] = 1  # the MathML of the same formula
                    drop_soft(atoms, now)
                formula(
                    text, atoms, now, HTML_INLINE, i, tex_end, STATED if tag == _TEX_MATH else 0
                )
                i = tex_end
            elif opening and images and tag == _IMG and av_start[_AT_ALT] >= 0 and not hidden:
                before = now[ATOMS]
                _image(src, at, i, av_start, av_end, mark, text, atoms, now)
                if now[ATOMS] == before:
                    alternative(src, av_start[_AT_ALT], av_end[_AT_ALT], text, points, now)
            elif opening:
                flush = _inline(src, n, at, i, tag, mark, av_start, av_end, text, atoms, now)
            else:
                inline_end(text, atoms, now, tag)
                now[ENDED] = i
            if not flush:
                continue
        elif now[PRE_TOP] >= 0 and not ends_code(stack_tag, open_count, now, tag, not opening):
            now[TOKENS] = first_token
            line_of_code(
                text, stack_tag, stack_element, stack_text, open_count, now, tag, not opening,
                self_closing,
            )  # fmt: skip
            continue

        # ------------------------------------------------- a block ends, an element opens or ends
        if not close_block(text, blocks, atoms, now, flush):
            status = STATUS_TOO_MANY
            break
        if flush:
            continue
        now[BOLD] = 0
        if not opening:
            now[TOKENS] = first_token
            end_element(stack_tag, stack_element, open_count, now, tag)
            continue
        if tag == _HR:
            now[TOKENS] = first_token
            continue
        end_implied(stack_tag, stack_element, open_count, now, tag)
        if now[TOP] >= max_depth:
            now[OVER] += 1
            now[TOKENS] = first_token
            continue
        opened = _open(
            src, at, i, av_start, av_end, tag, hashed, above, elements, signatures, classes,
            stack_tag, stack_element, open_count, now,
        )  # fmt: skip
        if not opened:
            status = STATUS_TOO_MANY
            break
        if typed and now[TYPED_TOP] < 0:
            now[TYPED_TOP] = now[TOP]
        if tex_end > i and has_room(atoms, now):
            formula(text, atoms, now, HTML_DISPLAY, i, tex_end, 0)
            i = tex_end
            continue
        if tag == _DIV and av_start[_AT_DATA] >= 0 and has_room(atoms, now):
            if contains(src, av_start[_AT_DATA], av_end[_AT_DATA], _EXPRESSION):
                formula(text, atoms, now, DATA_JSON, av_start[_AT_DATA], av_end[_AT_DATA], 0)
        listing = keeps_space or tag == _PRE or tag == _LISTING or tag == _XMP
        if listing and now[PRE_TOP] < 0:
            now[PRE_TOP] = now[TOP]
            now[CODE] = 0
            if i < n and src[i] == 13:
                i += 1
            if i < n and src[i] == 10:
                i += 1  # the first line break of <pre> doesn't count
    if status == STATUS_OK and now[SKIP_DEPTH] > 0:
        status = STATUS_UNCLOSED_HIDDEN
    return status, text, blocks, elements, signatures, classes, tokens, atoms, facts, now


def scan(
    content: bytes,
    max_depth: int,
    max_nodes: int,
    noscript_bytes: int,
    keep_hidden: bool = False,
    images: bool = False,
) -> Page:
    """Scan a page, UTF-8 without a byte order mark.

    A <noscript> shorter than `noscript_bytes` holds counting pixels, pictures loaded late and
    requests to turn scripts on; a longer one the page as those without scripts see it.
    `keep_hidden` treats hidden elements as visible, `images` reads alternative texts. The status is STATUS_TOO_MANY when the page
    has more than `max_nodes` elements, blocks or formulas, and STATUS_UNCLOSED_HIDDEN when a hidden
    element ran to the end of the page.
    """
    padded = content + bytes(_PADDING + -len(content) % 8)
    source, words = np.frombuffer(padded, np.uint8), np.frombuffer(padded, np.uint64)
    found: tuple[Any, ...] = _scan(
        source, words, len(content), max_depth, max_nodes, noscript_bytes, keep_hidden, images
    )
    status, text, blocks, elements, signatures, classes, tokens, atoms, facts, now = found
    n, m, a = int(now[BLOCKS]), int(now[ELEMENTS]), int(now[ATOMS])
    parts: tuple[Any, ...] = (
        status,
        text[: now[LENGTH]],
        *(blocks[row, :n] for row in _BLOCK_ROWS),
        *(elements[row, :m] for row in (_PARENT, _TAG, _DEPTH, _ANCESTORS, _KINDS)),
        signatures[:m],
        elements[_TOKENS, : m + 1],
        classes[:m],
        *(elements[row, :m] for row in (_AT, _SPAN_OF)),
        tokens[: now[TOKENS]],
        *(atoms[row, :a] for row in (A_AT, A_KIND, A_START, A_END)),
        facts,
    )
    return Page(*parts)


# In the order of Page.
_BLOCK_ROWS = (
    B_START, B_END, B_ELEMENT, B_CHARS, B_LINK_CHARS, B_LINKS, B_TAGS, B_BOLD, B_FORMULAS, B_FLAGS
)  # fmt: skip
