"""One compiled pass from the bytes of a page to blocks of text and the elements that hold them.

No tree is built. A stack of open block elements, with the implied end tags of HTML, says what a run
of text is in; inline elements are looked at and forgotten. A block is a run of inline text
directly under one block element. The pass is linear in the bytes, keeps at most `max_depth` open
elements (deeper ones are flattened into their ancestors) and at most `max_nodes` elements, blocks
or formulas; no input makes it fail.

`lexing` reads bytes, `attributes` what attributes say, `flow` makes blocks of text, `nesting` keeps
the stack; here is what each tag does.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from curation.compiled import borrowing, inlined, kernel
from curation.extract import blocks as s
from curation.extract import byte_names as ch
from curation.extract import flow as f
from curation.extract import lexing as x
from curation.extract.attributes import (
    KNOWN,
    KNOWN_TOKENS,
    Known,
    class_hash,
    formula_image,
    is_cell,
    kinds,
    names,
    visibility,
)
from curation.extract.lexing import OPEN, Given, contains, has_name, stands_at
from curation.extract.markup import (
    ANCESTOR_OF_TAG,
    AT_LANGUAGE,
    ATTRIBUTE,
    BYTES,
    FLAG_ASKS,
    FNV_PRIME,
    LAST_BLOCK,
    LAST_SKIPPED,
    LETTER,
    LOWER,
    MARK_CODE,
    MARK_CODE_CELL,
    MARK_FORMULA,
    MARK_FRAGMENT,
    MARK_KATEX_SOURCE,
    MARK_LINE,
    MARK_NAMED_CODE,
    MARK_NOTE,
    MARK_SCREEN_READER,
    OTHER,
    TAG,
    TAG_KEYS,
    TAG_VALUES,
    find,
    fnv,
    name_hash,
)
from curation.extract.nesting import (
    Stack,
    end_element,
    end_implied,
    ends_code,
    line_of_code,
    push,
)
from curation.text.search import next_byte

_word = functools.partial(np.frombuffer, dtype=np.uint8)

_LABEL = TAG["label"]
_IMG, _BR, _WBR, _INPUT, _MATH = TAG["img"], TAG["br"], TAG["wbr"], TAG["input"], TAG["math"]
_HR, _HTML, _BODY = TAG["hr"], TAG["html"], TAG["body"]
_H1, _H6, _DT, _SUMMARY = TAG["h1"], TAG["h6"], TAG["dt"], TAG["summary"]
_BUTTON, _P, _CODE, _SUP = TAG["button"], TAG["p"], TAG["code"], TAG["sup"]
_SUB, _SPAN, _TEX_MATH, _DIV = TAG["sub"], TAG["span"], TAG["tex-math"], TAG["div"]
_SVG, _TEXTAREA, _TD, _TH = TAG["svg"], TAG["textarea"], TAG["td"], TAG["th"]
_PRE, _LISTING, _XMP = TAG["pre"], TAG["listing"], TAG["xmp"]
_SCRIPT, _TITLE, _NOSCRIPT = TAG["script"], TAG["title"], TAG["noscript"]
_TEMPLATE, _TT, _SAMP = TAG["template"], TAG["tt"], TAG["samp"]
_AT_CLASS, _AT_HREF, _AT_ALT = ATTRIBUTE["class"], ATTRIBUTE["href"], ATTRIBUTE["alt"]
_AT_SRC, _AT_TYPE, _AT_MATHML = ATTRIBUTE["src"], ATTRIBUTE["type"], ATTRIBUTE["data-mathml"]
_AT_PROPERTY, _AT_NAME = ATTRIBUTE["property"], ATTRIBUTE["name"]
_AT_CONTENT, _AT_ITEMTYPE = ATTRIBUTE["content"], ATTRIBUTE["itemtype"]
_AT_LATEX, _AT_TEX = ATTRIBUTE["data-latex"], ATTRIBUTE["data-tex"]
_AT_LABEL = ATTRIBUTE["aria-label"]
_AT_DATA, _AT_READONLY = ATTRIBUTE["data-attrs"], ATTRIBUTE["readonly"]
_AT_ROLE, _AT_SHADOW = ATTRIBUTE["role"], ATTRIBUTE["shadowrootmode"]
_AT_LINE, _AT_HIDDEN, _AT_ID = ATTRIBUTE["data-line"], ATTRIBUTE["hidden"], ATTRIBUTE["id"]
_META_HASH = np.uint64(name_hash(b"meta"))
_OG_TYPE_HASH, _GENERATOR_HASH = np.uint64(fnv(b"og:type")), np.uint64(fnv(b"generator"))
_OG_TITLE_HASH = np.uint64(fnv(b"og:title"))
_MATH_TYPE, _DISPLAY = _word(b"math/"), _word(b"display")
_MML, _ASCII = _word(b"mml"), _word(b"ascii")
_SCHEMA = _word(b"schema.org/")
_QA_PAGE, _QUESTION = _word(b"qapage"), _word(b"question")
_FAQ_PAGE, _FORUM_POST = _word(b"faqpage"), _word(b"discussionforumposting")
_LD_JSON = _word(b"ld+json")
_COLON_MATH = _word(b":math")
_MJX_MATH, _MJX_CONTAINER = _word(b"mjx-math"), _word(b"mjx-container")
_DATA_LATEX = _word(b'data-latex="')
_EXPRESSION = _word(b"persistentexpression")
_OF_DISPLAY, _IN_DISPLAY = _word(b"_display"), _word(b"-display")
_DISPLAYED = _word(b'display="true"')
_KATEX_SHOWN = _word(b"katex-display")
_KATEX_MATHML = _word(b"katex-mathml")
_TITLE_TAG = _word(b"<title")
_LINE_DIV, _LINE = _word(b'<div class="line"'), _word(b"line")
_DIV_TAG, _DIV_END, _SPAN_TAG = _word(b"<div"), _word(b"</div"), _word(b"<span")
_PRE_TAG, _LIST_TAG, _TABLE_TAG = _word(b"<pre"), _word(b"<ol"), _word(b"<table")
_TAGS_AHEAD = 6
_OF_LISTINGS = (MARK_CODE, MARK_CODE_CELL, MARK_FRAGMENT)
_HOLDERS = (TAG["pre"], TAG["table"], TAG["tr"], TAG["td"], TAG["ol"], TAG["li"])
_CURSOR = _word(b"read-only-cursor")  # GitHub's, over the code that it shows
_COLSPAN, _ROWSPAN = _word(b"colspan="), _word(b"rowspan=")
_RENDER_MATH = _word(b"js-render-math")  # GitLab
_CODE_TAG, _CODE_END = _word(b"<code"), _word(b"</code")
_CODE_NAME, _SPAN_END = _word(b"code"), _word(b"</span")
_MOST_SPAN = 1000  # columns (HTML standard); rows are as limited here
_TEX_BYTES = 2000  # of an element that has nothing but a formula
_ABOVE = 80  # bytes before a drawing, where the element around it begins
_EMOJI = _word(b"emoji")
_SIGN_BYTES = 40  # of a sign with its selectors and joiners
_TOKENS_ROOM = 32  # class tokens for each element that there is room for
_PADDING = 16  # bytes at least, so that looking ahead needs no care


class Elements(NamedTuple):
    """The columns `e_*` of Page, as far as they are filled."""

    parent: Any
    tag: Any
    depth: Any
    above: Any
    flags: Any
    signature: Any
    tokens: Any
    class_: Any
    at: Any
    span: Any


class Scan(NamedTuple):
    """A page and what has been read of it."""

    src: Any  # uint8, padded so that looking ahead needs no care
    size: Any
    flow: f.Flow
    blocks: f.Blocks
    elements: Elements
    tokens: Any  # Page.tokens
    facts: Any
    stack: Stack
    given: Given  # attributes of the tag under way
    known: Known
    never: Any  # [NEVER]
    no_end: Any  # [tags] the page has no more end tag of each


#: A shorter <noscript> holds counting pixels and requests to turn scripts on. The model was trained
#: on pages read with this value.
NOSCRIPT_BYTES = 2000


class Options(NamedTuple):
    """What `scan` is asked for."""

    max_depth: int
    noscript_bytes: int
    keep_hidden: bool
    images: bool


@borrowing
def _note(facts, slot, start, end):  # type: ignore[no-untyped-def]
    """Keep the first span of the source that says a fact."""
    if facts[slot] == 0:
        facts[slot] = start
        facts[slot + 1] = end


@borrowing
def _meta(src, given, facts):  # type: ignore[no-untyped-def]
    """What a <meta> says of the page."""
    if given.start[_AT_CONTENT] < 0:
        return
    which = _AT_PROPERTY if given.start[_AT_PROPERTY] >= 0 else _AT_NAME
    if given.start[which] < 0:
        return
    key = x.hash_lower(src, given.start[which], given.end[which])
    if key == _OG_TYPE_HASH:
        _note(facts, s.OG_TYPE, given.start[_AT_CONTENT], given.end[_AT_CONTENT])
    elif key == _OG_TITLE_HASH:
        _note(facts, s.OG_TITLE, given.start[_AT_CONTENT], given.end[_AT_CONTENT])
    elif key == _GENERATOR_HASH:
        _note(facts, s.GENERATOR, given.start[_AT_CONTENT], given.end[_AT_CONTENT])


@borrowing
def _script(src, given, start, end, flow, facts):  # type: ignore[no-untyped-def]
    """A script may be the source of a formula, or linked data. False: too many formulas."""
    now = flow.now
    if given.start[_AT_TYPE] < 0:
        return True
    first = given.start[_AT_TYPE]
    last = given.end[_AT_TYPE]
    if contains(src, first, last, _MATH_TYPE) and (now.skip_depth == 0 or now.skip_math):
        kind = s.TEX_INLINE
        if contains(src, first, last, _MML):
            kind = s.SCRIPT_MATHML
        elif contains(src, first, last, _ASCII):
            kind = s.ASCIIMATH
        elif contains(src, first, last, _DISPLAY):
            kind = s.TEX_DISPLAY
        f.drop_soft(flow.atoms, now)
        if not f.has_room(flow):
            return False
        f.formula(flow, kind, start, end, False)
    elif contains(src, first, last, _LD_JSON) and now.linked_scripts < s.MAX_LINKED_DATA:
        slot = s.LINKED_DATA + 2 * now.linked_scripts
        facts[slot] = start
        facts[slot + 1] = end
        now.linked_scripts += 1
    return True


@borrowing
def _image(src, at, i, given, mark, flow):  # type: ignore[no-untyped-def]
    """An image, its tag in src[at:i], may be a formula."""
    alt = given.start[_AT_ALT]
    if alt >= 0 and given.start[_AT_CLASS] >= 0 and 0 < given.end[_AT_ALT] - alt <= _SIGN_BYTES:
        first, last = given.start[_AT_CLASS], given.end[_AT_CLASS]
        if src[alt] >= 0x80 and contains(src, first, last, _EMOJI):
            f.picture_of_sign(src, alt, given.end[_AT_ALT], flow.text, flow.now)
            return
    address = given.start[_AT_SRC]
    written = given.start[_AT_MATHML] >= 0 or given.start[_AT_TEX] >= 0
    if alt < 0 and address < 0 and mark != MARK_FORMULA and not written:
        return
    alt_end = given.end[_AT_ALT] if alt >= 0 else alt
    address_end = given.end[_AT_SRC] if address >= 0 else address
    shows = written or mark == MARK_FORMULA
    shows = shows or formula_image(src, alt, alt_end, address, address_end)
    parted = flow.now.space_due != 0  # by a blank from a formula: this is another one
    if shows and f.has_room(flow) and (parted or not _just_said(flow.now)):
        f.formula(flow, s.IMAGE, at, i, False)


@inlined
def _just_said(now):  # type: ignore[no-untyped-def]
    """Whether a formula ends right here, which another form of it would repeat."""
    return now.atom_at == now.length


@inlined
def _is_drawn(flow):  # type: ignore[no-untyped-def]
    """Whether the source of a drawing of KaTeX precedes it, not the drawing of another formula."""
    now = flow.now
    kind = flow.atoms.kind[max(now.atoms - 1, 0)]
    drawing = kind == s.KATEX_INLINE or kind == s.KATEX_DISPLAY
    return _just_said(now) and not (drawing and now.space_due != 0)


@borrowing
def _drawing(src, at, i, given, flow):  # type: ignore[no-untyped-def]
    """The drawing of a formula begins, its tag in src[at:i], and is passed over.

    Its source precedes it (KaTeX), follows it, or is in an attribute (MathJax). The drawing of
    KaTeX without its source is all there is, and the source of its atom.
    """
    now = flow.now
    shown = contains(src, at, i, _OF_DISPLAY) or contains(src, at, i, _IN_DISPLAY)
    shown = shown or contains(src, at, i, _DISPLAYED)
    now.drawn_at = -1
    now.drawn_kind = s.HTML_DISPLAY if shown else s.HTML_INLINE
    if stands_at(src, at + 1, i, _MJX_CONTAINER):
        now.drawn_at = at
        now.drawn_kind = s.MATHJAX_DISPLAY if shown else s.MATHJAX_INLINE
        return
    if given.start[_AT_MATHML] >= 0 and f.has_room(flow):
        f.formula(flow, s.DATA_MATHML, given.start[_AT_MATHML], given.end[_AT_MATHML], True)
    elif LOWER[src[given.start[_AT_CLASS]]] == ch.LOWER_K and not _is_drawn(flow):  # k
        now.drawn_at = at
        shown = contains(src, max(0, at - _ABOVE), at, _KATEX_SHOWN)
        now.drawn_kind = s.KATEX_DISPLAY if shown else s.KATEX_INLINE


@inlined
def _source_kind(now):  # type: ignore[no-untyped-def]
    """The kind of a formula whose source is in an attribute of its drawing."""
    shown = now.drawn_kind == s.HTML_DISPLAY or now.drawn_kind == s.MATHJAX_DISPLAY
    return s.HTML_DISPLAY if shown else s.HTML_INLINE


@inlined
def _end_drawing(at, flow):  # type: ignore[no-untyped-def]
    """The drawing of a formula ends at `at`: it is the source itself where it has no other."""
    now = flow.now
    kind = now.drawn_kind
    has_source = kind == s.MATHJAX_INLINE or kind == s.MATHJAX_DISPLAY
    has_source = has_source and _just_said(now) and now.space_due == 0
    if now.drawn_at >= 0 and not has_source and f.has_room(flow):
        f.formula(flow, kind, now.drawn_at, at, False)


@borrowing
def _drawn(src, given, flow):  # type: ignore[no-untyped-def]
    """An element within the drawing of a formula may have its source in an attribute."""
    start, end = given.start[_AT_LATEX], given.end[_AT_LATEX]
    if start < 0 and given.start[_AT_LABEL] >= 0 and given.start[_AT_CLASS] >= 0:
        if contains(src, given.start[_AT_CLASS], given.end[_AT_CLASS], _MJX_MATH):
            start, end = given.start[_AT_LABEL], given.end[_AT_LABEL]
    parted = flow.now.space_due != 0
    if start >= 0 and end > start and f.has_room(flow) and (parted or not _just_said(flow.now)):
        f.formula(flow, _source_kind(flow.now), start, end, True)


@borrowing
def _vector_drawing(src, i, stop, flow):  # type: ignore[no-untyped-def]
    """An <svg>, its content in src[i:stop], may be a formula by its title or by what MathJax notes."""
    now = flow.now
    if not f.has_room(flow) or _just_said(now):
        return
    last = min(stop, i + _TEX_BYTES)
    k = i
    if now.skip_depth:
        while k < last and not stands_at(src, k, stop, _DATA_LATEX):
            k += 1
        k += len(_DATA_LATEX)
        end = ch.QUOTE
    else:
        while k < last and src[k] <= ch.SPACE:
            k += 1
        if not stands_at(src, k, stop, _TITLE_TAG):
            return
        while k < last and src[k] != ch.GREATER:
            k += 1
        k += 1
        end = ch.LESS
    first = k
    tex = now.skip_depth > 0
    while k < last and src[k] != end:
        tex = tex or (src[k] == ch.BACKSLASH and BYTES[src[k + 1]] & LETTER != 0)
        k += 1
    if tex and first < k < last:
        kind = _source_kind(now) if now.skip_depth else s.HTML_INLINE
        f.formula(flow, kind, first, k, True)


@borrowing
def _tex_end(src, n, i, stated, in_code):  # type: ignore[no-untyped-def]
    """Where the content of an element from i on ends if it is nothing but TeX, -1 if it isn't.

    `stated`: it surely is TeX. Elsewhere signs of it are asked for, and no delimiters. `in_code`:
    the element is a <code>, in others one may be around the formula.
    """
    tex = stated
    k = i
    while k < min(n, i + _TEX_BYTES):
        c = src[k]
        if c == ch.LESS:
            if in_code or not (stands_at(src, k, n, _CODE_TAG) or stands_at(src, k, n, _CODE_END)):
                return k if tex and src[k + 1] == ch.SLASH else -1
        elif c == ch.DOLLAR or (
            c == ch.BACKSLASH and (src[k + 1] == ch.PAREN or src[k + 1] == ch.BRACKET)
        ):
            if not stated:
                return -1
        elif c == ch.CARET or c == ch.UNDERSCORE or c == ch.EQUALS or c == ch.BACKSLASH:
            tex = True
        k += 1
    return -1


@borrowing
def _bare_text(src, n, i):  # type: ignore[no-untyped-def]
    """The end of the text at i if that is all of its <span>, -1 otherwise."""
    filled = False
    k = i
    while k < min(n, i + _TEX_BYTES) and src[k] != ch.LESS:
        filled = filled or src[k] > ch.SPACE
        k += 1
    return k if filled and stands_at(src, k, n, _SPAN_END) else -1


@borrowing
def _behind_copy(src, n, i):  # type: ignore[no-untyped-def]
    """The end of the text behind a </math> at i, which CSDN has a second time there."""
    last = min(n, i + _TEX_BYTES)
    k = i
    while k < last and src[k] != ch.GREATER:
        k += 1
    k += 1
    while k < last and src[k] != ch.LESS:
        k += 1
    return k if k < last else i


@borrowing
def _lines_follow(src, n, i, mark, tag, above):  # type: ignore[no-untyped-def]
    """Whether lines of a listing begin at i, behind a `tag` inside `above` with a class's `mark`.

    Themes of pages use the same names around paragraphs. A cell or an item may be a line itself.
    """
    if mark not in _OF_LISTINGS:
        return False
    held = mark == MARK_CODE and (tag in _HOLDERS or above in _HOLDERS)
    for _ in range(_TAGS_AHEAD):
        while i < n and src[i] <= ch.SPACE:
            i += 1
        if mark == MARK_FRAGMENT:  # of Doxygen
            return stands_at(src, i, n, _LINE_DIV)
        if i >= n or src[i] != ch.LESS:
            return held
        if not (stands_at(src, i, n, _DIV_TAG) or stands_at(src, i, n, _SPAN_TAG)):
            break
        while i < n and src[i] != ch.GREATER:
            i += 1
            if stands_at(src, i, n, _LINE) and not BYTES[src[i - 1]] & LETTER:
                return True
        i += 1
        if stands_at(src, i, n, _DIV_END):
            i += len(_DIV_END) + 1
    before = stands_at(src, i, n, _PRE_TAG) or stands_at(src, i, n, _CODE_TAG)
    return before or stands_at(src, i, n, _LIST_TAG) or stands_at(src, i, n, _TABLE_TAG)


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
    if k < i and (src[k] == ch.QUOTE or src[k] == ch.APOSTROPHE):
        k += 1
    number = 0
    while k < i and ch.ZERO <= src[k] <= ch.NINE and number <= _MOST_SPAN:
        number = number * 10 + np.int64(src[k]) - 48
        k += 1
    return min(max(number, 1), _MOST_SPAN)


@borrowing
def _title(src, n, i, stop, facts):  # type: ignore[no-untyped-def]
    """Keep the title at i, whose end tag is at `stop`; return where it ends, -1 if nowhere.

    The first one ends at the next tag where it is not closed.
    """
    if stop < 0:
        if facts[s.TITLE] != 0:
            return -1
        stop = i
        while stop < n and src[stop] != ch.LESS:
            stop += 1
    _note(facts, s.TITLE, i, stop)
    return stop


@borrowing
def _root(given, tag, first_token, element_tokens, facts, now):  # type: ignore[no-untyped-def]
    """What <html> and <body> say: the page's language, and the names of a body before all else."""
    if tag == _HTML and given.start[AT_LANGUAGE] >= 0:
        _note(facts, s.LANGUAGE, given.start[AT_LANGUAGE], given.end[AT_LANGUAGE])
    first = element_tokens[1] == 0 and now.elements == 1
    if tag == _BODY and now.tokens > first_token and first:
        element_tokens[1] = now.tokens
    else:
        now.tokens = first_token


