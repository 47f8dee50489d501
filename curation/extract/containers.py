"""What blocks are in: names, likeness, the dominant container, cards, the title's neighbourhood.

Pages with very many blocks: which of them are judged, and which others they represent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.hash_tables import intern, slot_of
from curation.compiled import (
    Bool,
    Float,
    Float32s,
    Float64s,
    Int,
    Int32s,
    Uint64s,
    borrowing,
    kernel,
)
from curation.extract import words as w
from curation.extract.blocks import Page
from curation.extract.markup import ANCESTOR, FNV_PRIME, TAG

_H1, _H6, _P, _DIV, _ARTICLE = TAG["h1"], TAG["h6"], TAG["p"], TAG["div"], TAG["article"]
DOMINANT = 0.5  # share of the long text that makes a container dominant
_HEADING = ANCESTOR["heading"]
CARDS = 3  # like siblings that make cards


#: Bit next to those of the regions: the name has a weight.
WEIGHED = 1 << 30


@kernel
def scores_of(
    starts: Int32s, hashes: Uint64s, keys: Uint64s, weights: Float32s, bits: Int32s
) -> tuple[Float32s, Int32s]:
    """Score [m] and region bits [m] of the names of each element, or the words of each block: the
    sum of their weights over the square root of how many have one."""
    m = len(starts) - 1
    score = np.zeros(m, np.float32)
    regions = np.zeros(m, np.int32)
    # Large tables are in slow memory: reads that don't wait for each other's outcome overlap.
    mask = np.uint64(len(keys) - 1)
    first = np.empty(starts[m], np.uint64)
    for k in range(starts[m]):
        first[k] = keys[hashes[k] & mask]
    for e in range(m):
        total = np.float32(0)
        hits = 0
        found = 0
        for k in range(starts[e], starts[e + 1]):
            if first[k] == 0:
                continue
            slot = slot_of(keys, hashes[k], hashes[k], np.uint64(0))
            if keys[slot] != 0:
                found |= bits[slot]
                if bits[slot] & WEIGHED:
                    total += weights[slot]
                    hits += 1
        if hits:
            score[e] = total / np.sqrt(np.float32(hits))
        regions[e] = found & ~WEIGHED
    return score, regions


@kernel
def group(keys: Uint64s) -> tuple[Int32s, Int32s]:
    """Number equal keys alike: group of each key [n], size of each group."""
    n = len(keys)
    size = 16
    while size < 2 * n + 2:
        size *= 2
    table = np.full(size, -1, np.int32)
    groups = np.empty(n, np.int32)
    sizes = np.zeros(n + 1, np.int32)
    distinct = np.empty(n + 1, np.uint64)
    count = 0
    for i in range(n):
        groups[i] = intern(keys[i], table, distinct, np.uint64(size - 1), count)
        count = max(count, groups[i] + 1)
        sizes[groups[i]] += 1
    return groups, sizes


class Chain(NamedTuple):
    """What the elements [m] of a page have from those above them."""

    regions: Any
    flags: Any
    low: Any  # class score
    high: Any
    total: Any  # which fades
    article: Any  # the outermost <article>, -1: none
    article_order: Any  # its number
    articles: Any  # of the page


class Siblings(NamedTuple):
    """Elements of one tag and class under one parent."""

    group: Any  # [m] that each element is in
    sizes: Any  # [m + 1] of the groups
    words: Any  # [m + 1] of the groups
    order: Any  # [m] place of each element in its group


@kernel
def inherited(
    e_parent: Int32s, e_tag: Int32s, e_flags: Int32s, class_score: Float32s, regions: Int32s
) -> Chain:
    """The Chain of a page."""
    m = len(e_parent)
    chain_regions = regions.copy()
    chain_flags = e_flags.copy()
    low = class_score.copy()
    high = class_score.copy()
    total = class_score.copy()
    low[0] = min(low[0], np.float32(0))
    high[0] = max(high[0], np.float32(0))
    article = np.full(m, -1, np.int32)
    article_order = np.zeros(m, np.int32)
    articles = 0
    for e in range(1, m):
        p = e_parent[e]
        chain_regions[e] |= chain_regions[p]
        chain_flags[e] |= chain_flags[p]
        low[e] = min(low[p], low[e])
        high[e] = max(high[p], high[e])
        total[e] = np.float32(0.8) * total[p] + class_score[e]
        article[e] = article[p]
        if e_tag[e] == _ARTICLE and article[p] < 0:
            article[e] = e
            articles += 1
            article_order[e] = articles
    return Chain(chain_regions, chain_flags, low, high, total, article, article_order, articles)


@kernel
def dominant(e_parent: Int32s, long: Float64s, page_long: Float) -> tuple[Int32s, Int, Int]:
    """The innermost element with most of the long text: how each element [m] relates to it, how many
    steps it is from the body, and which it is.

    An element on the way there has its number of steps, one inside has one more than the last.
    """
    m = len(e_parent)
    best = np.full(m, -1, np.int32)
    for e in range(1, m):
        p = e_parent[e]
        if best[p] < 0 or long[e] > long[best[p]]:
            best[p] = e
    place = np.full(m, -1, np.int32)
    place[0] = 0
    d = 0
    steps = 0
    while best[d] >= 0 and long[best[d]] >= DOMINANT * page_long and long[best[d]] > 0:
        d = best[d]
        steps += 1
        place[d] = steps
    for e in range(1, m):
        if place[e] < 0:
            q = place[e_parent[e]]
            place[e] = q if q < steps else steps + 1
    return place, steps, d


@kernel
def like(e_parent: Int32s, e_signature: Uint64s) -> tuple[Int32s, Int32s]:
    """The group [m] of elements of one tag and class under one parent, and the size of each group."""
    keys = np.empty(len(e_parent), np.uint64)
    for e in range(len(e_parent)):
        keys[e] = (e_signature[e] * FNV_PRIME) ^ np.uint64(e_parent[e] + 1)
    return group(keys)


@kernel
def siblings_of(e_parent: Int32s, e_sig: Uint64s, words: Float64s) -> Siblings:
    """The Siblings of a page whose elements have so many words."""
    m = len(e_parent)
    siblings, sizes = like(e_parent, e_sig)
    group_words = np.zeros(m + 1, np.float64)
    count = np.zeros(m + 1, np.int32)
    order = np.zeros(m, np.int32)
    for e in range(m):
        g = siblings[e]
        group_words[g] += words[e]
        order[e] = count[g]
        count[g] += 1
    return Siblings(siblings, sizes, group_words, order)


@kernel
def cards_of(page: Page, siblings: Int32s, sizes: Int32s, named: Bool) -> Int32s:
    """The outermost of many like elements that each element [m] is in; -1: none.

    `named`: divisions of a page that have no class name aren't alike for that.
    """
    card = np.full(len(siblings), -1, np.int32)
    for e in range(1, len(card)):
        card[e] = card[page.e_parent[e]]
        tag = page.e_tag[e]
        other = tag == _P or _H1 <= tag <= _H6
        other = other or (named and tag == _DIV and page.e_class[e, 1] <= page.e_class[e, 0])
        if card[e] < 0 and sizes[siblings[e]] >= CARDS and not other:
            card[e] = e
    return card


@kernel
def kinds_of(b_element: Int32s, e_parent: Int32s, e_sig: Uint64s, levels: Int) -> Uint64s:
    """Hash [n] of the tags and classes of a block's element and those above it, `levels` in all."""
    keys = np.zeros(len(b_element), np.uint64)
    for b in range(len(b_element)):
        e = b_element[b]
        for _ in range(levels):
            if e < 0:
                break
            keys[b] = (keys[b] ^ e_sig[e]) * FNV_PRIME
            e = e_parent[e]
    return keys


