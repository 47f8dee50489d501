"""Rights signals of a page: licences with their place, robots directives, reservations.

Looks at the few tags that can say something and at their surroundings, never at the whole tree, so
that reading costs little beside extraction.
"""

import contextlib
import functools
import html
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from curation.rights.licences import KNOWN, Licence, licence_of
from curation.rights.robots import CLOSING, Directive, parse_directives
from curation.rights.rsl import is_rsl
from curation.rights.scan import TAG_BYTES, Found, holders, plain, scan
from curation.rights.tdm import Reservation, reservation, unread_of


class Statement(NamedTuple):
    """A licence that a page names."""

    licence: Licence | None  # None: terms of the site's own, to which `rel=license` leads
    scope: str  # "page", or "part": a picture, a listing, a comment
    place: str  # "head", "body" or "footer"
    kind: str  # "link", "meta", "json-ld", "rdf", "anchor" or "badge"
    value: str  # the address or text as it is written


class PageRights(NamedTuple):
    """Rights signals in a page's HTML."""

    statements: tuple[Statement, ...]
    directives: tuple[Directive, ...]
    reservation: Reservation | None
    copyright: str | None  # the line of the page's copyright, white space collapsed
    #: Addresses of licences in RSL, as they are written, and those that the page holds, each with
    #: its place: "head" or "body".
    terms: tuple[tuple[str, str], ...] = ()
    inline_terms: tuple[tuple[str, bytes], ...] = ()
    canonical: str = ""  # the address that the page gives for itself, as it is written
    unread: tuple[str, ...] = ()  # values of tdm-reservation that are neither 0 nor 1

    @property
    def licence(self) -> Licence | None:
        """The page's licence: the first that is stated for the page as a whole."""
        return next((s.licence for s in self.statements if s.scope == "page" and s.licence), None)


#: Addresses of licences that are looked at; pages of pictures have thousands.
_MOST_STATEMENTS = 32
#: Bytes around an address in which the words about it are looked for.
_NEAR_BYTES = 400
#: Bytes before the word foot in which an attribute with it begins.
_FOOTER_BYTES = 100
#: Characters of a copyright line that are kept.
_LINE_CHARACTERS = 160

