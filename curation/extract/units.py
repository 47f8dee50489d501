"""The units of a page, groups of like elements and runs of text between them, and what is decided on
kept runs as wholes: inside them nothing drops out on its own, and they don't end in what only its
neighbours' likelihood keeps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import borrowing, kernel
from curation.extract import blocks as s
from curation.extract.containers import cards_of, group
from curation.extract.extract_settings import Decision
from curation.extract.markup import FNV_PRIME

_PRE = s.PRE


class Units(NamedTuple):
    """The units of a page in reading order, k of them."""

    start: npt.NDArray[np.int32]  # [k + 1] the first block of each
    elements: npt.NDArray[np.int32]  # [k] like elements of a group, 0 of a run of text


@kernel
def _cards(e_parent, e_tag, e_signature):  # type: ignore[no-untyped-def]
    """The card [m] that each element stands in, -1 for none, the group [m] of elements that are like
    it, and the size of each group [m + 1]."""
    m = len(e_parent)
    keys = np.empty(m, np.uint64)
    for e in range(m):
        keys[e] = (e_signature[e] * FNV_PRIME) ^ np.uint64(e_parent[e] + 1)
    like, sizes = group(keys)
    return cards_of(e_parent, e_tag, like, sizes), like, sizes


@kernel
def _units(b_element, e_parent, e_tag, e_signature):  # type: ignore[no-untyped-def]
    n = len(b_element)
    card, like, sizes = _cards(e_parent, e_tag, e_signature)
    start = np.empty(n + 1, np.int32)
    elements = np.empty(n, np.int32)
    k = 0
    last = -2
    for b in range(n):
        x = card[b_element[b]]
        g = like[x] if x >= 0 else -1
        if g != last:
            start[k] = b
            elements[k] = sizes[g] if g >= 0 else 0
            k += 1
            last = g
    start[k] = n
    return start[: k + 1], elements[:k]


def units_of(page: s.Page) -> Units:
    """The units of a page: each group of three or more like elements of one parent, as far as it is
    not interrupted, and each run of other blocks."""
    return Units(*_units(page.b_element, page.e_parent, page.e_tag, page.e_signature))


@borrowing
def _drop_ends(  # type: ignore[no-untyped-def]
    kept,
    probabilities,
    score,
    comments,
    card,
    b_chars,
    b_atoms,
    b_flags,
    data,
    share,
    characters,
    most,
    ended,
):
    """Take from `kept` the short last blocks that are unlikely by themselves, and note them."""
    total = 0.0
    whole = 0.0
    first = -1
    for b in range(len(kept)):
        if kept[b]:
            size = np.sqrt(np.float64(b_chars[b])) + 1.0
            total += size * probabilities[b]
            whole += size
            first = b if first < 0 else first
    for b in range(len(kept) - 1, first, -1):
        if not kept[b]:
            continue
        special = b_flags[b] & _PRE != 0 or b_atoms[b] > 0 or data[b] >= 0 or comments[b]
        special = special or card[b] >= 0  # the last post of a thread may be short
        if most == 0 or special or score[b] >= 1.0 or b_chars[b] >= characters:
            break
        if probabilities[b] * whole >= share * total:
            break
        kept[b] = False
        ended[b] = True
        most -= 1


@borrowing
def _fill_holes(kept, probabilities, score, comments, card, b_chars, least, most, filled):  # type: ignore[no-untyped-def]
    """Add to `kept` what stands between two kept blocks and may be content, and note it."""
    last = -1
    for b in range(len(kept)):
        if not kept[b]:
            continue
        if last >= 0 and 1 < b - last <= most + 1:
            total = 0.0
            whole = 0.0
            # Between cards and between comments stand names, dates and votes.
            apart = card[last] != card[b] and card[last] >= 0 and card[b] >= 0
            apart = apart or comments[last] or comments[b]
            for i in range(last + 1, b):
                size = np.sqrt(np.float64(b_chars[i])) + 1.0
                total += size * probabilities[i]
                whole += size
                apart = apart or comments[i]
            if total >= least * whole and not apart:
                for i in range(last + 1, b):
                    filled[i] = score[i] > 0.0  # 0 is a rule's
        last = b
    for b in range(len(kept)):
        kept[b] = kept[b] or filled[b]


@kernel
def _whole(  # type: ignore[no-untyped-def]
    kept, probabilities, score, comments, b_element, b_chars, b_atoms, b_flags,
    e_parent, e_tag, e_signature, data,
    ending_share, ending_characters, ending_blocks, hole_probability, hole_blocks,
):  # fmt: skip
    kept = kept.copy()
    ended = np.zeros(len(kept), np.bool_)
    filled = np.zeros(len(kept), np.bool_)
    card = _cards(e_parent, e_tag, e_signature)[0][b_element]
    _drop_ends(
        kept, probabilities, score, comments, card, b_chars, b_atoms, b_flags, data,
        ending_share, ending_characters, ending_blocks, ended,
    )  # fmt: skip
    _fill_holes(
        kept, probabilities, score, comments, card, b_chars, hole_probability, hole_blocks, filled
    )
    return kept, filled, ended


class Whole(NamedTuple):
    """What is kept of a page when its runs are judged as wholes, [n] each."""

    kept: npt.NDArray[np.bool_]
    filled: npt.NDArray[np.bool_]  # kept for what stands around them
    ended: npt.NDArray[np.bool_]  # dropped from the end


def whole(
    kept: npt.NDArray[np.bool_],
    probabilities: npt.NDArray[np.float64],
    score: npt.NDArray[np.float64],
    comments: npt.NDArray[np.bool_],
    page: s.Page,
    data: npt.NDArray[np.int32],
    decision: Decision,
) -> Whole:
    """Judge the runs of kept blocks [n] as wholes.

    `probabilities` [n] are those of each block for itself, `score` [n] what `kept` was decided by,
    `comments` [n] those in readers' comments, which stay as they are, `data` [n] that of Tables. Likely neighbours lift what stands among them; at the end
    of the text that is mostly a link to the next page, a request or a notice of rights, so up to
    `ending_blocks` short last blocks need `ending_share` of the mean probability of the kept ones. Up to `hole_blocks` blocks between two kept ones,
    `hole_probability` or more in the mean, are kept like these, except between two cards and what a
    rule took out. O(n).
    """
    return Whole(
        *_whole(
            kept, probabilities, score, comments,
            page.b_element, page.b_chars, page.b_atoms, page.b_flags,
            page.e_parent, page.e_tag, page.e_signature, data,
            decision.ending_share, decision.ending_characters, decision.ending_blocks,
            decision.hole_probability, decision.hole_blocks,
        )
    )  # fmt: skip