@borrowing
def title_of_page(
    page: Page, b_words: Float64s, counts: Float32s, title_size: Int
) -> tuple[Int, Int]:
    """The block that repeats the page's title and its kind: 3 a heading, 2 another, 1 an <h1> that
    does not, 0 there is none.
    """
    b_element = page.b_element
    n = len(b_element)
    found = -1
    for b in range(n):
        if title_size > 0 and b_words[b] <= 2.5 * title_size + 4:
            shared = counts[b, w.TITLE_SHARED]
            if shared >= 0.6 * counts[b, w.WORDS] and shared >= 0.5 * title_size:
                if page.e_above[b_element[b]] & _HEADING:
                    return b, 3
                if found < 0:
                    found = b
    if found >= 0:
        return found, 2
    for b in range(n):
        if page.e_tag[b_element[b]] == _H1:
            return b, 1
    return -1, 0


@kernel
def meeting(e_parent: Int32s, element: Int) -> Int32s:
    """The innermost element [m] that holds both each element and the given one."""
    meets = np.zeros(len(e_parent), np.int32)
    x = element
    while x > 0:
        meets[x] = x
        x = e_parent[x]
    for e in range(1, len(e_parent)):
        if meets[e] == 0:
            meets[e] = meets[e_parent[e]]
    return meets


_LEVELS = 3  # elements that are alike around blocks of one kind
_KINDS = 4096  # kinds of blocks distinguished; a power of two


def representatives(page: Page, most: int) -> npt.NDArray[np.int32]:
    """The block [n] that is judged in place of each block of an enormous page, or itself.

    Blocks of one kind (the same element, parent and grandparent by tag and class) share the
    judgement of one among them, so many that about `most` are judged: at most `most` and one for
    each of the 4,096 kinds distinguished.
    """
    every = -(-len(page.b_start) // most)
    keys = kinds_of(page.b_element, page.e_parent, page.e_signature, _LEVELS)
    kinds = (keys ^ (keys >> np.uint64(32))) & np.uint64(_KINDS - 1)
    order = np.argsort(kinds, kind="stable")
    sizes = np.unique(kinds, return_counts=True)[1]
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # in its kind
    out = np.empty(len(order), np.int32)
    out[order] = order[np.arange(len(order)) - place % every]
    return out
