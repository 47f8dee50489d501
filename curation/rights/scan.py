"""What of a page can say something of its rights, found in one compiled pass over its bytes.

Nearly all pages say little. So the page is looked at in blocks, without a branch for each byte, for
four letters that each needle has; only blocks with these are looked at letter by letter.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.search import ONES, next_byte, same, stands_at
from curation.compiled import Bool, Bytes, Int, Int64s, borrowing, inlined

#: Bytes of a page's beginning that can be its head: scripts and styles in it may be long.
HEAD_BYTES = 1 << 20
#: Bytes of a page's end in which its copyright line is.
FOOT_BYTES = 20_000
#: Bytes of a tag.
TAG_BYTES = 2_000
#: Tags of a head that are looked at.
MOST_TAGS = 32
#: Words about licences that can state one, and are looked at.
MOST_PLACES = 256

#: Kinds of places: the `rel` before the word licence, the link with the word in its tag, the word
#: itself in the address of a badge, the key `"license"`, the address of Creative Commons, and the
#: first word of all.
REL, LINK, BADGE, KEY, COMMONS, WORD = range(6)

_BLOCK = 512
_STRIDE = 64
#: Bytes behind a page, for `next_byte`.
_PADDING = 8
_PLACES = np.arange(_STRIDE, dtype=np.uint8)
#: Bytes between the word licence and its `rel`.
_REL_BYTES = 40
#: Blanks around the equals sign of `rel`, and before the colon of a key.
_MOST_BLANKS = 16
#: Bytes before a place in which the comment or script that holds it begins.
BACK_BYTES = 16_384
#: Signs of copyright in tags, scripts and comments at a page's end that are passed over.
_MOST_SIGNS = 8
#: Bytes before and behind a sign of copyright that are looked at for its line ...
LINE_BYTES = 400
#: ... and in which a comment or script begins that names its own authors.
_NOTE_BYTES = 2_048
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
    b"licen",
    b"copyright",
    b"canonical",
)
_SCRIPT, _STYLE, _COMMENT, _COMMENT_END = (
    np.frombuffer(word, np.uint8) for word in (b"script", b"style", b"<!--", b"-->")
)
_BODY, _HEAD_END, _META, _LINK = (
    np.frombuffer(word, np.uint8) for word in (b"body", b"/head>", b"meta", b"link")
)
_BUTTONS, _ADDRESS, _KEY = (
    np.frombuffer(word, np.uint8) for word in (b"licensebuttons", b"ommons.org/", b'license"')
)
_COPY, _NUMBER, _NO_BREAK = (
    np.frombuffer(word, np.uint8) for word in (b"&copy;", b"&#169;", b"&nbsp;")
)
_BYTE = np.uint8
_LOWER = _BYTE(32)
#: All bits but that by which capital and small letters differ.
_EITHER = _BYTE(0xFF ^ 32)
_I, _C, _E, _N, _S, _DOT = (_BYTE(byte) for byte in b"icens.")
_AND, _O, _HASH, _ONE, _P, _Y, _R = (_BYTE(byte) for byte in b"&o#1pyr")
_X, _OPEN, _CLOSE, _BLANK = (_BYTE(byte) for byte in b"x() ")
_LESS, _MORE, _SLASH, _DASH = (_BYTE(byte) for byte in b"<>/-")
_LESSES, _MORES = (np.uint64(byte) * ONES for byte in b"<>")
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
_HAN = tuple(_BYTE(byte) for byte in "版".encode())
_KANA = tuple(_BYTE(byte) for byte in "著".encode())
_HANGUL = tuple(_BYTE(byte) for byte in "저".encode())


class Found(NamedTuple):
    """Where to look closer. Addresses are bytes from the page's beginning."""

    head_end: int  # where the body begins or may begin
    line: bytearray  # text around the last sign or word of copyright
    #: Begin and end of meta and link tags in the head that say something.
    tags: list[list[int]]
    #: Kind and address of each word that can state a licence.
    places: list[list[int]]

    def of_kind(self, kind: int) -> list[int]:
        """Return the addresses of the places of a kind."""
        return [at for which, at in self.places if which == kind]


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
def _is_exactly(data: Bytes, at: Int, letters: Bytes) -> Bool:
    """Return whether letters are in the data."""
    size = len(letters)
    return 0 <= at <= len(data) - size and same(data, at, letters, 0, size)