#: Comments, scripts with what they hold, and links.
_TERMS = re.compile(
    rb"<!(?=--).*?(?:-->|\Z)|<(template|textarea)\b.*?(?:</\1|\Z)|"
    rb"(?P<script><script\b[^<>]*>)(?P<inside>.*?)(?:</script|\Z)|"
    rb"(?P<link><link\b[^<>]*>)",  # no `<` inside, or tags that never end take the square of them
    re.I | re.S,
)
_BODY = re.compile(rb"<body[\s>]|</head>", re.I)
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]++)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
#: What words that name a licence have: an abbreviation, a name, an address or a reference.
_MAY_NAME = re.compile(rb"[Cc][Cc]|[Cc][Oo][Mm][Mm][Oo][Nn][Ss]|[.&]")
_TAG_NAME = re.compile(rb"<\s*([a-z:]+)", re.I)
_LICENSE = b'"license"'
_SCHEME = re.compile(rb"(?:https?:)?//(?:[a-z]+\.)?\Z", re.I)
_ADDRESS = re.compile(
    rb"[Cc]reative[Cc]ommons\.org/(?:licen[cs]es|l|p|publicdomain|presskit/buttons)/[^\"'\s<>]{2,80}"
)
_BADGE = re.compile(rb"(?:https?:)?//licensebuttons\.net/[lp]/[^\"'\s<>]{2,80}", re.I)
# These look at bytes in lower case: the engine skips to a pattern's first letter only in these.
_LINK_END = re.compile(rb"</a|</button")
_BADGE_IMAGE = re.compile(rb"licen[cs]e|commons|somerights|\bcc[-_ ]|88x31|80x15")
_FOOTER = re.compile(rb"<footer[\s>]|(?:id|class)\s*=\s*[\"']?[^\"'>]{0,60}foot")
_FIGURE = re.compile(
    rb"<fig(?:ure|caption)[\s>]|class\s*=\s*[\"']?[^\"'>]{0,60}"
    rb"(?:caption|(?:photo|image|img)[_-]?credit|\b(?:photo|picture|thumb|thumbnail)[\s\"'>])"
)
_FIGURE_END = re.compile(rb"</fig(?:ure|caption)|</h\d|</p>|</div>")
_SCRIPT_END = re.compile(rb"</script", re.I)
_RDF_LICENCE = re.compile(rb"<(?:\w+:)?license\s", re.I)
#: Names of meta tags that state the licence of the page.
_STATING = frozenset(
    "dc.rights dc.rights.license dc.license dcterms.rights dcterms.license dcterms.rights.license "
    "dc:rights dc:license license licence copyright rights eprints.rights cc:license".split()
)
#: Crawlers whose own meta tag counts, whatever it says ...
_ROBOTS = re.compile(r"robots$|.*bot(?:-\w+)?$|.*-extended$|slurp$|anthropic-ai$|claude-web$")
#: ... and tags that are for none of them, even if their words are a directive's.
_TEXTS = re.compile(r"keyword|descri|title|tags?$|subject|abstract|topic")
_AGENT = re.compile(r"[a-z][\w-]*")
#: Ends of a property or relation that names a licence: `cc:license`, `dct:license`.
_LICENSING = frozenset(("license", "licence"))
#: Words of a sentence that licenses what the reader sees as a whole, and of one that names the
#: source of a part of it.
_WHOLE, _PARTS = (KNOWN[name].split("|") for name in ("whole", "parts"))
_SOURCE = re.compile(r"via\b")
_ITEM_TYPE = re.compile(rb"itemtype\s*=\s*[\"']?https?://schema\.org/(\w+)", re.I)
#: Where another sentence begins, whatever the last one was about.
_BLOCK_TAG = re.compile(
    rb"</?(?:p|div|li|ul|ol|dl|dt|dd|td|th|tr|table|aside|section|article|header|footer|main|nav|form|"
    rb"figure|blockquote|h[1-6])[\s>]"
)
#: Types of schema.org's things that are parts of a page.
_PART_TYPES = frozenset(
    "ImageObject AudioObject VideoObject MediaObject MusicRecording Photograph Person Organization "
    "Comment Dataset DataDownload SoftwareSourceCode".split()
)


def read_page(source: bytes) -> PageRights:
    """Return the rights signals of a page (UTF-8). Broken HTML is never an error."""
    found = scan(source)
    line = _shown(found.line)[:_LINE_CHARACTERS].strip() or None
    terms = _terms(source, found)
    head = [_of_tag(tag) for tag in found.tags]
    statements = [one for said in head for one in said.statements]
    if found.may_have_key:
        statements += _in_json(source, found.head_end)
    if found.may_state:
        statements += _in_body(source, found)
    reserved = [one for said in head for one in said.reserved]
    policies = [one for said in head for one in said.policies]
    return PageRights(
        tuple(dict.fromkeys(statements)),
        tuple(one for said in head for one in said.directives),
        reservation(reserved, policies) if reserved else None,
        line,
        *terms,
        next((said.canonical for said in head if said.canonical), ""),
        tuple(unread_of(reserved)),
    )


def _terms(
    source: bytes, found: Found
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, bytes], ...]]:
    """Return places and addresses of a page's licences in RSL, and those that it holds.

    Without a word about licences there are none, only in its head what is meant for one.
    """
    addresses, held = list[tuple[str, str]](), list[tuple[str, bytes]]()
    # Comments and other scripts are passed over.
    for tag in _TERMS.finditer(source) if found.may_have_terms else ():
        opened, inside = tag["script"] or tag["link"], tag["inside"]
        attributes = _attributes(opened) if opened else {}
        if len(addresses) + len(held) == _MOST_STATEMENTS:
            break
        if not is_rsl(attributes.get("type", "")):
            continue
        place = "head" if tag.start() < found.head_end else "body"
        if inside is not None:
            held.append((place, inside))
        elif "license" in attributes.get("rel", "").lower().split():
            addresses.append((place, attributes.get("href", "").strip()))
    return tuple(addresses), tuple(dict.fromkeys(held))


