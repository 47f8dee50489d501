"""What of a page can say something of its rights, found by searches for the few words that can.

Nearly all pages say little: what is found is looked at closer by `curation.rights.page`.
"""

import re
from itertools import islice
from typing import NamedTuple

import numpy as np

from curation.bytes import ascii as ch
from curation.bytes.search import eight_of, next_byte, positions, same, stands_at, word
from curation.compiled import Bytes, Int, Int64s, kernel, merged
from curation.rights.rsl import MEDIA_TYPE

#: Bytes of a page's beginning that can be its head: scripts and styles in it may be long.
HEAD_BYTES = 1 << 20
#: Bytes of a page's end in which its copyright line is.
FOOT_BYTES = 20_000
#: Bytes of a tag.
TAG_BYTES = 2_000
#: Tags of a head that are looked at.
MOST_TAGS = 256
#: Words about licences that can state one, and are looked at.
MOST_PLACES = 256
#: Places in which these and the like may be.
_MOST_SEEN = 1 << 14
#: Bytes from a `rel` to the word licence.
_REL_BYTES = 80
#: Bytes before a place in which the comment or script that holds it begins.
BACK_BYTES = 16_384
#: Signs of copyright in tags, scripts and comments at a page's end that are passed over.
_MOST_SIGNS = 8
#: Bytes before and behind a sign of copyright that are looked at for its line ...
LINE_BYTES = 400
#: ... and in which a comment or script begins that names its own authors.
_NOTE_BYTES = 2_048

#: Parts of the word licence, of the address of Creative Commons and of the media type of RSL.
_PARTS, _COMMONS, _RSL = b"icenns.orsl+", b"ommons.org/", MEDIA_TYPE.encode()
_LICENCE = re.compile(rb"[lL](?:icen|ICEN)[scSC][eE]")
_KEY = re.compile(rb'license"\s{0,32}:')
_LINK = re.compile(rb"<a\s", re.I)
#: A `rel` whose value the word licence is in.
_REL = re.compile(rb"""rel\s{0,14}=(?:\s{0,16}["'])?[^"'<>]{0,40}\Z""", re.I)
#: What counts in a head behind `<`: comments, its end, tags that may state something, elements of
#: mere text; and what may be behind each of these.
_NAMES = b"!-- /head> body meta link script style title template textarea".split()
_COMMENT, _BODY, _META, _HOLDERS, _NONE = 0, 2, 3, 5, len(_NAMES)
_MARKS, _BEGINS = word(b"".join(_NAMES)), np.cumsum([0, *map(len, _NAMES)])
_BEHIND = np.ones((_NONE, 256), np.bool_)
_BEHIND[_BODY] = ch.byte_set(">" + "".join(map(chr, range(33))))
_BEHIND[_HOLDERS:] = ~(ch.ALNUM | ch.byte_set("_"))
_OPEN, _CLOSING = eight_of.py_func(ch.LESS), word(b"-->")
#: What no head holds: a page may leave out the tags that end it.
_CONTENT = re.compile(rb"<(?:p|div|h[1-6]|a|[ou]l|span|table|img|main|article)[\s>]", re.I)
#: Four letters in a row that tags of a head have which state something: `canonical`, `noindex` and
#: such, `robots`, `bot"`, `"none`, `tdm-`, `right`, `licence`. Bits of the sets that a byte is in.
_ROWS = "n o nifas nmorai", "b o t s\"'", "\"' n o n", "t d m -", "r i g h", "i c e n"
_ROW = np.zeros((4, 256), np.uint8)
for _bit, _row in enumerate(_ROWS):
    for _place, _letters in enumerate(_row.split()):
        _ROW[_place, [*(_letters + _letters.upper()).encode()]] |= 1 << _bit
