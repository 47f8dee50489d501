"""The parts of an article: what is directly in the elements that hold its paragraphs. Of those between
paragraphs teasers, requests and labels go, whatever holds them; those behind the last paragraph stay
as far as they are prose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from curation.bytes.ascii import COLON
from curation.bytes.code_points import code_point
from curation.compiled import (
    Bool,
    Bools,
    Float,
    Float64s,
    Int,
    Int32s,
    borrowing,
    inlined,
    kernel,
    merged,
)
from curation.extract import blocks as s
from curation.extract.containers import group
from curation.extract.markup import ANCESTOR, FLAG_ASKS, FLAG_SHOWS, OTHER, TAG
from curation.extract.units import WIDE_COLON, ends_in_colon, last_kept
from curation.extract.words import DIGIT, kind_of
from curation.hashing import xxh64

if TYPE_CHECKING:
    from curation.extract.decide import Limits, Places

_P, _LEGEND, _SUMMARY = TAG["p"], TAG["legend"], TAG["summary"]
_QUOTE, _FIGURE, _CAPTION = TAG["blockquote"], TAG["figure"], TAG["figcaption"]
_HEADING, _FIGURES = ANCESTOR["heading"], ANCESTOR["figure"]
_BESIDE = ANCESTOR["nav"] | ANCESTOR["aside"] | ANCESTOR["footer"]
_MOST = 0.5  # of the kept text, that the holders of paragraphs have
_LABEL, _ARROW = 40, 3  # characters of a label, and of signs before a link, at most
_LONG = 0.75  # of the characters of a paragraph, from which what is between two and tells something is one
_HEADLINE = 10  # characters of a link at least that may be a headline
_OF_ALL = 5  # parts of a kind, one of which at least says the same
# Mean probability that a part needs which asks for something: tabs and spoilers have it.
_ASKING = 0.8
_NAMED = 0.5  # by which class names of something beside an article score lower than its own
POINTS = 0.3  # share of links from which a part points elsewhere
# Elements that hold text of an article, whatever its site; others say nothing by themselves.
_TEXT = np.zeros(OTHER + 1, np.bool_)
for _name in "p h1 h2 h3 h4 h5 h6 ul ol dl dir menu li table pre listing xmp blockquote center hgroup".split():
    _TEXT[TAG[_name]] = True


class Parts(NamedTuple):
    """The parts of an article in reading order, k of them."""

    start: Any  # [k + 1] the first block of each
    element: Any  # [k] it; of text without an element of its own, that around it
    own: Any  # [k] it is a paragraph, or text without an element of its own
    chars: Any  # [k]
    linked: Any  # [k] characters in links
    links: Any  # [k]
    likely: Any  # [k] mean probability of its blocks, 0 of those that a rule took out
    flags: Any  # [k] FLAG_ASKS and FLAG_SHOWS of all that is in it


@kernel
def _holders(kept: Bools, page: s.Page, alike: tuple[Int32s, Int32s]) -> Bools:
    """Which elements [m] hold the paragraphs of an article: like elements of one parent whose own text and
    paragraphs are most of what is kept, and if they are several, their parent."""
    groups, sizes = alike
    text = np.zeros(len(sizes), np.float64)
    for b in range(len(kept)):
        if kept[b]:
            e = page.b_element[b]
            text[groups[page.e_parent[e] if page.e_tag[e] == _P else e]] += page.b_chars[b]
    best = text.argmax()
    holders = (groups == best) & (text[best] >= max(_MOST * text.sum(), 1.0))
    if sizes[best] > 1:
        holders[page.e_parent[holders]] = True
    return holders


@kernel
def parts_of(
    kept: Bools,
    probabilities: Float64s,
    score: Float64s,
    page: s.Page,
    alike: tuple[Int32s, Int32s],
) -> Parts:
    """The Parts of a page whose blocks [n] are kept or not, none where no elements hold its paragraphs;
    `alike` is what `like` says of its elements."""
    n, m = len(kept), len(page.e_parent)
    holders = _holders(kept, page, alike)
    part = np.full(m, holders[0] - 1, np.int32)
    flags = np.zeros(m + 1, np.int32)  # the last is for what is in no part
    for e in range(1, m):
        parent = page.e_parent[e]
        part[e] = e if holders[e] or holders[parent] else part[parent]
        flags[part[e]] |= page.e_flags[e]
    start = np.zeros(n + 1, np.int32)
    parts = Parts(
        start, np.empty(n, np.int32), np.zeros(n, np.bool_), np.zeros(n, np.int64),
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.float64), np.zeros(n, np.int32),
    )  # fmt: skip
    k = -1
    size = 0.0
    for b in range(n):
        e = page.b_element[b]
        if part[e] < 0:
            if k >= 0:
                break
            continue
        if k < 0 or part[e] != parts.element[k] or holders[e]:
            k += 1
            start[k] = b
            size = 0.0
            parts.element[k] = part[e]
            parts.own[k] = holders[e] or page.e_tag[part[e]] == _P
            parts.flags[k] = 0 if holders[e] else flags[part[e]]
        start[k + 1] = b + 1
        parts.chars[k] += page.b_chars[b]
        parts.linked[k] += page.b_link_chars[b]
        parts.links[k] += page.b_links[b]
        weight = np.sqrt(np.float64(page.b_chars[b])) + 1.0
        probability = probabilities[b] if score[b] > 0.0 else 0.0
        parts.likely[k] = (parts.likely[k] * size + probability * weight) / (size + weight)
        size += weight
    k += 1
    return Parts(
        start[: k + 1], parts.element[:k], parts.own[:k], parts.chars[:k], parts.linked[:k],
        parts.links[:k], parts.likely[:k], parts.flags[:k],
    )  # fmt: skip


@inlined
def _is_prose(parts: Parts, k: Int, limits: Limits) -> Bool:
    long = parts.chars[k] >= limits.ending_characters
    return long and 2 * parts.linked[k] < parts.chars[k]


@borrowing
def _label_of(page: s.Page, b: Int) -> Int:
    """Characters of a block up to its first colon, 0 if it has none."""
    i, count = np.int64(page.b_start[b]), 0
    while i < page.b_end[b]:
        point, size = code_point(page.text, i)
        count += 1 if point > 32 else 0
        if point == COLON or point == WIDE_COLON:
            return count
        i += size
    return 0


@borrowing
def _points_away(parts: Parts, k: Int, page: s.Page, where: Places, limits: Limits) -> Bool:
    """Whether a paragraph between two others is a headline that is a link, by itself or behind an arrow
    or a label with a colon."""
    b, rest = parts.start[k], parts.chars[k] - parts.linked[k]
    alone = parts.start[k + 1] == b + 1 and parts.links[k] == 1
    paragraph = parts.own[k] or page.e_tag[parts.element[k]] == _QUOTE
    if not (paragraph and alone) or parts.linked[k] < max(_HEADLINE, rest):
        return False
    if not (_is_prose(parts, k - 1, limits) and _is_prose(parts, k + 1, limits)):
        return False
    sign = kind_of(code_point(page.text, page.b_start[b])[0]) > DIGIT
    if rest <= (_ARROW if sign else 1):
        return not where.closed[b]
    return rest <= _LABEL and abs(_label_of(page, b) - rest) <= 1


@borrowing
def _needed(
    parts: Parts, k: Int, page: s.Page, where: Places, names: Float, limits: Limits
) -> Float:
    """The mean probability that a part between paragraphs needs; `names` is what the names around these say."""
    b, tag = parts.start[k + 1] - 1, page.e_tag[parts.element[k]]
    if parts.own[k] or _TEXT[tag]:
        label = parts.own[k] and parts.chars[k] <= _LABEL and not where.closed[b]
        return limits.likely_probability if label else 0.0
    if parts.flags[k] & FLAG_ASKS:
        return _ASKING
    if parts.linked[k] > POINTS * parts.chars[k]:
        return limits.article_threshold
    prose = _is_prose(parts, k, limits) and where.closed[b] and tag != _FIGURE
    return 0.0 if prose and where.names[b] >= names else limits.likely_probability


@kernel
def _labels(parts: Parts, page: s.Page, where: Places, limits: Limits) -> Bools:
    """Which parts [k] are short, next to prose, and say the same as a fifth of all of their tag and class:
    `Advertisement`."""
    said = np.arange(len(parts.own)).astype(np.uint64)  # each something else
    for k in range(len(said)):
        b = parts.start[k]
        words = parts.start[k + 1] > b + 1 or where.closed[b] or ends_in_colon(page, b)
        beside = k > 0 and _is_prose(parts, k - 1, limits)
        beside = beside or (k + 1 < len(said) and _is_prose(parts, k + 1, limits))
        if beside and parts.chars[k] <= _LABEL and not words:
            said[k] = xxh64(page.text, page.b_start[b], page.b_end[b], np.uint64(0))
    says, times = group(said)
    kinds, sizes = group(page.e_signature[parts.element])
    return (times[says] > 1) & (_OF_ALL * times[says] >= sizes[kinds])


@borrowing
def _list_of_links(parts: Parts, k: Int, page: s.Page, where: Places, limits: Limits) -> Int:
    """Of a part that is nothing but links: 1 if it completes a sentence that ends in a colon, -1 if it is a
    list of headlines below a label, which is shorter than they are; 0 otherwise."""
    if k == 0 or parts.links[k] < 2 or parts.linked[k] <= limits.link_share * parts.chars[k]:
        return 0
    b = parts.start[k] - 1
    heading = page.e_above[page.b_element[b]] & _HEADING != 0
    if parts.start[k - 1] != b or not (heading or ends_in_colon(page, b)):
        return 0
    if parts.chars[k - 1] * parts.links[k] < parts.linked[k]:
        return 0 if heading and parts.likely[k] >= limits.article_threshold else -1
    return 0 if heading else 1


@borrowing
def _tells(parts: Parts, k: Int, page: s.Page, where: Places) -> Bool:
    """Whether a part is told throughout, but for headings, asks for nothing, and is no figure, unless
    it has a caption and no picture."""
    some = False
    for b in range(parts.start[k], parts.start[k + 1]):
        tag, above = page.e_tag[page.b_element[b]], page.e_above[page.b_element[b]]
        heads = above & _HEADING != 0 or tag == _LEGEND or tag == _SUMMARY
        caption = tag == _CAPTION and parts.flags[k] & FLAG_SHOWS == 0
        told = where.told[b] and (caption or above & _FIGURES == 0)
        some = some or told
        if not told and (not heads or page.b_link_chars[b] > 0 or where.stock[b]):
            return False
    return some and parts.flags[k] & FLAG_ASKS == 0


@merged
def drop_others(
    parts: Parts,
    kept: Bools,
    score: Float64s,
    page: s.Page,
    where: Places,
    article: Bool,
    limits: Limits,
) -> Bools:
    """Take from `kept` [n] the parts between paragraphs that are none of the article, and set their `score`
    [n] to 0; return the blocks [n] of lists of links and of told parts that it got."""
    added = np.zeros(len(kept), np.bool_)
    own = np.flatnonzero(parts.own & kept[parts.start[:-1]])
    first, last = (own[0], own[-1]) if len(own) else (0, 0)
    long = _LONG * parts.chars[own].sum() / max(len(own), 1)
    labels = _labels(parts, page, where, limits)
    for k in range(0 if where.thread else len(parts.own)):
        start, end = parts.start[k], parts.start[k + 1]
        special = page.b_flags[start:end] & s.PRE != 0
        if end - start > limits.hole_blocks or special.any() or page.b_atoms[start:end].any():
            continue
        tag = page.e_tag[parts.element[k]]
        between = first < k < last
        listed = _list_of_links(parts, k, page, where, limits) if between else 0
        if listed > 0 and not kept[start - 1] and score[start - 1] < limits.likely_probability:
            listed = 0
        apart = between and not parts.own[k] and not labels[k] and parts.chars[k] >= long
        keeps = listed > 0 or (apart and _tells(parts, k, page, where))
        other = listed < 0 or (labels[k] and (tag == _P or not _TEXT[tag]))
        if between and not keeps and not other:
            likely = max(parts.likely[k], score[start] if parts.own[k] else 0.0)
            names = where.names[parts.start[first]]
            other = likely < _needed(parts, k, page, where, names, limits)
            other = other or (article and _points_away(parts, k, page, where, limits))
        start -= listed != 0
        if keeps:
            added[start:end] = ~(kept[start:end] | where.hidden[start:end])
            kept[start:end] |= added[start:end]
        elif other:
            kept[start:end] = False
            score[start:end] = 0.0
    return added


@kernel
def keep_end(
    parts: Parts,
    kept: Bools,
    added: Bools,
    probabilities: Float64s,
    score: Float64s,
    page: s.Page,
    where: Places,
    limits: Limits,
) -> None:
    """Add to `kept` [n] the parts behind the last kept block that are prose, whatever holds it, and note
    them in `added` [n]: paragraphs are judged like each other, and what ends them by itself."""
    last = last_kept(kept, len(kept))
    begin = -1  # of headings that the next part may be below
    some = False
    for k in range(len(parts.own) if last >= parts.start[0] else 0):
        start, end = parts.start[k], parts.start[k + 1]
        if end <= last + 1:
            continue
        tells = _tells(parts, k, page, where)
        chars, above = page.b_chars[start:end], page.e_above[page.b_element[start:end]]
        # Elements and names say only of what doesn't tell something that it is beside the article.
        named = (above & _BESIDE).any() or where.names[start:end].min() < where.names[last] - _NAMED
        asks = parts.flags[k] & FLAG_ASKS != 0 or where.comments[start:end].any()
        if asks or (named and not tells):
            if start > last and parts.chars[k] < _LABEL:
                continue  # as above an advertisement
            break
        if end - start == 1 and above[0] & _HEADING:
            begin = start if begin < 0 else begin
            continue
        completes = start == last + 1 and _list_of_links(parts, k, page, where, limits) > 0
        short = start > last and not some and parts.chars[k] < _LABEL
        beside = where.stock[start:end] | (2 * page.b_link_chars[start:end] >= chars)
        own = 2 * chars[~beside].sum() >= parts.chars[k]
        apart = tells and not parts.own[k]
        prose = apart or (own and parts.likely[k] >= limits.entry_probability)
        if end - start > limits.hole_blocks or not (completes or (prose and not short)):
            if short:
                continue
            break
        for b in range(max(start, last + 1) if begin < 0 else begin, end):
            likely = score[b] > 0.0 and probabilities[b] >= limits.hole_probability
            kept[b] = added[b] = kept[b] or likely or completes or (apart and not where.hidden[b])
        begin, some = -1, True
