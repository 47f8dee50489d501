"""What of a page can say something of its rights, found in one compiled pass over its bytes.

Nearly all pages say little. So the page is looked at in blocks, without a branch for each byte, for
four letters that each needle has; only blocks with these are looked at letter by letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import borrowing, inlined

#: Bytes of a page's beginning that can be its head: scripts and styles in it may be long.
HEAD_BYTES = 1 << 20
#: Bytes of a page's end in which its copyright line is.
FOOT_BYTES = 20_000
#: Bytes of a tag.
TAG_BYTES = 2_000
#: Tags of a head that are looked at.
MOST_TAGS = 32

_BLOCK = 512
_STRIDE = 32
#: Bytes before the word licence in which its `rel` begins.
_REL_BYTES = 56
#: Words of the tags of a head that can state something.
_STATING = (
    b"robots",
    b'bot"',
    b"bot'",
    b"noindex",
    b"nofollow",
    b"noarchive",
    b"nosnippet",
    b"noai",
    b"noimageai",
    b'"none',
    b"'none",
    b"tdm-",
    b"rights",
    b"licens",
    b"licenc",
    b"copyright",
)
_SCRIPT = np.frombuffer(b"script", np.uint8)
_BYTE = np.uint8
_LOWER = _BYTE(32)
_I, _C, _E, _N, _S, _DOT, _D, _PLUS, _J = (_BYTE(byte) for byte in b"icens.d+j")
_AND, _O, _HASH, _ONE, _P, _Y, _R = (_BYTE(byte) for byte in b"&o#1pyr")
_X, _OPEN, _CLOSE = (_BYTE(byte) for byte in b"x()")
_SIGN = _BYTE(0xC2), _BYTE(0xA9)
#: Forms of the sign, and what is one before a year.
_SIGNS = (
    *(b"\xc2\xa9", b"&copy", b"&#169;", b"&#xa9;"),
    *(b"(c) 19", b"(c) 20", b"(c)19", b"(c)20"),
)
#: Words that state it where there is no sign; of the English one, its first letter is left out.
_SIGN_NAMES = (
    b"pyright",
    *("版权所有".encode(), "版權所有".encode(), "著作権".encode(), "저작권".encode()),
)
_FIRST_HAN = tuple(_BYTE(byte) for byte in "版".encode())
_FIRST_KANA = tuple(_BYTE(byte) for byte in "著".encode())
_FIRST_HANGUL = tuple(_BYTE(byte) for byte in "저".encode())
#: Blocks with the word licence that are looked at.
MOST_BLOCKS = 256


class Found(NamedTuple):
    """Where to look closer. Addresses are bytes from the page's beginning."""

    head_end: int  # where the body begins or may begin
    has_address: bool  # of Creative Commons
    licences: list[tuple[int, int]]  # begin and end of parts in which the word may be
    has_json: bool  # JSON-LD
    copyright: int  # where the last sign or word is; -1: none
    tags: list[
        tuple[int, int]
    ]  # begin and end of meta and link tags in the head that say something


class _Words(NamedTuple):
    """Words in small letters, as kernels take them."""

    letters: npt.NDArray[np.uint8]  # of all words, end to end
    ends: npt.NDArray[np.int64]  # [words]
    #: [3, 256], by place in a word and letter in any case: a bit for each word that has it there.
    fits: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, words: Sequence[bytes]) -> _Words:
        fits = np.zeros((3, 256), np.uint16)
        for number, word in enumerate(words):
            for place, letter in enumerate(word[:3]):
                fits[place, [letter, bytes([letter]).upper()[0]]] |= 1 << number
            fits[len(word) :] |= 1 << number  # behind a short word is anything
        letters = np.frombuffer(b"".join(words), np.uint8)
        return cls(letters, np.cumsum([len(word) for word in words]), fits)


_STATING_WORDS, _SIGN_WORDS = _Words.of(_STATING), _Words.of((*_SIGNS, *_SIGN_NAMES))
_SIGN_COUNT = len(_SIGNS)


@inlined
def _is(data, at, letters, begin, end):  # type: ignore[no-untyped-def]
    """Whether small letters [begin, end) are in the data, in any case."""
    if at + end - begin > len(data):
        return False
    for k in range(begin, end):
        byte = data[at + k - begin]
        if 65 <= byte <= 90:
            byte |= _LOWER
        if byte != letters[k]:
            return False
    return True


