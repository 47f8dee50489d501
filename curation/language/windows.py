"""Parts of documents on which a language is identified, cut and cleaned on UTF-8 buffers.

Spellings of one text that say nothing of its language, and what becomes of them.

Decomposed letters, presentation forms of fonts, points on Arabic and Hebrew letters, breathings of
Greek, soft hyphens: a model that has seen the usual spelling finds every run of letters strange in
the other, and takes a psalm with vowel signs for a language that nobody knows.
"""

import functools
import unicodedata
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, from_buffers, large_strings, line_spans, text_buffers
from curation.bytes.code_points import code_point, put
from curation.compiled import Bytes, Int, Int64s, Uint16s, Uint32s, borrowing
from curation.kernels import kept
from curation.text import characters as ch
from curation.text.characters import bits_of, lower_case
from curation.text.plain import plain

_Form = Literal["NFC", "NFKC"]

_BLANK = ch.SPACE | ch.IGNORE
_ALPHA = ch.ALPHA
_UPPER = ch.UPPER
_LETTER = ch.ALPHA | ch.EXTEND
#: Of a window, beside kinds of code points: most letters are capitals.
_CAPITALS = np.uint8(8)
_DOTTED_I = "İ".lower()
_LINE_FEED = 10
_ADDRESS = r"(?:://|www\.)[!-~]{3,}"
_APOSTROPHE = 39  # part of a letter in many Latin orthographies
_MAX_CODE_POINT_BYTES = 4


class Windows(NamedTuple):
    """Windows of a batch; those of document i are `windows[firsts[i]:firsts[i + 1]]`.

    A document without any letter has none.
    """

    texts: pa.Array  # large_string [windows], one line each
    letters: npt.NDArray[np.int64]  # [windows] letters in each, at least 1
    firsts: npt.NDArray[np.int64]  # [documents + 1]


def cut(texts: Texts, windows: int, characters: int) -> Windows:
    """Up to `windows` evenly spaced windows of `characters` code points per document.

    A document no longer than all windows together is one window. White space, controls and line
    breaks become single spaces, so that fastText sees one line; spelling is as usual
    (`curation.language.windows`), and capitals are small where they are most letters of a window:
    models have seen few texts in capitals, and score them low. Addresses are left out.
    """
    texts = large_strings(plain(texts))
    offsets, data = text_buffers(texts)
    a, b = data[:-1], data[1:]  # a pattern takes longer to say which may have addresses
    begun = np.flatnonzero((a == 0x3A) & (b == 0x2F) | (a == 0x77) & (b == 0x77))  # `:/`, `ww`
    some = pa.array(np.diff(np.searchsorted(begun, offsets)) > 0)
    if pc.any(some).as_py():
        without = pc.replace_substring_regex(texts.filter(some), _ADDRESS, " ")
        texts = pc.replace_with_mask(texts, some, without)
    offsets, data = text_buffers(texts)
    documents = len(offsets) - 1
    widest = np.minimum(np.diff(offsets), windows * characters * _MAX_CODE_POINT_BYTES)
    out = _Room(
        np.empty(int(widest.sum()), np.uint8),
        np.zeros(documents * windows + 1, np.int64),
        np.zeros(documents * windows, np.int64),
        np.zeros(documents + 1, np.int64),
        np.zeros(documents * windows, np.uint8),
    )
    _cut(offsets, data, windows, characters, _Tables(ch.properties(), kinds()), out)
    count = int(out.firsts[-1])
    strings = from_buffers(out.offsets[: count + 1], out.data[: out.offsets[count]])
    strings = _as_usual(strings, out.spelling[:count])
    return Windows(strings, out.letters[:count], out.firsts)


def _as_usual(strings: pa.Array, kinds: npt.NDArray[np.uint8]) -> pa.Array:
    """Windows in normal form and small letters, if they have code points of that kind."""
    presented = (kinds & PRESENTED) != 0
    decomposed = ~presented & ((kinds & DECOMPOSED) != 0)
    forms: dict[_Form, npt.NDArray[np.bool_]] = {"NFKC": presented, "NFC": decomposed}
    for form, rows in forms.items():  # Arrow's normal forms leave Hangul letters apart
        if rows.any():
            some = pa.array(rows)
            usual = [unicodedata.normalize(form, t) for t in strings.filter(some).to_pylist()]
            strings = pc.replace_with_mask(strings, some, pa.array(usual, pa.large_string()))
    capitals = pa.array((kinds & _CAPITALS) != 0)
    small = [t.lower().replace(_DOTTED_I, "i") for t in strings.filter(capitals).to_pylist()]
    return pc.replace_with_mask(strings, capitals, pa.array(small, pa.large_string()))