class _Said(NamedTuple):
    """What a tag of the head says."""

    statements: tuple[Statement, ...] = ()
    directives: tuple[Directive, ...] = ()
    reserved: tuple[str, ...] = ()  # values of tdm-reservation
    policies: tuple[str, ...] = ()  # of tdm-policy
    canonical: str = ""


@functools.lru_cache(maxsize=1024)  # `index, follow` is on every other page
def _of_tag(tag: bytes) -> _Said:
    """Return what a meta or link tag says."""
    attributes = _attributes(tag)
    if tag[1:2].lower() == b"l":
        named = "canonical" in attributes.get("rel", "").lower().split()
        own = attributes.get("href", "").strip() if named else ""
        return _Said(tuple(_of_link(attributes)), canonical=own)
    name = attributes.get("name", attributes.get("property", attributes.get("http-equiv", "")))
    name, content = name.lower(), attributes.get("content", "")
    if name == "tdm-reservation":
        return _Said(reserved=(content,))
    if name == "tdm-policy":
        return _Said(policies=(content,))
    known = licence_of(content) if name in _STATING else None
    value = content[:_LINE_CHARACTERS]
    stated = (Statement(known, "page", "head", "meta", value),) if known else ()
    return _Said(stated, tuple(_directives(name, content)))


def _attributes(tag: bytes) -> Mapping[str, str]:
    found = _ATTRIBUTE.findall(tag.decode("utf-8", "replace"))
    return {name.lower(): html.unescape(a or b or c) for name, a, b, c in found}


def _directives(name: str, content: str) -> Iterator[Directive]:
    if _ROBOTS.match(name) or name == "x-robots-tag":
        agent = "" if name in ("robots", "x-robots-tag") else name
        yield from parse_directives(content, agent)
    elif _AGENT.fullmatch(name) and not _TEXTS.search(name):
        # `none` alone may mean anything
        if any(word in content.lower() for word in CLOSING):
            yield from parse_directives(content, name)


def _of_link(attributes: Mapping[str, str]) -> Iterator[Statement]:
    rels, href = attributes.get("rel", "").lower().split(), attributes.get("href", "")
    if is_rsl(attributes.get("type", "")):
        return
    if {"license", "licence", "copyright"} & set(rels):
        known = licence_of(href)
        if known or "copyright" not in rels:
            yield Statement(known, "page", "head", "link", href[:_LINE_CHARACTERS])


def _in_json(source: bytes, head_end: int) -> Iterator[Statement]:
    # In another case, it is so in all of a page.
    page = source if b"ld+json" in source else source.lower()
    at = page.find(b"ld+json")
    for _ in range(_MOST_STATEMENTS):
        begin = source.find(b">", at) + 1
        closed = _SCRIPT_END.search(source, begin)
        if at < 0 or not begin or not closed:
            return
        end = closed.start()
        says = source.find(_LICENSE, begin, end) >= 0
        if says and _tag_around(source, at)[:7].lower() == b"<script":
            content = _parsed(source[begin:end])
            yield from _of_thing(content, True, "head" if at < head_end else "body")
        at = page.find(b"ld+json", end)


def _parsed(script: bytes) -> Any:
    """Return what a script of JSON says, in spite of comments around it and breaks in its texts."""
    bare = script.replace(b"<![CDATA[", b"").replace(b"]]>", b"")
    begin = min((at for at in (bare.find(b"{"), bare.find(b"[")) if at >= 0), default=0)
    for part in (script, bare[begin : max(bare.rfind(b"}"), bare.rfind(b"]")) + 1]):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(part, strict=False)
    return None


def _of_thing(thing: Any, whole: bool, place: str) -> Iterator[Statement]:
    """Yield the licences of a thing of schema.org and of its parts."""
    waiting = [(thing, whole)]
    while waiting:
        thing, whole = waiting.pop()
        if isinstance(thing, list):
            waiting += [(one, whole) for one in thing]
        if not isinstance(thing, dict):
            continue
        types = thing.get("@type")
        named = types if isinstance(types, list) else [types]
        whole = whole and _PART_TYPES.isdisjoint(one for one in named if isinstance(one, str))
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


