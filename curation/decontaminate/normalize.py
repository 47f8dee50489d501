"""Tokens that survive wrapping: what two texts still share after reformatting.

Definition:

* characters are case-folded and decomposed (NFKC forms, accents and digits of other scripts too);
* a token is a run of letters or a run of digits; a letter of a script without spaces is a token of
  its own, with the marks that follow it;
* everything else separates tokens: white space, line breaks, punctuation, symbols, Markdown, HTML
  tags. An apostrophe between letters leaves no trace, nor does a comma before three digits (1,000);
* an HTML character reference (`&eacute;`, `&#39;`) is its character;
* LaTeX commands that only set type (`\\text`, `\\left`, `\\frac`) are not tokens; those with a
  meaning are words (`\\alpha` is alpha), and escaped line breaks separate.

A token has a size in quarters of a word: 4, a Han or kana letter 2, a Thai, Lao, Khmer or Myanmar
letter 1. Lengths of n-grams count sizes, so that they hold as much text in every script.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from html.entities import html5
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from curation.arrow import Texts, text_buffers
from curation.bytes.code_points import code_point
from curation.compiled import Bool, Bytes, Int, Int64s, Uint64s, inlined, kernel
from curation.kernels import kept
from curation.text import characters as ch
from curation.text.words import PRIME, SEED, finish

#: Size of a word.
WORD = 4

_POINT = 0x1FFFFF
_DENSE, _SPELLING, _DIGIT, _EXPANDS = 1 << 21, 1 << 22, 1 << 23, 1 << 24
_BREAK, _IGNORE, _APOSTROPHE, _LETTER = 1 << 25, 1 << 26, 1 << 27, 1 << 28
_MARK = 1 << 29  # belongs to the letter before it
_SINGLE = _DENSE | _SPELLING
_BACKSLASH, _COMMA, _OPEN, _CLOSE = 0x5C, 0x2C, 0x7B, 0x7D
_AMPERSAND, _SEMICOLON, _HASH, _LESS, _GREATER, _SLASH = 0x26, 0x3B, 0x23, 0x3C, 0x3E, 0x2F
_N, _R, _T = 0x6E, 0x72, 0x74

#: The small letter of each byte that is an ASCII letter, 0 for other bytes.
_SMALL_LETTER = np.array(
    [ord(chr(b).lower()) if chr(b).isalpha() else 0 for b in range(128)] + [0] * 128, np.uint8
)

#: Commands that set type and mean nothing; `begin` and `end` take the name in braces with them.
_COMMANDS = (
    "left right big Big bigg Bigg bigl bigr Bigl Bigr text textbf textit textrm texttt textsf emph "
    "mathrm mathbf mathit mathsf mathtt mathbb mathcal mathfrak boldsymbol operatorname bf it rm "
    "frac dfrac tfrac cfrac displaystyle textstyle limits nolimits quad qquad hspace vspace hfill "
    "cdot times mbox hbox underline overline boxed ensuremath label tag nonumber notag par item "
    "noindent centering newline begin end"
).split()
_ENVIRONMENTS = ("begin", "end")
#: HTML elements whose tags are no words where a page's source is quoted or badly extracted.
_ELEMENTS = (
    "a abbr address article aside b big blockquote body br button caption center cite code col dd "
    "del details dfn div dl dt em figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header "
    "hr html i img input ins kbd label li link main mark meta nav ol option p pre q s samp script "
    "section select small span strike strong style sub summary sup table tbody td tfoot th thead "
    "time title tr tt u ul var"
).split()
#: Bytes of a tag or of a character reference, at most.
_LONGEST_TAG, _LONGEST_REFERENCE = 256, 32
#: Marks that many texts leave out: accents, vowel points.
_SCRIPTS = ("Inherited", "Common", "Latin", "Greek", "Cyrillic", "Arabic", "Hebrew")
_ACCENT = r"(?V1)[\p{M}&&[" + "".join(rf"\p{{Script={s}}}" for s in _SCRIPTS) + "]]"
#: Letters that are only another's form: the dotless i, whose capital is I; the stroke that makes
#: Arabic words longer; the ring of the Thai and Lao vowel am, which NFKD writes apart.
_FORMS = str.maketrans({"\u0131": "i", "\u0640": "", "\u0e4d": "", "\u0ecd": ""})
_APOSTROPHES = "'\u2019\u02bc\uff07"
_IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, 0x2F7FF), (0x30000, 0x3FFFF))


class Folding(NamedTuple):
    """What a character becomes."""

    table: npt.NDArray[np.uint32]  # [0x110000] flags, and a code point or an index of `starts`
    starts: npt.NDArray[np.int64]  # [expansions + 1]
    points: npt.NDArray[np.uint32]  # code points of the expansions
    commands: npt.NDArray[np.uint64]  # sorted hashes of LaTeX commands
    environments: npt.NDArray[np.uint64]
    elements: npt.NDArray[np.uint64]  # sorted hashes of HTML elements
    references: npt.NDArray[np.uint64]  # sorted hashes of names of characters in HTML
    characters: npt.NDArray[np.uint32]  # [references] the code point of each


class Tokens(NamedTuple):
    """Tokens of texts; those of text i are `offsets[i]:offsets[i + 1]`."""

    hashes: npt.NDArray[np.uint64]  # [tokens]
    starts: npt.NDArray[np.int64]  # [tokens] first byte in the text
    ends: npt.NDArray[np.int64]  # [tokens]
    sizes: npt.NDArray[np.uint8]  # [tokens] quarters of a word
    numbers: npt.NDArray[np.bool_]  # [tokens] made of digits
    offsets: npt.NDArray[np.int64]  # [texts + 1]


class Scratch(NamedTuple):
    """Room for the tokens of one text."""

    hashes: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.uint8]
    numbers: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, most: int) -> Scratch:
        """Room for a text of `most` bytes, which has no more tokens."""
        kinds = (np.uint64, np.int64, np.int64, np.uint8, np.bool_)
        return cls._make(np.empty(most + 1, kind) for kind in kinds)


def sums(values: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the sum of the values before each place, and of all: int64 [values + 1]."""
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])


