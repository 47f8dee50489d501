"""What a page says of its rights: licences with their place, robots' directives, reservations.

Looks at the few tags that can say something and at their surroundings, never at the whole tree, so
that reading costs little beside extraction.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from curation.rights.directives import Directive, parse_directives
from curation.rights.licences import Licence, licence_of
from curation.rights.tdm import Reservation, reservation


class Statement(NamedTuple):
    """A licence that a page names."""

    licence: Licence | None  # None: terms of the site's own, to which `rel=license` leads
    scope: str  # "page", or "part": a picture, a listing, a comment
    place: str  # "head", "body" or "footer"
    kind: str  # "link", "meta", "json-ld", "rdf", "anchor" or "badge"
    value: str  # the address or text as it is written


class PageRights(NamedTuple):
    """What a page's HTML says of its rights."""

    statements: tuple[Statement, ...]
    directives: tuple[Directive, ...]
    reservation: Reservation | None
    copyright: str | None  # the line of the page's copyright, white space collapsed

    @property
    def licence(self) -> Licence | None:
        """The page's licence: the first that is stated for the page as a whole."""
        return next((s.licence for s in self.statements if s.scope == "page" and s.licence), None)


#: Bytes of a page's beginning that can be its head where nothing says where the body begins.
_HEAD_BYTES = 65_536
#: Bytes of a page's end in which its copyright line is.
_FOOT_BYTES = 20_000
#: Addresses of licences that are looked at; pages of pictures have thousands.
_MOST_STATEMENTS = 32
#: Bytes around an address in which its tag, and the words about it, are looked for.
_TAG_BYTES, _NEAR_BYTES = 2_000, 400
#: Bytes before a tag in which a comment or script that holds it begins.
_BACK_BYTES = 16_384
#: Characters of a copyright line that are kept.
_LINE_CHARACTERS = 160

_BODY = re.compile(rb"<body[\s>]|</head>", re.I)
#: Words of the tags of a head that can state something.
_STATING_WORDS = (
    b"robots",
    b'bot"',
    b"bot'",
    b"slurp",
    b"-extended",
    b"anthropic",
    b"claude",
    b"tdm-",
    b"rights",
    b"licens",
    b"licenc",
    b"copyright",
)
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_ADDRESS = re.compile(
    rb"[Cc]reative[Cc]ommons\.org/(?:licen[cs]es|l|p|publicdomain)/[^\"'\s<>]{2,80}"
)
_REL = re.compile(rb"rel\s*=\s*[\"']?[^\"'>]{0,40}licen[cs]e", re.I)
_TAG_TEXT = re.compile(r"<[^>]*>|^[^<]*>|<[^>]*$")
_FOOTER = re.compile(rb"<footer[\s>]|(?:id|class)\s*=\s*[\"']?[^\"'>]{0,60}foot", re.I)
_FIGURE = re.compile(
    rb"<fig(?:ure|caption)[\s>]|class\s*=\s*[\"']?[^\"'>]{0,60}(?:caption|(?:photo|image|img)[_-]?credit)",
    re.I,
)
_RDF_LICENCE = re.compile(rb"<(?:\w+:)?license\s", re.I)
_FIGURE_END = re.compile(rb"</fig(?:ure|caption)|</h\d|</p>|</div>", re.I)
#: Names of meta tags that state the licence of the page.
_STATING = frozenset(
    "dc.rights dc.rights.license dc.license dcterms.rights dcterms.license dcterms.rights.license "
    "dc:rights dc:license license licence copyright rights eprints.rights cc:license".split()
)
#: Crawlers whose own meta tag counts; `<meta name=description>` is for none.
_ROBOTS = re.compile(r"robots$|.*bot(?:-\w+)?$|.*-extended$|slurp$|anthropic-ai$|claude-web$")
#: Words of a sentence that licenses what the reader sees as a whole ...
_WHOLE = re.compile(
    r"(?i)content|text|page|site|blog|wiki|article|post|work|document|book|material|except where|"
    r"otherwise|inhalt|seite|beitr|artikel|steh[et]|contenu|sauf|texte|contenido|conteúdo|salvo|"
    r"contenut|tekst|strona|treść|сайт|текст|материал|содерж|コンテンツ|サイト|記事|文章|本站|本文|内容|콘텐츠"
)
#: ... and of one that names the source of a part of it.
_PARTS = re.compile(
    r"(?i)photo|image|picture|foto|bild|via\b|flickr|unsplash|wikimedia|music|musi[kq]|song|track|icon|"
    r"map|tile|openstreetmap|video|illustrat|写真|画像|图片|фото"
)
#: Types of schema.org's things that are parts of a page.
_PART_TYPES = frozenset(
    "ImageObject AudioObject VideoObject MediaObject MusicRecording Photograph Person Organization "
    "Comment Dataset DataDownload SoftwareSourceCode".split()
)