@inlined
def _inline(scan, at, i, tag, mark, hashed):  # type: ignore[no-untyped-def]
    """An inline element begins, its tag in src[at:i]. Whether it ends the block, as lines do."""
    src, given, flow = scan.src, scan.given, scan.flow
    text, now = flow.text, flow.now
    if tag == _BR:
        return f.line_break(text, now)
    if tag == _INPUT:
        scan.elements.flags[now.element] |= FLAG_ASKS
    if tag == _IMG:
        before = now.atoms + now.chars
        _image(src, at, i, given, mark, flow)
        if now.atoms + now.chars == before:
            f.inline_closed(src, at, i, tag, text, now)
    elif now.pre_top >= 0 and tag != _CODE and (mark == MARK_LINE or given.start[_AT_LINE] >= 0):
        f.line_element(text, now)
    elif tag == _CODE and now.pre_top >= 0:
        if given.start[_AT_CLASS] >= 0:
            f.class_of_code(flow, given.start[_AT_CLASS], given.end[_AT_CLASS])
    else:
        label = tag == _LABEL and now.seam == at
        if label or (given.start[_AT_ROLE] >= 0 and now.pre_top < 0 and is_cell(src, given)):
            now.space_due = f.BLANK
        if tag != _WBR:
            f.inline_opened(src, at, i, tag, hashed, text, now)
        if mark == MARK_NOTE and tag == _SPAN:
            f.note_opened(text, now)
            now.tags += 1
            return False
        if tag == _SUP or tag == _SUB:
            f.script(src, scan.size, i, text, now, tag)
        f.inline_start(flow, tag, given.start[_AT_HREF] >= 0)
    return False