@functools.cache
@kept
def folding() -> Folding:
    """Return the tables, built once per machine."""
    properties = ch.properties()
    table = np.full(ch.CODE_POINTS, _BREAK, np.uint32)
    wanted = np.flatnonzero(properties & ch.WORD).astype(np.uint32)
    table[wanted] = _LETTER | wanted
    kept = (properties & ch.EXTEND != 0) & (properties & ch.WORD != 0)
    table[kept] |= _MARK
    starts, points = [0], list[int]()
    chars = "".join(map(chr, wanted[~_ideographs(wanted)].tolist()))
    accents = frozenset(regex.findall(_ACCENT, "".join(map(chr, wanted.tolist()))))
    for char, whole in zip(chars, _folded(chars), strict=True):
        if whole == char and char not in accents:
            continue
        folded = [ord(c) for c in whole if properties[ord(c)] & ch.WORD and c not in accents]
        point = ord(char)
        if len(folded) == 1:
            table[point] = (table[point] & _MARK) | _LETTER | folded[0]
        elif folded:
            table[point] = _LETTER | _EXPANDS | (len(starts) - 1)
            points += folded
            starts.append(len(points))
        else:
            table[point] = _IGNORE
    spelling = properties & ch.SPELLING != 0
    single = (properties & ch.SINGLE != 0) & (table & _LETTER != 0)
    table[single] |= np.where(spelling[single], _SPELLING, _DENSE).astype(np.uint32)
    for digit in range(10):
        table[ch.decimal_zeros() + digit] = _LETTER | _DIGIT | (0x30 + digit)
    for match in regex.finditer(r"\p{Cf}", ch.every_character()):
        table[ord(match.group())] = _IGNORE
    table[[ord(char) for char in _APOSTROPHES]] = _APOSTROPHE
    table.flags.writeable = False
    named = {name[:-1]: value for name, value in html5.items() if name.endswith(";")}
    references = sorted((_command_hash(n), ord(c)) for n, c in named.items() if len(c) == 1)
    return Folding(
        table,
        np.array(starts, np.int64),
        np.array([*points, 0], np.uint32),
        _hashes(_COMMANDS),
        _hashes(_ENVIRONMENTS),
        _hashes(_ELEMENTS),
        np.array([h for h, _ in references], np.uint64),
        np.array([point for _, point in references], np.uint32),
    )


