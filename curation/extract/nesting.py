"""Which elements are open: implied end tags, what an end tag closes, and the lines of code.

`now` is the state of the scan (`flow.STATE`).
"""

from typing import Any, NamedTuple

from curation.bytes import ascii as ch
from curation.compiled import Bool, Bytes, Int, Int64s, borrowing, inlined
from curation.extract.flow import State, new_line
from curation.extract.markup import TAG


class Stack(NamedTuple):
    """The open block elements."""

    tags: Any
    elements: Any  # their numbers
    texts: Any  # in code, where the text of each starts
    open_count: Any  # [tags] how often each tag is open


_P, _DIV, _LI, _DD, _DT = TAG["p"], TAG["div"], TAG["li"], TAG["dd"], TAG["dt"]
_H1, _H6, _HR, _UL, _OL = TAG["h1"], TAG["h6"], TAG["hr"], TAG["ul"], TAG["ol"]
_TD, _TH, _TR, _TABLE = TAG["td"], TAG["th"], TAG["tr"], TAG["table"]
_THEAD, _TBODY, _TFOOT, _CAPTION = TAG["thead"], TAG["tbody"], TAG["tfoot"], TAG["caption"]
_PRE, _BUTTON = TAG["pre"], TAG["button"]
_STEPS = 512  # how far a tag looks for the one that it closes


@inlined
def push(stack: Stack, now: State, tag: Int, element: Int) -> None:
    """Open a block element."""
    now.top += 1
    stack.tags[now.top] = tag
    stack.elements[now.top] = element
    stack.open_count[tag] += 1


@inlined
def _pop(stack: Stack, now: State, depth: Int) -> None:
    """Close the elements from `depth` on."""
    for k in range(now.top, depth - 1, -1):
        stack.open_count[stack.tags[k]] -= 1
    now.top = depth - 1


@borrowing
def _section(tag: Int) -> Bool:
    return tag == _TBODY or tag == _THEAD or tag == _TFOOT


@borrowing
def _over_text(tags: Int64s, k: Int) -> Int:
    """The depth below k that is neither paragraph nor division."""
    while k > 0 and (tags[k] == _P or tags[k] == _DIV):
        k -= 1
    return k


@borrowing
def _cell_ended(tags: Int64s, top: Int) -> Int:
    """The depth of the cell that a new cell ends; -1: none."""
    found = -1
    for k in range(top, max(-1, top - _STEPS - 1), -1):
        if k == 0 or tags[k] == _TABLE or tags[k] == _TR:
            return found if k > 0 else -1
        if tags[k] == _TD or tags[k] == _TH:
            found = k
    return -1


@borrowing
def _row_ended(tags: Int64s, top: Int, is_row: Bool) -> Int:
    """The depth of the row or section that a new one ends; -1: none."""
    found = -1
    for k in range(top, max(-1, top - _STEPS - 1), -1):
        t = tags[k]
        if k == 0 or t == _TABLE:
            return found if k > 0 else -1
        if t == _TR or t == _TD or t == _TH or t == _CAPTION or (not is_row and _section(t)):
            found = k
    return -1


@inlined
def _implied_end(tags: Int64s, open_count: Int64s, top: Int, tag: Int) -> Int:
    """The depth of the element that a start tag ends; -1: none."""
    if tag == _LI:
        k = _over_text(tags, top) if open_count[_LI] > 0 else 0
        return k if k > 0 and tags[k] == _LI else -1
    if tag == _DD or tag == _DT:
        k = _over_text(tags, top)
        return k if tags[k] == _DD or tags[k] == _DT else -1
    if _H1 <= tag <= _H6:
        return top if _H1 <= tags[top] <= _H6 else -1
    if tag == _TD or tag == _TH:
        return _cell_ended(tags, top)
    if tag == _TR or _section(tag):
        return _row_ended(tags, top, tag == _TR)
    return top if tag == _BUTTON and tags[top] == _BUTTON else -1


@inlined
def end_implied(stack: Stack, now: State, tag: Int) -> None:
    """Close what a start tag ends: paragraphs, items, cells, rows, headings (WHATWG HTML, 13.2.6)."""
    if now.over > 0 or now.top == 0:
        return
    tags = stack.tags
    if tags[now.top] == _P:
        _pop(stack, now, now.top)
    ended = _implied_end(tags, stack.open_count, now.top, tag)
    if ended >= 0:
        _pop(stack, now, ended)
    now.element = stack.elements[now.top]
    if now.top < now.typed_top:
        now.typed_top = -1
    if now.linked and now.top < now.link_top:
        now.linked = 0
        now.links = 0


@inlined
def _closed(tags: Int64s, top: Int, tag: Int) -> Int:
    """The depth of the element that an end tag closes; 0: none."""
    table_part = tag == _TABLE or tag == _TR or tag == _TD or tag == _TH or _section(tag)
    heading = _H1 <= tag <= _H6
    for k in range(top, max(0, top - _STEPS), -1):
        t = tags[k]
        if t == tag or (heading and _H1 <= t <= _H6):
            return k
        if t == _TABLE or (tag == _LI and (t == _UL or t == _OL)):
            return 0
        if not table_part and (t == _TD or t == _TH or t == _CAPTION):
            return 0
    return 0


@inlined
def end_element(stack: Stack, now: State, tag: Int) -> None:
    """Close what an end tag closes."""
    if now.over > 0:
        now.over -= 1
    elif stack.open_count[tag] > 0 or _H1 <= tag <= _H6:
        depth = _closed(stack.tags, now.top, tag)
        if depth > 0:
            _pop(stack, now, depth)
    now.element = stack.elements[now.top]
    if now.top < now.pre_top:
        now.pre_top = -1
    if now.top < now.typed_top:
        now.typed_top = -1
    leaves_cell = tag == _TD or tag == _TABLE or tag == _TR
    if now.linked and now.top < now.link_top and leaves_cell:
        now.linked = 0
        now.links = 0


@borrowing
def ends_code(stack: Stack, now: State, tag: Int, end_tag: Bool) -> Bool:
    """Whether a block tag inside code ends it: the end tag of its element, or of one around it."""
    tags, pre_top = stack.tags, now.pre_top
    k = now.top
    while (k > pre_top) & (tags[k] != tag):
        k -= 1
    if end_tag:
        ends = k == pre_top if tags[k] == tag else stack.open_count[tag] > 0
        return ends & (tag != _P) & (tag != _HR) & (now.over == 0)
    # <pre> inside <pre>: the first was not closed
    return (tag == _PRE) & (tags[pre_top] == _PRE) & (now.top == pre_top)


@borrowing
def line_of_code(
    text: Bytes, stack: Stack, now: State, tag: Int, end_tag: Bool, self_closing: Bool
) -> None:
    """A block element inside code is a line of it."""
    if not end_tag:
        if now.line_due or now.length > now.line_start:
            new_line(text, now)
        now.line_due = 0
        if tag == _HR:
            return
        if self_closing or now.top >= len(stack.tags) - 2:
            now.over += 1
            return
        push(stack, now, tag, now.element)
        stack.texts[now.top] = now.length
        return
    opened = -1
    if now.over > 0:
        now.over -= 1
    else:
        k = now.top
        while k > now.pre_top and stack.tags[k] != tag:
            k -= 1
        if k > now.pre_top:
            opened = stack.texts[k]
            _pop(stack, now, k)
    if not (0 <= opened < now.length and text[now.length - 1] == ch.LF):
        now.line_due = int(now.length > now.start)