def _in_body(source: bytes, found: Found) -> Iterator[Statement]:
    """Yield the licences to which anchors, badges and RDF lead.

    Where nothing says that the head ends, all of the page may be its body, too.
    """
    head_end = found.head_end
    begin = head_end if _BODY.match(source, head_end) else 0
    places = list(itertools.islice(_addresses(source, begin, found), _MOST_STATEMENTS))
    if not places:
        places = _badges(source, begin, found)
    for start, end in places:
        value, tag = source[start:end].decode("utf-8", "replace"), _tag_around(source, start)
        if start < head_end and tag[:5].lower() in (b"<link", b"<meta"):
            continue  # read as the head's
        one = _statement(source, start, tag, value)
        if one is not None:
            yield one
    if not places:
        yield from _own_terms(source, begin, found)


def _addresses(source: bytes, begin: int, found: Found) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the addresses of Creative Commons."""
    for at in found.commons:
        if address := _ADDRESS.match(source, max(begin, at - len("creativec"))):
            scheme = _SCHEME.search(source, max(begin, address.start() - 20), address.start())
            yield (scheme or address).start(), address.end()


def _badges(source: bytes, begin: int, found: Found) -> list[tuple[int, int]]:
    """Return begin and end of the addresses of badges that no link to the licence goes with."""
    spans = (
        _BADGE.search(source, max(begin, at - len("https://")), at + 120) for at in found.badges
    )
    return sorted({found.span() for found in spans if found})


def _own_terms(source: bytes, begin: int, found: Found) -> Iterator[Statement]:
    """Yield the licence or the site's own terms to which a `rel` of licence leads.

    Without one, yield the licence that the words of a link to such terms name.
    """
    for places, read in ((found.rels, _own_term), (found.links, _named)):
        for at in places:
            if at >= begin and (one := read(source, at)):
                yield one
                return


def _own_term(source: bytes, at: int) -> Statement | None:
    tag = _tag_around(source, at)
    if tag[:2].lower() not in (b"<a", b"<l") or holders(source, at)[0] >= 0:
        return None
    attributes = _attributes(tag)
    if is_rsl(attributes.get("type", "")):
        return None
    href = attributes.get("href", "")
    licence = licence_of(href) or licence_of(_plain(_words_of(source, at)))
    return Statement(licence, "page", _place(source, at), "anchor", href[:_LINE_CHARACTERS])


def _named(source: bytes, at: int) -> Statement | None:
    raw = _words_of(source, at)
    if not _MAY_NAME.search(raw):
        return None
    words = _plain(raw)
    licence = licence_of(words)
    if licence is None or max(holders(source, at)) >= 0:
        return None
    place = _place(source, at)
    scope = "page" if _licenses_whole(source, at, place) else "part"
    return Statement(licence, scope, place, "anchor", words[:_LINE_CHARACTERS])


def _words_of(source: bytes, at: int) -> bytes:
    """Return the words of the link at a place, with tags and references."""
    end = source.find(b"</a", at, at + _NEAR_BYTES)
    return source[source.find(b">", at) : end + 1] if end >= 0 else b""


def _statement(source: bytes, at: int, tag: bytes, value: str) -> Statement | None:
    licence = licence_of(value)
    if licence is None:
        return None
    place = _place(source, at)
    comment, script = holders(source, at)
    if comment >= 0:
        stating = b"rdf" in source[comment:at].lower() and _RDF_LICENCE.match(tag)
        return Statement(licence, "page", place, "rdf", value) if stating else None
    name = _TAG_NAME.match(tag)
    kind = name.group(1).lower() if name else b""
    attributes = _attributes(tag)
    if script >= 0:
        # JSON-LD is read as such; other scripts show maps and players with their sources.
        stated = b"ld+json" in source[script:at].lower()
        return None if stated else Statement(licence, "part", place, "anchor", value)
    if kind in (b"license", b"cc:license"):
        return Statement(licence, "page", place, "rdf", value)
    said = " ".join(attributes.get(name, "") for name in ("rel", "itemprop", "property")).lower()
    stated = not _LICENSING.isdisjoint(word.rpartition(":")[2] for word in said.split())
    if stated and (_in_figure(source, at) or _in_part(source, at, attributes)):
        return Statement(licence, "part", place, "anchor", value)
    if kind in (b"link", b"meta"):
        return Statement(licence, "page", place, kind.decode(), value) if stated else None
    if kind == b"img":
        badge = value.lower() in attributes.get("src", "").lower()
        scope = "page" if badge and not _in_figure(source, at) else "part"
        return Statement(licence, scope, place, "badge", value)
    scope = "page" if stated or _licenses_whole(source, at, place) else "part"
    return Statement(licence, scope, place, "anchor", value)


def _tag_around(source: bytes, at: int) -> bytes:
    start = source.rfind(b"<", max(0, at - TAG_BYTES), at)
    end = source.find(b">", at, at + TAG_BYTES)
    return source[max(start, 0) : end + 1 if end >= 0 else at]


def _place(source: bytes, at: int) -> str:
    begin = max(0, at - 4 * TAG_BYTES)
    before = source[begin:at].lower()
    word = before.rfind(b"foot")
    while word >= 0:
        near = max(0, word - _FOOTER_BYTES), word + len(b"footer ")
        if opened := [found.start() for found in _FOOTER.finditer(before, *near)]:
            return "body" if b"</footer" in source[begin + opened[-1] : at] else "footer"
        word = before.rfind(b"foot", 0, word)
    return "body"


def _in_figure(source: bytes, at: int) -> bool:
    before = source[max(0, at - TAG_BYTES) : at].lower()
    if not any(word in before for word in (b"<fig", b"caption", b"credit", b"photo", b"thumb")):
        return False
    opened = [m.end() for m in _FIGURE.finditer(before)]
    return bool(opened) and _FIGURE_END.search(before, opened[-1]) is None


def _in_part(source: bytes, at: int, attributes: Mapping[str, str]) -> bool:
    """Return whether `itemprop` names the licence of a part of the page, such as a picture."""
    if "itemprop" not in attributes:
        return False
    types = _ITEM_TYPE.findall(source[max(0, at - 4 * TAG_BYTES) : at])
    return bool(types) and types[-1].decode("utf-8", "replace") in _PART_TYPES


def _licenses_whole(source: bytes, at: int, place: str) -> bool:
    """Return whether the words around an address license the page, not a part of it."""
    if _in_figure(source, at):
        return False
    rest = source[at : at + _NEAR_BYTES]
    small = rest.lower()
    closed = _LINK_END.search(small)
    link = small[: closed.start()] if closed else small
    image = link.find(b"<img")
    if image >= 0 and _BADGE_IMAGE.search(link, image):
        return True
    near = source[max(0, at - _NEAR_BYTES) : at]
    begins = [found.end() for found in _BLOCK_TAG.finditer(near.lower())]
    before = _small(_plain(near[begins[-1] :] if begins else near)[-160:])
    if _has(_PARTS, before[-80:]) or _SOURCE.search(before[-80:]):
        return False
    if place == "footer" or _has(_WHOLE, before):
        return True
    ends = _BLOCK_TAG.search(small)
    return _has(_WHOLE, _small(_plain(rest[: ends.start()] if ends else rest)[:120]))


def _small(text: str) -> str:
    """Return a text in small letters, as many as it has."""
    return text.replace("İ", "i").lower()


def _has(words: Sequence[str], text: str) -> bool:
    """Return whether one of many words is in a text, sooner than a pattern of them all does."""
    return any(word in text for word in words)


def _plain(part: bytes) -> str:
    """Return the text of a part of a page, which may begin and end inside a tag."""
    return _shown(plain(part))


def _shown(text: str) -> str:
    """Return a text with references read and white space collapsed."""
    return " ".join(html.unescape(text).split())
