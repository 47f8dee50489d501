"""Cut lines and citation marks out of texts, and keep what was cut.

Lines are judged on the text as it was: as copies of passages, by C4's rules, by
the coverage of n-grams that the lines but copies repeat, whichever the recipe switches on. Blank
lines are never judged; where a cut would leave two of them together, one goes with the cut, and a
text never begins or ends with them because of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import Texts, cut_out, text_buffers
from curation.bytes.code_points import code_point, last_character
from curation.columns import PROSE_PATH
from curation.compiled import Bytes, Int, Int64s, Uint16s, borrowing
from curation.filters import c4, line_ngrams, repeated
from curation.filters.content import Content, has_blocks
from curation.filters.filter_settings import EditSettings
from curation.text import characters as ch
from curation.text.lines import BREAKING, strip_left, strip_right
from curation.text.plain import in_original
from curation.text.structure import PROSE

if TYPE_CHECKING:
    from curation.filters.scratch import Scratch
    from curation.filters.signals import Kit, Meter

#: Reasons by code: C4's lines, repeated n-grams, citation marks, copies.
_LLAMA3 = len(c4.REASONS)
_CITATION = _LLAMA3 + 1
_COPY = _CITATION + 1
REASONS = (*c4.REASONS, line_ngrams.REASON, c4.CITATION, repeated.REASON)

_BREAK, _OPEN = ch.BREAK, 0x5B
#: Bytes of which there is one for each cut, but the last of a text.
CUTTABLE = BREAKING.copy()
CUTTABLE[_OPEN] = True


NO_EDITS = EditSettings(c4=False, llama3=False, copies=None)


class Edited(NamedTuple):
    """Texts after the cuts; the cuts ordered by document and position."""

    texts: pa.Array  # large_string [documents]
    rows: npt.NDArray[np.int64]  # [cuts] document of each cut
    positions: npt.NDArray[np.int64]  # [cuts] byte in the text as it was
    reasons: pa.Array  # string [cuts]
    cut: pa.Array  # large_string [cuts]
    signals: npt.NDArray[np.float64]  # [documents, signals] as `Meter.look` measures them
    unmeasured: npt.NDArray[np.bool_]  # [documents] where these are not all: see there


def edit(
    texts: Texts,
    meter: Meter,
    settings: EditSettings,
    found: Content | None = None,
    plain: Texts | None = None,
    languages: pa.Array | None = None,
) -> Edited:
    """Cut what the settings say out of every text, and measure those in which nothing is cut.

    Of `found`, lines of code and formulas stay, and documents that are code or mathematics as a
    whole. None: everything is prose. With `plain`, the texts as `curation.text.plain` gives them,
    these are judged, and `found` is of them.
    """
    buffers = text_buffers(texts if plain is None else plain)
    unmeasured = np.zeros(len(buffers), bool) if found is None else has_blocks(found)
    rules = _rules(settings, found, len(buffers))
    cuts, signals = meter.look(buffers, languages, rules, unmeasured)
    rows, spans = cuts[:, 0].copy(), cuts[:, 1:3]
    if plain is not None:
        spans = in_original(texts, rows, spans - buffers.offsets[rows, None])
        buffers = text_buffers(texts)
    kept, cut = cut_out(buffers, rows, spans)
    reasons = pa.array(np.array(REASONS, object)[cuts[:, 3]], pa.string())
    positions = spans[:, 0] - buffers.offsets[rows]
    return Edited(kept, rows, positions, reasons, cut, signals, unmeasured)


class Rules(NamedTuple):
    """What is cut but for some documents, and lines, those of text d at `doc_offsets[d:d + 2]`."""

    documents: npt.NDArray[np.bool_]
    doc_offsets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    wanted: tuple[bool, bool]  # lines by C4's rules, by Llama 3's
    copies: repeated.Copies


def _rules(settings: EditSettings, found: Content | None, rows: int) -> Rules:
    wanted = (settings.c4, settings.llama3), repeated.copies(settings.copies)
    whole, nothing = np.full(rows, settings == NO_EDITS), np.zeros(0, np.int64)
    if found is None:
        return Rules(whole, np.zeros(rows + 1, np.int64), nothing, nothing, *wanted)
    held = found.structure
    lines = held.kinds > PROSE
    before = np.concatenate([[0], np.cumsum(lines)]).astype(np.int64)[held.doc_offsets]
    whole |= found.paths != PROSE_PATH
    return Rules(whole, before, held.starts[lines], held.ends[lines], *wanted)


@borrowing
def find_cuts(
    data: Bytes,
    d: Int,
    place: tuple[Int, Int, Int],
    rules: Rules,
    kit: Kit,
    space: Scratch,
    cuts: Int64s,
    n: Int,
) -> Int:
    """Append the cuts of text d to n others, in order; return how many there are then.

    `place` is where the text begins and ends, and its lines, those of `space.breaks`, judged by
    `c4.judge_lines`. A cut is document, first byte and end byte in `data`, reason code.
    """
    begin, end, lines = place
    starts, ends = space.breaks.starts, space.breaks.ends
    block = rules.doc_offsets[d]  # the next line of code or formulas
    first = n
    blank = True  # the last kept line is blank, or nothing is kept yet
    k = 0
    while k < lines:
        a = strip_left(data, starts[k], ends[k], kit.properties)
        b = strip_right(data, a, ends[k], kit.properties)
        if a == b:
            blank = True
            k += 1
            continue
        while block < rules.doc_offsets[d + 1] and rules.ends[block] < b:
            block += 1
        protected = block < rules.doc_offsets[d + 1] and rules.starts[block] <= a
        code = np.int64(space.codes[k]) if rules.wanted[0] else c4.KEEP
        if space.copied[k]:
            code = _COPY
        elif code == c4.KEEP and rules.wanted[1]:
            repeats = space.coverage[k] > kit.line_ngrams.max_coverage
            code = _LLAMA3 if repeats else code
        if protected or code == c4.KEEP:
            blank = False
            if rules.wanted[0] and not protected:
                n = _cut_citations(data, d, a, b, cuts, n)
            k += 1
            continue
        cuts[n, 0] = d
        cuts[n, 1] = starts[k]
        cuts[n, 3] = code
        k += 1
        while (
            blank and k < lines and strip_left(data, starts[k], ends[k], kit.properties) == ends[k]
        ):
            k += 1
        cuts[n, 2] = starts[k] if k < lines else end
        n += 1
    _cut_last_breaks(data, begin, end, kit.properties, cuts, first, n)
    return n


@borrowing
def _cut_citations(data: Bytes, d: Int, start: Int, end: Int, cuts: Int64s, n: Int) -> Int:
    """Append the citation marks of a kept line; return the number of cuts."""
    brackets = 0  # most lines have none
    for k in range(np.uint64(start), np.uint64(end)):
        brackets += data[k] == _OPEN
    i = start if brackets else end
    while i < end:
        stop = c4.citation_end(data, i, end)
        if stop == i:
            i += 1
            continue
        cuts[n, 0] = d
        cuts[n, 1] = i
        cuts[n, 2] = stop
        cuts[n, 3] = _CITATION
        n += 1
        i = stop
    return n


@borrowing
def _cut_last_breaks(
    data: Bytes, begin: Int, end: Int, properties: Uint16s, cuts: Int64s, first: Int, n: Int
) -> None:
    """Where the last lines were cut, cut the line breaks before them too."""
    edge = end
    k = n
    while k > first and cuts[k - 1, 2] == edge:
        k -= 1
        edge = cuts[k, 1]
    if k == n:
        return
    floor = cuts[k - 1, 2] if k > first else begin
    while cuts[k, 1] > floor:
        last = last_character(data, floor, cuts[k, 1])
        if not properties[code_point(data, last)[0]] & _BREAK:
            break
        cuts[k, 1] = last
