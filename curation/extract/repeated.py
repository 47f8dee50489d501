"""Passages that a page holds more than once, such as one for screens and one for telephones.

The filter stage cuts copies too (`curation/filters/repeated.py`), from text of any source and by its
lines alone. Here the tree tells those apart that a reader sees twice: refrains, quotations, cells.
"""

from __future__ import annotations

import numpy as np

from curation.compiled import Bools, Int, kernel
from curation.extract import blocks as s
from curation.extract.containers import group
from curation.extract.markup import ANCESTOR
from curation.hashing import xxh64

# Quotations repeat on purpose, and so do cells and lines of code.
_REPEAT = ANCESTOR["quote"] | ANCESTOR["code"] | ANCESTOR["cell"]
_PRE = s.PRE
_HEADING = ANCESTOR["heading"]
_BLOCKS = 2  # of a passage; what single blocks say twice is mostly a motto or an offer


@kernel
def copies(kept: Bools, page: s.Page, in_comments: Bools, least: Int, least_near: Int) -> Bools:
    """Return which of the kept blocks [n] are copies: runs of two or more blocks, `least`
    characters or more in all, that occur earlier on the page in the same order under other parents.
    Of several earlier places the one after what the previous run repeats is taken, else the first.

    Readers see one of them, since style sheets hide the other. Where both have one grandparent,
    `least_near` characters are required, because refrains look like this. Comments, quotations, cells and
    code are never copies. O(n + bytes of the kept blocks).
    """
    e_parent = page.e_parent
    out = np.zeros(len(kept), np.bool_)
    chosen = np.flatnonzero(kept)
    m = len(chosen)
    keys = np.empty(m, np.uint64)
    parent = np.empty(m, np.int32)
    for i in range(m):
        b = chosen[i]
        e = page.b_element[b]
        parent[i] = e_parent[e]
        # The text of a block lacks its formulas: those that differ in nothing else aren't the same.
        apart = in_comments[b] or page.b_atoms[b] > 0 or page.b_flags[b] & _PRE
        apart = apart or page.e_above[e] & _REPEAT
        keys[i] = i if apart else xxh64(page.text, page.b_start[b], page.b_end[b], np.uint64(0))
    kind = group(keys)[0]
    first = np.full(m, -1, np.int64)  # of each kind
    for i in range(m):
        if first[kind[i]] < 0:
            first[kind[i]] = i
    behind = 0  # the place behind what the run before repeats; 0: none
    i = 0
    while i < m:
        source = behind if behind and kind[behind] == kind[i] else first[kind[i]]
        needed = least
        if e_parent[max(parent[source], 0)] == e_parent[max(parent[i], 0)]:
            needed = least_near
        start = i
        size = 0
        while i < m and source < start and kind[source] == kind[i] and parent[source] != parent[i]:
            size += page.b_chars[chosen[i]]
            source += 1
            i += 1
        if i - start >= _BLOCKS and size >= needed:
            out[chosen[start:i]] = True
        behind = source if i > start else 0
        i = max(i, start + 1)
    return out


@kernel
def title_again(kept: Bools, page: s.Page) -> Int:
    """Return the one of the first two kept blocks that says what the other, a heading, says; -1 for
    none. Manuals have a page's title in a row for navigation, above the title itself."""
    first = second = -1
    for b in range(len(kept)):
        if kept[b]:
            first, second = second, b
            if first >= 0:
                break
    if first < 0 or page.b_atoms[first] > 0 or page.b_atoms[second] > 0:
        return -1
    size = page.b_end[first] - page.b_start[first]
    if size != page.b_end[second] - page.b_start[second]:
        return -1
    for k in range(size):
        if page.text[page.b_start[first] + k] != page.text[page.b_start[second] + k]:
            return -1
    if page.e_above[page.b_element[second]] & _HEADING:
        return first
    return second if page.e_above[page.b_element[first]] & _HEADING else -1
