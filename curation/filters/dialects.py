"""What the tools whose rules we follow call a word, and the numbers by which kernels know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.bytes.code_points import code_point
from curation.compiled import Bytes, Int, Int32s, Uint16s, borrowing
from curation.filters.scratch import move_token
from curation.text import characters as ch
from curation.text.words import IS_WORD, STARTS_ALNUM

if TYPE_CHECKING:
    from curation.filters.scratch import Tokens

CODES = {"datatrove": 0, "dolma": 1, "dclm": 2, "nemo": 3, "unicode": 4}
DATATROVE, DOLMA, DCLM, NEMO, UNICODE = 0, 1, 2, 3, 4
#: Those that take a text as it is written, as their tools do, rather than as it is read.
LITERAL = ("dolma", "dclm")

_SPACE = ch.SPACE


@borrowing
def split_spaces(
    data: Bytes, begin: Int, end: Int, properties: Uint16s, starts: Int32s, ends: Int32s
) -> Int:
    """Pieces between white space, as str.split; return how many there are."""
    n = 0
    inside = False
    i = begin
    while i < end:
        c, size = code_point(data, i)
        space = properties[c] & _SPACE != 0
        if inside and space:
            ends[n] = i
            n += 1
        elif not inside and not space:
            starts[n] = i
        inside = not space
        i += size
    if inside:
        ends[n] = end
        n += 1
    return n


@borrowing
def keep_words(n: Int, tokens: Tokens, dialect: Int) -> Int:
    """Drop described tokens that the dialect does not count; return how many remain.

    DCLM counts words that begin with a letter or a digit, the others everything.
    """
    if dialect != DCLM:
        return n
    kept = 0
    for i in range(n):
        if not (tokens.flags[i] & STARTS_ALNUM and tokens.flags[i] & IS_WORD):
            continue
        move_token(tokens, i, kept)
        kept += 1
    return kept