#: Forms of the sign of copyright, and words that state it where there is none.
_SIGNS = "© &copy &COPY &#169; &#xa9; &#xA9; (c)19 (c)20 (C)19 (C)20".encode().split()
_SIGNS += [each.replace(b")", b") ") for each in _SIGNS[-4:]]
_STATED = "opyright OPYRIGHT 版权所有 版權所有 著作権 저작권".encode().split()
_WORDS = word(b"".join(_SIGNS + _STATED))
_ENDS = np.cumsum([0, *map(len, _SIGNS + _STATED)])
_STARTS, _GOES_ON = np.zeros((2, 256), np.bool_)  # whether a byte is the first, or second, of one
_STARTS[_WORDS[_ENDS[:-1]]] = _GOES_ON[_WORDS[_ENDS[:-1] + 1]] = True
_SIGN_WORDS = len(_SIGNS)
#: Tags, with what is in scripts, styles and comments.
_TAG = re.compile(r"<(script|style)\b.*?(?:</\1[^>]*>?|\Z)|<!--.*?(?:-->|\Z)|<[^>]*>?", re.I | re.S)
_REFERENCE = re.compile(r"&[#\w]*;?")
_CODE = re.compile(r"[=\\{};]")


class Found(NamedTuple):
    """Where to look closer. Addresses are bytes from the page's beginning, each list in order."""

    head_end: int  # where the body begins or may begin
    line: str  # text around the last sign or word of copyright
    tags: list[bytes]  # meta and link tags in the head that say something
    rels: list[int]  # the `rel` before the word licence
    links: list[int]  # the link with the word in its tag
    badges: list[int]  # the word in the address of a badge
    commons: list[int]  # the address of Creative Commons
    may_have_key: bool  # `"license":`
    may_state: bool  # a licence
    may_have_terms: bool  # in RSL


def holders(source: bytes, at: int, back: int = BACK_BYTES) -> tuple[int, int]:
    """Return where the comment and the script begin that hold a place; -1: none does.

    Those are passed over that begin more than `back` bytes before it.
    """
    begin = max(0, at - back)
    before = source[begin:at].lower()
    comment, script = before.rfind(b"<!--"), before.rfind(b"<script")
    return (
        begin + comment if comment > before.rfind(b"-->") else -1,
        begin + script if script > before.rfind(b"</script") else -1,
    )


def scan(source: bytes) -> Found:
    """Look through a page (UTF-8)."""
    head_end, tags = _head(source)
    seen = [*islice(positions(source, _PARTS), _MOST_SEEN)]
    words = [at - 1 for at in seen if _LICENCE.match(source, at - 1)][:MOST_PLACES]
    commons = [at - 4 for at in seen if source.startswith(_COMMONS, at - 4)][:MOST_PLACES]
    terms = [at for at in seen if source[at - 12 : at + 7].lower() == _RSL]
    rels, links = _around(source, words)
    return Found(
        head_end,
        _line(source),
        tags,
        rels,
        links,
        [at for at in words if source[at : at + 14].lower() == b"licensebuttons"],
        commons,
        len(words) + len(commons) >= MOST_PLACES
        or any(source[at - 1 : at] == b'"' and _KEY.match(source, at) for at in words),
        bool(words or commons),
        bool(terms and (words or commons or terms[0] < head_end)),
    )


def _around(source: bytes, words: list[int]) -> tuple[list[int], list[int]]:
    """Return where the `rel` before each word begins, and where the link in whose tag it is."""
    rels, links = list[int](), list[int]()
    before, link = 0, -1
    for at in words:
        begin = max(before, at - TAG_BYTES)
        inside = source.rfind(b">", begin, at) + 1
        opened = [found.start() for found in _LINK.finditer(source, inside or begin, at)]
        same_tag = not inside and begin == before
        link = opened[-1] if opened else link if same_tag else -1
        if link >= 0:
            links.append(link)
        if rel := _REL.search(source, max(inside, begin, at - _REL_BYTES), at):
            rels.append(rel.start())
        before = at
    return rels, links


def _head(source: bytes) -> tuple[int, list[bytes]]:
    """Return where the head ends, and its tags that say something."""
    limit = min(len(source), HEAD_BYTES)
    tags = np.empty((MOST_TAGS, 2), np.int64)
    count, end = _tags(np.frombuffer(source, np.uint8), limit, tags)
    if end < 0:
        content = _CONTENT.search(source, 0, limit)
        end = content.start() if content else limit
    return int(end), [source[begin:behind] for begin, behind in tags[:count].tolist()]


