"""Words of any language, found on UTF-8 buffers.

Definition (after Unicode annex 29, simplified so that one pass and one look ahead suffice):

* a word is a run of letters, marks, numbers and underscores that begins with none of the latter;
* between two letters `' ’ . · ‧ ״` join (don't, l’eau, example.org), between two digits also
  `, ٫ ٬` (1,000.5); a hyphen separates;
* a letter of a script written without spaces (Han, kana, bopomofo, Thai, Lao, Khmer, Myanmar) is a
  word of its own, together with the marks that follow it;
* every other visible character is a symbol; a run of one and the same symbol is one token (`...`).

Tokens are words and symbols in the order of the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes import ascii
from curation.bytes.code_points import code_point
from curation.compiled import (
    Bool,
    Bytes,
    Int,
    Int64s,
    Uint16s,
    Uint32s,
    Uint64s,
    borrowing,
    inlined,
    kernel,
)
from curation.text import characters as ch

if TYPE_CHECKING:
    from curation.arrow import Texts

HAS_ALPHA = 1
HAS_NUMBER = 2
IS_WORD = 4  # not a symbol
NOT_PUNCTUATION = 8  # holds a character outside characters.PUNCTUATION
IS_SINGLE = 16  # a letter of an unspaced script
IS_SPELLING = 64  # of IS_SINGLE, a letter of Thai, Lao, Khmer or Myanmar

SEED = np.uint64(0xCBF29CE484222325)
PRIME = np.uint64(0x100000001B3)

_ALPHA, _EXTEND, _NUMBER, _SINGLE = ch.ALPHA, ch.EXTEND, ch.NUMBER, ch.SINGLE
_SPELLING = ch.SPELLING
_SKIP = ch.SPACE | ch.IGNORE
_WORD, _MID, _MID_NUMBER, _CONNECT = ch.WORD, ch.MID, ch.MID_NUMBER, ch.CONNECT
_PUNCTUATION = ch.PUNCTUATION
_ALNUM = ascii.ALNUM


class Spans(NamedTuple):
    """Byte spans in the buffers of a batch; those of text i are `doc_offsets[i:i + 2]`."""

    starts: npt.NDArray[np.int64]  # [spans]
    ends: npt.NDArray[np.int64]  # [spans]
    doc_offsets: npt.NDArray[np.int64]  # [texts + 1]


@inlined
def is_dense(held: Int) -> Bool:
    """Whether a character's properties are those of Han, kana and bopomofo, of which a letter is as
    much text as several of other scripts."""
    return held & (_SINGLE | _SPELLING) == _SINGLE


@borrowing
def token_end(data: Bytes, start: Int, end: Int, properties: Uint16s) -> Int:
    """Byte after the token that begins at `start`, a visible character."""
    c, size = code_point(data, start)
    p = np.int64(properties[c])
    i = start + size
    if p & _SINGLE:
        while i < end:
            c, size = code_point(data, i)
            if not properties[c] & _EXTEND:
                break
            i += size
        return i
    if not p & _WORD:
        first = c
        while i < end:
            c, size = code_point(data, i)
            if c != first:
                break
            i += size
        return i
    last = p
    while i < end:
        if _ALNUM[data[i]]:
            i += 1
            while i < end and _ALNUM[data[i]]:
                i += 1
            last = np.int64(properties[data[i - 1]])
            continue
        c, size = code_point(data, i)
        p = np.int64(properties[c])
        if p & _WORD and not p & _SINGLE:
            i += size
            if p & (_ALPHA | _NUMBER):
                last = p
        elif p & _CONNECT:
            i += size
        elif p & (_MID | _MID_NUMBER) and i + size < end:
            after = np.int64(properties[code_point(data, i + size)[0]])
            letters = p & _MID and last & _ALPHA and after & _ALPHA and not after & _SINGLE
            digits = last & _NUMBER and after & _NUMBER
            if not (letters or digits):
                break
            i += size
        else:
            break
    return i


@inlined
def finish(h: Int) -> Int:
    """Scramble a running hash so that all its bits depend on all characters."""
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(32))


@borrowing
def describe(
    data: Bytes, start: Int, end: Int, properties: Uint16s, lower: Uint32s
) -> tuple[Int, Int, Int, Int]:
    """(characters, flags, hash, hash of the lower-case form) of the token data[start:end].

    Hashes are FNV-1a over code points, scrambled at the end.
    """
    h = SEED
    low = SEED
    flags = np.int64(0)
    chars = 0
    bits = np.int64(0)
    common = np.int64(0xFFFF)
    i = start
    while i < end:
        c, size = code_point(data, i)
        p = np.int64(properties[c])
        bits |= p
        common &= p
        h = (h ^ np.uint64(c)) * PRIME
        low = (low ^ np.uint64(lower[c])) * PRIME
        chars += 1
        i += size
    if bits & _ALPHA:
        flags |= HAS_ALPHA
    if bits & _NUMBER:
        flags |= HAS_NUMBER
    if bits & _WORD:
        flags |= IS_WORD
    if bits & _SINGLE:
        flags |= IS_SINGLE
    if bits & _SPELLING:
        flags |= IS_SPELLING
    if not common & _PUNCTUATION:
        flags |= NOT_PUNCTUATION
    return chars, flags, finish(h), finish(low)


@kernel
def describe_words(
    data: Bytes, spans: Spans, properties: Uint16s, lower: Uint32s
) -> tuple[Int64s, Uint64s]:
    """Return flags and hash of the lower-case form of every word."""
    flags = np.empty(len(spans.starts), np.int64)
    lows = np.empty(len(spans.starts), np.uint64)
    for i in range(len(spans.starts)):
        start, end = spans.starts[i], spans.ends[i]
        _, flags[i], _, lows[i] = describe(data, start, end, properties, lower)
    return flags, lows


@borrowing
def _segment_batch(
    data: Bytes,
    offsets: Int64s,
    properties: Uint16s,
    symbols: Bool,
    starts: Int64s,
    ends: Int64s,
    doc_offsets: Int64s,
) -> Int:
    n = 0
    for d in range(len(offsets) - 1):
        i = offsets[d]
        end = offsets[d + 1]
        while i < end:
            c, size = code_point(data, i)
            p = properties[c]
            if p & _SKIP:
                i += size
                continue
            stop = token_end(data, i, end, properties)
            if symbols or p & _WORD:
                starts[n] = i
                ends[n] = stop
                n += 1
            i = stop
        doc_offsets[d + 1] = n
    return n


def words(texts: Texts, symbols: bool = False) -> Spans:
    """Byte spans of the words of every text, and of its symbols too where asked.

    Spans count from the start of the batch's data buffer (`curation.arrow.text_buffers`).
    """
    from curation.arrow import text_buffers  # one page alone needs no Arrow

    offsets, data = text_buffers(texts)
    most = int(offsets[-1] - offsets[0])
    starts = np.empty(most, np.int64)
    ends = np.empty(most, np.int64)
    doc_offsets = np.zeros(len(offsets), np.int64)
    n = _segment_batch(data, offsets, ch.properties(), symbols, starts, ends, doc_offsets)
    return Spans(starts[:n].copy(), ends[:n].copy(), doc_offsets)