def _ideographs(points: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Unified ideographs, which neither fold nor decompose."""
    inside = [(points >= first) & (points <= last) for first, last in _IDEOGRAPHS]
    return np.logical_or.reduce(inside)


def _folded(chars: str) -> list[str]:
    """Letters, digits and marks that each character stands for, and what else it consists of."""
    apart = unicodedata.normalize("NFKD", "\n".join(chars)).casefold()
    return unicodedata.normalize("NFKD", apart).translate(_FORMS).split("\n")


def _hashes(words: Sequence[str]) -> npt.NDArray[np.uint64]:
    return np.array(sorted(_command_hash(w) for w in words), np.uint64)


def _command_hash(word: str) -> int:
    h = int(SEED)
    for char in word.encode():
        h = ((h ^ char) * int(PRIME)) & 0xFFFFFFFFFFFFFFFF
    return h


@inlined
def place_of(h: Int, ascending: Uint64s) -> Int:
    """Return where a hash is in others, or -1."""
    k = np.searchsorted(ascending, h)
    return k if k < len(ascending) and ascending[k] == h else -1


@kernel
def _after_backslash(data: Bytes, i: Int, end: Int, folding: Folding) -> Int:
    """Byte behind what of a LaTeX command or an escape, whose backslash is before i, is no word."""
    stop = i
    h = SEED
    while stop < end and _SMALL_LETTER[data[stop]]:
        h = (h ^ np.uint64(data[stop])) * PRIME
        stop += 1
    if stop == i:
        return i
    if place_of(h, folding.commands) >= 0:
        if place_of(h, folding.environments) >= 0 and stop < end and data[stop] == _OPEN:
            close = stop
            while close < end and close < stop + 32 and data[close] != _CLOSE:
                close += 1
            return close
        return stop
    first = data[i]
    # Line breaks and tabs as programs write them; `nu` and `theta` go on in small letters.
    if (first == _N or first == _R or first == _T) and (
        stop == i + 1 or not 97 <= data[i + 1] <= 122
    ):
        return i + 1
    return i


@kernel
def _after_tag(data: Bytes, i: Int, end: Int, folding: Folding) -> Int:
    """Byte behind the HTML tag that begins at i; i + 1 where none does."""
    at = i + 1
    if at < end and data[at] == _SLASH:
        at += 1
    h = SEED
    first = at
    while at < end and (_SMALL_LETTER[data[at]] or (at > first and 48 <= data[at] <= 57)):
        h = (h ^ np.uint64(_SMALL_LETTER[data[at]] or data[at])) * PRIME
        at += 1
    if at == first or at == end or place_of(h, folding.elements) < 0:
        return i + 1
    if data[at] != _GREATER and data[at] != _SLASH and data[at] > 0x20:
        return i + 1
    stop = min(end, i + _LONGEST_TAG)
    while at < stop and data[at] != _GREATER and data[at] != _LESS:
        at += 1
    return at + 1 if at < stop and data[at] == _GREATER else i + 1


@kernel
def _reference(data: Bytes, i: Int, end: Int, folding: Folding) -> tuple[Int, Int]:
    """(code point, bytes) of the HTML character reference at i; the ampersand where none is."""
    stop = min(end, i + _LONGEST_REFERENCE)
    numeric = i + 1 < stop and data[i + 1] == _HASH
    base = 16 if numeric and i + 2 < stop and data[i + 2] | 0x20 == 0x78 else 10
    first = at = i + 1 + int(numeric) + int(base == 16)
    h, point, digits = SEED, np.int64(0), numeric
    while at < stop and (_SMALL_LETTER[data[at]] or 48 <= data[at] <= 57):
        h = (h ^ np.uint64(data[at])) * PRIME
        digit = np.int64(data[at]) - 48 if data[at] < 58 else np.int64(data[at] | 0x20) - 87
        digits = digits and digit < base
        point = min(point * base + digit, np.int64(ch.CODE_POINTS))
        at += 1
    if first < at < stop and data[at] == _SEMICOLON:
        if digits and point < ch.CODE_POINTS:
            return point, at + 1 - i
        place = place_of(h, folding.references)
        if place >= 0 and not numeric:
            return np.int64(folding.characters[place]), at + 1 - i
    return _AMPERSAND, 1


@inlined
def _groups_thousands(data: Bytes, i: Int, end: Int) -> Bool:
    """Whether exactly three ASCII digits follow the comma at i."""
    if i + 3 >= end:
        return False
    for k in range(1, 4):
        if not 48 <= data[i + k] <= 57:
            return False
    return i + 4 >= end or not 48 <= data[i + 4] <= 57


@inlined
def _ended(n: Int, h: Int, size: Int, digits: Bool, out: Scratch) -> Int:
    """Write what is known at the end of token n; return the number of the next."""
    out.hashes[n] = finish(h)
    out.sizes[n] = size
    out.numbers[n] = digits
    return n + 1


@kernel
def tokenize_into(data: Bytes, begin: Int, end: Int, folding: Folding, out: Scratch) -> Int:
    """Write the tokens of data[begin:end] to `out`; return how many. Offsets count from `begin`."""
    n = 0
    h = SEED
    is_open = False  # a token has begun
    digits = False
    single = False
    size = 0
    i = begin
    while i < end:
        if _SMALL_LETTER[data[i]]:  # most text: a run of ASCII letters
            if is_open and (digits or single):
                n = _ended(n, h, size, digits, out)
                is_open = False
            if not is_open:
                is_open = True
                h = SEED
                digits = single = False
                size = WORD
                out.starts[n] = i - begin
            while i < end and _SMALL_LETTER[data[i]]:
                h = (h ^ np.uint64(_SMALL_LETTER[data[i]])) * PRIME
                i += 1
            out.ends[n] = i - begin
            continue
        c, width = code_point(data, i)
        if c == _AMPERSAND:
            c, width = _reference(data, i, end, folding)
        entry = np.int64(folding.table[c])
        if entry & _IGNORE:
            i += width
            continue
        if entry & (_BREAK | _APOSTROPHE):
            joins = False
            if is_open and i + width < end:
                if entry & _APOSTROPHE:
                    after = np.int64(folding.table[code_point(data, i + width)[0]])
                    letter = after & (_LETTER | _DIGIT | _SINGLE) == _LETTER
                    joins = letter and not digits and not single
                elif c == _COMMA:
                    joins = digits and _groups_thousands(data, i, end)
            if not joins:
                if is_open:
                    n = _ended(n, h, size, digits, out)
                    is_open = False
                if c == _BACKSLASH and width == 1:
                    i = _after_backslash(data, i + 1, end, folding)
                    continue
                if c == _LESS and width == 1:
                    i = _after_tag(data, i, end, folding)
                    continue
            i += width
            continue
        is_digit = entry & _DIGIT != 0
        is_mark = entry & _MARK != 0
        if is_open and not is_mark and (single or entry & _SINGLE or is_digit != digits):
            n = _ended(n, h, size, digits, out)
            is_open = False
        if not is_open:
            is_open = True
            h = SEED
            digits = is_digit
            single = entry & _SINGLE != 0
            size = 2 if entry & _DENSE else (1 if entry & _SPELLING else WORD)
            out.starts[n] = i - begin
        if entry & _EXPANDS:
            k = entry & _POINT
            for p in range(folding.starts[k], folding.starts[k + 1]):
                h = (h ^ np.uint64(folding.points[p])) * PRIME
        else:
            h = (h ^ np.uint64(entry & _POINT)) * PRIME
        i += width
        out.ends[n] = i - begin
    if is_open:
        n = _ended(n, h, size, digits, out)
    return n


def tokenize(texts: Texts) -> Tokens:
    """Return the tokens of every text."""
    offsets, data = text_buffers(texts)
    room = Scratch.of(int(np.diff(offsets).max(initial=0)))
    parts, counts = [Scratch._make(array[:0] for array in room)], [0]
    for first, last in pairwise(offsets.tolist()):
        n = int(tokenize_into(data, first, last, folding(), room))
        parts.append(Scratch._make(array[:n].copy() for array in room))
        counts.append(n)
    joined = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    return Tokens._make([*joined, np.cumsum(counts).astype(np.int64)])


#: Size of an n-gram in quarters of a word: 4 words, 8 Han or kana letters, 16 Thai letters.
SIZE = 4 * WORD
_BASE = np.uint64(0x9E3779B97F4A7C15)


@kernel
def ngram_at(hashes: Uint64s, sizes: Bytes, i: Int, n: Int, size: Int) -> tuple[Int, Int]:
    """(hash, token after the n-gram) of the shortest n-gram of `size` at token i; end -1: none."""
    g = np.uint64(0)
    got = 0
    j = i
    while j < n and got < size:
        g = g * _BASE + hashes[j]
        got += sizes[j]
        j += 1
    return (finish(g), j) if got >= size else (g, -1)


@kernel
def _all_ngrams(
    hashes: Uint64s, sizes: Bytes, offsets: Int64s, size: Int, grams: Uint64s, ends: Int64s
) -> None:
    for d in range(len(offsets) - 1):
        first, n = offsets[d], offsets[d + 1]
        for i in range(first, n):
            g, j = ngram_at(hashes, sizes, i, n, size)
            grams[i] = g
            ends[i] = j


def ngrams(
    tokens: Tokens, size: int = SIZE
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return hash and end of the n-gram at every token; the end is -1 where the text is too short.

    Both [tokens].
    """
    grams = np.empty(len(tokens.hashes), np.uint64)
    ends = np.empty(len(tokens.hashes), np.int64)
    _all_ngrams(tokens.hashes, tokens.sizes, tokens.offsets, size, grams, ends)
    return grams, ends
