"""What blocks are in: names, likeness, the dominant container, cards, the title's neighbourhood."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from curation.compiled import borrowing, kernel
from curation.extract import words as w
from curation.extract.markup import ANCESTOR, FNV_PRIME, TAG, first_keys, slot_of

_H1, _H6, _P, _ARTICLE = TAG["h1"], TAG["h6"], TAG["p"], TAG["article"]
DOMINANT = 0.5  # share of the long text that makes a container dominant
_HEADING = ANCESTOR["heading"]
_CARDS = 3  # like siblings that make cards


#: Bit next to those of the regions: the name has a weight.
WEIGHED = 1 << 30


@kernel
def class_scores(e_tokens, tokens, keys, weights, bits):  # type: ignore[no-untyped-def]
    """Score [m] and region bits [m] of the class and id names of each element."""
    m = len(e_tokens) - 1
    score = np.zeros(m, np.float32)
    regions = np.zeros(m, np.int32)
    first = first_keys(keys, tokens, e_tokens[m])
    for e in range(m):
        total = np.float32(0)
        hits = 0
        found = 0
        for k in range(e_tokens[e], e_tokens[e + 1]):
            slot = slot_of(keys, first[k], tokens[k])
            if slot >= 0:
                found |= bits[slot]
                if bits[slot] & WEIGHED:
                    total += weights[slot]
                    hits += 1
        if hits:
            score[e] = total / np.sqrt(np.float32(hits))
        regions[e] = found & ~WEIGHED
    return score, regions


@kernel
def group(keys):  # type: ignore[no-untyped-def]
    """Number equal keys alike: group of each key [n], size of each group."""
    n = len(keys)
    size = 16
    while size < 2 * n + 2:
        size *= 2
    table = np.full(size, -1, np.int32)
    groups = np.empty(n, np.int32)
    sizes = np.zeros(n + 1, np.int32)
    first = np.empty(n + 1, np.int32)
    count = 0
    for i in range(n):
        h = keys[i]
        h ^= h >> np.uint64(29)
        slot = np.int64(h & np.uint64(size - 1))
        while table[slot] >= 0 and keys[first[table[slot]]] != keys[i]:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = count
            first[count] = i
            count += 1
        groups[i] = table[slot]
        sizes[table[slot]] += 1
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
def inherited(e_parent, e_tag, e_flags, class_score, regions):  # type: ignore[no-untyped-def]
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
def dominant(e_parent, long, page_long):  # type: ignore[no-untyped-def]
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
def like(e_parent, e_signature):  # type: ignore[no-untyped-def]
    """The group [m] of elements of one tag and class under one parent, and the size of each group."""
    keys = np.empty(len(e_parent), np.uint64)
    for e in range(len(e_parent)):
        keys[e] = (e_signature[e] * FNV_PRIME) ^ np.uint64(e_parent[e] + 1)
    return group(keys)


@kernel
def siblings_of(e_parent, e_sig, words):  # type: ignore[no-untyped-def]
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
def cards_of(e_parent, e_tag, siblings, sizes):  # type: ignore[no-untyped-def]
    """The outermost of many like elements that each element [m] is in; -1: none."""
    m = len(e_parent)
    card = np.full(m, -1, np.int32)
    for e in range(1, m):
        card[e] = card[e_parent[e]]
        prose = e_tag[e] == _P or _H1 <= e_tag[e] <= _H6
        if card[e] < 0 and sizes[siblings[e]] >= _CARDS and not prose:
            card[e] = e
    return card


@kernel
def kinds_of(b_element, e_parent, e_sig, levels):  # type: ignore[no-untyped-def]
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
def title_of_page(page, b_words, counts, title_size):  # type: ignore[no-untyped-def]
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
def meeting(e_parent, element):  # type: ignore[no-untyped-def]
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