@inlined
def _is_blank(byte: Int) -> Bool:
    return byte == 32 or 9 <= byte <= 13


@inlined
def _rel_before(data: Bytes, equals: Int) -> Int:
    """Where the `rel` before an equals sign begins; -1: there is none."""
    at = equals - 1
    stop = max(2, equals - _MOST_BLANKS)
    while at > stop and _is_blank(data[at]):
        at -= 1
    if at < 2 or data[at] | _LOWER != 108 or data[at - 1] | _LOWER != 101:
        return -1
    return at - 2 if data[at - 2] | _LOWER == 114 else -1


@inlined
def _leading(data: Bytes, word: Int, known: Int, link: Int) -> tuple[Int, Int]:
    """Where the `rel` of the word licence begins, and where the link in whose tag it is; or -1.

    What is before another such word is known: the link that has that one in its tag.
    """
    rel = -1
    outside = False  # of the value of an attribute that may be `rel`
    at = word - 1
    stop = max(known, word - TAG_BYTES)
    while at >= stop:
        byte = data[at]
        if byte == _MORE:
            return rel, -1
        if byte == _LESS and data[at + 1] | _LOWER == 97 and _is_blank(data[at + 2]):
            return rel, at
        if not outside:
            if byte == 61:
                rel = _rel_before(data, at)
            elif byte == 34 or byte == 39:
                equals = at - 1
                while equals > max(0, at - _MOST_BLANKS) and _is_blank(data[equals]):
                    equals -= 1
                if equals > 0 and data[equals] == 61:
                    rel = _rel_before(data, equals)
                outside = True
            outside = outside or rel >= 0 or word - at > _REL_BYTES
        at -= 1
    return rel, link if stop == known else -1


@inlined
def _add(places: Int64s, count: Int, kind: Int, at: Int) -> Int:
    """Add a place that isn't the last one; return how many there are."""
    if at < 0 or count == len(places):
        return count
    if count and places[count - 1, 0] == kind and places[count - 1, 1] == at:
        return count
    places[count, 0], places[count, 1] = kind, at
    return count + 1


@inlined
def _is_licence(data: Bytes, at: Int) -> Bool:
    """Whether `icen` is of the word licence or license."""
    if at < 1 or at + 6 > len(data) or data[at - 1] | _LOWER != 108:
        return False
    behind = data[at + 4] | _LOWER
    return (behind == 115 or behind == 99) and data[at + 5] | _LOWER == 101


@borrowing
def _add_word(
    data: Bytes, word: Int, places: Int64s, count: Int, known: Int, link: Int
) -> tuple[Int, Int]:
    """Add the places of a word; return how many there are, and where the link around it begins."""
    if word and data[word - 1] == 34 and _is_exactly(data, word, _KEY):
        behind = word + len(_KEY)
        while behind < min(len(data), word + 2 * _MOST_BLANKS) and _is_blank(data[behind]):
            behind += 1
        if behind < len(data) and data[behind] == 58:  # a colon
            count = _add(places, count, KEY, 0)
    if stands_at(data, word, len(data), _BUTTONS):
        count = _add(places, count, BADGE, word)
    rel, link = _leading(data, word, known, link)
    return _add(places, _add(places, count, REL, rel), LINK, link), link


@borrowing
def _has(first: Bytes, second: Bytes, third: Bytes, fourth: Bytes) -> Bool:
    """Whether `icen`, in any case, or `ns.o` is in four views that are a byte apart each.

    Without a branch, and in bytes throughout, so that it is compiled to vector instructions.
    """
    found = _BYTE(255)
    for k in range(len(fourth)):
        a, b, c, d = first[k], second[k], third[k], fourth[k]
        word = _BYTE(_BYTE(_BYTE(a ^ _I) | _BYTE(b ^ _C)) | _BYTE(_BYTE(c ^ _E) | _BYTE(d ^ _N)))
        name = _BYTE(_BYTE(_BYTE(a ^ _N) | _BYTE(b ^ _S)) | _BYTE(_BYTE(c ^ _DOT) | _BYTE(d ^ _O)))
        found = min(found, min(_BYTE(word & _EITHER), name))
    return found == 0