@kernel
def _tags(data: Bytes, limit: Int, tags: Int64s) -> tuple[Int, Int]:
    """Write begin and end of a head's meta and link tags that may state something.

    Return their number, and where the head ends; -1: nothing says so.
    """
    count = at = opened = unclosed = seems = 0
    held = closed = -1
    while True:
        at = max(at, next_byte(data, at, min(limit, len(data) - 8), _OPEN))
        while at < limit and data[at] != ch.LESS:
            at += 1
        if at >= limit:
            if held < 0:
                return count, -1
            at, held, unclosed = opened, -1, unclosed | 1 << held  # as if it had not begun
            continue
        at += 1
        if held >= 0:
            name = _MARKS[_BEGINS[held] : _BEGINS[held + 1]]
            if stands_at(data, at + 1, limit, name) and data[at] == ch.SLASH:
                held = -1
            continue
        mark = _mark(data, at, limit)
        if mark == _COMMENT:  # `<!-->` is a whole one
            at += 3
            while at < limit and not stands_at(data, at - 2, limit, _CLOSING):
                at += 1
        elif mark < _META:
            return count, at - 1
        elif mark < _HOLDERS:
            if closed < at:
                closed, seems = _closed(data, at, min(len(data), limit + TAG_BYTES))
            if closed < min(len(data), at - 1 + TAG_BYTES):
                if seems and count < len(tags):
                    tags[count, 0], tags[count, 1] = at - 1, closed + 1
                    count += 1
                at = closed
        elif mark < _NONE and not unclosed >> mark & 1:
            opened, held = at, mark


@merged
def _closed(data: Bytes, at: Int, end: Int) -> tuple[Int, Int]:
    """Return where the next `>` is, and whether letters of a statement come before."""
    row = 0
    while at < end and data[at] != ch.GREATER:
        two = _ROW[0, data[at - 3]] & _ROW[1, data[at - 2]]
        row |= two & _ROW[2, data[at - 1]] & _ROW[3, data[at]]
        at += 1
    return at, row


@merged
def _mark(data: Bytes, at: Int, limit: Int) -> Int:
    """Return the number of the name at a place."""
    for mark in range(_NONE):
        name = _MARKS[_BEGINS[mark] : _BEGINS[mark + 1]]
        if stands_at(data, at, limit, name):
            return mark if _BEHIND[mark, data[min(at + len(name), limit - 1)]] else _NONE
    return _NONE


def _line(source: bytes) -> str:
    """Return the text around the last sign of copyright, or else around the last such word.

    Those in tags, scripts and comments are passed over.
    """
    data, at = word(source), len(source)
    for _ in range(_MOST_SIGNS):
        at = int(_sign(data, max(0, at - FOOT_BYTES), at))
        if at < 0:
            break
        stop = max(0, at - LINE_BYTES)
        opened, closed = source.rfind(b"<", stop, at), source.rfind(b">", stop, at)
        if opened > closed or max(holders(source, at, _NOTE_BYTES)) >= 0:
            continue
        text = plain(source[max(closed + 1, stop) : at + LINE_BYTES])
        code = _CODE.search(_REFERENCE.sub("", text))
        if not code or holders(source, at)[1] < 0:
            return text
    return ""


@kernel
def _sign(data: Bytes, begin: Int, end: Int) -> Int:
    """Return where the last sign of copyright is, or else the last such word; -1: neither."""
    name = -1
    for at in range(end - 2, begin - 1, -1):
        # No index is negative. One branch, seldom taken.
        if not _STARTS[data[np.uint64(at)]] & _GOES_ON[data[np.uint64(at + 1)]]:
            continue
        for k in range(len(_ENDS) - 1):
            size = _ENDS[k + 1] - _ENDS[k]
            if at + size <= end and same(data, at, _WORDS, _ENDS[k], size):
                if k < _SIGN_WORDS:
                    return at
                name = max(name, at)
    return name


def plain(part: bytes) -> str:
    """Return the text of a part of a page, which may begin and end inside a tag."""
    text = part.decode("utf-8", "ignore")
    opened = text.find("<")
    text = text[text.rfind(">", 0, opened if opened >= 0 else len(text)) + 1 :]
    return _TAG.sub(" ", text)
