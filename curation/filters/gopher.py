"""Document quality after Gopher (Rae et al. 2021, section A.1.1), as datatrove and Dolma mean it.

DCLM's meaning is in `curation.filters.dclm`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curation.bytes.ascii import byte_set
from curation.bytes.code_points import code_point
from curation.compiled import Bool, Bytes, Float, Int, Int32s, Record, Uint16s, borrowing, kernel
from curation.filters.dialects import DATATROVE, DOLMA
from curation.filters.lexicon import stop_words
from curation.filters.scratch import token_characters
from curation.text import characters as ch
from curation.text.lines import strip_left, strip_right
from curation.text.words import HAS_ALPHA, NOT_PUNCTUATION

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Lines, Scratch, Tokens
    from curation.filters.signals import Kit

_SPACE = ch.SPACE
_HASH, _DOT, _DASH, _STAR = 0x23, 0x2E, 0x2D, 0x2A
_SYMBOLS = byte_set("#.")
_SYMBOLS[0xE2] = True  # lead byte of the ellipsis
_ELLIPSIS, _BULLET = 0x2026, 0x2022


@borrowing
def count_symbols(data: Bytes, start: Int, end: Int) -> tuple[Int, Int]:
    """(number signs, ellipses as one character or as three full stops)."""
    hashes = 0
    ellipses = 0
    i = start
    while i < end:
        b = data[i]
        if not _SYMBOLS[b]:
            i += 1
            continue
        if b == _HASH:
            hashes += 1
        elif (b == _DOT and i + 2 < end and data[i + 1] == _DOT and data[i + 2] == _DOT) or (
            b == 0xE2 and data[i + 1] == 0x80 and data[i + 2] == 0xA6
        ):
            ellipses += 1
            i += 2
        i += 1
    return hashes, ellipses


@borrowing
def ends_in_ellipsis(data: Bytes, start: Int, end: Int, dots: Bool) -> Bool:
    """Whether data[start:end] ends in `…`, or in `...` where `dots` count."""
    if end - start < 3:
        return False
    a, b, c = data[end - 3], data[end - 2], data[end - 1]
    return (dots and a == _DOT and b == _DOT and c == _DOT) or (
        a == 0xE2 and b == 0x80 and c == 0xA6
    )


@borrowing
def _line_shares(
    data: Bytes, properties: Uint16s, n: Int, lines: Lines, dialect: Int
) -> tuple[Float, Float]:
    """Shares of lines that begin with a bullet, and that end in an ellipsis."""
    dolma = dialect == DOLMA
    bullets = 0
    ellipses = 0
    for i in range(n):
        a = lines.starts[i]
        b = lines.ends[i]
        if not dolma:
            a = strip_left(data, a, b, properties)
            b = strip_right(data, a, b, properties)
        if a == b:
            continue
        c = code_point(data, a)[0]
        if c == _DASH or c == (_STAR if dolma else _BULLET):
            bullets += 1
        if ends_in_ellipsis(data, a, b, not dolma):
            ellipses += 1
    return bullets / max(n, 1), ellipses / max(n, 1)


@borrowing
def _words_with_mark(data: Bytes, n: Int, tokens: Tokens) -> tuple[Int, Int]:
    """(words with `…`, words with that or a number sign)."""
    ellipses = 0
    either = 0
    for i in range(n):
        has_hash = False
        has_ellipsis = False
        for k in range(tokens.starts[i], tokens.ends[i]):
            b = data[k]
            has_hash = has_hash or b == _HASH
            has_ellipsis = has_ellipsis or (
                b == 0xE2 and data[k + 1] == 0x80 and data[k + 2] == 0xA6
            )
        ellipses += has_ellipsis
        either += has_hash or has_ellipsis
    return ellipses, either


@kernel
def _median(n: Int, tokens: Tokens, marks: Int32s) -> Float:
    for i in range(n):
        marks[i] = token_characters(tokens, i)
    return np.median(marks[:n])


@borrowing
def count_words(n: Int, tokens: Tokens, dialect: Int) -> tuple[Int, Int, Int]:
    """(words, characters of words, tokens with a letter) among the first n tokens."""
    words = 0
    chars = 0
    alpha = 0
    for i in range(n):
        flags = tokens.flags[i]
        if dialect != DATATROVE or flags & NOT_PUNCTUATION:
            words += 1
            chars += token_characters(tokens, i)
        if flags & HAS_ALPHA:
            alpha += 1
    return words, chars, alpha


@borrowing
def measure(data: Bytes, doc: Document, kit: Kit, space: Scratch, row: Record) -> None:
    """Measure Gopher's signals, from tokens as the dialect of `kit` has them. Lines are those
    between line feeds for Dolma, between all breaks for others.

    Ratios per word are NaN in a text without words, as are stop words without a list.
    """
    tokens, dialect, n = space.tokens, kit.gopher, doc.tokens
    words, chars, alpha = count_words(n, tokens, dialect)
    row.gopher_word_count = words
    row.gopher_mean_word_length = chars / words if words else np.nan
    row.gopher_symbol_hash_ratio = np.nan
    row.gopher_ellipsis_ratio = np.nan
    row.gopher_alpha_word_ratio = np.nan
    if n:
        if dialect == DOLMA:
            row.gopher_mean_word_length = _median(n, tokens, space.grams.marks)
            ellipses, symbols = _words_with_mark(data, n, tokens)
        else:
            symbols, ellipses = count_symbols(data, doc.begin, doc.end)
        row.gopher_symbol_hash_ratio = symbols / n
        row.gopher_ellipsis_ratio = ellipses / n
        row.gopher_alpha_word_ratio = alpha / n
    count, lines = (doc.feeds, space.feeds) if dialect == DOLMA else (doc.breaks, space.breaks)
    bullets, trailing = _line_shares(data, kit.properties, count, lines, dialect)
    row.gopher_bullet_line_ratio = bullets
    row.gopher_ellipsis_line_ratio = trailing
    row.gopher_stop_words = stop_words(doc, kit, space, dialect == DOLMA)