class _Room(NamedTuple):
    """Where windows are written."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]  # of windows in `data`
    letters: npt.NDArray[np.int64]
    firsts: npt.NDArray[np.int64]
    spelling: npt.NDArray[np.uint8]  # [windows] kinds of code points in each


class _Tables(NamedTuple):
    """What is known of every code point."""

    properties: npt.NDArray[np.uint16]
    spelling: npt.NDArray[np.uint8]


@borrowing
def _cut(
    offsets: Int64s, data: Bytes, windows: Int, characters: Int, tables: _Tables, out: _Room
) -> None:
    n = 0
    for doc in range(len(offsets) - 1):
        begin = offsets[doc]
        end = offsets[doc + 1]
        length = 0
        for byte in range(np.uint64(begin), np.uint64(end)):
            length += (data[byte] & 0xC0) != 0x80
        parts = windows if length > windows * characters else 1
        i = begin
        at = 0  # code points before byte i
        for part in range(parts):
            if parts == 1:
                first = 0
                last = min(length, windows * characters)
            else:
                first = (length - characters) * part // (parts - 1)
                last = first + characters
            while at < first:
                i += 1
                while data[np.uint64(i)] & 0xC0 == 0x80:
                    i += 1
                at += 1
            size = out.offsets[n]
            blank = True
            alphabetic = upper = 0
            kinds = np.uint8(0)
            while at < last:
                c, width = code_point(data, i)
                p = np.int64(tables.properties[c])
                kind = tables.spelling[c]
                kinds |= kind
                if kind == OPTIONAL:
                    pass
                elif p & _BLANK:
                    if not blank:
                        out.data[size] = 32
                        size += 1
                    blank = True
                else:
                    for k in range(width):
                        out.data[size + k] = data[i + k]
                    size += width
                    blank = False
                    alphabetic += (p & _ALPHA) != 0
                    upper += (p & _UPPER) != 0
                i += width
                at += 1
            if alphabetic:
                out.letters[n] = alphabetic
                out.spelling[n] = kinds | (_CAPITALS if 2 * upper > alphabetic else 0)
                n += 1
                out.offsets[n] = size
        out.firsts[doc + 1] = n


def split_lines(texts: Texts) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The lines of all texts, without their line feeds, and those of text i: firsts[i:i + 2].

    An empty text has none.
    """
    buffers = text_buffers(texts)
    starts, ends, firsts = line_spans(buffers)
    data = buffers.data[buffers.offsets[0] : buffers.offsets[-1]]
    return from_buffers(np.cumsum([0, *(ends - starts)]), data[data != _LINE_FEED]), firsts


def letters_only(lines: Texts) -> pa.Array:
    """Lines as lower-case letters, marks and apostrophes; all else becomes single spaces.

    Their spelling is the usual one (`curation.language.windows`).
    """
    offsets, data = text_buffers(lines)
    # a lower-case form may take one more byte in UTF-8 than its capital, never more than twice
    out = np.empty(2 * int(offsets[-1] - offsets[0]), np.uint8)
    out_offsets = np.zeros(len(offsets), np.int64)
    _letters(offsets, data, ch.properties(), folded(), out, out_offsets)
    return from_buffers(out_offsets, out[: out_offsets[-1]])


@borrowing
def _letters(
    offsets: Int64s,
    data: Bytes,
    properties: Uint16s,
    folded: Uint32s,
    out: Bytes,
    out_offsets: Int64s,
) -> None:
    size = 0
    for line in range(len(offsets) - 1):
        first = size
        i = offsets[line]
        while i < offsets[line + 1]:
            c, width = code_point(data, i)
            i += width
            if folded[c] == LEFT_OUT:
                continue
            if not (np.int64(properties[c]) & _LETTER or c == _APOSTROPHE):
                if size > first and out[size - 1] != 32:
                    out[size] = 32
                    size += 1
                continue
            size = put(out, size, np.int64(folded[c]))
        if size > first and out[size - 1] == 32:
            size -= 1
        out_offsets[line + 1] = size


#: Kinds of code points, as bits: left out; in need of a normal form; in need of NFKC.
OPTIONAL, DECOMPOSED, PRESENTED = 1, 2, 4
#: What an optional code point becomes in `folded`.
LEFT_OUT = 0xFFFFFFFF

_PATTERNS = (
    # Soft hyphen, joiners of graphemes, marks of direction; tatweel, vowel signs and signs of
    # recitation of Arabic; points and accents of Hebrew.
    (
        OPTIONAL,
        r"[\u00ad\u034f\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
        r"\u0640\u064b-\u0652\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
        r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]",
    ),
    (DECOMPOSED, r"[\p{NFC_QC=No}\p{NFC_QC=Maybe}\P{ccc=0}]"),
    # Ligatures and forms of Latin, Armenian, Hebrew and Arabic letters, letters of mathematics.
    # Not full-width forms: Chinese punctuation is among them.
    (PRESENTED, r"[[\ufb00-\ufdef\ufe70-\ufefc\U0001d400-\U0001d7ff]&&\p{NFKC_QC=No}]"),
)
_GREEK_EXTENDED = range(0x1F00, 0x2000)
_ACCENTS = {"\u0300", "\u0301", "\u0342"}  # grave, acute, circumflex: all one accent today
_ACUTE, _DIAERESIS = "\u0301", "\u0308"


@functools.cache
@kept
def kinds() -> npt.NDArray[np.uint8]:
    """Bits of every code point: uint8 [0x110000]."""
    table = bits_of(_PATTERNS).astype(np.uint8)
    table[(table & OPTIONAL) != 0] = OPTIONAL
    table.flags.writeable = False
    return table


@functools.cache
@kept
def folded() -> npt.NDArray[np.uint32]:
    """Lower-case form of every code point: uint32 [0x110000], `LEFT_OUT` where it is optional.

    Greek letters have one accent and no breathing.
    """
    table = lower_case().copy()
    for code in _GREEK_EXTENDED:
        letter, *marks = list(unicodedata.normalize("NFD", chr(code).lower()))
        if letter.isalpha():
            accent = _ACUTE if _ACCENTS & set(marks) else ""
            diaeresis = _DIAERESIS if _DIAERESIS in marks else ""
            table[code] = ord(unicodedata.normalize("NFC", letter + diaeresis + accent))
    table[kinds() == OPTIONAL] = LEFT_OUT
    table.flags.writeable = False
    return table