@inlined
def _open(scan, at, i, tag, kind, above):  # type: ignore[no-untyped-def]
    """Add a block element, its tag in src[at:i]. False when there are too many."""
    elements, given, now = scan.elements, scan.given, scan.flow.now
    e = now.elements
    if e >= len(elements.parent) - 1:
        return False
    parent = now.element
    elements.parent[e] = parent
    elements.tag[e] = tag
    elements.depth[e] = now.top + 1
    elements.above[e] = elements.above[parent] | ANCESTOR_OF_TAG[tag] | above
    elements.flags[e] = kinds(scan.src, given)
    elements.tokens[e + 1] = now.tokens
    elements.at[e] = at
    elements.span[e] = _span(scan.src, at, i) if tag == _TD or tag == _TH else 0
    elements.signature[e] = (kind ^ np.uint64(tag)) * FNV_PRIME
    elements.class_[e, 0] = max(given.start[_AT_CLASS], 0)
    elements.class_[e, 1] = given.end[_AT_CLASS] if given.start[_AT_CLASS] >= 0 else 0
    now.element = e
    now.elements += 1
    push(scan.stack, now, tag, e)
    return True


@inlined
def _skip(now, name, with_math):  # type: ignore[no-untyped-def]
    """Pass over an element of this name, but, if asked to, for formulas in it."""
    now.skip_hash = name
    now.skip_depth = 1
    now.skip_math = with_math


