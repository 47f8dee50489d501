"""What is decided on groups of like elements and on runs of text as wholes: like elements keep the same
parts, inside kept runs nothing drops out on its own, and these don't end in what only its
neighbours' likelihood keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.ascii import COLON, QUESTION
from curation.bytes.code_points import code_point, last_character
from curation.bytes.search import same
from curation.compiled import (
    Bool,
    Bools,
    Float64s,
    Int,
    Int32s,
    borrowing,
    inlined,
    kernel,
    merged,
)
from curation.extract import blocks as s
from curation.extract.containers import CARDS, cards_of, group, like
from curation.extract.markup import ANCESTOR, FLAG_UNFOLDS, FNV_PRIME, TAG

if TYPE_CHECKING:
    from curation.extract.decide import Limits, Places

_PRE = s.PRE
_HEADING, _ITEM = ANCESTOR["heading"], ANCESTOR["item"]
_BUTTON = TAG["button"]
_COPYRIGHT, WIDE_COLON, _ARABIC_QUESTION, _WIDE_QUESTION = 0xA9, 0xFF1A, 0x61F, 0xFF1F
_QUESTION = 12  # characters: buttons with fewer do something
_ANNOUNCEMENT = (
    32  # characters that are no blanks; longer ones are sentences that say something themselves
)


class Run(NamedTuple):
    """The blocks of a page and what each was judged by, [n] each."""

    kept: npt.NDArray[np.bool_]
    probabilities: npt.NDArray[np.float64]  # of each block for itself
    score: npt.NDArray[np.float64]  # what `kept` was decided by
    where: Places
    card: npt.NDArray[np.int32]
    size: npt.NDArray[np.float64]  # what a block counts for in means
    article: Bool  # the page has a sure body of text


class Whole(NamedTuple):
    """What is kept of a page when its runs are judged as wholes, [n] each."""

    kept: npt.NDArray[np.bool_]
    filled: npt.NDArray[np.bool_]  # kept for what surrounds them
    ended: npt.NDArray[np.bool_]  # dropped from the end


@inlined
def last_kept(kept: Bools, end: Int) -> Int:
    """Return the last block before `end` that is kept, -1 if none is."""
    last = end - 1
    while last >= 0 and not kept[last]:
        last -= 1
    return last


@inlined
def _fills_card(run: Run, b: Int) -> Bool:
    """Whether block b is all that is kept up to it of the card that it is in."""
    before = b - 1
    while before >= 0 and run.card[before] == run.card[b] and not run.kept[before]:
        before -= 1
    return run.card[b] >= 0 and (before < 0 or run.card[before] != run.card[b])


@inlined
def _ends_in_heading(page: s.Page, kept: Bools, b: Int) -> Bool:
    """Whether block b is a heading behind other text, but not one of a list of headings."""
    before = last_kept(kept, b)
    one, other = page.e_above[page.b_element[b]], page.e_above[page.b_element[before]]
    return one & _HEADING != 0 and other & _HEADING == 0


@inlined
def _last_point(page: s.Page, b: Int) -> Int:
    """The last character of block b; 0 if it has none."""
    start, end = np.int64(page.b_start[b]), np.int64(page.b_end[b])
    if start == end:
        return np.int64(0)
    return code_point(page.text, last_character(page.text, start, end))[0]


@inlined
def ends_in_colon(page: s.Page, b: Int) -> Bool:
    """Return whether block b ends in a colon, a wide one of Chinese or Japanese among them."""
    last = _last_point(page, b) if page.b_end[b] - page.b_start[b] >= 3 else np.int64(0)
    return last == COLON or last == WIDE_COLON


@borrowing
def _drop_ends(run: Run, page: s.Page, data: Int32s, limits: Limits, ended: Bools) -> None:
    """Take from `kept` the short last blocks that are unlikely by themselves, and note them."""
    kept = run.kept
    total = 0.0
    whole = 0.0
    first = -1
    for b in range(len(kept)):
        if kept[b]:
            total += run.size[b] * run.probabilities[b]
            whole += run.size[b]
            first = b if first < 0 else first
    left = limits.ending_blocks
    for b in range(len(kept) - 1, first, -1):
        if not kept[b]:
            continue
        rights = code_point(page.text, page.b_start[b])[0] == _COPYRIGHT
        heading = _ends_in_heading(page, kept, b)
        # What it announces isn't kept.
        heading = heading or (page.b_chars[b] <= _ANNOUNCEMENT and ends_in_colon(page, b))
        special = page.b_flags[b] & _PRE != 0 or page.b_atoms[b] > 0 or data[b] >= 0
        special = special or run.where.comments[b]
        # The last post of a thread may be short.
        special = special or (_fills_card(run, b) and not heading and not rights)
        # Twelve letters of Chinese or Japanese may be a sentence.
        goes_on = run.where.told[b] and kept[b - 1]
        long = (page.b_chars[b] >= limits.ending_characters or goes_on) and not rights
        if left == 0 or special or run.score[b] >= 1.0 or long:
            break
        likely = run.probabilities[b] * whole >= limits.ending_share * total
        if likely and not heading and not rights:
            break
        kept[b] = False
        ended[b] = True
        left -= 1


@borrowing
def _among_items(page: s.Page, last: Int, b: Int) -> Bool:
    """Whether the blocks between two are items of lists, and so is one of the two."""
    above, element = page.e_above, page.b_element
    for i in range(last + 1, b):
        if above[element[i]] & _ITEM == 0:
            return False
    return (above[element[last]] | above[element[b]]) & _ITEM != 0


@borrowing
def _fill_holes(run: Run, page: s.Page, limits: Limits, filled: Bools) -> None:
    """Add to `kept` what is between two kept blocks and may be content, and note it."""
    kept, comments, card = run.kept, run.where.comments, run.card
    last = -1
    for b in range(len(kept)):
        if not kept[b]:
            continue
        if last >= 0 and 1 < b - last <= limits.hole_blocks + 1:
            total = 0.0
            whole = 0.0
            remarks = comments[last] or comments[b]
            for i in range(last + 1, b):
                if run.score[i] > 0.0:  # what a rule took out speaks against the others
                    total += run.size[i] * run.probabilities[i]
                whole += run.size[i]
                remarks = remarks or comments[i]
            least = limits.hole_probability if b - last == 2 else limits.long_hole_probability
            # Cards begin with names, dates and votes, and comments have them in between.
            if card[last] != card[b] and (card[b] >= 0 or (b - last > 2 and not run.article)):
                least = limits.card_hole_probability
            if run.article and _among_items(page, last, b):
                least = min(least, limits.entry_probability)
            if total >= least * whole and not remarks:
                for i in range(last + 1, b):
                    button = page.e_tag[page.b_element[i]] == _BUTTON
                    filled[i] = run.score[i] > 0.0 and not button  # 0 is a rule's
        last = b
    for b in range(len(kept)):
        kept[b] = kept[b] or filled[b]


@kernel
def _parts_of(page: s.Page, groups: Int32s, card: Int32s) -> tuple[Int32s, Int]:
    """The part of its card that each block [n] is, by number, and how many parts there are; -1: it
    is in no card. The same part of like cards has one number: the tags and classes down to it."""
    path = np.zeros(len(card), np.uint64)
    for e in range(1, len(card)):
        if card[e] == e:
            path[e] = np.uint64(groups[e] + 1)
        elif card[e] >= 0:
            path[e] = (path[page.e_parent[e]] ^ page.e_signature[e]) * FNV_PRIME
    parts, sizes = group(path[page.b_element])
    for b in range(len(parts)):
        if card[page.b_element[b]] < 0:
            parts[b] = -1
    return parts, len(sizes)


@borrowing
def _complete_cards(run: Run, parts: Int32s, counts: Int32s, filled: Bools) -> None:
    """Add to `kept` the parts that at least half of the like cards keep, and note them.

    `counts` [3, parts] is zero: of how many cards a part is, how many keep it, and the card counted last.
    """
    in_cards, kept_in, last = counts[0], counts[1], counts[2]
    kept, card = run.kept, run.card
    for b in range(len(parts)):
        if parts[b] >= 0 and last[parts[b]] != card[b]:
            in_cards[parts[b]] += 1
            last[parts[b]] = card[b]
    last[:] = 0
    for b in range(len(parts)):
        if parts[b] >= 0 and kept[b] and last[parts[b]] != card[b]:
            kept_in[parts[b]] += 1
            last[parts[b]] = card[b]
    for b in range(len(parts)):
        part = parts[b]
        if part >= 0 and not kept[b] and run.score[b] > 0.0:  # 0 is a rule's
            if in_cards[part] >= CARDS and 2 * kept_in[part] >= in_cards[part]:
                kept[b] = filled[b] = True


@borrowing
def _keep_headings(run: Run, page: s.Page, limits: Limits, filled: Bools) -> None:
    """Add to `kept` the headings inside the run that are directly before kept text and may be content,
    and note them: they are at the heads of cards, where holes are left open."""
    kept = run.kept
    last = -1  # whether anything before is kept
    for b in range(len(kept) - 1):
        if kept[b]:
            last = b
            continue
        heading = page.e_above[page.b_element[b]] & _HEADING != 0
        titled = kept[b + 1] and page.e_above[page.b_element[b + 1]] & _HEADING == 0
        likely = run.probabilities[b] >= limits.hole_probability and run.score[b] > 0.0
        if heading and titled and likely and last >= 0 and not run.where.comments[b]:
            kept[b] = filled[b] = True


@inlined
def same_text(page: s.Page, one: Int, other: Int) -> Bool:
    """Return whether two blocks say the same."""
    start, end, first = page.b_start[one], page.b_end[one], page.b_start[other]
    return end - start == page.b_end[other] - first and same(
        page.text, start, page.text, first, end - start
    )


@borrowing
def _keep_unfolding(run: Run, page: s.Page, filled: Bools) -> None:
    """Add to `kept` like buttons that unfold something, or ask, each in words of its own directly before
    kept text, and note them: the questions of an FAQ."""
    kept, signature = run.kept, page.e_signature
    last = -1
    for b in range(len(kept) - 1):
        e = page.b_element[b]
        words = page.e_tag[e] == _BUTTON and page.b_chars[b] >= _QUESTION
        last_point = _last_point(page, b)
        asks = (
            last_point == QUESTION or last_point == _ARABIC_QUESTION or last_point == _WIDE_QUESTION
        )
        words = words and (page.e_flags[e] & FLAG_UNFOLDS != 0 or asks)
        answered = kept[b + 1] and page.e_tag[page.b_element[b + 1]] != _BUTTON
        if not (words and answered) or kept[b] or run.score[b] <= 0.0 or run.where.comments[b]:
            continue
        if last >= 0 and signature[page.b_element[last]] == signature[e]:
            if not same_text(page, last, b):
                kept[last] = filled[last] = kept[b] = filled[b] = True
        last = b


@borrowing
def _drop_filled_end(run: Run, page: s.Page, limits: Limits, filled: Bools) -> None:
    """Take a short last block from `kept` that is kept for what surrounds it only; several are the
    rest of a list."""
    kept = run.kept
    last = last_kept(kept, len(kept))
    before = last_kept(kept, last)
    if before >= 0 and filled[last] and not filled[before]:
        special = page.b_flags[last] & _PRE != 0 or page.b_atoms[last] > 0
        if page.b_chars[last] < limits.ending_characters and not special:
            kept[last] = filled[last] = False


@merged
def whole(
    kept: Bools,
    probabilities: Float64s,
    score: Float64s,
    where: Places,
    page: s.Page,
    data: Int32s,
    limits: Limits,
    article: Bool,
) -> Whole:
    """Judge the runs of kept blocks [n] as wholes.

    `probabilities` and `score` [n] are those of Run; comments stay as they are. `data`
    [n] is that of Tables, `limits` are `decide.Limits`. Likely neighbours
    lift what is among them; at the end of the text that is mostly a link to the next page, a
    request or a notice of rights, so up to `ending_blocks` short last blocks need `ending_share` of
    the mean probability of the kept ones, unless they tell something directly behind one. Up to `hole_blocks` blocks between two kept ones,
    `hole_probability` or more in the mean, are kept like these; between two cards they need
    `card_hole_probability`, items of lists in an `article` `entry_probability`, and what a
    rule took out stays out. What at least half of three like elements or more keep, all of them keep. A heading
    goes with the text behind it, and so do buttons that unfold it. The text doesn't end in a short block that is kept only so. O(n).
    """
    ended = np.zeros(len(kept), np.bool_)
    filled = np.zeros(len(kept), np.bool_)
    groups, sizes = like(page.e_parent, page.e_signature)
    card = cards_of(page, groups, sizes, True)
    size = np.sqrt(page.b_chars.astype(np.float64)) + 1.0
    run = Run(kept.copy(), probabilities, score, where, card[page.b_element], size, article)
    _drop_ends(run, page, data, limits, ended)
    _fill_holes(run, page, limits, filled)
    parts, count = _parts_of(page, groups, card)
    _complete_cards(run, parts, np.zeros((3, count), np.int32), filled)
    _keep_headings(run, page, limits, filled)
    _keep_unfolding(run, page, filled)
    _drop_filled_end(run, page, limits, filled)
    return Whole(run.kept, filled, ended & ~run.kept)
