"""What of a page can say something of its rights, found by searches for the few words that can.

Nearly all pages say little: what is found is looked at closer by `curation.rights.page`.
"""

import re
from itertools import compress, islice
from typing import NamedTuple

import numpy as np

from curation.bytes.search import positions, same, word
from curation.compiled import Bytes, Int, kernel

#: Bytes of a page's beginning that can be its head: scripts and styles in it may be long.
HEAD_BYTES = 1 << 20
#: Bytes of a page's end in which its copyright line is.
FOOT_BYTES = 20_000
#: Bytes of a tag.
TAG_BYTES = 2_000
#: Tags of a head that are looked at.
MOST_TAGS = 256
#: Signs that may begin one.
_MOST_OPENED = 1 << 16
#: Words about licences that can state one, and are looked at.
MOST_PLACES = 256
#: Those in which it may be.
_MOST_WORDS = 4096
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

#: What the word licence has, in either case, and the address of Creative Commons.
_LICEN, _COMMONS = (word(b"icen"), word(b"ICEN")), word(b"ommons.org/")
_LICENCE = re.compile(rb"licen[sc]e", re.I)
_KEY = re.compile(rb'license"\s{0,32}:')
_LINK = re.compile(rb"<a\s", re.I)
#: A `rel` whose value the word licence is in.
_REL = re.compile(rb"""rel\s{0,14}=(?:\s{0,16}["'])?[^"'<>]{0,40}\Z""", re.I)
#: What counts in a head: comments, elements of mere text, its end, tags that may state something.
_IN_HEAD = re.compile(
    rb"<(?:(!--)|(script|style|title|template|textarea)\b|(body[>\0- ]|/head>)|(?:meta|link))", re.I
)
_CLOSED = {n: re.compile(b"</" + n, re.I) for n in b"script style title template textarea".split()}
#: What no head holds: a page may leave out the tags that end it.
_CONTENT = re.compile(rb"<(?:p|div|h[1-6]|a|[ou]l|span|table|img|main|article)[\s>]", re.I)
_COMMENT, _HOLDER, _END = 1, 2, 3
#: Words of the tags of a head that can state something; what all of them share is in `_stating`.
_STATING = tuple(
    "canonical robots bot\" bot' noindex nofollow noarchive nosnippet noai noimageai \"none 'none "
    "tdm- rights licen copyright".split()
)
_AGES = 19, 20  # how years begin
#: Forms of the sign of copyright, and words that state it where there is none.
_SIGNS = "© &copy &COPY &#169; &#xa9; &#xA9;".encode().split()
_SIGNS += [b"(%c)%s%d" % (c, blank, age) for c in b"cC" for blank in (b"", b" ") for age in _AGES]
_NAMES = "opyright OPYRIGHT 版权所有 版權所有 著作権 저작권".encode().split()
_WORDS = word(b"".join(_SIGNS + _NAMES))
_ENDS = np.cumsum([0, *map(len, _SIGNS + _NAMES)])
_BEGINS, _GOES_ON = np.zeros((2, 256), np.bool_)  # whether a byte is the first, or second, of one
_BEGINS[_WORDS[_ENDS[:-1]]] = _GOES_ON[_WORDS[_ENDS[:-1] + 1]] = True
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


class Holders(NamedTuple):
    """Where the comment and the script begin that a place is in; -1: it is in none."""

    comment: int
    script: int


def holders(source: bytes, at: int, back: int = BACK_BYTES) -> Holders:
    """Return what holds a place and begins at most `back` bytes before it."""
    begin = max(0, at - back)
    before = source[begin:at].lower()
    comment, script = before.rfind(b"<!--"), before.rfind(b"<script")
    return Holders(
        begin + comment if comment > before.rfind(b"-->") else -1,
        begin + script if script > before.rfind(b"</script") else -1,
    )


def scan(source: bytes) -> Found:
    """Look through a page (UTF-8)."""
    head_end, tags = _head(source)
    found = (at for some in _LICEN for at in islice(positions(source, some), _MOST_WORDS))
    words = sorted(at - 1 for at in found if at and _LICENCE.match(source, at - 1))[:MOST_PLACES]
    commons = [*islice(positions(source, _COMMONS), MOST_PLACES)]
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
    tags, at, unclosed = list[bytes](), 0, set[bytes]()
    for _ in range(_MOST_OPENED):
        found = _IN_HEAD.search(source, at, limit)
        if not found:
            break
        begin, at, kind = found.start(), found.end(), found.lastindex
        if kind == _END:
            return begin, _stating(tags)
        if kind == _COMMENT:
            at = source.find(b"-->", at - 2, limit) + 3  # `<!-->` is a whole one
        elif kind == _HOLDER:
            name = found[2].lower()
            if name not in unclosed and (closed := _CLOSED[name].search(source, at, limit)):
                at = closed.end()
            else:
                unclosed.add(name)
        elif end := source.find(b">", at, begin + TAG_BYTES) + 1:
            at = end
            tags.append(source[begin:end])
        if at < len(b"-->"):
            break
    content = _CONTENT.search(source, 0, limit)
    return content.start() if content else limit, _stating(tags)


def _stating(tags: list[bytes]) -> list[bytes]:
    """Return those that can say something: one at a time takes three times as long."""
    texts = b"".join(tags).lower().decode("latin-1").split(">")  # sooner searched than bytes
    may = (
        ("no" in t or "bot" in t or "right" in t or "licen" in t or "tdm" in t or "canon" in t)
        and any(stated in t for stated in _STATING)
        for t in texts
    )
    return [*islice(compress(tags, may), MOST_TAGS)]


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
        if not code or holders(source, at).script < 0:
            return text
    return ""


@kernel
def _sign(data: Bytes, begin: Int, end: Int) -> Int:
    """Return where the last sign of copyright is, or else the last such word; -1: neither."""
    name = -1
    for at in range(end - 2, begin - 1, -1):
        # No index is negative. One branch, seldom taken.
        if not _BEGINS[data[np.uint64(at)]] & _GOES_ON[data[np.uint64(at + 1)]]:
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