@inlined
def _is_listing(src, given):  # type: ignore[no-untyped-def]
    """Whether a <textarea> is for reading: it is read-only, or of class `code` (Go's examples)."""
    if given.start[_AT_READONLY] >= 0 or given.start[_AT_CLASS] < 0:
        return given.start[_AT_READONLY] >= 0
    return has_name(src, given.start[_AT_CLASS], given.end[_AT_CLASS], _CODE_NAME)


@inlined
def _textarea(scan, at, i, stop, max_depth):  # type: ignore[no-untyped-def]
    """A <textarea> for reading, its content in src[i:stop], is a listing. False: too many blocks."""
    src, given, now = scan.src, scan.given, scan.flow.now
    is_cursor = given.start[_AT_ID] >= 0 and contains(
        src, given.start[_AT_ID], given.end[_AT_ID], _CURSOR
    )
    shown = given.start[_AT_HIDDEN] < 0 and not is_cursor
    if not shown or stop <= i or now.pre_top >= 0 or now.top >= max_depth:
        return True
    if not f.close_block(scan.flow, scan.blocks, False):
        return False
    if not _open(scan, at, i, _PRE, np.uint64(0), 0):
        return False
    now.pre_top = now.top
    now.code = 0
    f.verbatim(src, i + (src[i] == ch.LF), stop, scan.flow)
    if not f.close_block(scan.flow, scan.blocks, False):
        return False
    end_element(scan.stack, now, _PRE)
    return True