def read_page(source: bytes) -> PageRights:
    """Return what a page (UTF-8) says of its rights. Broken HTML is never an error."""
    head_end = _end_of_head(source)
    tags = [(tag[1:2].lower(), _attributes(tag)) for tag in _stating_tags(source, head_end)]
    named = [
        (
            tag.get("name", tag.get("property", tag.get("http-equiv", ""))).lower(),
            tag.get("content", ""),
        )
        for kind, tag in tags
        if kind == b"m"
    ]
    links = [tag for kind, tag in tags if kind == b"l"]
    statements = [*_in_head(links, named), *_in_json(source, head_end), *_in_body(source, head_end)]
    return PageRights(
        tuple(dict.fromkeys(statements)),
        tuple(_directives(named)),
        reservation(
            [c for n, c in named if n == "tdm-reservation"],
            [c for n, c in named if n == "tdm-policy"],
        ),
        _copyright(source),
    )


def _end_of_head(source: bytes) -> int:
    """Return the byte at which the body begins, or may begin."""
    ends = [
        end for mark in (b"</head>", b"<body") if (end := source.find(mark, 0, _HEAD_BYTES)) >= 0
    ]
    if ends:
        return min(ends)
    found = _BODY.search(source, 0, _HEAD_BYTES)
    return found.start() if found else min(len(source), _HEAD_BYTES)


def _stating_tags(source: bytes, end: int) -> list[bytes]:
    """Return the meta and link tags before `end` that have one of the words, in order."""
    low = source[:end].lower()
    tags: dict[int, bytes] = {}
    for word in _STATING_WORDS:
        at = low.find(word)
        while at >= 0 and len(tags) < _MOST_STATEMENTS:
            start = low.rfind(b"<", max(0, at - _TAG_BYTES), at)
            close = source.find(b">", at, at + _TAG_BYTES)
            if close < 0:
                break
            if low.startswith((b"<meta", b"<link"), max(start, 0)) and start >= 0:
                tags[start] = source[start : close + 1]
            at = low.find(word, close)
    held = [at for at in sorted(tags) if not _commented(source, at) and not _scripted(source, at)]
    return [tags[at] for at in held]


def _attributes(tag: bytes) -> dict[str, str]:
    found = _ATTRIBUTE.findall(tag.decode("utf-8", "replace"))
    return {name.lower(): html.unescape(a or b or c) for name, a, b, c in found}


def _directives(named: list[tuple[str, str]]) -> Iterator[Directive]:
    for name, content in named:
        if _ROBOTS.match(name):
            yield from parse_directives(content, "" if name == "robots" else name)


def _in_head(links: list[dict[str, str]], named: list[tuple[str, str]]) -> Iterator[Statement]:
    for link in links:
        rels, href = link.get("rel", "").lower().split(), link.get("href", "")
        if not {"license", "licence", "copyright"} & set(rels):
            continue
        known = licence_of(href)
        if known or "copyright" not in rels:
            yield Statement(known, "page", "head", "link", href[:_LINE_CHARACTERS])
    for name, content in named:
        known = licence_of(content) if name in _STATING else None
        if known:
            yield Statement(known, "page", "head", "meta", content[:_LINE_CHARACTERS])


