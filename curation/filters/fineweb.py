"""The four measurements of FineWeb (Penedo et al. 2024, section 3.6)."""

from __future__ import annotations

import numba
import numpy as np

from curation.filters.repetition import drop_blank, duplicate_pieces
from curation.text import characters as ch
from curation.text.lines import characters, ends_in_colon_mark
from curation.text.words import code_point

_TERMINAL = ch.TERMINAL
_LF = 10


@numba.njit(cache=True, nogil=True)
def _last_character(data, start, end):  # type: ignore[no-untyped-def]
    last = end - 1
    while last > start and data[last] & 0xC0 == 0x80:
        last -= 1
    return code_point(data, last)[0]


@numba.njit(cache=True, nogil=True)
def measure_fineweb(  # type: ignore[no-untyped-def]
    data, properties, pieces, text_chars, tokens, scratch, short, quotes, colons, out
):
    """Fill out[0:4]: lines that end in a terminal mark, lines of at most `short` characters,
    characters in repeated lines, line feeds per token. All NaN in a blank text.

    Lines are those of the `pieces` in `scratch.feeds` that hold more than white space. With
    `quotes`, `'` and `"` are terminal marks too, as in the first release of FineWeb; with `colons`
    those that are typed for a full stop in Armenian and Ethiopic.
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
        c = _last_character(data, lines.starts[i], lines.ends[i])
        if properties[c] & _TERMINAL or (quotes and (c == 34 or c == 39)):
            ended += 1
        elif colons and ends_in_colon_mark(data, lines.starts[i], lines.ends[i], properties):
            ended += 1
        if characters(data, lines.starts[i], lines.ends[i]) <= short:
            brief += 1
    _, copied = duplicate_pieces(data, n, lines, scratch.interner, scratch.grams, False)
    out[0] = ended / n
    out[1] = brief / n
    out[2] = copied / (text_chars - feeds)
    if tokens:
        out[3] = feeds / tokens
