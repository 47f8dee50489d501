"""The four measurements of FineWeb (Penedo et al. 2024, section 3.6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curation.compiled import borrowing
from curation.filters.repetition import drop_blank, duplicate_pieces
from curation.text import characters as ch
from curation.text.lines import characters, ends_in_colon_mark, last_character
from curation.text.words import code_point

_TERMINAL, _CLOSE = ch.TERMINAL, ch.CLOSE


class LineEnds(NamedTuple):
    """What counts as the end of a sentence besides terminal marks."""

    quotes: bool  # `'` and `"`, as in the first release of FineWeb
    closers: bool  # quotes and brackets that close behind a mark
    colons: bool  # those typed for a full stop in Armenian and Ethiopic


@borrowing
def _ends_sentence(data, start, end, properties, also):  # type: ignore[no-untyped-def]
    """Whether the line data[start:end], which is not empty, ends in a terminal mark."""
    last = last_character(data, start, end)
    c = code_point(data, last)[0]
    if also.quotes and (c == 34 or c == 39):
        return True
    while also.closers and last > start and properties[c] & _CLOSE:
        end = last
        last = last_character(data, start, end)
        c = code_point(data, last)[0]
    if properties[c] & _TERMINAL:
        return True
    return also.colons and ends_in_colon_mark(data, start, end, properties)


@borrowing
def measure_fineweb(  # type: ignore[no-untyped-def]
    data, properties, pieces, text_chars, tokens, scratch, short, line_ends, out
):
    """Fill out[0:4]: lines that end in a terminal mark, lines of at most `short` characters,
    characters in repeated lines, line feeds per token. All NaN in a blank text.

    Lines are those of the `pieces` in `scratch.feeds` that hold more than white space.
    """
    lines = scratch.lines
    out[:4] = np.nan
    feeds = pieces - 1
    n = drop_blank(data, pieces, scratch.feeds, lines, properties)
    if n == 0:
        return
    ended = 0
    brief = 0
    for i in range(n):
        ended += _ends_sentence(data, lines.starts[i], lines.ends[i], properties, line_ends)
        if characters(data, lines.starts[i], lines.ends[i]) <= short:
            brief += 1
    _, copied = duplicate_pieces(data, n, lines, scratch.interner, scratch.grams, False)
    out[0] = ended / n
    out[1] = brief / n
    out[2] = copied / (text_chars - feeds)
    if tokens:
        out[3] = feeds / tokens