@inlined
def _after_text(src, n, i, name):  # type: ignore[no-untyped-def]
    """Where reading goes on after `<style />` and the like, which ends at i.

    In XHTML it is empty; but HTML ignores the slash, so text with an end tag of its own is its
    content.
    """
    k = i
    while k < n and src[k] != ch.LESS:
        k += 1
    return k if src[k + 1] == ch.SLASH and x.tag_name(src, n, k + 2)[0] == name else i


@inlined
def _opaque(scan, at, i, stop, tag, max_depth):  # type: ignore[no-untyped-def]
    """An element whose content, src[i:stop], is no markup; return where reading goes on, -1 where
    there are too many blocks or formulas."""
    src, given, now = scan.src, scan.given, scan.flow.now
    enough = True
    if tag == _TITLE:
        stop = _title(src, scan.size, i, stop, scan.facts)
    elif tag == _SVG and (now.skip_depth == 0 or now.skip_math):
        _vector_drawing(src, i, stop, scan.flow)
    elif tag == _TEXTAREA and now.skip_depth == 0 and _is_listing(src, given):
        enough = _textarea(scan, at, i, stop, max_depth)
    elif tag == _SCRIPT and stop >= 0:
        enough = _script(src, given, i, stop, scan.flow, scan.facts)
    return max(i, stop) if enough else -1


