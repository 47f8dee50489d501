"""Gopher's document quality as DCLM measures it (mlfoundations/dclm, content_filters.py).

Words are pieces between white space with their punctuation, as `str.split` gives them; only the
word count takes those of fastText that begin with a letter or digit. The dialect `unicode` is the
same, but for these: fastText knows white space of ASCII alone. DCLM is made for English.
Where a script has no spaces, each of its letters is a word here, with the punctuation next to it,
and each syllable of Tibetan: else a line of Chinese would be one word. A lone `|` is no word: our
extractor writes it between the cells of tables, which would seem to be half symbols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curation.bytes import ascii
from curation.bytes.code_points import code_point, last_character
from curation.compiled import Bool, Bytes, Int, Record, Uint16s, Uint32s, borrowing
from curation.filters.gopher import DCLM, count_symbols, line_shares
from curation.filters.lexicon import FLAGGED, first_bits
from curation.text import characters as ch
from curation.text.lines import strip_left
from curation.text.words import PRIME, SEED, finish

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Scratch
    from curation.filters.signals import Kit

_ALPHA, _SINGLE, _SPACE = ch.ALPHA, ch.SINGLE, ch.SPACE
_EXTEND = ch.EXTEND
_ALNUM = ch.ALPHA | ch.NUMBER
_FASTTEXT_SPACES = ascii.byte_set(" \n\r\t\v\f")
_CELL = 0x7C
_TSHEGS = (0x0F0B, 0x0F0C)  # between the syllables of Tibetan
_NOTHING, _LETTERS, _ONE_LETTER = 0, 1, 2


@borrowing
def _word(
    data: Bytes, start: Int, end: Int, properties: Uint16s, lower: Uint32s
) -> tuple[Int, Int, Bool, Bool, Int]:
    """(end, characters, has a letter, is of an unspaced script, hash) of the word at `start`.

    The hash is that of the lower-case word, of an unspaced script that of the letter and its marks.
    """
    seen = _NOTHING
    chars = 0
    alpha = False
    h = SEED
    marks = False  # nothing but marks since the letter of an unspaced script
    i = start
    while i < end:
        c, size = code_point(data, i)
        p = np.int64(properties[c])
        if p & _SPACE or (seen and p & _SINGLE) or (seen == _ONE_LETTER and p & _ALNUM):
            break
        if p & _SINGLE:
            seen = _ONE_LETTER
            marks = True
            h = (SEED ^ np.uint64(lower[c])) * PRIME
        else:
            if p & _ALNUM:
                seen = _LETTERS
            marks = marks and p & _EXTEND != 0
            if seen != _ONE_LETTER or marks:
                h = (h ^ np.uint64(lower[c])) * PRIME
        alpha = alpha or p & _ALPHA != 0
        chars += 1
        i += size
        if seen and c in _TSHEGS:
            break
    return i, chars, alpha, seen == _ONE_LETTER, finish(h)


@borrowing
def _counts(data: Bytes, begin: Int, start: Int, properties: Uint16s, dialect: Int) -> Bool:
    """Whether the word at `start`, of a spaced script, is one that DCLM counts: it begins with a
    letter or digit, and no white space that fastText does not know precedes it."""
    if not properties[code_point(data, start)[0]] & _ALNUM:
        return False
    if dialect != DCLM or start == begin or _FASTTEXT_SPACES[data[start - 1]]:
        return True
    return not properties[code_point(data, last_character(data, begin, start))[0]] & _SPACE


@borrowing
def measure(data: Bytes, doc: Document, kit: Kit, space: Scratch, row: Record) -> None:
    """Measure what `gopher.measure` does; symbols are number signs and ellipses in one.

    Lines are those between line feeds. No tokens are read.
    """
    begin, end, properties = doc.begin, doc.end, kit.properties
    words = counted = chars = alpha = stops = 0
    i = strip_left(data, begin, end, properties)
    while i < end:
        stop, length, lettered, single, h = _word(data, i, end, properties, kit.lower)
        if length == 1 and data[i] == _CELL:
            i = strip_left(data, stop, end, properties)
            continue
        words += 1
        chars += length
        alpha += lettered
        counted += single or _counts(data, begin, i, properties, kit.gopher)
        if doc.stop_words >= 0:
            stops += first_bits(h, doc.stop_words, kit.stop_words) & FLAGGED != 0
        i = strip_left(data, stop, end, properties)
    row.gopher_word_count = counted
    if words:
        row.gopher_mean_word_length = chars / words
        row.gopher_alpha_word_ratio = alpha / words
        hashes, ellipses, spaced = count_symbols(data, begin, end)
        row.gopher_symbol_hash_ratio = (hashes + ellipses + spaced) / words
        row.gopher_ellipsis_ratio = (ellipses + spaced) / words
    bullets, trailing = line_shares(data, properties, doc.feeds, space.feeds, kit.gopher)
    row.gopher_bullet_line_ratio = bullets
    row.gopher_ellipsis_line_ratio = trailing
    if doc.stop_words >= 0:
        row.gopher_stop_words = stops