@borrowing
def _has(first, second, third, fourth):  # type: ignore[no-untyped-def]
    """A bit for `icen` and `d+j` in any case, and `ns.o`, in four views that are a byte apart each.

    Without a branch, and in bytes throughout, so that it is compiled to vector instructions.
    """
    licence = address = linked = _BYTE(255)
    for k in range(len(fourth)):
        a, b, c, d = first[k], second[k], third[k], fourth[k]
        i_, c_ = _BYTE(_BYTE(a | _LOWER) ^ _I), _BYTE(_BYTE(b | _LOWER) ^ _C)
        e_, n_ = _BYTE(_BYTE(c | _LOWER) ^ _E), _BYTE(_BYTE(d | _LOWER) ^ _N)
        licence = min(licence, _BYTE(i_ | c_ | e_ | n_))
        org = _BYTE(_BYTE(c ^ _DOT) | _BYTE(d ^ _O))
        address = min(address, _BYTE(_BYTE(a ^ _N) | _BYTE(b ^ _S) | org))
        d_, j_ = _BYTE(_BYTE(a | _LOWER) ^ _D), _BYTE(_BYTE(c | _LOWER) ^ _J)
        linked = min(linked, _BYTE(d_ | _BYTE(b ^ _PLUS) | j_))
    return (licence == 0) | ((address == 0) << 1) | ((linked == 0) << 2)


