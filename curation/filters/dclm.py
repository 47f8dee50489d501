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
from curation.compiled import Bool, Bytes, Int, Record, Uint16s, borrowing
from curation.filters.gopher import DCLM, count_symbols, line_shares
from curation.filters.lexicon import FLAGGED, bits_of
from curation.text import characters as ch
from curation.text.lines import strip_left

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Scratch
    from curation.filters.signals import Kit

_ALPHA, _SINGLE, _SPACE = ch.ALPHA, ch.SINGLE, ch.SPACE
_ALNUM = ch.ALPHA | ch.NUMBER
_FASTTEXT_SPACES = ascii.byte_set(" \n\r\t\v\f")
_CELL = 0x7C
_TSHEGS = (0x0F0B, 0x0F0C)  # between the syllables of Tibetan
_ASCII_ALNUM, _FIRST_LETTER = ascii.ALNUM, 0x41


@borrowing
def _word(data: Bytes, start: Int, end: Int, properties: Uint16s) -> tuple[Int, Int, Bool, Int]:
    """(end, characters, has a letter, where the letter of an unspaced script is or -1) of the word
    at `start`."""
    seen, letter = False, np.int64(-1)  # a letter or digit; one of an unspaced script
    chars = 0
    alpha = False
    i = start
    while i < end:
        first = i
        while letter < 0 and i < end and _ASCII_ALNUM[data[np.uint64(i)]]:
            alpha |= data[np.uint64(i)] >= _FIRST_LETTER
            i += 1
        if i > first:
            seen = True
            chars += i - first
            continue
        c, size = code_point(data, i)
        p = np.int64(properties[c])
        if p & _SPACE or (seen and p & _SINGLE) or (letter >= 0 and p & _ALNUM):
            break
        letter = i if p & _SINGLE else letter
        seen = seen or p & (_SINGLE | _ALNUM) != 0
        alpha = alpha or p & _ALPHA != 0
        chars += 1
        i += size
        if seen and c in _TSHEGS:
            break
    return i, chars, alpha, letter


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

    Lines are those between line feeds. Stop words are tokens that are words, or the letters of
    these in unspaced scripts.
    """
    begin, end, properties, tokens = doc.begin, doc.end, kit.properties, space.tokens
    words = counted = chars = alpha = stops = token = 0
    for k in range(doc.kinds if doc.stop_words >= 0 else 0):
        bits = bits_of(space.distinct.lows[k], doc.stop_words, kit.stop_words)
        space.bytes[k] = bits & FLAGGED != 0
    i = strip_left(data, begin, end, properties)
    while i < end:
        stop, length, lettered, letter = _word(data, i, end, properties)
        if length == 1 and data[i] == _CELL:
            i = strip_left(data, stop, end, properties)
            continue
        words += 1
        chars += length
        alpha += lettered
        counted += letter >= 0 or _counts(data, begin, i, properties, kit.gopher)
        if doc.stop_words >= 0:
            first = letter if letter >= 0 else i
            while token < doc.tokens and tokens.starts[token] < first:
                token += 1
            if token < doc.tokens and tokens.starts[token] == first:
                whole = letter >= 0 or tokens.ends[token] == stop
                stops += whole and space.bytes[tokens.ids[token]]
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