@inlined
def _math(scan, at, i, stop):  # type: ignore[no-untyped-def]
    """A <math>, its tag from `at` on, its content in src[i:stop]; return where reading goes on."""
    flow, now = scan.flow, scan.flow.now
    f.drop_soft(flow.atoms, now)
    after_image = now.atoms > 0 and flow.atoms.kind[max(now.atoms - 1, 0)] == s.IMAGE  # Canvas
    repeats = now.atom_soft == f.STATED or (after_image and now.space_due == 0)
    if not (repeats and _just_said(now)):
        f.formula(flow, s.MATHML, at, stop, now.skip_depth > 0)
    if contains(scan.src, max(0, at - _ABOVE), at, _KATEX_MATHML):
        return _behind_copy(scan.src, scan.size, stop)
    return stop


@inlined
def _tag_number(src, start, end, name):  # type: ignore[no-untyped-def]
    """The number of the tag whose name, of hash `name`, is src[start:end]."""
    tag = find(TAG_KEYS, TAG_VALUES, name)
    if tag >= 0:
        return tag
    colon = end - len(_COLON_MATH)
    return _MATH if colon > start and stands_at(src, colon, end, _COLON_MATH) else OTHER


@inlined
def _is_words(stack, now, opening):  # type: ignore[no-untyped-def]
    """Whether the tag of a button belongs to one that is part of the text around it.

    A paragraph says which button to press; headings, terms and summaries that unfold what is
    below them are buttons as a whole.
    """
    around = stack.tags[now.top]
    unfolds = around == _DT or around == _SUMMARY or _H1 <= around <= _H6
    if unfolds and opening:
        return now.chars == 0
    return around == _P or (unfolds and stack.open_count[_BUTTON] == 0)


@borrowing
def _item_types(src, start, end):  # type: ignore[no-untyped-def]
    """Bits of the schema.org types that an `itemtype` names."""
    if not contains(src, start, end, _SCHEMA):
        return 0
    types = s.QA_PAGE if contains(src, start, end, _QA_PAGE) else 0
    types |= s.QUESTION if contains(src, start, end, _QUESTION) else 0
    types |= s.FAQ_PAGE if contains(src, start, end, _FAQ_PAGE) else 0
    return types | (s.FORUM_POST if contains(src, start, end, _FORUM_POST) else 0)


