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
    DATA_MATHML,
    FACTS,
    GENERATOR,
    IMAGE_ALT,
    IMAGE_SOURCE,
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
    ELEMENT,
    ELEMENTS,
    ENDED,
    LENGTH,
    LINKED_SCRIPTS,
    OVER,
    PRE_TOP,
    SKIP_DEPTH,
    SKIP_MATH,
    SLOTS,
    TOKENS,
    TOP,
    class_of_code,
    close_block,
    drop_soft,
    exponent,
    formula,
    has_room,
    inline_end,
    inline_start,
    keep_apart,
    line_break,
    picture_of_sign,
    run_of_text,
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
    hash_lower,
    is_tag,
    next_byte,
    passed_over,
    tag_name,
)
from curation.extract.markup import (
    ANCESTOR_OF_TAG,
    ATTRIBUTE,
    FNV_PRIME,
    LAST_BLOCK,
    LAST_SKIPPED,
    LOWER,
    MARK_FORMULA,
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
_PRE, _LISTING, _XMP = TAG["pre"], TAG["listing"], TAG["xmp"]
_SCRIPT, _TITLE, _NOSCRIPT = TAG["script"], TAG["title"], TAG["noscript"]
_AT_CLASS, _AT_HREF, _AT_ALT = ATTRIBUTE["class"], ATTRIBUTE["href"], ATTRIBUTE["alt"]
_AT_SRC, _AT_TYPE, _AT_MATHML = ATTRIBUTE["src"], ATTRIBUTE["type"], ATTRIBUTE["data-mathml"]
_AT_PROPERTY, _AT_NAME = ATTRIBUTE["property"], ATTRIBUTE["name"]
_AT_CONTENT, _AT_ITEMTYPE = ATTRIBUTE["content"], ATTRIBUTE["itemtype"]
_META_HASH = np.uint64(fnv(b"meta"))
_OG_TYPE_HASH, _GENERATOR_HASH = np.uint64(fnv(b"og:type")), np.uint64(fnv(b"generator"))
_OG_TITLE_HASH = np.uint64(fnv(b"og:title"))
_MATH_TYPE, _DISPLAY = np.frombuffer(b"math/", np.uint8), np.frombuffer(b"display", np.uint8)
_MML, _ASCII = np.frombuffer(b"mml", np.uint8), np.frombuffer(b"ascii", np.uint8)
_QA_PAGE = np.frombuffer(b"schema.org/qapage", np.uint8)
_LD_JSON = np.frombuffer(b"ld+json", np.uint8)
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
def _image(src, av_start, av_end, mark, text, atoms, now):  # type: ignore[no-untyped-def]
    """An image may be a formula."""
    alt = av_start[_AT_ALT]
    if alt >= 0 and av_start[_AT_CLASS] >= 0 and 0 < av_end[_AT_ALT] - alt <= _SIGN_BYTES:
        first, last = av_start[_AT_CLASS], av_end[_AT_CLASS]
        if src[alt] >= 0x80 and contains(src, first, last, _EMOJI):
            picture_of_sign(src, alt, av_end[_AT_ALT], text, now)
            return
    address = av_start[_AT_SRC]
    if alt < 0 and address < 0 and mark != MARK_FORMULA:
        return
    alt_end = av_end[_AT_ALT] if alt >= 0 else alt
    address_end = av_end[_AT_SRC] if address >= 0 else address
    shows = mark == MARK_FORMULA or formula_image(src, alt, alt_end, address, address_end)
    if not shows or not has_room(atoms, now) or now[ATOM_AT] == now[LENGTH]:
        return
    if alt_end > alt:
        formula(text, atoms, now, IMAGE_ALT, alt, alt_end, False)
    else:
        formula(text, atoms, now, IMAGE_SOURCE, max(address, 0), max(address_end, 0), False)


@borrowing
def _drawing(src, av_start, av_end, text, atoms, now):  # type: ignore[no-untyped-def]
    """Whether to pass over the drawing of a formula.

    Its source stands before it (KaTeX), behind it, or in an attribute (MathJax).
    """
    if av_start[_AT_MATHML] >= 0 and has_room(atoms, now):
        formula(text, atoms, now, DATA_MATHML, av_start[_AT_MATHML], av_end[_AT_MATHML], True)
        return True
    alone = LOWER[src[av_start[_AT_CLASS]]] == 107 and now[ATOM_AT] != now[LENGTH]
    return not alone  # katex-html without its source is all there is


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
        _image(src, av_start, av_end, mark, text, atoms, now)
    elif tag == _CODE and now[PRE_TOP] >= 0:
        if av_start[_AT_CLASS] >= 0:
            class_of_code(atoms, now, av_start[_AT_CLASS], av_end[_AT_CLASS])
    else:
        keep_apart(src, at, i, text, now)
        if tag == _SUP:
            exponent(src, n, i, text, now)
        inline_start(text, atoms, now, tag, av_start[_AT_HREF] >= 0)
    return False


@inlined
def _open(  # type: ignore[no-untyped-def]
    src, av_start, av_end, tag, hashed, above, elements, signatures, classes,
    stack_tag, stack_element, open_count, now,
):  # fmt: skip
    """Add a block element. False when there are too many."""
    e = now[ELEMENTS]
    if e >= len(signatures) - 1:
        return False
    parent = now[ELEMENT]
    elements[_PARENT, e] = parent
    elements[_TAG, e] = tag
    elements[_DEPTH, e] = now[TOP] + 1
    elements[_ABOVE, e] = elements[_ABOVE, parent] | ANCESTOR_OF_TAG[tag] | above
    elements[_KINDS, e] = kinds(src, av_start, av_end)
    elements[_TOKENS, e + 1] = now[TOKENS]
    signatures[e] = (hashed ^ np.uint64(tag)) * FNV_PRIME
    if av_start[_AT_CLASS] >= 0:
        classes[e, 0] = av_start[_AT_CLASS]
        classes[e, 1] = av_end[_AT_CLASS]
    now[ELEMENT] = e
    now[ELEMENTS] += 1
    push(stack_tag, stack_element, open_count, now, tag, e)
    return True


# Rows of `elements`, the columns `e_*` of Page.
_PARENT, _TAG, _DEPTH, _ABOVE, _KINDS, _TOKENS = range(6)


@kernel
def _scan(src, words, n, max_depth, max_nodes, noscript_bytes, keep_hidden):  # type: ignore[no-untyped-def]
    nodes = min(count_open(words), max_nodes) + 2
    text = np.empty(n + n // 4 + 64, np.uint8)
    blocks = np.empty((10, nodes), np.int32)
    elements = np.empty((6, nodes + 1), np.int32)
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
    # the body, whether or not the page has one
    now[ELEMENTS] = 1
    elements[:, 0] = 0
    elements[_PARENT, 0] = -1
    elements[_TAG, 0] = _BODY
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
            tag = OTHER
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
                continue
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
            formula(text, atoms, now, MATHML, at, stop, now[SKIP_DEPTH] > 0)
            i = stop
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
        above = 0
        if opening:
            hashed = class_hash(src, av_start, av_end)
            now[TOKENS], mark = names(
                src, av_start, av_end, hashed, is_block, tokens, first_token,
                known_hashes, known, known_tokens,
            )  # fmt: skip
            hidden, rendered, keeps_space, above = visibility(
                src, av_start, av_end, tag, mark, is_block, now[PRE_TOP] >= 0, keep_hidden
            )
            if rendered:
                rendered = _drawing(src, av_start, av_end, text, atoms, now)
                hidden = hidden or rendered
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
        if not is_block:
            now[TOKENS] = first_token
            if opening:
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
            src, av_start, av_end, tag, hashed, above, elements, signatures, classes,
            stack_tag, stack_element, open_count, now,
        )  # fmt: skip
        if not opened:
            status = STATUS_TOO_MANY
            break
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
    content: bytes, max_depth: int, max_nodes: int, noscript_bytes: int, keep_hidden: bool = False
) -> Page:
    """Scan a page, UTF-8 without a byte order mark.

    A <noscript> shorter than `noscript_bytes` holds counting pixels, pictures loaded late and
    requests to turn scripts on; a longer one the page as those without scripts see it.
    `keep_hidden` treats hidden elements as visible. The status is STATUS_TOO_MANY when the page
    has more than `max_nodes` elements, blocks or formulas, and STATUS_UNCLOSED_HIDDEN when a hidden
    element ran to the end of the page.
    """
    padded = content + bytes(_PADDING + -len(content) % 8)
    source, words = np.frombuffer(padded, np.uint8), np.frombuffer(padded, np.uint64)
    found: tuple[Any, ...] = _scan(
        source, words, len(content), max_depth, max_nodes, noscript_bytes, keep_hidden
    )
    status, text, blocks, elements, signatures, classes, tokens, atoms, facts, now = found
    n, m, a = int(now[BLOCKS]), int(now[ELEMENTS]), int(now[ATOMS])
    parts: tuple[Any, ...] = (
        status,
        text[: now[LENGTH]],
        *(blocks[row, :n] for row in _BLOCK_ROWS),
        *(elements[row, :m] for row in (_PARENT, _TAG, _DEPTH, _ABOVE, _KINDS)),
        signatures[:m],
        elements[_TOKENS, : m + 1],
        classes[:m],
        tokens[: now[TOKENS]],
        *(atoms[row, :a] for row in (A_AT, A_KIND, A_START, A_END)),
        facts,
    )
    return Page(*parts)


# In the order of Page.
_BLOCK_ROWS = (
    B_START, B_END, B_ELEMENT, B_CHARS, B_LINK_CHARS, B_LINKS, B_TAGS, B_BOLD, B_FORMULAS, B_FLAGS
)  # fmt: skip