def _in_json(source: bytes, head_end: int) -> Iterator[Statement]:
    at = source.find(b"ld+json")
    for _ in range(_MOST_STATEMENTS):
        begin = source.find(b">", at) + 1
        end = source.find(b"</script", begin)
        if at < 0 or not begin or end < 0:
            return
        if _tag_around(source, at)[:7].lower() == b"<script":
            try:
                content = json.loads(source[begin:end])
            except (ValueError, RecursionError):
                content = None
            yield from _of_thing(content, True, "head" if at < head_end else "body")
        at = source.find(b"ld+json", end)


def _of_thing(thing: Any, whole: bool, place: str) -> Iterator[Statement]:
    """Yield the licences of a thing of schema.org and of its parts."""
    waiting = [(thing, whole)]
    while waiting:
        thing, whole = waiting.pop()
        if isinstance(thing, list):
            waiting += [(one, whole) for one in thing]
        if not isinstance(thing, dict):
            continue
        types = thing.get("@type", ())
        whole = whole and not _PART_TYPES & set(
            [types] if isinstance(types, str) else map(str, types)
        )
        stated = thing.get("license")
        for one in stated if isinstance(stated, list) else [stated]:
            value = one.get("url", one.get("@id")) if isinstance(one, dict) else one
            if isinstance(value, str) and value:
                scope = "page" if whole else "part"
                yield Statement(
                    licence_of(value), scope, place, "json-ld", value[:_LINE_CHARACTERS]
                )
        waiting += [
            (value, whole and key in ("@graph", "mainEntity", "mainEntityOfPage"))
            for key, value in thing.items()
            if isinstance(value, dict | list)
        ]


def _in_body(source: bytes, head_end: int) -> Iterator[Statement]:
    """Yield the licences to which anchors, badges and RDF lead, each address once.

    Where nothing says that the head ends, all of the page may be its body, too.
    """
    begin = head_end if _BODY.match(source, head_end) else 0
    if source.find(b"ommons.org/", begin) < 0 and not _may_license(source, begin):
        return
    addresses = itertools.islice(_ADDRESS.finditer(source, begin), _MOST_STATEMENTS)
    found = [address.span() for address in addresses]
    tags = [_tag_around(source, start) for start, _ in found]
    seen = set()
    for (start, end), tag in zip(found, tags, strict=True):
        value = source[start:end].decode("utf-8", "replace")
        if start < head_end and tag[:5].lower() in (b"<link", b"<meta"):
            continue  # read as the head's
        one = _statement(source, start, tag, value)
        if one is not None and one not in seen:
            seen.add(one)
            yield one
    if not found:
        yield from _own_terms(source, begin)


def _may_license(source: bytes, begin: int) -> bool:
    return source.find(b"license", begin) >= 0 and _REL.search(source, begin) is not None


def _own_terms(source: bytes, begin: int) -> Iterator[Statement]:
    for found in itertools.islice(_REL.finditer(source, begin), _MOST_STATEMENTS):
        tag = _tag_around(source, found.start())
        if tag[:2].lower() in (b"<a", b"<l") and not _commented(source, found.start()):
            href = _attributes(tag).get("href", "")
            place = _place(source, found.start())
            yield Statement(licence_of(href), "page", place, "anchor", href[:_LINE_CHARACTERS])
            return


