"""Document quality after Gopher (Rae et al. 2021, section A.1.1), as datatrove means it.

DCLM's meaning is in `curation.filters.dclm`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curation.bytes.ascii import byte_set
from curation.bytes.code_points import code_point
from curation.bytes.search import stands_at, word
from curation.compiled import Bytes, Float, Int, Record, Uint16s, borrowing
from curation.filters.lexicon import FLAGGED, bits_of
from curation.filters.scratch import token_characters
from curation.text.lines import strip_left, strip_right
from curation.text.words import HAS_ALPHA, NOT_PUNCTUATION

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Lines, Scratch
    from curation.filters.signals import Kit

#: Tools whose meaning of words and lines signals may follow, and the numbers by which kernels know
#: them; `unicode` is dclm with words between all white space.
DIALECTS = ("datatrove", "dclm", "unicode")
DATATROVE, DCLM, UNICODE = 0, 1, 2

_HASH, _DASH = 0x23, 0x2D
_ELLIPSIS, _STOPS, _SPACED, _BOLD = map(word, ("…".encode(), b"...", b". . .", b"**"))
_SYMBOLS = byte_set("#.")
_SYMBOLS[0xE2] = True  # lead byte of the ellipsis
_BULLET, _DISC, _STAR = 0x2022, 0x25CF, 0x2A


@borrowing
def count_symbols(data: Bytes, start: Int, end: Int) -> tuple[Int, Int, Int]:
    """(number signs, ellipses as one character or as three full stops, those as `. . .`)."""
    hashes = ellipses = spaced = 0
    free, free_spaced = start, start  # where the next may begin
    for i in range(start, end):
        b = data[np.uint64(i)]
        if not _SYMBOLS[b]:
            continue
        hashes += b == _HASH
        if i >= free and (stands_at(data, i, end, _ELLIPSIS) or stands_at(data, i, end, _STOPS)):
            ellipses += 1
            free = i + 3
        if i >= free_spaced and stands_at(data, i, end, _SPACED):
            spaced += 1
            free_spaced = i + 5
    return hashes, ellipses, spaced


@borrowing
def line_shares(
    data: Bytes, properties: Uint16s, n: Int, lines: Lines, dialect: Int
) -> tuple[Float, Float]:
    """Shares of lines that begin with a bullet, and that end in an ellipsis.

    But for datatrove they are of the lines that are not blank, and there are more bullets, and
    `. . .`; `**`, with which bold words of Markdown begin, is none in the dialect `unicode`.
    """
    filled = bullets = ellipses = 0
    wide = dialect != DATATROVE
    for i in range(n):
        a = strip_left(data, lines.starts[i], lines.ends[i], properties)
        b = strip_right(data, a, lines.ends[i], properties)
        if a == b:
            continue
        filled += 1
        c = code_point(data, a)[0]
        starred = c == _STAR and not (dialect == UNICODE and stands_at(data, a, b, _BOLD))
        bullets += c == _DASH or c == _BULLET or (wide and (starred or c == _DISC))
        last = max(a, b - len(_STOPS))
        ended = stands_at(data, last, b, _ELLIPSIS) or stands_at(data, last, b, _STOPS)
        ellipses += ended or (wide and stands_at(data, max(a, b - len(_SPACED)), b, _SPACED))
    total = max(filled if wide else n, 1)
    return bullets / total, ellipses / total


@borrowing
def measure(data: Bytes, doc: Document, kit: Kit, space: Scratch, row: Record) -> None:
    """Measure Gopher's signals; lines are those between all breaks.

    Ratios per word are NaN in a text without words, as are stop words without a list.
    """
    tokens, n = space.tokens, doc.tokens
    words = chars = alpha = 0
    for i in range(n):
        if tokens.flags[i] & NOT_PUNCTUATION:
            words += 1
            chars += token_characters(tokens, i)
        alpha += tokens.flags[i] & HAS_ALPHA > 0
    row.gopher_word_count = words
    if words:
        row.gopher_mean_word_length = chars / words
    if n:
        symbols, ellipses, _ = count_symbols(data, doc.begin, doc.end)
        row.gopher_symbol_hash_ratio = symbols / n
        row.gopher_ellipsis_ratio = ellipses / n
        row.gopher_alpha_word_ratio = alpha / n
    bullets, trailing = line_shares(data, kit.properties, doc.breaks, space.breaks, DATATROVE)
    row.gopher_bullet_line_ratio = bullets
    row.gopher_ellipsis_line_ratio = trailing
    if doc.stop_words >= 0:
        row.gopher_stop_words = 0.0  # different ones, as they are spelled
        for h in space.distinct.hashes[: doc.kinds]:
            bits = bits_of(h, doc.stop_words, kit.stop_words)
            row.gopher_stop_words += bits & FLAGGED != 0
