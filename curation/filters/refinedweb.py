"""Lines that RefinedWeb (Penedo et al. 2023, appendix G.2) takes for interface remains."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curation.bytes import ascii
from curation.bytes.code_points import code_point
from curation.bytes.search import stands_at
from curation.compiled import Bool, Bytes, Float, Int, Uint16s, borrowing
from curation.filters.phrases import Phrases, compile_phrases
from curation.text import characters as ch
from curation.text.lines import strip_left, strip_right

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Scratch
    from curation.filters.signals import Kit

KEEP, UPPERCASE, NUMERIC, COUNTER, ONE_WORD = 0, 1, 2, 3, 4
#: Reasons by code, for the record of cut lines.
REASONS = (
    "refinedweb.kept",
    "refinedweb.uppercase",
    "refinedweb.numeric",
    "refinedweb.counter",
    "refinedweb.one_word",
)

_SPACES = ascii.SPACES
_SPACE, _UPPER, _NUMBER, _SINGLE = ch.SPACE, ch.UPPER, ch.NUMBER, ch.SINGLE


class LineLimits(NamedTuple):
    """Shares beyond which a line is dropped, as DCLM reads appendix G.2."""

    max_uppercase: float = 0.5
    max_numeric: float = 0.999999


#: Nouns which, behind a number, make a line a counter ("3 likes"): RefinedWeb's idea, DCLM's nouns.
COUNTERS = (
    *("likes", "like", "shares", "share", "comments", "comment", "retweets", "reposts", "quotes"),
    *("bookmarks", "upvotes", "downvotes", "downloads", "views", "followers"),
)


def counter_words() -> Phrases:
    """Return COUNTERS as kernels take them."""
    return compile_phrases([(1, COUNTERS)])


@borrowing
def _is_counter(data: Bytes, start: Int, end: Int, properties: Uint16s, nouns: Phrases) -> Bool:
    """Whether a line is a number with an optional K, M or B, white space, and a counter noun."""
    i = start
    while i < end and (48 <= data[i] <= 57 or data[i] == 44 or data[i] == 46):
        i += 1
    if i == start:
        return False
    if i < end and (data[i] | 32) in (107, 109, 98):
        i += 1
    noun = strip_left(data, i, end, properties)
    if noun == i:
        return False
    for k in range(len(nouns.bits)):
        a, b = nouns.offsets[k], nouns.offsets[k + 1]
        if end - noun == b - a and stands_at(data, noun, end, nouns.data[a:b]):
            return True
    return False


@borrowing
def judge_line(
    data: Bytes, start: Int, end: Int, properties: Uint16s, limits: LineLimits, nouns: Phrases
) -> tuple[Int, Int]:
    """(code, words) of the stripped line data[start:end]; shares are of all its characters.

    A letter of an unspaced script counts as a word, so that no such line is taken for one word.
    """
    chars = 0
    upper = 0
    numeric = 0
    words = 0
    inside = False
    i = start
    bits = np.uint8(0)
    for k in range(start, end):
        bits |= data[k]
    if bits < 0x80:
        for k in range(start, end):
            upper += (data[k] >= 65) & (data[k] <= 90)
            numeric += (data[k] >= 48) & (data[k] <= 57)
        if start < end:
            words += not _SPACES[data[start]]
        for k in range(start + 1, end):
            words += _SPACES[data[k - 1]] > _SPACES[data[k]]
        chars = end - start
        i = end
    while i < end:
        c, size = code_point(data, i)
        p = properties[c]
        i += size
        chars += 1
        upper += p & _UPPER != 0
        numeric += p & _NUMBER != 0
        if p & _SPACE:
            inside = False
        elif p & _SINGLE or not inside:
            words += 1
            inside = p & _SINGLE == 0
    if chars == 0:
        return KEEP, 0
    if upper > limits.max_uppercase * chars:
        return UPPERCASE, words
    if numeric > limits.max_numeric * chars:
        return NUMERIC, words
    if _is_counter(data, start, end, properties, nouns):
        return COUNTER, words
    if words == 1:
        return ONE_WORD, words
    return KEEP, words


@borrowing
def flagged_word_ratio(data: Bytes, doc: Document, kit: Kit, space: Scratch) -> Float:
    """Share of the words that are in such lines; NaN without words."""
    lines, properties = space.breaks, kit.properties
    total = 0
    lost = 0
    for k in range(doc.breaks):
        a = strip_left(data, lines.starts[k], lines.ends[k], properties)
        b = strip_right(data, a, lines.ends[k], properties)
        code, words = judge_line(data, a, b, properties, kit.refinedweb_limits, kit.counters)
        total += words
        if code != KEEP:
            lost += words
    return lost / total if total else np.nan
