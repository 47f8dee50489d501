"""One compiled pass from the bytes of a page to blocks of text and the elements that hold them.

No tree is built. A stack of open block elements, with the implied end tags of HTML, says what a run
of text is in; inline elements are looked at and forgotten. A block is a run of inline text
directly under one block element. The pass is linear in the bytes, keeps at most `max_depth` open
elements (deeper ones are flattened into their ancestors) and at most `max_nodes` elements, blocks
or formulas; no input makes it fail.

`lexing` reads bytes, `attributes` what attributes say, `flow` makes blocks of text, `nesting` keeps
the stack; here is what each tag does.
"""

from typing import Any, NamedTuple

import numpy as np

from curation.bytes import ascii as ch
from curation.bytes.hash_tables import find
from curation.bytes.search import next_byte, stands_at, word
from curation.compiled import Bool, Bytes, Int, Int32s, Records, borrowing, inlined, kernel, merged
from curation.extract import blocks as s
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
from curation.extract.lexing import OPEN, Given, contains, has_name
from curation.extract.markup import (
    ANCESTOR_OF_TAG,
    AT_LANGUAGE,
    ATTRIBUTE,
    BYTES,
    FLAG_ASKS,
    FLAG_SHOWS,
    FNV_PRIME,
    LAST_BLOCK,
    LAST_SKIPPED,
    LETTER,
    MARK_CODE,
    MARK_CODE_CELL,
    MARK_FORMULA,
    MARK_FRAGMENT,
    MARK_LINE,
    MARK_NAMED_CODE,
    MARK_NOTE,
    MARK_SCREEN_READER,
    OTHER,
    TAG,
    TAG_KEYS,
    TAG_VALUES,
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

_LABEL = TAG["label"]
_IMG, _BR, _WBR, _INPUT, _MATH = TAG["img"], TAG["br"], TAG["wbr"], TAG["input"], TAG["math"]
_HR, _HTML, _BODY = TAG["hr"], TAG["html"], TAG["body"]
_H1, _H6, _DT, _SUMMARY = TAG["h1"], TAG["h6"], TAG["dt"], TAG["summary"]
_BUTTON, _P, _CODE, _SUP = TAG["button"], TAG["p"], TAG["code"], TAG["sup"]
_SUB, _SPAN = TAG["sub"], TAG["span"]
_TEXTAREA, _TD, _TH = TAG["textarea"], TAG["td"], TAG["th"]
_PRE, _LISTING, _XMP = TAG["pre"], TAG["listing"], TAG["xmp"]
_SCRIPT, _TITLE, _NOSCRIPT = TAG["script"], TAG["title"], TAG["noscript"]
_TEMPLATE, _TT, _SAMP = TAG["template"], TAG["tt"], TAG["samp"]
_AT_CLASS, _AT_HREF, _AT_ALT = ATTRIBUTE["class"], ATTRIBUTE["href"], ATTRIBUTE["alt"]
_AT_SRC, _AT_TYPE, _AT_MATHML = ATTRIBUTE["src"], ATTRIBUTE["type"], ATTRIBUTE["data-mathml"]
_AT_PROPERTY, _AT_NAME = ATTRIBUTE["property"], ATTRIBUTE["name"]
_AT_CONTENT, _AT_ITEMTYPE = ATTRIBUTE["content"], ATTRIBUTE["itemtype"]
_AT_READONLY = ATTRIBUTE["readonly"]
_AT_ROLE, _AT_SHADOW = ATTRIBUTE["role"], ATTRIBUTE["shadowrootmode"]
_AT_LINE, _AT_HIDDEN, _AT_ID = ATTRIBUTE["data-line"], ATTRIBUTE["hidden"], ATTRIBUTE["id"]
_META_HASH = np.uint64(name_hash(b"meta"))
_SAYS = np.array([fnv(b"og:type"), fnv(b"og:title"), fnv(b"generator")], np.uint64)
_SAID_AT = np.array([s.OG_TYPE, s.OG_TITLE, s.GENERATOR])  # slots of the facts
_MATH_TYPE, _DISPLAY = word(b"math/"), word(b"display")
_SCHEMA = word(b"schema.org/")
_QA_PAGE, _QUESTION = word(b"qapage"), word(b"question")
_FAQ_PAGE, _FORUM_POST = word(b"faqpage"), word(b"discussionforumposting")
_LD_JSON = word(b"ld+json")
_COLON_MATH = word(b":math")
_LINE_DIV, _LINE = word(b'<div class="line"'), word(b"line")
_DIV_TAG, _DIV_END, _SPAN_TAG = word(b"<div"), word(b"</div"), word(b"<span")
_PRE_TAG, _LIST_TAG, _TABLE_TAG = word(b"<pre"), word(b"<ol"), word(b"<table")
_TAGS_AHEAD = 6
_OF_LISTINGS = (MARK_CODE, MARK_CODE_CELL, MARK_FRAGMENT)
_HOLDERS = (TAG["pre"], TAG["table"], TAG["tr"], TAG["td"], TAG["ol"], TAG["li"])
_CURSOR = word(b"read-only-cursor")  # GitHub's, over the code that it shows
_COLSPAN, _ROWSPAN = word(b"colspan="), word(b"rowspan=")
_CODE_TAG, _CODE_END = word(b"<code"), word(b"</code")
_CODE_NAME = word(b"code")
_MOST_SPAN = 1000  # columns (HTML standard); rows are as limited here
_TEX_BYTES = 2000  # of an element that has nothing but a formula
_EMOJI = word(b"emoji")
_SIGN_BYTES = 40  # of a sign with its selectors and joiners
_TOKENS_ROOM = 32  # class tokens for each element that there is room for
#: By number of the tag: elements without content, and those that keep white space.
_IS_EMPTY, _IS_LISTING = np.zeros((2, OTHER + 1), np.bool_)
_IS_EMPTY[[_BR, _IMG, _INPUT, _WBR, _HR]] = True
_IS_LISTING[[_PRE, _LISTING, _XMP]] = True
_NOTHING = np.uint64(0)
_PADDING = 16  # bytes at least, so that looking ahead needs no care
_COUNTED = 248  # bytes at a time, so that a byte counts them


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


#: Bytes of text in a <noscript>; a shorter one holds counting pixels, pictures loaded late and requests
#: to turn scripts on.
_NOSCRIPT_BYTES = 300


class Options(NamedTuple):
    """What `scan` is asked for."""

    max_depth: Int
    keep_hidden: Bool


@borrowing
def _note(facts: Int32s, slot: Int, start: Int, end: Int) -> None:
    """Keep the first span of the source that says a fact."""
    if facts[slot] == 0:
        facts[slot] = start
        facts[slot + 1] = end


@borrowing
def _meta(src: Bytes, given: Given, facts: Int32s) -> None:
    """What a <meta> says of the page."""
    if given.start[_AT_CONTENT] < 0:
        return
    which = _AT_PROPERTY if given.start[_AT_PROPERTY] >= 0 else _AT_NAME
    if given.start[which] < 0:
        return
    key = x.hash_lower(src, given.start[which], given.end[which])
    for k in range(len(_SAYS)):
        if key == _SAYS[k]:
            _note(facts, _SAID_AT[k], given.start[_AT_CONTENT], given.end[_AT_CONTENT])


@borrowing
def _script(src: Bytes, given: Given, start: Int, end: Int, flow: f.Flow, facts: Int32s) -> Bool:
    """A script may be the source of a formula, or linked data. False: too many formulas."""
    now = flow.now
    if given.start[_AT_TYPE] < 0:
        return True
    first = given.start[_AT_TYPE]
    last = given.end[_AT_TYPE]
    if contains(src, first, last, _MATH_TYPE) and (now.skip_depth == 0 or now.skip_math):
        kind = s.TEX_INLINE
        if contains(src, first, last, _DISPLAY):
            kind = s.TEX_DISPLAY
        f.drop_soft(flow.atoms, now)
        if not f.has_room(flow):
            return False
        f.formula(flow, kind, start, end, 0)
    elif contains(src, first, last, _LD_JSON) and now.linked_scripts < s.MAX_LINKED_DATA:
        slot = s.LINKED_DATA + 2 * now.linked_scripts
        facts[slot] = start
        facts[slot + 1] = end
        now.linked_scripts += 1
    return True


@borrowing
def _image(src: Bytes, at: Int, i: Int, given: Given, mark: Int, flow: f.Flow) -> None:
    """An image, its tag in src[at:i], may be a formula."""
    alt = given.start[_AT_ALT]
    if alt >= 0 and given.start[_AT_CLASS] >= 0 and 0 < given.end[_AT_ALT] - alt <= _SIGN_BYTES:
        first, last = given.start[_AT_CLASS], given.end[_AT_CLASS]
        if src[alt] >= 0x80 and contains(src, first, last, _EMOJI):
            f.picture_of_sign(src, alt, given.end[_AT_ALT], flow.text, flow.now)
            return
    address = given.start[_AT_SRC]
    written = given.start[_AT_MATHML] >= 0
    if alt < 0 and address < 0 and mark != MARK_FORMULA and not written:
        return
    alt_end = given.end[_AT_ALT] if alt >= 0 else alt
    address_end = given.end[_AT_SRC] if address >= 0 else address
    shows = written or mark == MARK_FORMULA
    shows = shows or formula_image(src, alt, alt_end, address, address_end)
    parted = flow.now.space_due != 0  # by a blank from a formula: this is another one
    if shows and f.has_room(flow) and (parted or flow.now.atom_at != flow.now.length):
        f.formula(flow, s.IMAGE, at, i, 0)


@borrowing
def _tex_end(src: Bytes, n: Int, i: Int, in_code: Bool) -> Int:
    """Where the content of an element from i on ends if it is nothing but TeX, -1 if it isn't.

    It has signs of TeX, and no delimiters. `in_code`: the element is a <code>, in others one may
    be around the formula.
    """
    tex = False
    k = i
    while k < min(n, i + _TEX_BYTES):
        c = src[k]
        if c == ch.LESS:
            if in_code or not (stands_at(src, k, n, _CODE_TAG) or stands_at(src, k, n, _CODE_END)):
                return k if tex and src[k + 1] == ch.SLASH else -1
        elif c == ch.DOLLAR or (
            c == ch.BACKSLASH and (src[k + 1] == ch.PAREN or src[k + 1] == ch.BRACKET)
        ):
            return -1
        elif c == ch.CARET or c == ch.UNDERSCORE or c == ch.EQUALS or c == ch.BACKSLASH:
            tex = True
        k += 1
    return -1


@borrowing
def _lines_follow(src: Bytes, n: Int, i: Int, mark: Int, tag: Int, above: Int) -> Bool:
    """Whether lines of a listing begin at i, behind a `tag` inside `above` with a class's `mark`.

    Themes of pages use the same names around paragraphs. A cell or an item may be a line itself.
    """
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
def _span(src: Bytes, at: Int, i: Int) -> Int:
    """Columns and rows of a cell, its tag in src[at:i], as `Page.e_span`."""
    columns = _number_behind(src, at, i, _COLSPAN)
    rows = _number_behind(src, at, i, _ROWSPAN)
    return 0 if columns == 1 and rows == 1 else columns + (rows << 16)


@borrowing
def _number_behind(src: Bytes, at: Int, i: Int, word: Bytes) -> Int:
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
def _title(src: Bytes, n: Int, i: Int, stop: Int, facts: Int32s) -> Int:
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
def _root(
    given: Given, tag: Int, first_token: Int, element_tokens: Int32s, facts: Int32s, now: f.State
) -> None:
    """What <html> and <body> say: the page's language, and the names of a body before all else."""
    if tag == _HTML and given.start[AT_LANGUAGE] >= 0:
        _note(facts, s.LANGUAGE, given.start[AT_LANGUAGE], given.end[AT_LANGUAGE])
    first = element_tokens[1] == 0 and now.elements == 1
    if tag == _BODY and now.tokens > first_token and first:
        element_tokens[1] = now.tokens
    else:
        now.tokens = first_token


@merged
def _inline(scan: Scan, at: Int, i: Int, tag: Int, mark: Int, hashed: Int) -> Bool:
    """An inline element begins, its tag in src[at:i]. Whether it ends the block, as lines do."""
    src, given, flow = scan.src, scan.given, scan.flow
    text, now = flow.text, flow.now
    if tag == _BR:
        return f.line_break(text, now)
    if tag == _INPUT:
        scan.elements.flags[now.element] |= FLAG_ASKS
    if tag == _IMG:
        scan.elements.flags[now.element] |= FLAG_SHOWS
        before = now.atoms + now.chars
        _image(src, at, i, given, mark, flow)
        if now.atoms + now.chars == before:
            f.inline_closed(src, at, i, tag, text, now)
    elif now.pre_top >= 0 and tag != _CODE and (mark == MARK_LINE or given.start[_AT_LINE] >= 0):
        f.line_element(text, now)
    elif tag == _CODE and now.pre_top >= 0:
        if given.start[_AT_CLASS] >= 0 and f.has_room(flow):  # which may say the language
            f.atom(flow, s.CODE_CLASS, given.start[_AT_CLASS], given.end[_AT_CLASS])
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
def _open(scan: Scan, at: Int, i: Int, tag: Int, kind: Int, above: Int) -> Bool:
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
    elements.span[e] = _span(scan.src, at, i) if tag == _TD or tag == _TH else 0
    elements.signature[e] = (kind ^ np.uint64(tag)) * FNV_PRIME
    elements.class_[e, 0] = max(given.start[_AT_CLASS], 0)
    elements.class_[e, 1] = given.end[_AT_CLASS] if given.start[_AT_CLASS] >= 0 else 0
    now.element = e
    now.elements += 1
    push(scan.stack, now, tag, e)
    return True


@inlined
def _is_listing(src: Bytes, given: Given) -> Bool:
    """Whether a <textarea> is for reading: it is read-only, or of class `code` (Go's examples)."""
    if given.start[_AT_READONLY] >= 0 or given.start[_AT_CLASS] < 0:
        return given.start[_AT_READONLY] >= 0
    return has_name(src, given.start[_AT_CLASS], given.end[_AT_CLASS], _CODE_NAME)


@merged
def _textarea(scan: Scan, at: Int, i: Int, stop: Int, max_depth: Int) -> Bool:
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
def _after_text(src: Bytes, n: Int, i: Int, name: Int) -> Int:
    """Where reading goes on after `<style />` and the like, which ends at i.

    In XHTML it is empty; but HTML ignores the slash, so text with an end tag of its own is its
    content.
    """
    k = i
    while k < n and src[k] != ch.LESS:
        k += 1
    return k if src[k + 1] == ch.SLASH and x.tag_name(src, n, k + 2)[0] == name else i


@merged
def _opaque(scan: Scan, at: Int, i: Int, stop: Int, tag: Int, max_depth: Int) -> Int:
    """An element whose content, src[i:stop], is no markup; return where reading goes on, -1 where
    there are too many blocks or formulas."""
    src, given, now = scan.src, scan.given, scan.flow.now
    enough = True
    if tag == _TITLE:
        stop = _title(src, scan.size, i, stop, scan.facts)
    elif tag == _TEXTAREA and now.skip_depth == 0 and _is_listing(src, given):
        enough = _textarea(scan, at, i, stop, max_depth)
    elif tag == _SCRIPT and stop >= 0:
        enough = _script(src, given, i, stop, scan.flow, scan.facts)
    return max(i, stop) if enough else -1


@inlined
def _math(scan: Scan, at: Int, stop: Int) -> None:
    """A <math>, from `at` to `stop`."""
    flow, now = scan.flow, scan.flow.now
    f.drop_soft(flow.atoms, now)
    after_image = now.atoms > 0 and flow.atoms.kind[max(now.atoms - 1, 0)] == s.IMAGE  # Canvas
    if not after_image or now.space_due != 0 or now.atom_at != now.length:
        f.formula(flow, s.MATHML, at, stop, int(now.skip_depth > 0))


@inlined
def _tag_number(src: Bytes, start: Int, end: Int, name: Int) -> Int:
    """The number of the tag whose name, of hash `name`, is src[start:end]."""
    tag = find(TAG_KEYS, TAG_VALUES, name)
    if tag >= 0:
        return tag
    colon = end - len(_COLON_MATH)
    return _MATH if colon > start and stands_at(src, colon, end, _COLON_MATH) else OTHER


@inlined
def _is_words(stack: Stack, now: f.State, opening: Bool) -> Bool:
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
def _item_types(src: Bytes, start: Int, end: Int) -> Int:
    """Bits of the schema.org types that an `itemtype` names."""
    if not contains(src, start, end, _SCHEMA):
        return 0
    types = s.QA_PAGE if contains(src, start, end, _QA_PAGE) else 0
    types |= s.QUESTION if contains(src, start, end, _QUESTION) else 0
    types |= s.FAQ_PAGE if contains(src, start, end, _FAQ_PAGE) else 0
    return types | (s.FORUM_POST if contains(src, start, end, _FORUM_POST) else 0)


class Tag(NamedTuple):
    """The tag under way, its attributes in Scan.given."""

    at: Any  # its `<`
    end: Any  # behind its `>`
    name: Any  # hash of its name
    name_end: Any
    number: Any  # TAG
    opening: Any
    self_closing: Any


class Look(NamedTuple):
    """What the attributes of a start tag say of its element; of an end tag, nothing."""

    hashed: Any  # of its class
    mark: Any
    kind: Any
    hidden: Any
    keeps_space: Any
    typed: Any  # in a font for code
    above: Any  # bits for `e_above`


@inlined
def _tag_at(scan: Scan, at: Int) -> Tag:
    """Read the tag at `at`."""
    src, n, given = scan.src, scan.size, scan.given
    opening = src[at + 1] != ch.SLASH
    start = at + 1 if opening else at + 2
    name, end = x.tag_name(src, n, start)
    number = _tag_number(src, start, end, name)
    j, self_closing = x.attributes(src, n, end, opening, given, scan.never)
    return Tag(at, min(n, j + 1), name, end, number, opening, self_closing)


@inlined
def _end_of(scan: Scan, tag: Tag) -> Int:
    """Where the end tag of the element that begins is, -1 if nowhere."""
    return x.end_of(scan.src, scan.size, tag.end, tag.at + 1, tag.name_end, scan.no_end, tag.number)


@merged
def _unread(scan: Scan, tag: Tag, max_depth: Int) -> Int:
    """Where reading goes on behind the tag of an element whose content is no markup."""
    if not tag.opening or (tag.number == _TEMPLATE and scan.given.start[_AT_SHADOW] >= 0):
        return tag.end  # a browser shows what is in a shadow root in the place of its element
    if tag.self_closing and tag.number != _SCRIPT and tag.number != _TITLE:
        return _after_text(scan.src, scan.size, tag.end, tag.name)
    return _opaque(scan, tag.at, tag.end, _end_of(scan, tag), tag.number, max_depth)


@inlined
def _noscript(scan: Scan, tag: Tag, options: Options) -> Int:
    """Where reading goes on behind a <noscript> that is passed over, -1 if it is read."""
    now = scan.flow.now
    if not tag.opening or tag.at < now.without_scripts:
        return tag.end if scan.stack.open_count[_NOSCRIPT] == 0 else -1
    stop = _end_of(scan, tag)
    said, in_tag = 0, False
    for i in range(tag.end, stop):
        c = scan.src[i]  # in pages that were saved, `&` begins tags, too
        in_tag = c == ch.LESS or c == ch.AMPERSAND or (in_tag and c != ch.GREATER)
        said += c > ch.SPACE and not in_tag
    if said <= _NOSCRIPT_BYTES and not (options.keep_hidden and stop >= 0):
        return max(tag.end, stop)
    now.without_scripts = stop
    return np.int64(-1)


@inlined
def _is_passed_over(scan: Scan, tag: Tag) -> Bool:
    """Whether a tag is in an element that is passed over, and no formula of it."""
    now = scan.flow.now
    if tag.name == now.skip_hash and not tag.self_closing:
        now.skip_depth += 1 if tag.opening else -1
    return not (now.skip_math and tag.number == _MATH and tag.opening)


@merged
def _look(scan: Scan, tag: Tag, is_block: Bool, options: Options) -> Look:
    """What the attributes of a start tag say of its element."""
    src, i, flow, given = scan.src, tag.end, scan.flow, scan.given
    now, around = flow.now, scan.stack.tags[scan.flow.now.top]
    hashed = class_hash(src, given)
    now.tokens, mark, kind = names(
        src, given, hashed, is_block, scan.tokens, now.tokens, scan.known
    )
    hidden, rendered, keeps_space, typed, above = visibility(
        src, given, tag.number, mark, is_block, now.pre_top >= 0, options.keep_hidden,
        mark in _OF_LISTINGS and _lines_follow(src, scan.size, i, mark, tag.number, around),
    )  # fmt: skip
    # Signs of arithmetic are there for copies of the text, too: `1/2` of Wikipedia.
    sign = src[i] == ch.SLASH or src[i] == ch.PLUS
    if mark == MARK_SCREEN_READER and not is_block and sign and src[i + 1] == ch.LESS:
        hidden = False
    # A button behind the words of a heading is a tool next to it.
    hidden = hidden or (tag.number == _BUTTON and is_block and _H1 <= around <= _H6)
    if rendered:
        # Its source precedes it (KaTeX), is in it, follows it, or is in an attribute (MathJax).
        hidden = True
        if given.start[_AT_MATHML] >= 0 and f.has_room(flow):
            f.formula(flow, s.DATA_MATHML, given.start[_AT_MATHML], given.end[_AT_MATHML], 1)
    elif hidden:
        hidden = tag.number != _IMG or mark != MARK_FORMULA
    if hidden and not tag.self_closing and not _IS_EMPTY[tag.number]:
        now.skip_hash, now.skip_depth = tag.name, 1
        now.skip_math = not is_block or rendered
    return Look(hashed, mark, kind, hidden, keeps_space, typed, above)


@inlined
def _tex_of(scan: Scan, tag: Tag, look: Look) -> Int:
    """The end of an element that has nothing but TeX, -1 if it has anything else."""
    if not tag.opening or scan.flow.now.pre_top >= 0 or look.mark != MARK_FORMULA:
        return np.int64(-1)
    return _tex_end(scan.src, scan.size, tag.end, tag.number == _CODE)


@merged
def _inline_formula(flow: f.Flow, tag: Tag, tex_end: Int) -> Int:
    """Add the formula that an inline element is; return where reading goes on, -1 if it is none."""
    if tex_end <= tag.end or not f.has_room(flow):
        return np.int64(-1)
    f.formula(flow, s.HTML_INLINE, tag.end, tex_end, 0)
    return tex_end


@merged
def _inline_tag(scan: Scan, tag: Tag, look: Look) -> Bool:
    """The tag of an inline element that is no formula. Whether it ends the block, as lines do."""
    src, i, flow = scan.src, tag.end, scan.flow
    now = flow.now
    if not tag.opening:
        f.inline_end(flow, tag.number)
        f.inline_closed(src, tag.at, i, tag.number, flow.text, now)
        return False
    code = tag.number == _TT or tag.number == _SAMP
    if look.typed or code or look.mark == MARK_NAMED_CODE:
        now.indents = 1
    return _inline(scan, tag.at, i, tag.number, look.mark, look.hashed)


@merged
def _block_tag(scan: Scan, tag: Tag, look: Look, tex_end: Int, first_token: Int, depth: Int) -> Int:
    """An element opens or ends behind the block before it; return where reading goes on, -1 where
    there are too many."""
    i, flow, now = tag.end, scan.flow, scan.flow.now
    now.bold = 0
    if tag.opening and tag.number != _HR:
        end_implied(scan.stack, now, tag.number)
    if not tag.opening or tag.number == _HR or now.top >= depth:
        now.tokens = first_token
        if not tag.opening:
            end_element(scan.stack, now, tag.number)
        elif tag.number != _HR:
            now.over += 1
        return i
    if not _open(scan, tag.at, i, tag.number, look.kind, look.above):
        return np.int64(-1)
    if look.typed and now.typed_top < 0:
        now.typed_top = now.top
    now.indents = look.mark == MARK_NAMED_CODE or look.mark == MARK_CODE_CELL
    if tex_end > i and f.has_room(flow):
        f.formula(flow, s.HTML_DISPLAY, i, tex_end, 0)
        return tex_end
    return _listing_begins(scan, i) if look.keeps_space or _IS_LISTING[tag.number] else i


@inlined
def _listing_begins(scan: Scan, i: Int) -> Int:
    """An element opened that keeps white space; return where its content begins."""
    src, now = scan.src, scan.flow.now
    if now.pre_top >= 0:
        return i
    now.pre_top = now.top
    now.code = 0
    i += i < scan.size and src[i] == ch.CR
    return i + (i < scan.size and src[i] == ch.LF)  # a line break at its beginning doesn't count


@merged
def _element(scan: Scan, tag: Tag, options: Options) -> Int:
    """The tag of an element whose content is markup; return where reading goes on, -1 where there
    are too many elements, blocks or formulas."""
    stack, now, i = scan.stack, scan.flow.now, tag.end
    first_token = now.tokens
    is_block = tag.number <= LAST_BLOCK
    is_block = is_block and not (tag.number == _BUTTON and _is_words(stack, now, tag.opening))
    look = Look(_NOTHING, np.int64(-1), _NOTHING, False, False, False, np.int64(0))
    if tag.opening:
        look = _look(scan, tag, is_block, options)
        if look.hidden and not tag.self_closing and tag.number != _BR:
            if not _IS_EMPTY[tag.number]:
                now.tokens = first_token
            return i
        if tag.number == _HTML or tag.number == _BODY:
            _root(scan.given, tag.number, first_token, scan.elements.tokens, scan.facts, now)
            return i
    tex_end = _tex_of(scan, tag, look)
    if not is_block:
        now.tokens = first_token
        behind = _inline_formula(scan.flow, tag, tex_end)
        if behind >= 0 or not _inline_tag(scan, tag, look):
            return max(behind, i)
        return i if f.close_block(scan.flow, scan.blocks, True) else np.int64(-1)
    if now.pre_top >= 0 and not ends_code(stack, now, tag.number, not tag.opening):
        now.tokens = first_token
        line_of_code(scan.flow.text, stack, now, tag.number, not tag.opening, tag.self_closing)
        return i
    if not f.close_block(scan.flow, scan.blocks, False):
        return np.int64(-1)
    return _block_tag(scan, tag, look, tex_end, first_token, options.max_depth)


@inlined
def _read_tag(scan: Scan, at: Int, options: Options) -> Int:
    """What the tag at `at` does; return where reading goes on, -1 where there are too many elements,
    blocks or formulas."""
    tag, now, given = _tag_at(scan, at), scan.flow.now, scan.given
    types = given.start[_AT_ITEMTYPE]
    if types >= 0:
        scan.facts[s.ITEM_TYPES] |= _item_types(scan.src, types, given.end[_AT_ITEMTYPE])
    if LAST_BLOCK < tag.number <= LAST_SKIPPED:
        return _unread(scan, tag, options.max_depth)
    if tag.number == _NOSCRIPT and now.skip_depth == 0:
        behind = _noscript(scan, tag, options)
        if behind >= 0:
            return behind
    if now.skip_depth > 0 and _is_passed_over(scan, tag):
        return tag.end
    if tag.number == _MATH:
        stop = _end_of(scan, tag) if tag.opening else np.int64(-1)
        if stop < 0:
            return tag.end
        if not f.has_room(scan.flow):
            return np.int64(-1)
        _math(scan, at, stop)
        return stop
    if tag.name == _META_HASH and tag.opening:
        _meta(scan.src, given, scan.facts)
        return tag.end
    return _element(scan, tag, options)


@borrowing
def _begin(elements: Elements, stack: Stack, now: f.State) -> None:
    """Open the body, whether or not the page has one."""
    now.atom_at = now.pre_top = now.typed_top = now.line_at = -1
    now.elements = 1
    elements.parent[0] = -1
    elements.tag[0] = stack.tags[0] = _BODY
    elements.depth[0] = elements.above[0] = elements.flags[0] = 0
    elements.span[0] = elements.tokens[0] = elements.tokens[1] = 0
    elements.class_[0] = 0
    elements.signature[0] = 0


@kernel
def _scan(
    src: Bytes, n: Int, state: Records, max_nodes: Int, max_depth: Int, keep_hidden: Bool
) -> tuple[Any, ...]:
    """Scan a source that is padded to be longer than n; return status and columns of its Page."""
    nodes = 2
    for begin in range(0, n, _COUNTED):  # in bytes, many at a time
        few = np.uint8(0)
        for k in range(np.uint64(begin), np.uint64(min(n, begin + _COUNTED))):
            few += np.uint8(src[k] == ch.LESS)
        nodes += np.int64(few)
    nodes, deep = min(nodes, max_nodes + 2), max_depth + 2
    b, e = np.empty((10, nodes), np.int32), np.empty((6, nodes), np.int32)
    a, open_ = np.empty((4, nodes), np.int32), np.zeros((3, deep), np.int64)
    signature, places = np.empty(nodes, np.uint64), np.empty(nodes + 1, np.int32)
    classes, given = np.empty((nodes, 2), np.int32), np.empty((2, x.ATTRIBUTES), np.int64)
    known, of_known = np.zeros((2, KNOWN), np.uint64), np.empty((2, KNOWN), np.int32)
    text, facts = np.empty(n + n // 4 + 64, np.uint8), np.zeros(s.FACTS, np.int32)
    tokens, never = np.empty(nodes * _TOKENS_ROOM, np.uint64), np.zeros(x.NEVER, np.uint8)
    now = state[0]
    flow = f.Flow(text, f.Atoms(a[0], a[1], a[2], a[3]), np.zeros(2, np.int64), now)
    scan = Scan(
        src, n, flow, f.Blocks(b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9]),
        Elements(e[0], e[1], e[2], e[3], e[4], signature, places, classes, e[5]), tokens, facts,
        Stack(open_[0], open_[1], open_[2], np.zeros(OTHER + 1, np.int64)),
        Given(given[0], given[1]),
        Known(known[0], of_known[0], of_known[1], known[1], np.empty(KNOWN_TOKENS, np.uint64)),
        never, np.zeros(OTHER + 1, np.uint8),
    )  # fmt: skip
    options = Options(max_depth, keep_hidden)
    _begin(scan.elements, scan.stack, now)
    i = 0
    while i >= 0:
        visible = now.skip_depth == 0
        i = f.run_of_text(src, n, i, flow) if visible else next_byte(src, i, n, OPEN)
        if i >= n:
            break
        if x.is_tag(src, i):
            i = _read_tag(scan, i, options)
        else:
            i = x.passed_over(src, n, i, visible, never)
    status = s.STATUS_UNCLOSED_HIDDEN if now.skip_depth > 0 else s.STATUS_OK
    if i < 0 or not f.close_block(flow, scan.blocks, False):
        status = s.STATUS_TOO_MANY
    return status, text, b, e, signature, places, classes, tokens, a, facts


def scan(content: bytes, max_depth: int, max_nodes: int, keep_hidden: bool = False) -> s.Page:
    """Scan a page, UTF-8 without a byte order mark.

    `keep_hidden` treats hidden elements as visible. The status is
    STATUS_TOO_MANY when the page has more than `max_nodes` elements, blocks or formulas, and
    STATUS_UNCLOSED_HIDDEN when a hidden element ran to the end of the page.
    """
    source = np.frombuffer(content + bytes(_PADDING), np.uint8)
    state = np.frombuffer(bytearray(f.STATE.itemsize), f.STATE)  # zeros, sooner than NumPy has them
    status, text, blocks, elements, signature, places, classes, tokens, atoms, facts = _scan(
        source, len(content), state, max_nodes, max_depth, keep_hidden
    )
    now = state[0]
    b, m = now["blocks"], now["elements"]
    *of_elements, span = elements[:, :m]
    return s.Page._make(
        (
            status, text[: now["length"]], *blocks[:, :b], *of_elements, signature[:m],
            places[: m + 1], classes[:m], span, tokens[: now["tokens"]], *atoms[:, : now["atoms"]],
            facts,
        )
    )  # fmt: skip