@borrowing
def _anywhere(data: Bytes, places: Int64s) -> Int:
    """Fill places [n, 2] with kinds and addresses, in order; return n."""
    count = known = 0
    link = -1  # in whose tag the last word is
    last = len(data) - 3
    for begin in range(0, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        if count == len(places) or not _has(
            data[begin:end],
            data[begin + 1 : end + 1],
            data[begin + 2 : end + 2],
            data[begin + 3 : end + 3],
        ):
            continue
        for at in range(begin, end):
            if data[at] | _LOWER == _I:
                if data[at + 1] | _LOWER == _C and _is_licence(data, at):
                    count = count if known else _add(places, count, WORD, at)
                    count, link = _add_word(data, at - 1, places, count, known, link)
                    known = at
            elif data[at] == _N and data[at + 1] == _S and data[at + 2] == _DOT:
                if _is_exactly(data, at - 4, _ADDRESS):
                    count = _add(places, count, COMMONS, at - 4)
    return count


@inlined
def _after(data: Bytes, at: Int, limit: Int, opened: Int) -> Int:
    """Where the comment (1) or the script (2) that has begun ends, or the limit."""
    if opened == 1:
        at += 2
        while True:
            at = next_byte(data, at, limit, _MORES)
            if at >= limit:
                return limit
            if data[at - 1] == _DASH and data[at - 2] == _DASH:
                return at + 1
            at += 1
    while True:
        at = next_byte(data, at, limit, _LESSES)
        if at + 8 > limit:
            return limit
        if data[at + 1] == _SLASH and stands_at(data, at + 2, len(data), _SCRIPT):
            return at + 8
        at += 1


@inlined
def _states(data: Bytes, begin: Int, end: Int) -> Bool:
    """Whether one of the words is in a tag."""
    words = _STATING_WORDS
    for at in range(begin, end - 2):
        fit = words.fits[0, data[at]] & words.fits[1, data[at + 1]]
        if fit and fit & words.fits[2, data[at + 2]]:
            start = 0
            for k in range(len(words.ends)):
                if stands_at(data, at, len(data), words.letters[start : words.ends[k]]):
                    return True
                start = words.ends[k]
    return False


@borrowing
def _head(data: Bytes, spans: Int64s) -> tuple[Int, Int]:
    """Fill spans [n, 2] with `Found.tags`; return where the head ends, and n."""
    limit = min(len(data), HEAD_BYTES)
    count = at = 0
    while at < limit:
        at = next_byte(data, at, limit, _LESSES)
        if at + 6 > len(data) or at == limit:
            break
        opened = 0  # a comment (1), a script (2)
        if at + 7 <= len(data) and stands_at(data, at + 1, len(data), _COMMENT[1:]):
            opened = 1
        elif at + 7 <= len(data) and stands_at(data, at + 1, len(data), _SCRIPT):
            opened = 2
        if opened:
            at = _after(data, at + (4 if opened == 1 else 7), limit, opened)
            continue
        size = len(data)
        if stands_at(data, at + 1, size, _BODY) and (data[at + 5] == _MORE or data[at + 5] <= 32):
            return at, count
        if stands_at(data, at + 1, size, _HEAD_END):
            return at, count
        if stands_at(data, at + 1, size, _META) or stands_at(data, at + 1, size, _LINK):
            end = min(size, at + TAG_BYTES)
            close = next_byte(data, at + 5, end, _MORES)
            if close < end:
                if count < len(spans) and _states(data, at + 5, close):
                    spans[count, 0], spans[count, 1] = at, close + 1
                    count += 1
                at = close
        at += 1
    return limit, count


@inlined
def _last_sign(data: Bytes, begin: Int) -> Int:
    """Where the last sign or word of copyright may begin in a stride; -1: nowhere."""
    found = _BYTE(0)
    first, second = data[begin : begin + _STRIDE], data[begin + 1 : begin + _STRIDE + 1]
    third = data[begin + 2 : begin + _STRIDE + 2]
    for k in range(_STRIDE):
        a, b, c = first[k], second[k], third[k]
        sign = _BYTE(_BYTE(a ^ _SIGN[0]) | _BYTE(b ^ _SIGN[1]))
        copy = _BYTE(_BYTE(b ^ _C) | _BYTE(c ^ _O))
        number = _BYTE(_BYTE(b ^ _HASH) | min(_BYTE(c ^ _ONE), _BYTE(c ^ _X)))
        read = _BYTE(_BYTE(a ^ _AND) | min(copy, number))
        letter = _BYTE(_BYTE(a ^ _OPEN) | _BYTE(_BYTE(b ^ _C) | _BYTE(c ^ _CLOSE)))
        word = _BYTE(_BYTE(a ^ _P) | _BYTE(_BYTE(b ^ _Y) | _BYTE(c ^ _R)))
        han = _BYTE(_BYTE(a ^ _HAN[0]) | _BYTE(_BYTE(b ^ _HAN[1]) | _BYTE(c ^ _HAN[2])))
        kana = _BYTE(_BYTE(a ^ _KANA[0]) | _BYTE(_BYTE(b ^ _KANA[1]) | _BYTE(c ^ _KANA[2])))
        hangul = _BYTE(_BYTE(a ^ _HANGUL[0]) | _BYTE(_BYTE(b ^ _HANGUL[1]) | _BYTE(c ^ _HANGUL[2])))
        least = min(min(min(sign, read), min(letter, word)), min(min(han, kana), hangul))
        here = (_BYTE(least & _EITHER) == 0) * _BYTE(255)
        found = max(found, _BYTE(_BYTE(_PLACES[k] + _BYTE(1)) & _BYTE(here)))
    return begin + np.int64(found) - 1 if found else -1


@borrowing
def _sign_at(data: Bytes, at: Int) -> Int:
    """Which of the signs and names of copyright begins at a place; -1: none."""
    signs = _SIGN_WORDS
    fit = signs.fits[0, data[at]] & signs.fits[1, data[at + 1]] & signs.fits[2, data[at + 2]]
    start = 0
    for k in range(len(signs.ends) if fit else 0):
        if data[at] == signs.letters[start] or data[at] | _LOWER == signs.letters[start]:
            if stands_at(data, at, len(data), signs.letters[start : signs.ends[k]]):
                return k
        start = signs.ends[k]
    return -1


@borrowing
def _sign(data: Bytes, before: Int) -> Int:
    """Where the last sign of copyright before a place is, else the last such word; -1: neither."""
    data = data[:before]
    word = -1
    stop = max(0, len(data) - FOOT_BYTES)
    last = len(data) - 2
    while last > stop:
        at = last - 1
        if last >= _STRIDE:
            at = _last_sign(data, last - _STRIDE)
            if at < 0:
                last -= _STRIDE
                continue
        which = _sign_at(data, at) if at >= stop else -1
        if 0 <= which < _SIGN_COUNT:
            return at
        if which >= 0:
            word = max(word, at - (which == _SIGN_COUNT))
        last = at
    return word


@borrowing
def _holders(data: Bytes, at: Int, back: Int) -> tuple[Int, Int]:
    """Where the comment and the script begin in which a place is, if within bytes before; or -1."""
    comment = script = -2  # not known yet
    before = data[:at]
    stop = max(0, at - back)
    k = at - 2
    while k > stop and (comment == -2 or script == -2):
        k -= 1
        byte = data[k]
        if byte == _DASH:
            if comment == -2 and data[k + 1] == _DASH and data[k + 2] == _MORE:
                comment = -1
        elif byte == _LESS:
            if comment == -2 and _is_exactly(before, k, _COMMENT):
                comment = k
            elif script == -2 and stands_at(before, k + 1, len(before), _SCRIPT):
                script = k
        elif byte == _SLASH and script == -2 and k and data[k - 1] == _LESS:
            if stands_at(before, k + 1, len(before), _SCRIPT):
                script = -1
    return max(comment, -1), max(script, -1)


@inlined
def _text_before(data: Bytes, at: Int) -> Int:
    """Where the text begins in which a place is; -1: the place is in a tag."""
    stop = max(0, at - LINE_BYTES)
    while at > stop:
        at -= 1
        if data[at] == _LESS:
            return -1
        if data[at] == _MORE:
            return at + 1
    return stop


@inlined
def _is_name(byte: Int) -> Bool:
    """Whether a letter, digit or underscore, which continues a tag's name."""
    return byte > 127 or byte == 95 or 48 <= byte <= 57 or 97 <= byte | _LOWER <= 122


@borrowing
def _behind_tag(data: Bytes, at: Int, end: Int) -> Int:
    """Where the text after a tag begins, or after the script, style or comment that it opens."""
    if _is_exactly(data, at, _COMMENT):
        at += 4
        while at + 2 < end and not _is_exactly(data, at, _COMMENT_END):
            at += 1
        return at + 3 if at + 2 < end else end
    for name in (_SCRIPT, _STYLE):
        behind = at + 1 + len(name)
        if behind <= end and stands_at(data, at + 1, len(data), name):
            if behind < end and _is_name(data[behind]):
                continue
            at = behind
            while at < end and not (
                data[at] == _LESS
                and stands_at(data, at + 2, len(data), name)
                and data[at + 1] == _SLASH
            ):
                at += 1
    while at < end and data[at] != _MORE:
        at += 1
    return min(at + 1, end)


@borrowing
def _plain(data: Bytes, begin: Int, end: Int, out: Bytes) -> tuple[Int, Bool]:
    """Write the text of a part of a page; return its length and whether it may be of a script.

    Signs of copyright and blanks that are written as references are read.
    """
    end = min(end, len(data))
    at = begin
    while at < end and data[at] != _LESS:
        begin = at + 1 if data[at] == _MORE else begin
        at += 1
    at = begin
    length = 0
    code = reads = False  # a reference
    while at < end:
        byte = data[at]
        behind = at + 1
        if byte == _LESS:
            behind = _behind_tag(data[:end], at, end)
            byte = _BLANK
        elif byte == _AND:
            if _is_exactly(data[:end], at, _COPY) or _is_exactly(data[:end], at, _NUMBER):
                out[length] = _SIGN[0]
                length += 1
                byte = _SIGN[1]
                behind = at + 6
            elif _is_exactly(data[:end], at, _NO_BREAK):
                byte = _BLANK
                behind = at + 6
        elif _is_blank(byte):
            byte = _BLANK
        elif byte == 59:
            code |= not reads
        else:
            code |= byte == 61 or byte == 92 or byte == 123 or byte == 125  # =\\{}
        reads = byte == _AND or (reads and (byte == _HASH or _is_name(byte)))
        if byte != _BLANK or (length and out[length - 1] != _BLANK):
            out[length] = byte
            length += 1
        at = behind
    return length, code


@borrowing
def _line(data: Bytes, before: Int, out: Bytes) -> Int:
    """Write the text around the last sign of copyright; return its length.

    Signs in tags, scripts and comments are passed over.
    """
    for _ in range(_MOST_SIGNS):
        before = _sign(data, before)
        if before < 0:
            break
        text = _text_before(data, before)
        if text >= 0:
            comment, script = _holders(data, before, _NOTE_BYTES)
            if comment < 0 and script < 0:
                length, code = _plain(data, text, before + LINE_BYTES, out)
                if not code or _holders(data, before, BACK_BYTES)[1] < 0:
                    return length
    return 0


@borrowing
def _look(data: Bytes, spans: Int64s, places: Int64s, line: Bytes) -> tuple[Int, Int, Int, Int]:
    """Fill `spans`, `places` and `line`; return how many there are of each, and the head's end.

    Behind the page are `_PADDING` bytes.
    """
    data = data[: len(data) - _PADDING]
    count = _anywhere(data, places)
    head_end, tags = _head(data, spans)
    return tags, count, _line(data, len(data), line), head_end


def _bytes(source: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(source, np.uint8)


class Holders(NamedTuple):
    """Where the comment and the script begin that a place is in; -1: it is in none."""

    comment: int
    script: int


def holders(source: bytes, at: int) -> Holders:
    """Return what holds a place and begins at most BACK_BYTES before it."""
    return Holders(*map(int, _holders(_bytes(source), at, BACK_BYTES)))


class _Room(threading.local):
    """Arrays that kernels fill, one set for each thread: to make them costs as much as to look."""

    def __init__(self) -> None:
        text = bytearray(2 * LINE_BYTES)
        spans, places = np.empty((MOST_TAGS, 2), np.int64), np.empty((MOST_PLACES, 2), np.int64)
        self.arrays = spans, places, np.frombuffer(text, np.uint8), text


_ROOM = _Room()


def scan(source: bytes) -> Found:
    """Look through a page (UTF-8)."""
    spans, places, line, text = _ROOM.arrays
    tags, count, length, head_end = _look(_bytes(source + bytes(_PADDING)), spans, places, line)
    return Found(
        int(head_end),
        text[:length],
        spans[:tags].tolist() if tags else [],
        places[:count].tolist() if count else [],
    )