def _statement(source: bytes, at: int, tag: bytes, value: str) -> Statement | None:
    licence = licence_of(value)
    if licence is None:
        return None
    place = _place(source, at)
    if _commented(source, at):
        comment = source[source.rfind(b"<!--", max(0, at - _BACK_BYTES), at) : at]
        stating = b"rdf" in comment.lower() and _RDF_LICENCE.match(tag)
        return Statement(licence, "page", place, "rdf", value) if stating else None
    name = re.match(rb"<\s*([a-z:]+)", tag, re.I)
    kind = name.group(1).lower() if name else b""
    attributes = _attributes(tag)
    if _scripted(source, at):
        # JSON-LD is read as such; other scripts show maps and players with their sources.
        stated = b"ld+json" in source[source.rfind(b"<script", max(0, at - _BACK_BYTES), at) : at]
        return None if stated else Statement(licence, "part", place, "anchor", value)
    if kind in (b"license", b"cc:license"):
        return Statement(licence, "page", place, "rdf", value)
    rels = attributes.get("rel", "").lower().split()
    if kind == b"link":
        return Statement(licence, "page", place, "link", value) if "license" in rels else None
    if kind == b"img":
        badge = value.lower() in attributes.get("src", "").lower()
        scope = "page" if badge and not _in_figure(source, at) else "part"
        return Statement(licence, scope, place, "badge", value)
    stated = bool({"license", "licence", "cc:license"} & set(rels)) and not _in_figure(source, at)
    scope = "page" if stated or _licenses_whole(source, at) else "part"
    return Statement(licence, scope, place, "anchor", value)


def _tag_around(source: bytes, at: int) -> bytes:
    start = source.rfind(b"<", max(0, at - _TAG_BYTES), at)
    end = source.find(b">", at, at + _TAG_BYTES)
    return source[max(start, 0) : end + 1 if end >= 0 else at]


def _commented(source: bytes, at: int) -> bool:
    begin = max(0, at - _BACK_BYTES)
    opened = source.rfind(b"<!--", begin, at)
    return opened >= 0 and source.find(b"-->", opened, at) < 0


def _scripted(source: bytes, at: int) -> bool:
    begin = max(0, at - _BACK_BYTES)
    opened = max(source.rfind(b"<script", begin, at), source.rfind(b"<SCRIPT", begin, at))
    return opened >= 0 and re.search(rb"</script", source[opened:at], re.I) is None


def _place(source: bytes, at: int) -> str:
    begin = max(0, at - 4 * _TAG_BYTES)
    opened = [m.start() for m in _FOOTER.finditer(source, begin, at)]
    return "footer" if opened and b"</footer" not in source[opened[-1] : at] else "body"


def _in_figure(source: bytes, at: int) -> bool:
    begin = max(0, at - _TAG_BYTES)
    opened = [m.end() for m in _FIGURE.finditer(source, begin, at)]
    return bool(opened) and _FIGURE_END.search(source, opened[-1], at) is None


def _licenses_whole(source: bytes, at: int) -> bool:
    """Return whether the words around an address license the page, not a part of it."""
    if _in_figure(source, at):
        return False
    before = _plain(source[max(0, at - _NEAR_BYTES) : at])[-160:]
    after = _plain(source[at : at + _NEAR_BYTES])[:120]
    if _PARTS.search(before[-80:]):
        return False
    return _WHOLE.search(before) is not None or _WHOLE.search(after) is not None


def _plain(part: bytes) -> str:
    text = html.unescape(_TAG_TEXT.sub(" ", part.decode("utf-8", "ignore")))
    return " ".join(text.split())


def _copyright(source: bytes) -> str | None:
    """Return the last line with a copyright sign, which is the page's; pictures' come before."""
    begin = max(0, len(source) - _FOOT_BYTES)
    foot = source[begin:]
    at = max(foot.rfind(sign) for sign in (b"\xc2\xa9", b"&copy;", b"&#169;"))
    at = begin + (at if at >= 0 else foot.rfind(b"opyright"))
    if at < begin or _scripted(source, at) or _commented(source, at):
        return None
    start = source.rfind(b">", max(0, at - _NEAR_BYTES), at) + 1
    line = _plain(source[max(start, at - _NEAR_BYTES) : at + _NEAR_BYTES])
    return line[:_LINE_CHARACTERS].strip() or None
