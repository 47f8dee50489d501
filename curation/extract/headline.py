"""The headline of a page: what repeats its title just before the text."""

import numpy as np
import numpy.typing as npt

from curation.bytes import ascii
from curation.bytes.search import LOWER
from curation.compiled import Bool, Bools, Bytes, Int, Int32s, Int64s, borrowing, kernel
from curation.extract import blocks as s
from curation.extract.markup import ANCESTOR

_HEADING, _ITEM = ANCESTOR["heading"], ANCESTOR["item"] | ANCESTOR["button"]
_ELSEWHERE = ANCESTOR["nav"] | ANCESTOR["aside"] | ANCESTOR["footer"] | ANCESTOR["hidden"]
_MOST_HEADINGS = 40  # that are looked at
_NEAR = 12  # blocks before the text, among which a headline is that no heading holds
_BYTES = 1000  # longer headings are none
_LEAST = 5  # letters and digits
_SHARE, _SURE_SHARE = 0.4, 0.6  # of the title, whose rest names the site
_ASCII = 128
_ALNUM = ascii.ALNUM


def with_headline(
    page: s.Page, kept: npt.NDArray[np.bool_], titles: tuple[str, ...]
) -> npt.NDArray[np.bool_]:
    """The kept blocks [n] and the headline before them, if there is one: the last heading, or else a
    block shortly before the text, that repeats one of the titles.
    """
    # Mostly, both titles are one.
    squeezed = [text for text in map(_squeezed, dict.fromkeys(titles)) if len(text) >= _LEAST]
    if not squeezed:
        return kept
    headings, near = _candidates(
        np.frombuffer("\n".join(squeezed).encode(), np.uint8), kept, page.text, page.b_start,
        page.b_end, page.b_element, page.e_above,
    )  # fmt: skip
    block = _repeating(page, headings, squeezed, _SHARE)
    if block < 0:
        block = _repeating(page, near, squeezed, _SURE_SHARE)
    if block < 0 or kept[block]:
        return kept
    kept = kept.copy()
    kept[block] = True
    return kept


@borrowing
def _may_repeat(text: Bytes, start: Int, end: Int, pairs: Bools) -> Bool:
    """Whether all letters and digits of ASCII that follow each other in a short text do so in a title."""
    if end - start > _BYTES:
        return False
    before = np.uint8(0)
    for k in range(start, end):
        letter = LOWER[text[k]]
        if letter >= _ASCII:
            before = np.uint8(0)
        elif _ALNUM[letter]:
            if before and not pairs[before, letter]:
                return False
            before = letter
    return True


@kernel
def _candidates(
    titles: Bytes,
    kept: Bools,
    text: Bytes,
    b_start: Int32s,
    b_end: Int32s,
    b_element: Int32s,
    e_above: Int32s,
) -> tuple[Int64s, Int64s]:
    """The headings, and other blocks near the first kept one, that may repeat a title, last first.

    `titles` are squeezed and one below the other. Few blocks are left, to be looked at as Unicode.
    """
    first = 0
    while first < len(kept) and not kept[first]:
        first += 1
    pairs = np.zeros((_ASCII, _ASCII), np.bool_)
    for k in range(1, len(titles)):
        if titles[k - 1] < _ASCII and titles[k] < _ASCII:
            pairs[titles[k - 1], titles[k]] = True
    headings = np.empty(_MOST_HEADINGS, np.int64)
    near = np.empty(_NEAR + 1, np.int64)
    count = looked_at = others = 0
    for b in range(first if first < len(kept) else -1, -1, -1):
        above = e_above[b_element[b]]
        if above & _ELSEWHERE:
            continue
        if above & _HEADING:
            if looked_at < _MOST_HEADINGS and _may_repeat(text, b_start[b], b_end[b], pairs):
                headings[count] = b
                count += 1
            looked_at += 1
        elif b >= first - _NEAR and not above & _ITEM:
            if _may_repeat(text, b_start[b], b_end[b], pairs):
                near[others] = b
                others += 1
    return headings[:count], near[:others]


def _repeating(page: s.Page, blocks: npt.NDArray[np.int64], titles: list[str], share: float) -> int:
    """The first of some blocks that repeats at least `share` of a title, -1 if none does."""
    for block in blocks.tolist():
        raw = page.text[page.b_start[block] : page.b_end[block]].tobytes()
        text = _squeezed(raw.decode("utf-8", "replace"))
        for title in titles:
            if len(text) >= max(_LEAST, share * len(title)) and text in title:
                return block
    return -1


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
