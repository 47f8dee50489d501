"""Work space for measuring one document after another, allocated once per batch.

Arrays are as long as the longest document needs; pages that no document touches stay unused. What
is kept of every token of a long document decides the memory of the stage, so numbers are as narrow
as they can be.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes import ascii
from curation.bytes.code_points import code_point
from curation.bytes.hash_tables import intern
from curation.compiled import Bool, Bytes, Int, Uint16s, Uint32s, borrowing, inlined
from curation.text import characters as ch
from curation.text.words import (
    HAS_ALPHA,
    HAS_NUMBER,
    IS_SINGLE,
    IS_SPELLING,
    IS_WORD,
    NOT_PUNCTUATION,
    PRIME,
    SEED,
    describe,
    finish,
    token_end,
)
from curation.tokenize.bpe import WORK

#: Bytes of a word that are tokenized.
LONGEST_WORD = 96
#: Hash of the class of all words of digits.
DIGITS = np.uint64(0x2545F4914F6CDD1D)

_ALNUM = ascii.ALNUM
_JOINING = ascii.byte_set("'.,_")
_SKIP = ch.SPACE | ch.IGNORE
_ALPHA, _EXTEND, _NUMBER, _WORD = ch.ALPHA, ch.EXTEND, ch.NUMBER, ch.WORD
_SINGLE, _SPELLING, _PUNCTUATION = ch.SINGLE, ch.SPELLING, ch.PUNCTUATION
#: Of a table that has no keys yet.
_FIRST_SLOTS = 256
_REPEATED = 4  # times that a token is in a text, about
_ASCII, _UNDERSCORE, _FIRST_LETTER = 0x80, 0x5F, 0x41

Ints = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]


class Tokens(NamedTuple):
    """Words and symbols of one document, in order."""

    starts: Ints
    ends: Ints
    flags: npt.NDArray[np.uint8]  # bits of curation.text.words
    hashes: Hashes  # until the tokens are numbered, as `lows`: Grams has their memory then
    lows: Hashes  # hashes of the lower-case forms
    ids: npt.NDArray[np.uint32]  # number of the distinct token, in order of first appearance
    before: Ints  # [tokens + 1] characters in the tokens before this one


class Distinct(NamedTuple):
    """Distinct tokens of one document."""

    counts: Ints
    firsts: Ints  # index of the first token
    classes: npt.NDArray[np.uint32]  # number of its class
    hashes: Hashes
    lows: Hashes  # hashes of the lower-case forms


class Classes(NamedTuple):
    """Distinct tokens that differ only in case; all tokens of digits are one class."""

    counts: Ints
    firsts: Ints  # index of the first token
    hashes: Hashes
    marks: Ints  # for use within one measurement


class Lines(NamedTuple):
    starts: Ints
    ends: Ints


class Interner(NamedTuple):
    """Reusable hash table, see tables.intern."""

    slots: Ints  # [2^k]
    keys: Hashes  # by id


class Grams(NamedTuple):
    """n-grams of one document while n grows."""

    at: Ints  # id of the n-gram at a token
    counts: Ints  # by id
    firsts: Ints  # by id
    active: Ints  # tokens whose n-gram may occur again, or with which that at a token begins
    marks: Ints


class Room(NamedTuple):
    """Scratch memory for the tokens of a word in a vocabulary."""

    letters: npt.NDArray[np.uint8]
    work: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint32]


class Scratch(NamedTuple):
    tokens: Tokens
    distinct: Distinct
    classes: Classes
    lines: Lines  # for use within one measurement
    feeds: Lines  # pieces between line feeds
    breaks: Lines  # lines between all breaks of Unicode
    interner: Interner
    grams: Grams
    bytes: npt.NDArray[np.uint8]  # a copy of a line, or small counts
    copied: npt.NDArray[np.bool_]  # by line
    codes: npt.NDArray[np.uint8]  # by line, of curation.filters.c4
    coverage: npt.NDArray[np.float64]  # by line
    counts: npt.NDArray[np.int64]  # by line
    room: Room


class Document(NamedTuple):
    """One text, how much of the work space is filled for it, and the lists of its language."""

    begin: Int  # bytes in the batch's buffer
    end: Int
    characters: Int
    tokens: Int
    kinds: Int  # distinct tokens
    classes: Int
    feeds: Int
    breaks: Int
    stop_words: Int  # numbers of lists and models, negative for none
    dirty_words: Int
    reference: Int


def room() -> Room:
    """Allocate scratch memory for the tokens of a word."""
    # the last character may end behind the longest word
    size = LONGEST_WORD + 8
    return Room(np.empty(size, np.uint8), np.empty(WORK, np.int64), np.empty(size, np.uint32))


def allocate(offsets: npt.NDArray[np.int64]) -> Scratch:
    """Work space for texts with these offsets. Raises ValueError where they reach 2 GB."""
    n = int(np.diff(offsets).max(initial=0)) + 2
    if max(n, offsets[-1]) >= 1 << 31:
        raise ValueError("texts of 2 GB and more can't be measured together")
    size = 4
    while size < 2 * n:
        size *= 2

    def ints() -> Ints:
        return np.empty(n, np.int32)

    hashes, lows = np.empty(n, np.uint64), np.empty(n, np.uint64)
    at, active = np.split(hashes.view(np.int32), 2)
    counts, firsts = np.split(lows.view(np.int32), 2)
    return Scratch(
        Tokens(ints(), ints(), np.empty(n, np.uint8), hashes, lows, np.empty(n, np.uint32), ints()),
        Distinct(
            ints(), ints(), np.empty(n, np.uint32), np.empty(n, np.uint64), np.empty(n, np.uint64)
        ),
        Classes(ints(), ints(), np.empty(n, np.uint64), ints()),
        Lines(ints(), ints()),
        Lines(ints(), ints()),
        Lines(ints(), ints()),
        Interner(np.empty(size, np.int32), np.empty(n, np.uint64)),
        Grams(at, counts, firsts, active, ints()),
        np.empty(4 * n, np.uint8),
        np.empty(n, np.bool_),
        np.empty(n, np.uint8),
        np.empty(n, np.float64),
        np.empty(n, np.int64),
        room(),
    )


@borrowing
def begin(interner: Interner, keys: Int) -> Int:
    """Empty the table; return its mask. It has room for so many keys."""
    size = _FIRST_SLOTS
    while size < 2 * keys:
        size *= 2
    size = min(size, len(interner.slots))
    interner.slots[:size] = -1
    return np.uint64(size - 1)


@borrowing
def with_room(interner: Interner, mask: Int, filled: Int) -> Int:
    """Return the mask of a table that has room for one more key; call it after each new key.

    So a table is as large as the keys that there are, not as those that there might be.
    """
    if 2 * filled <= mask:
        return mask
    size = 2 * (np.int64(mask) + 1)
    interner.slots[:size] = -1
    mask = np.uint64(size - 1)
    for k in range(filled):
        intern(interner.keys[k], interner.slots, interner.keys, mask, k)
    return mask


@borrowing
def begin_counts(counts: Bytes, keys: Int) -> Int:
    """Empty small counts for so many keys; return the mask of a key's place.

    Keys share places, so a count is at least that of the key: what it says is rare needs no table.
    """
    size = 1
    while size < 8 * keys and 2 * size <= len(counts):
        size *= 2
    counts[:size] = 0
    return np.uint64(size - 1)


@inlined
def token_characters(tokens: Tokens, i: Int) -> Int:
    """Characters of token i."""
    return tokens.before[i + 1] - tokens.before[i]


@borrowing
def load_segments(
    data: Bytes, begin: Int, end: Int, properties: Uint16s, lower: Uint32s, tokens: Tokens
) -> Int:
    """Find and describe the words and symbols of a text, most of them in one pass; return how
    many."""
    n = total = 0
    i = begin
    while i < end:
        c, size = code_point(data, i)
        p = first = np.int64(properties[c])
        if p & _SKIP:
            i += size
            continue
        # marks alone are behind a letter of an unspaced script, no such letter is behind others
        wanted, other = (_EXTEND, 0) if p & _SINGLE else (_WORD, _SINGLE)
        k, chars = i, 0
        h = low = SEED
        bits, common = np.int64(0), np.int64(_PUNCTUATION)
        while k < end:
            c, size = np.int64(data[np.uint64(k)]), 1
            if c >= _ASCII:
                c, size = code_point(data, k)
                p = np.int64(properties[c])
                if k > i and (not p & wanted or p & other):
                    break
                bits |= p
                common &= p
            elif other and _ALNUM[c]:
                bits |= _NUMBER if c < _FIRST_LETTER else _ALPHA
                common = np.int64(0)
            else:
                break
            h, low = (h ^ np.uint64(c)) * PRIME, (low ^ np.uint64(lower[c])) * PRIME
            chars += 1
            k += size
        if first & _WORD and not (other and _goes_on(data, k, end, p)):
            h, low = finish(h), finish(low)
            flags = IS_WORD | (0 if common else NOT_PUNCTUATION)
            flags |= (HAS_ALPHA if bits & _ALPHA else 0) | (HAS_NUMBER if bits & _NUMBER else 0)
            flags |= (IS_SINGLE if bits & _SINGLE else 0) | (IS_SPELLING if bits & _SPELLING else 0)
        else:
            k = token_end(data, i, end, properties)
            chars, flags, h, low = describe(data, i, k, properties, lower)
        tokens.starts[n], tokens.ends[n], tokens.before[n] = i, k, total
        tokens.flags[n], tokens.hashes[n], tokens.lows[n] = flags, h, low
        total += chars
        n += 1
        i = k
    tokens.before[n] = total
    return n


@inlined
def _goes_on(data: Bytes, k: Int, end: Int, held: Int) -> Bool:
    """Whether a word may go on at byte k behind it; a character beyond ASCII there is `held`."""
    if k == end:
        return False
    b = data[k]
    if b >= _ASCII:
        return held & (ch.CONNECT | ch.MID | ch.MID_NUMBER) != 0
    if not _JOINING[b]:
        return False
    if b == _UNDERSCORE:
        return True
    return k + 1 < end and (data[k + 1] >= _ASCII or _ALNUM[data[k + 1]])


@borrowing
def classify(
    kinds: Int, tokens: Tokens, distinct: Distinct, classes: Classes, interner: Interner
) -> Int:
    """Number the classes of the distinct tokens; return how many there are."""
    mask = begin(interner, kinds)
    fresh = 0
    for k in range(kinds):
        i = distinct.firsts[k]
        flags = tokens.flags[i]
        h = DIGITS if flags & HAS_NUMBER and not flags & HAS_ALPHA else distinct.lows[k]
        c = intern(h, interner.slots, interner.keys, mask, fresh)
        if c == fresh:
            classes.counts[c] = 0
            classes.firsts[c] = i
            classes.hashes[c] = h
            fresh += 1
        classes.counts[c] += distinct.counts[k]
        distinct.classes[k] = c
    return fresh


@borrowing
def number_tokens(n: Int, tokens: Tokens, distinct: Distinct, interner: Interner) -> Int:
    """Number the distinct tokens, count them, and return how many there are."""
    mask = begin(interner, n // _REPEATED)
    fresh = 0
    for i in range(n):
        k = intern(tokens.hashes[i], interner.slots, interner.keys, mask, fresh)
        if k == fresh:
            distinct.counts[k] = 0
            distinct.firsts[k] = i
            distinct.hashes[k] = tokens.hashes[i]
            distinct.lows[k] = tokens.lows[i]
            fresh += 1
            mask = with_room(interner, mask, fresh)
        distinct.counts[np.uint64(k)] += 1
        tokens.ids[i] = k
    return fresh
