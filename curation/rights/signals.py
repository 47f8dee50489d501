"""All rights signals of a document as one list.

The vocabulary, which docs/rights.md explains:

- `robots`: how the site's robots.txt answers an agent. Place `robots.txt`; value the line that
  decides (`Disallow: /private`), empty where none applies, `HTTP 503` where the file wasn't given.
- `ai_txt`: the same of the site's `ai.txt`.
  What the last capture of a file says and that at the page's date doesn't is a signal of its own,
  in the place `latest robots.txt`; so it is for the other files.
- `tdm`: a reservation of text and data mining: `1` or `0`, with the policy behind a space. Places
  `header`, `head`, `tdmrep.json`.
- `content_signal`: `search=yes, ai-train=no`. Places `robots.txt`, `header`.
- `content_usage`: `train-ai=n`, of robots.txt the line that decides on the page, with its path.
  Places `robots.txt`, `header`.
- `rsl`: a licence in RSL (`curation.rights.rsl`); its address alone where it wasn't read. Places
  `robots.txt`, `header`, `head`, `body`; agent null where robots.txt has it for all.
- `canonical`: the address on another host that the page names as its original. Places `header`,
  `head`.
- `directive`: `noai`, `noindex`, ... Places `header`, `head`; agent the crawler that it names.
- `licence`: of the page, as it is written. Places `header`, `head`, `body`, `footer`.
- `part_licence`: of a picture, a listing or another part of it. Places `head`, `body`, `footer`.
- `spdx`: the expression of an `SPDX-License-Identifier` in the text. Place `body`.
- `copyright`: the page's line of copyright. Place `footer`.

The agent is `*` for all crawlers, null where a signal is for no crawler in particular.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

from curation.hosts import site_name
from curation.readers.records import Page
from curation.rights.licences import licence_of, spdx_identifiers
from curation.rights.page import PageRights
from curation.rights.robots import (
    LICENCE,
    SIGNAL,
    USAGE,
    Directive,
    RobotsFile,
    Term,
    best_rule,
    matches,
    parse_directives,
    path_of,
    pattern_of,
)
from curation.rights.rsl import is_rsl, lines_of
from curation.rights.tdm import Reservation, Rules, of_path, reservation, unread_of
from curation.rights.usage import are_broken, is_broken, is_unread, unread, usage_path
from curation.text.surrogates import well_formed

if TYPE_CHECKING:
    from curation.rights.sites import SiteIndex

#: Begins the place of what a site's file said later than at the page's date.
LATEST = "latest "
#: Lines of an HTTP head that may hold a signal.
_SAYING = frozenset(("x-robots-tag", "tdm-reservation", "link", "content-signal", "content-usage"))
_SPDX = "SPDX-License-Identifier:"
#: `<address>; rel="license"` in a Link header.
_LINK = re.compile(r"""<([^<>]{0,2000})>((?:[^<"]|"(?:[^"\\]|\\.)*")*)""")
_PARAMETER = re.compile(  # names are read whole, or a long one takes the square of it
    r"""(?<![\w*-])([\w*-]++)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;,"']+))"""
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#]\S*", re.I)

_MALFORMED = {
    "content_signal": are_broken,
    "content_usage": is_broken,
    "rsl": is_unread,
    "tdm": is_unread,
}


class Signal(NamedTuple):
    """One rights signal of a document; see the module."""

    kind: str
    place: str
    agent: str | None
    value: str


def document_rights(
    page: Page, said: PageRights | None, text: str, sites: SiteIndex | None = None
) -> dict[str, Any] | None:
    """Return the value of a document's column `rights`, None where nothing can be known.

    Args:
        page: with the lines that were kept of its HTTP head.
        said: what an HTML page says, None for other pages and where extraction failed.
        text: of the document.
        sites: what files of sites say.
    """
    signals = sites.signals(page.url, page.date) if sites else []
    if any(name in _SAYING for name, _ in page.headers):
        signals += of_headers(page.headers, page.url)
    if said is not None:
        signals += of_page(said, page.url)
    if _SPDX in text:
        signals += [Signal("spdx", "body", None, one) for one in spdx_identifiers(text)]
    if sites:
        signals = list(sites.with_terms(signals, page.url, page.date))
    if not signals:
        return None if said is None and page.status is None else {"licence": None, "signals": []}
    return rights_of(_licence(page, said, signals), signals)


def rights_of(licence: str | None, signals: Iterable[Signal]) -> dict[str, Any]:
    """Return a value of the column `rights`."""
    return {"licence": licence, "signals": [one._asdict() for one in once(signals)]}


def once(signals: Iterable[Signal]) -> list[Signal]:
    """Return signals without repeats, in characters that UTF-8 has: JSON may name others."""
    return [*dict.fromkeys(Signal._make(map(well_formed, one)) for one in signals)]


def _licence(page: Page, said: PageRights | None, signals: Iterable[Signal]) -> str | None:
    """Return the page's own licence: its HTTP head's, the page's; of a file of code, that of its
    code."""
    for signal in signals:
        if (signal.kind, signal.place) == ("licence", "header"):
            if found := licence_of(signal.value):
                return found.name
    if said is not None:
        return said.licence.name if said.licence else None
    is_code = page.kind == "text"
    return next((s.value for s in signals if s.kind == "spdx" and is_code), None)


def of_headers(headers: Sequence[tuple[str, str]], url: str) -> Iterator[Signal]:
    """Yield the signals in lines of an HTTP head, with names in lower case, of a page."""
    lines: dict[str, list[str]] = {}
    for name, value in headers:
        lines.setdefault(name, []).append(value)
    for value in lines.get("x-robots-tag", ()):
        yield from _directives(parse_directives(value), "header")
    for value in lines.get("content-signal", ()):
        yield Signal("content_signal", "header", None, value)
    if "content-usage" in lines:  # one dictionary (RFC 9651, 4.2)
        yield Signal("content_usage", "header", None, ", ".join(lines["content-usage"]))
    values = [one for line in lines.get("tdm-reservation", ()) for one in line.split(",")]
    reserved = reservation(values, lines.get("tdm-policy", ()))
    yield from _of_tdm(reserved, unread_of(values), "header")
    for value in lines.get("link", ()):
        for address, parameters in _LINK.findall(value):
            yield from _of_link(address.strip(), parameters, url)


def _of_link(address: str, parameters: str, url: str) -> Iterator[Signal]:
    """Yield what one link of a Link header says of a page: of parameters, the first of a name."""
    found = reversed(_PARAMETER.findall(parameters))
    given = {name.lower(): a or b or c for name, a, b, c in found}
    rels = given.get("rel", "").lower().split()
    if absolute(url, given.get("anchor", "")) != absolute(url, ""):
        return  # of another page (RFC 8288, 3.2)
    if "canonical" in rels:
        yield from _of_canonical(address, url, "header")
    if "license" in rels and is_rsl(given.get("type", "")):
        yield _at("header", None, address and absolute(url, address))
    elif "license" in rels and address:
        yield Signal("licence", "header", None, address)


def _of_tdm(said: Reservation | None, broken: Iterable[str], place: str) -> Iterator[Signal]:
    values = [f"{int(said.reserved)} {said.policy or ''}".rstrip()] if said else []
    yield from (Signal("tdm", place, None, value) for value in [*values, *broken])


def of_tdm_file(rules: Rules, url: str, place: str) -> Iterator[Signal]:
    """Yield what a `tdmrep.json` says of a page."""
    yield from _of_tdm(of_path(rules, url), [s for _, s in rules if isinstance(s, str)][:1], place)


def _at(place: str, agent: str | None, address: str) -> Signal:
    """Return a licence in RSL, which isn't read yet."""
    sound = _ADDRESS.fullmatch(address)
    return Signal("rsl", place, agent, address if sound else unread(address or "no address"))


def of_robots(file: RobotsFile, url: str, place: str) -> Iterator[Signal]:
    """Yield what a robots.txt says of a page to the agents of its groups, apart from access.

    Lines before the first group are for all; Content-Usage, which must be in one, says nothing
    there, nor of a page that the agent may not fetch (draft-ietf-aipref-attach-05, 3.1).
    """
    path = path_of(url)
    everyone = file.terms.get("", ())
    for agent in file.groups:
        terms = file.terms.get(agent, ())
        if not terms and not everyone:
            continue
        for name, value in (*(everyone if agent == "*" else ()), *terms):
            if name == SIGNAL:
                yield Signal("content_signal", place, agent, value)
        rules = [(pattern_of(usage_path(value)), value) for name, value in terms if name == USAGE]
        fitting = [(len(pattern), value) for pattern, value in rules if matches(pattern, path)]
        longest = max((size for size, _ in fitting), default=0)
        decides = best_rule(file.groups[agent], path) if fitting else None
        if decides is None or decides.allows:
            for value in (value for size, value in fitting if size == longest):
                yield Signal("content_usage", place, agent, value)
        yield from _licences(terms, place, agent, url)
    yield from _licences(everyone, place, None, url)


def _licences(terms: Iterable[Term], place: str, agent: str | None, url: str) -> Iterator[Signal]:
    for value in (value for name, value in terms if name == LICENCE):
        yield _at(place, agent, absolute(url, value) if value.startswith("/") else value)


def with_terms(
    signals: Iterable[Signal], url: str, terms: Callable[[str], bytes | None]
) -> Iterator[Signal]:
    """Yield signals; for one of RSL, those of its licences that are for the page.

    Args:
        signals: of one page.
        url: of the page.
        terms: returns the document at an address, None where it wasn't captured.
    """
    for one in dict.fromkeys(signals):
        address = one.value.partition(" ")[0] if one.kind == "rsl" else ""
        content = terms(address) if address else None
        if content is None:
            yield one
        else:
            yield from (one._replace(value=line) for line in lines_of(content, url, address))


def of_page(said: PageRights, url: str) -> Iterator[Signal]:
    """Yield the signals of a page's HTML."""
    yield from _directives(said.directives, "head")
    yield from _of_tdm(said.reservation, said.unread, "head")
    yield from _of_canonical(said.canonical, url, "head")
    for one in said.statements:
        kind = "licence" if one.scope == "page" else "part_licence"
        yield Signal(kind, one.place, None, one.value)
    for place, address in said.terms:
        yield _at(place, None, address and absolute(url, address))
    for number, (place, document) in enumerate(said.inline_terms, 1):
        for line in lines_of(document, url, "inline" if number == 1 else f"inline-{number}"):
            yield Signal("rsl", place, None, line)
    if said.copyright:
        yield Signal("copyright", "footer", None, said.copyright)


def absolute(url: str, address: str) -> str:
    """Return an address on a page as a URL, or as it is written where it is none."""
    try:
        return urljoin(url, address).replace(" ", "%20")
    except ValueError:  # brackets without an IP address
        return address


def is_malformed(kind: str, value: str) -> bool:
    """Return whether a signal's value can't be read, or not all of it."""
    return kind in _MALFORMED and _MALFORMED[kind](value)


def _of_canonical(address: str, url: str, place: str) -> Iterator[Signal]:
    site = site_name(address) if "//" in address else ""
    if site and site != site_name(url):
        yield Signal("canonical", place, None, address)


def _directives(directives: Iterable[Directive], place: str) -> Iterator[Signal]:
    for one in directives:
        yield Signal("directive", place, one.agent or "*", one.name)


def response_of(page: Page, language: str) -> dict[str, Any] | None:
    """Return the value of a document's column `response`, None where nothing is known.

    Args:
        page: with the lines that were kept of its HTTP head.
        language: as the page itself declares it, or "".
    """
    headers = dict(reversed(page.headers))  # the first line of a name counts
    found = {
        "status": page.status,
        "content_type": headers.get("content-type"),
        "last_modified": headers.get("last-modified"),
        "language": language or headers.get("content-language") or None,
    }
    return found if any(value is not None for value in found.values()) else None