@inlined
def _read_tag(scan, at, options):  # type: ignore[no-untyped-def]
    """What the tag at `at` does; return where reading goes on, -1 where there are too many elements,
    blocks or formulas."""
    src, n, flow, stack, given = scan.src, scan.size, scan.flow, scan.stack, scan.given
    now = flow.now
    opening = src[at + 1] != ch.SLASH
    name_start = at + 1 if opening else at + 2
    name, name_end = x.tag_name(src, n, name_start)
    tag = _tag_number(src, name_start, name_end, name)
    j, self_closing = x.attributes(src, n, name_end, opening, given, scan.never)
    i = min(n, j + 1)
    kind = given.start[_AT_ITEMTYPE]
    if kind >= 0:
        scan.facts[s.ITEM_TYPES] |= _item_types(src, kind, given.end[_AT_ITEMTYPE])

    if LAST_BLOCK < tag <= LAST_SKIPPED:
        if not opening:
            return i
        if tag == _TEMPLATE and given.start[_AT_SHADOW] >= 0:
            return i  # a browser shows what is in it in the place of its element
        if self_closing and tag != _SCRIPT and tag != _TITLE:
            return _after_text(src, n, i, name)
        stop = x.end_of(src, n, i, name_start, name_end, scan.no_end, tag)
        return _opaque(scan, at, i, stop, tag, options.max_depth)

    if tag == _NOSCRIPT and now.skip_depth == 0:
        if opening:
            stop = x.end_of(src, n, i, name_start, name_end, scan.no_end, tag)
            long = stop >= i + options.noscript_bytes or (options.keep_hidden and stop >= 0)
            if not long:
                return max(i, stop)
        elif stack.open_count[_NOSCRIPT] == 0:
            return i

    if now.skip_depth > 0:
        if name == now.skip_hash and not self_closing:
            now.skip_depth += 1 if opening else -1
            if now.skip_depth == 0:
                _end_drawing(at, flow)
        if now.skip_math and opening:
            _drawn(src, given, flow)
        if not (now.skip_math and tag == _MATH and opening):
            return i

    if tag == _MATH:
        stop = -1
        if opening:
            stop = x.end_of(src, n, i, name_start, name_end, scan.no_end, tag)
        if stop < 0:
            return i
        return _math(scan, at, i, stop) if f.has_room(flow) else -1

    if name == _META_HASH and opening:
        _meta(src, given, scan.facts)
        return i

    # ------------------------------------------------- what the element is
    is_block = tag <= LAST_BLOCK
    if tag == _BUTTON and _is_words(stack, now, opening):
        is_block = False
    first_token = now.tokens
    mark = np.int64(-1)
    kind = np.uint64(0)
    hashed = np.uint64(0)
    keeps_space = False
    typed = False
    hidden = False
    above = 0
    if opening:
        hashed = class_hash(src, given)
        now.tokens, mark, kind = names(
            src, given, hashed, is_block, scan.tokens, first_token, scan.known
        )  # fmt: skip
        hidden, rendered, keeps_space, typed, above = visibility(
            src, given, tag, mark, is_block, now.pre_top >= 0, options.keep_hidden,
            _lines_follow(src, n, i, mark, tag, stack.tags[now.top]),
        )  # fmt: skip
        # Signs of arithmetic are there for copies of the text, too: `1/2` of Wikipedia.
        sign = src[i] == ch.SLASH or src[i] == ch.PLUS
        if mark == MARK_SCREEN_READER and not is_block and sign and src[i + 1] == ch.LESS:
            hidden = False
        # A button behind the words of a heading is a tool next to it.
        hidden = hidden or (tag == _BUTTON and is_block and _H1 <= stack.tags[now.top] <= _H6)
        if rendered:
            _drawing(src, at, i, given, flow)
            hidden = True
        elif hidden:
            hidden = tag != _IMG or mark != MARK_FORMULA
            now.drawn_at = -1
            now.drawn_kind = s.HTML_INLINE
        if hidden and not self_closing:
            if tag != _BR and tag != _IMG and tag != _INPUT and tag != _WBR and tag != _HR:
                _skip(now, name, not is_block or rendered)
                now.tokens = first_token
                return i
            if tag != _BR:
                return i
        if tag == _HTML or tag == _BODY:
            _root(given, tag, first_token, scan.elements.tokens, scan.facts, now)
            return i

    # ------------------------------------------------- inline
    tex_end = np.int64(-1)  # of an element that has nothing but TeX
    if opening and now.pre_top < 0:
        drawn_later = mark == MARK_FORMULA or (
            mark == MARK_CODE_CELL
            and has_name(src, given.start[_AT_CLASS], given.end[_AT_CLASS], _RENDER_MATH)
        )
        if drawn_later or tag == _TEX_MATH:
            tex_end = _tex_end(src, n, i, tag == _TEX_MATH, tag == _CODE)
    flush = False
    if not is_block:
        now.tokens = first_token
        if opening and tag == _SPAN and given.start[_AT_TEX] >= 0 and f.has_room(flow):
            f.formula(flow, s.HTML_INLINE, given.start[_AT_TEX], given.end[_AT_TEX], False)
            _skip(now, name, False)
            now.drawn_at = -1
            return i
        if opening and mark == MARK_KATEX_SOURCE and f.has_room(flow):
            end = _bare_text(src, n, i)
            if end > i:
                shown = contains(src, max(0, at - _ABOVE), at, _KATEX_SHOWN)
                kind_of = s.KATEX_TEXT_DISPLAY if shown else s.KATEX_TEXT
                f.formula(flow, kind_of, i, end, False)
                return end
        if opening and tex_end > i and f.has_room(flow):
            if tag == _TEX_MATH and _just_said(now):
                now.atom_soft = 1  # the MathML of the same formula
                f.drop_soft(flow.atoms, now)
            f.formula(flow, s.HTML_INLINE, i, tex_end, f.STATED if tag == _TEX_MATH else 0)
            return tex_end
        if opening and options.images and tag == _IMG and given.start[_AT_ALT] >= 0 and not hidden:
            before = now.atoms
            _image(src, at, i, given, mark, flow)
            if now.atoms == before:
                f.alternative(src, given.start[_AT_ALT], given.end[_AT_ALT], flow)
        elif opening:
            code = typed or tag == _TT or tag == _SAMP or mark == MARK_NAMED_CODE
            if code:
                now.indents = 1
            flush = _inline(scan, at, i, tag, mark, hashed)
        else:
            f.inline_end(flow, tag)
            f.inline_closed(src, at, i, tag, flow.text, now)
        if not flush:
            return i
    elif now.pre_top >= 0 and not ends_code(stack, now, tag, not opening):
        now.tokens = first_token
        line_of_code(flow.text, stack, now, tag, not opening, self_closing)
        return i

    # ------------------------------------------------- a block ends, an element opens or ends
    if not f.close_block(flow, scan.blocks, flush):
        return -1
    if flush:
        return i
    now.bold = 0
    if not opening:
        now.tokens = first_token
        end_element(stack, now, tag)
        return i
    if tag == _HR:
        now.tokens = first_token
        return i
    end_implied(stack, now, tag)
    if now.top >= options.max_depth:
        now.over += 1
        now.tokens = first_token
        return i
    if not _open(scan, at, i, tag, kind, above):
        return -1
    if typed and now.typed_top < 0:
        now.typed_top = now.top
    now.indents = mark == MARK_NAMED_CODE or mark == MARK_CODE_CELL
    if tex_end > i and f.has_room(flow):
        f.formula(flow, s.HTML_DISPLAY, i, tex_end, 0)
        return tex_end
    data = given.start[_AT_DATA]
    if tag == _DIV and data >= 0 and f.has_room(flow):
        if contains(src, data, given.end[_AT_DATA], _EXPRESSION):
            f.formula(flow, s.DATA_JSON, data, given.end[_AT_DATA], 0)
    listing = keeps_space or tag == _PRE or tag == _LISTING or tag == _XMP
    if listing and now.pre_top < 0:
        now.pre_top = now.top
        now.code = 0
        if i < n and src[i] == ch.CR:
            i += 1
        if i < n and src[i] == ch.LF:
            i += 1  # the first line break of <pre> doesn't count
    return i


