"""Passages that a page holds more than once, such as one for screens and one for telephones."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from curation.extract import scanned as s
from curation.extract.containers import group
from curation.extract.markup import ANCESTOR
from curation.hashing import xxh64

# Quotations repeat on purpose, and so do cells and lines of code.
_REPEAT = ANCESTOR["quote"] | ANCESTOR["code"] | ANCESTOR["cell"]
_PRE = s.PRE
_BLOCKS = 2  # of a passage; what single blocks say twice is mostly a motto or an offer


@numba.njit(cache=True, nogil=True)
def _sources(chosen, apart, text, b_start, b_end, b_element, e_parent):  # type: ignore[no-untyped-def]
    """The earlier block that each of the `chosen` [m] repeats, by its place among them; -1: none.

    That is the one behind what the block before repeats, if it says the same, or else the first.
    Blocks under one parent are no copies: such a list repeats itself where it is read, too.
    """
    m = len(chosen)
    keys = np.empty(m, np.uint64)
    for i in range(m):
        b = chosen[i]
        keys[i] = i if apart[b] else xxh64(text, b_start[b], b_end[b], np.uint64(0))
    groups = group(keys)[0]
    first = np.full(m, -1, np.int64)
    source = np.full(m, -1, np.int64)
    for i in range(m):
        g = groups[i]
        if first[g] < 0:
            first[g] = i
        elif not apart[chosen[i]]:
            at = source[i - 1] + 1
            if at == 0 or groups[at] != g:
                at = first[g]
            if e_parent[b_element[chosen[at]]] != e_parent[b_element[chosen[i]]]:
                source[i] = at
    return source


@numba.njit(cache=True, nogil=True)
def _copies(  # type: ignore[no-untyped-def]
    kept, in_comments, least, least_near, text, b_start, b_end, b_chars, b_element, b_atoms, b_flags,
    e_parent, e_above,
):  # fmt: skip
    n = len(kept)
    out = np.zeros(n, np.bool_)
    apart = np.empty(n, np.bool_)
    for b in range(n):
        # The text of a block lacks its formulas: those that differ in nothing else aren't the same.
        apart[b] = in_comments[b] or b_atoms[b] > 0 or b_flags[b] & _PRE != 0
        apart[b] = apart[b] or e_above[b_element[b]] & _REPEAT != 0
    chosen = np.flatnonzero(kept)
    source = _sources(chosen, apart, text, b_start, b_end, b_element, e_parent)
    start = 0
    while start < len(chosen):
        end = start + 1
        if source[start] >= 0:
            parent = max(e_parent[b_element[chosen[start]]], 0)
            other = max(e_parent[b_element[chosen[source[start]]]], 0)
            needed = least_near if e_parent[parent] == e_parent[other] else least
            size = b_chars[chosen[start]]
            while end < len(chosen) and source[end] == source[end - 1] + 1 and source[end] < start:
                size += b_chars[chosen[end]]
                end += 1
            if end - start >= _BLOCKS and size >= needed:
                out[chosen[start:end]] = True
        start = end
    return out


def copies(
    kept: npt.NDArray[np.bool_],
    page: s.Page,
    in_comments: npt.NDArray[np.bool_],
    least: int,
    least_near: int,
) -> npt.NDArray[np.bool_]:
    """Which of the kept blocks [n] are copies: runs of two or more, with `least` characters or more
    in all, that stand earlier on the page in the same order under other parents.

    Readers see one of them, since style sheets hide the other. Where both have one grandparent,
    `least_near` characters are asked for: refrains stand so, too. Comments, quotations, cells and
    code are never copies. O(n + bytes of the kept blocks).
    """
    out: npt.NDArray[np.bool_] = _copies(
        kept, in_comments, least, least_near, page.text, page.b_start, page.b_end, page.b_chars,
        page.b_element, page.b_atoms, page.b_flags, page.e_parent, page.e_above,
    )  # fmt: skip
    return out