@borrowing
def _anywhere(data, blocks):  # type: ignore[no-untyped-def]
    """Fill blocks [n] with the beginnings of those with `icen`; return the bits of all, and n."""
    found = count = 0
    last = len(data) - 3
    for begin in range(0, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        here = _has(
            data[begin:end],
            data[begin + 1 : end + 1],
            data[begin + 2 : end + 2],
            data[begin + 3 : end + 3],
        )
        if here & 1 and count < len(blocks):
            blocks[count] = begin
            count += 1
        found |= here
    return found, count


@inlined
def _opens(data, at):  # type: ignore[no-untyped-def]
    """Whether the `<` at a place opens a comment (1) or a script (2); 0: neither."""
    if at + 7 > len(data):
        return 0
    if data[at + 1] == 33 and data[at + 2] == 45 and data[at + 3] == 45:
        return 1
    return 2 if _is(data, at + 1, _SCRIPT, 0, len(_SCRIPT)) else 0


@inlined
def _tag_from(data, at, limit):  # type: ignore[no-untyped-def]
    """Where the next `<` is, or the limit. Blocks without one, as in scripts, are passed over."""
    while at + _STRIDE <= limit:
        found = _BYTE(255)
        for byte in data[at : at + _STRIDE]:
            found = min(found, _BYTE(byte ^ _BYTE(60)))
        if found == 0:
            break
        at += _STRIDE
    while at < limit and data[at] != 60:
        at += 1
    return at


@inlined
def _after(data, at, limit, opened):  # type: ignore[no-untyped-def]
    """Where the comment (1) or the script (2) that has begun ends, or the limit."""
    if opened == 1:
        while at + 2 < limit:
            if data[at] == 45 and data[at + 1] == 45 and data[at + 2] == 62:
                return at + 3
            at += 1
        return limit
    while True:
        at = _tag_from(data, at, limit)
        if at + 8 > limit:
            return limit
        if data[at + 1] == 47 and _is(data, at + 2, _SCRIPT, 0, len(_SCRIPT)):
            return at + 8
        at += 1


@inlined
def _states(data, begin, end, words):  # type: ignore[no-untyped-def]
    """Whether one of the words is in a tag."""
    for at in range(begin, end - 2):
        fit = words.fits[0, data[at]] & words.fits[1, data[at + 1]]
        if fit and fit & words.fits[2, data[at + 2]]:
            start = 0
            for k in range(len(words.ends)):
                if _is(data, at, words.letters, start, words.ends[k]):
                    return True
                start = words.ends[k]
    return False


@borrowing
def _head(data, words, spans):  # type: ignore[no-untyped-def]
    """Fill spans [n, 2] with `Found.tags`; return where the head ends, and n."""
    limit = min(len(data), HEAD_BYTES)
    count = at = 0
    while at < limit:
        at = _tag_from(data, at, limit)
        if at + 6 > len(data) or at == limit:
            break
        opened = _opens(data, at)
        if opened:
            at = _after(data, at + (4 if opened == 1 else 7), limit, opened)
            continue
        a, b = data[at + 1] | _LOWER, data[at + 2] | _LOWER
        c, d = data[at + 3] | _LOWER, data[at + 4] | _LOWER
        if a == 98 and b == 111 and c == 100 and d == 121:  # body
            if data[at + 5] == 62 or data[at + 5] <= 32:
                return at, count
        elif data[at + 1] == 47 and b == 104 and c == 101 and d == 97:  # /hea
            if (data[at + 5] | _LOWER) == 100 and at + 6 < len(data) and data[at + 6] == 62:
                return at, count
        elif (a == 109 and b == 101 and c == 116 and d == 97) or (
            a == 108 and b == 105 and c == 110 and d == 107
        ):
            close = at + 5
            end = min(len(data), at + TAG_BYTES)
            while close < end and data[close] != 62:
                close += 1
            if close < end:
                if count < len(spans) and _states(data, at + 5, close, words):
                    spans[count, 0], spans[count, 1] = at, close + 1
                    count += 1
                at = close
        at += 1
    return limit, count


@borrowing
def _has_sign(first, second, third):  # type: ignore[no-untyped-def]
    """Whether the beginning of a sign or word of copyright is in three views, as `_has`."""
    found = _BYTE(255)
    for k in range(len(third)):
        a, b, c = first[k], second[k], third[k]
        sign = _BYTE(_BYTE(a ^ _SIGN[0]) | _BYTE(b ^ _SIGN[1]))
        named = _BYTE(_BYTE(a ^ _AND) | _BYTE(b ^ _C) | _BYTE(c ^ _O))
        number = min(_BYTE(c ^ _ONE), _BYTE(_BYTE(c | _LOWER) ^ _X))
        numbered = _BYTE(_BYTE(a ^ _AND) | _BYTE(b ^ _HASH) | number)
        letter = _BYTE(_BYTE(a ^ _OPEN) | _BYTE(_BYTE(b | _LOWER) ^ _C) | _BYTE(c ^ _CLOSE))
        word = _BYTE(_BYTE(a ^ _P) | _BYTE(b ^ _Y) | _BYTE(c ^ _R))
        han = _BYTE(_BYTE(a ^ _FIRST_HAN[0]) | _BYTE(b ^ _FIRST_HAN[1]) | _BYTE(c ^ _FIRST_HAN[2]))
        kana = _BYTE(
            _BYTE(a ^ _FIRST_KANA[0]) | _BYTE(b ^ _FIRST_KANA[1]) | _BYTE(c ^ _FIRST_KANA[2])
        )
        hangul = _BYTE(
            _BYTE(a ^ _FIRST_HANGUL[0]) | _BYTE(b ^ _FIRST_HANGUL[1]) | _BYTE(c ^ _FIRST_HANGUL[2])
        )
        found = min(found, min(min(sign, named), min(min(numbered, letter), word)))
        found = min(found, min(min(han, kana), hangul))
    return found == 0


@borrowing
def _sign(data, signs):  # type: ignore[no-untyped-def]
    """Where the last sign of copyright is, else the last such word; -1: neither."""
    word = -1
    stop = max(0, len(data) - FOOT_BYTES)
    last = len(data) - 2
    while last > stop:
        begin = max(stop, last - _BLOCK)
        if _has_sign(data[begin:last], data[begin + 1 : last + 1], data[begin + 2 : last + 2]):
            for at in range(last - 1, begin - 1, -1):
                fit = signs.fits[0, data[at]] & signs.fits[1, data[at + 1]]
                if not fit & signs.fits[2, data[at + 2]]:
                    continue
                start = 0
                for k in range(len(signs.ends)):
                    first = data[at] == signs.letters[start]
                    if first and _is(data, at, signs.letters, start, signs.ends[k]):
                        if k < _SIGN_COUNT:
                            return at
                        word = max(word, at - (k == _SIGN_COUNT))
                    start = signs.ends[k]
        last = begin
    return word


@borrowing
def _look(data, words, signs, spans, blocks):  # type: ignore[no-untyped-def]
    """The parts of `Found`; how many of `spans` and of `blocks` are filled."""
    found, parts = _anywhere(data, blocks)
    head_end, count = _head(data, words, spans)
    return found, head_end, _sign(data, signs), count, parts


def sign_before(source: bytes, end: int) -> int:
    """Return where the last sign or word of copyright before a place is; -1: nowhere."""
    data: npt.NDArray[np.uint8] = np.frombuffer(source, np.uint8)
    return int(_sign(data[:end], _SIGN_WORDS))


def scan(source: bytes) -> Found:
    """Look through a page (UTF-8)."""
    data: npt.NDArray[np.uint8] = np.frombuffer(source, np.uint8)
    spans = np.empty((MOST_TAGS, 2), np.int64)
    blocks = np.empty(MOST_BLOCKS, np.int64)
    found, head_end, sign, count, parts = _look(data, _STATING_WORDS, _SIGN_WORDS, spans, blocks)
    tags = [(begin, end) for begin, end in spans[:count].tolist()]
    licences = [(max(0, at - _REL_BYTES), at + _BLOCK + 8) for at in blocks[:parts].tolist()]
    return Found(head_end, bool(found & 2), licences, bool(found & 4), sign, tags)