@borrowing
def _begin(elements, stack, now):  # type: ignore[no-untyped-def]
    """Open the body, whether or not the page has one."""
    now.atom_at = now.pre_top = now.typed_top = now.line_at = now.drawn_at = -1
    now.elements = 1
    elements.parent[0] = -1
    elements.tag[0] = stack.tags[0] = _BODY
    elements.depth[0] = elements.above[0] = elements.flags[0] = 0
    elements.at[0] = elements.span[0] = elements.tokens[0] = elements.tokens[1] = 0
    elements.class_[0] = 0
    elements.signature[0] = 0


@kernel
def _scan(src, n, max_nodes, options):  # type: ignore[no-untyped-def]
    """The Page of a source that is padded to be longer than n."""
    options = Options(*options)
    nodes = min(x.count_open(src), max_nodes) + 2
    deep = options.max_depth + 2
    state = np.zeros(1, f.STATE)
    now = state[0]
    blocks = f.Blocks(
        np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32),
        np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32),
        np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
    )  # fmt: skip
    elements = Elements(
        np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32),
        np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.uint64),
        np.empty(nodes + 1, np.int32), np.empty((nodes, 2), np.int32), np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
    )  # fmt: skip
    atoms = f.Atoms(
        np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
    )  # fmt: skip
    text = np.empty(n + n // 4 + 64, np.uint8)
    tokens = np.empty(nodes * _TOKENS_ROOM, np.uint64)
    facts = np.zeros(s.FACTS, np.int32)
    stack = Stack(
        np.zeros(deep, np.int64), np.zeros(deep, np.int64), np.zeros(deep, np.int64),
        np.zeros(OTHER + 1, np.int64),
    )  # fmt: skip
    flow = f.Flow(text, atoms, np.zeros(2, np.int64), now)
    scan = Scan(
        src, n, flow, blocks, elements, tokens, facts, stack,
        Given(np.zeros(x.ATTRIBUTES, np.int64), np.zeros(x.ATTRIBUTES, np.int64)),
        Known(
            np.zeros(KNOWN, np.uint64), np.empty(KNOWN, np.int32), np.empty(KNOWN, np.int32),
            np.empty(KNOWN, np.uint64), np.empty(KNOWN_TOKENS, np.uint64),
        ),
        np.zeros(x.NEVER, np.uint8), np.zeros(OTHER + 1, np.uint8),
    )  # fmt: skip
    _begin(elements, stack, now)
    i = 0
    while i >= 0:
        visible = now.skip_depth == 0
        i = f.run_of_text(src, n, i, flow) if visible else next_byte(src, i, n, OPEN)
        if i >= n:
            break
        if x.is_tag(src, i):
            i = _read_tag(scan, i, options)
        else:
            i = x.passed_over(src, n, i, visible, scan.never)
    status = s.STATUS_UNCLOSED_HIDDEN if now.skip_depth > 0 else s.STATUS_OK
    if i < 0 or not f.close_block(flow, blocks, False):
        status = s.STATUS_TOO_MANY
    end = state[0]
    b, m, a = end.blocks, end.elements, end.atoms
    return s.Page(
        status, text[: end.length],
        blocks.start[:b], blocks.end[:b], blocks.element[:b], blocks.chars[:b],
        blocks.link_chars[:b], blocks.links[:b], blocks.tags[:b], blocks.bold_chars[:b],
        blocks.formulas[:b], blocks.flags[:b],
        elements.parent[:m], elements.tag[:m], elements.depth[:m], elements.above[:m],
        elements.flags[:m], elements.signature[:m], elements.tokens[: m + 1],
        elements.class_[:m], elements.at[:m], elements.span[:m],
        tokens[: end.tokens],
        atoms.at[:a], atoms.kind[:a], atoms.start[:a], atoms.end[:a], facts,
    )  # fmt: skip


def scan(
    content: bytes,
    max_depth: int,
    max_nodes: int,
    noscript_bytes: int,
    keep_hidden: bool = False,
    images: bool = False,
) -> s.Page:
    """Scan a page, UTF-8 without a byte order mark.

    A <noscript> shorter than `noscript_bytes` holds counting pixels, pictures loaded late and
    requests to turn scripts on; a longer one the page as those without scripts see it.
    `keep_hidden` treats hidden elements as visible, `images` reads alternative texts. The status is
    STATUS_TOO_MANY when the page has more than `max_nodes` elements, blocks or formulas, and
    STATUS_UNCLOSED_HIDDEN when a hidden element ran to the end of the page.
    """
    source = np.frombuffer(content + bytes(_PADDING), np.uint8)
    # Plain tuples are handed over in a fifth of the time that named ones take.
    options = tuple(Options(max_depth, noscript_bytes, keep_hidden, images))
    page: s.Page = _scan(source, len(content), max_nodes, options)
    return page
