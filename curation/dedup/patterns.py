"""Where a frequent line lies in its document, and whether it is cut there.

A line that many documents share is boilerplate in one place and structure in another: `Share this
page` below an article, `Ingredients` above a list. So a frequent line is cut only

* at the edge of a document: in the run of frequent lines with which it begins or ends, if the line
  lies at the edge of most documents that have it (`edge`);
* inside, if it is a long sentence that is on a good part of the pages of a site (`sentence`), or a
  line between two that are cut (`between`).

Either way it must be on a good part of the pages of its hosts: a footer is on all of them, while a
sentence that twelve pages of a manual share is its text.

A short line right above text that stays is its heading, and stays unless it is the name of a site:
at the edge of nearly all its documents and on few hosts. List items that follow kept items stay.
Pattern-aware line deduplication is discussed in the literature after Llama 3's remark that its own
rule, which cuts every frequent line, also removes good text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import TextBuffers
from curation.bytes.code_points import code_point, last_character
from curation.compiled import Bool, Bytes, Int, Int64s, Uint16s, borrowing, kernel
from curation.dedup.dedup_settings import VERDICTS
from curation.text import characters as ch
from curation.text.characters import properties
from curation.text.lines import breadth, strip_left, strip_right

if TYPE_CHECKING:
    from curation.dedup.lines import LineHashes, LineTotals

#: What becomes of a line: not frequent; cut; kept.
NONE, EDGE, SENTENCE, BETWEEN, HEADING, ITEM, INSIDE = range(7)
#: Which verdicts cut.
CUTS = np.array([name.startswith("cut") for name in VERDICTS])

_TERMINAL, _CLOSE = ch.TERMINAL, ch.CLOSE
_STOP = 0x2E
_ITEM_MARKS = (0x2D, 0x2A, 0x2B, 0x2022, 0x25CF, 0x25AA, 0x2013, 0x2014, 0xB7, 0x30FB, 0x25CB)


class Zone(NamedTuple):
    """The lines near the beginning and the end of a document: a number or a share, if more."""

    top: int = 3
    bottom: int = 5
    top_share: float = 0.1
    bottom_share: float = 0.25


class Limits(NamedTuple):
    """When a frequent line is cut; ours, from reading cut lines (docs/dedup.md)."""

    edge_share: float = 0.5  # of its documents, near an edge of which it lies: boilerplate there
    host_share: float = 0.1  # of the documents of its hosts, on which it must be
    #: Of its documents: a short line right above kept text is its heading, unless it lies near an
    #: edge in this share of them or more, and on few hosts.
    site_share: float = 0.9
    heading_hosts: int = 3  # hosts from which on such a line is a heading all the same
    heading_characters: int = 80  # of the longest heading; letters of Han and kana count thrice
    sentence_characters: int = 40  # of the shortest sentence that is cut inside kept text
    sentence_share: float = 0.3  # of the documents of its hosts, on which it must be
    sentence_repeats: int = 3  # documents of each of its hosts, on average, on which it must be


def at_edge(
    spans: npt.NDArray[np.int64], doc_offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Whether each line lies near the beginning or the end of its document -> bool [lines].

    Empty lines do not count.
    """
    zone, filled = Zone(), spans[:, 1] > spans[:, 0]
    before = np.append(0, np.cumsum(filled))
    counts = np.diff(before[doc_offsets])
    top, bottom = (
        np.minimum(np.maximum(least, (share * counts).astype(np.int64)), counts // 2)
        for least, share in ((zone.top, zone.top_share), (zone.bottom, zone.bottom_share))
    )
    of = np.repeat(np.arange(len(counts)), np.diff(doc_offsets))
    seen = before[:-1] - before[doc_offsets[:-1]][of]
    near = (seen < top[of]) | (seen >= (counts - bottom)[of]) | (counts[of] == 1)
    return filled & near


def decide(
    buffers: TextBuffers,
    lines: LineHashes,
    places: npt.NDArray[np.int64],
    frequent: LineTotals,
) -> npt.NDArray[np.uint8]:
    """What becomes of every line -> uint8 [lines], an index into `VERDICTS`.

    Args:
        places: [lines], row of each line in `frequent`, -1 for lines that are not frequent.
    """
    return _decide(
        buffers.data,
        buffers.offsets,
        lines.doc_offsets,
        lines.spans,
        places,
        frequent,
        Limits(),
        properties(),
    )


@borrowing
def _is_item(data: Bytes, start: Int, end: Int) -> Bool:
    """Whether a line begins with a bullet, or a number with a stop or bracket."""
    if start == end:
        return False
    c, size = code_point(data, start)
    if c in _ITEM_MARKS:
        return start + size < end and data[start + size] == 0x20
    i = start
    while i < end and i < start + 3 and 48 <= data[i] <= 57:
        i += 1
    return i > start and i + 1 < end and data[i] in (0x2E, 0x29) and data[i + 1] == 0x20


@borrowing
def _begins_as_item(data: Bytes, base: Int, span: Int64s, properties: Uint16s) -> Bool:
    """`_is_item` of a line with its indentation."""
    start = strip_left(data, base + span[0], base + span[1], properties)
    return _is_item(data, start, base + span[1])


@borrowing
def _is_sentence(data: Bytes, start: Int, end: Int, properties: Uint16s) -> Bool:
    """Whether a line ends in the mark of a sentence, quotes and brackets aside.

    An ellipsis is none: headings and links end in it.
    """
    while end > start:
        last = last_character(data, start, end)
        held = properties[code_point(data, last)[0]]
        if held & _TERMINAL:
            return not (last > start and data[last] == _STOP and data[last - 1] == _STOP)
        if not held & _CLOSE:
            return False
        end = last
    return False


@borrowing
def _is_unmarked(data: Bytes, start: Int, end: Int, properties: Uint16s) -> Bool:
    """Whether a line ends in a letter of a script whose sentences end in no mark, as Thai."""
    while end > start:
        end = last_character(data, start, end)
        held = properties[code_point(data, end)[0]]
        if not held & ch.EXTEND:
            return (held & ch.SPELLING) != 0
    return False


@borrowing
def _edge_verdict(place: Int, heading: Bool, table: LineTotals, limits: Limits) -> Int:
    """Verdict on a line in a run of frequent lines at an edge; `heading`: right above kept text."""
    share = table.edges[place] / table.counts[place]
    if heading and (share < limits.site_share or table.hosts[place] >= limits.heading_hosts):
        return HEADING
    wide = table.counts[place] >= limits.host_share * table.pages[place]
    return EDGE if wide and share >= limits.edge_share else INSIDE


@kernel
def _decide(
    data: Bytes,
    text_offsets: Int64s,
    doc_offsets: Int64s,
    spans: Int64s,
    places: Int64s,
    table: LineTotals,
    limits: Limits,
    properties: Uint16s,
) -> Bytes:
    out = np.zeros(len(places), np.uint8)
    for d in range(len(doc_offsets) - 1):
        base = text_offsets[d]
        low, high = doc_offsets[d], doc_offsets[d + 1]
        first = high  # the first and last lines that are neither frequent nor blank
        last = low - 1
        for line in range(low, high):
            if places[line] < 0 and spans[line, 1] > spans[line, 0]:
                a = strip_left(data, base + spans[line, 0], base + spans[line, 1], properties)
                if a < base + spans[line, 1]:
                    first = min(first, line)
                    last = line
        listed = last >= low and _begins_as_item(data, base, spans[last], properties)
        stop = last + 1 if last >= low else high  # end of the list that the last kept line is in
        while listed and stop < high and places[stop] >= 0:
            listed = _begins_as_item(data, base, spans[stop], properties)
            stop += listed
        below = NONE  # verdict on the line below; INSIDE for one that is not frequent
        for line in range(high - 1, low - 1, -1):
            if spans[line, 1] == spans[line, 0]:
                continue
            if places[line] < 0:
                below = INSIDE if first <= line <= last else below
                continue
            a = strip_left(data, base + spans[line, 0], base + spans[line, 1], properties)
            b = strip_right(data, a, base + spans[line, 1], properties)
            length = breadth(data, a, b, properties, 0)
            sentence = _is_sentence(data, a, b, properties)
            if line < first or line > last:  # the run at the top or at the bottom
                heading = not sentence and length <= limits.heading_characters
                heading = heading and below != NONE and not CUTS[below]
                out[line] = _edge_verdict(places[line], heading, table, limits)
                if last < line < stop:
                    out[line] = ITEM
            elif _is_item(data, a, b):
                out[line] = ITEM
            else:
                ended = sentence or _is_unmarked(data, a, b, properties)
                long = ended and length >= limits.sentence_characters
                seen = table.counts[places[line]]
                # On many pages of each of its hosts, as an invitation to subscribe.
                notice = long and seen >= limits.sentence_repeats * table.hosts[places[line]]
                notice = notice and seen >= limits.sentence_share * table.pages[places[line]]
                out[line] = SENTENCE if notice else INSIDE
            below = out[line]
        before = np.uint8(NONE)
        for line in range(low, high):  # what lies between two lines that are cut
            if spans[line, 1] == spans[line, 0]:
                continue
            after = line + 1
            while after < high and spans[after, 1] == spans[after, 0]:
                after += 1
            following = out[after] if after < high else np.uint8(NONE)
            if out[line] == INSIDE and CUTS[before] and CUTS[following]:
                out[line] = BETWEEN
            before = out[line]
    return out
