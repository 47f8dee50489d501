"""All rights signals of a document as one list.

The vocabulary, which docs/rights.md explains:

- `robots`: how the site's robots.txt answers an agent. Place `robots.txt`; value the line that
  decides (`Disallow: /private`), empty where none applies, `HTTP 503` where the file wasn't given.
- `ai_txt`: the same of the site's `ai.txt`.
  What the last capture of a file says and that at the page's date doesn't is a signal of its own,
  in the place `latest robots.txt`; so it is for the other files.
- `tdm`: a reservation of text and data mining: `1` or `0`, with the policy behind a space. Places
  `header`, `head`, `tdmrep.json`.
- `directive`: `noai`, `noindex`, ... Places `header`, `head`; agent the crawler that it names.
- `licence`: of the page, as it is written. Places `header`, `head`, `body`, `footer`.
- `part_licence`: of a picture, a listing or another part of it. Places `head`, `body`, `footer`.
- `spdx`: the expression of an `SPDX-License-Identifier` in the text. Place `body`.
- `copyright`: the page's line of copyright. Place `footer`.

The agent is `*` for all crawlers, null where a signal is for no crawler in particular.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args

from curation.readers.records import Page
from curation.rights.directives import Directive, parse_directives
from curation.rights.licences import licence_of, spdx_identifiers
from curation.rights.page import PageRights
from curation.rights.tdm import Reservation, reservation

Kind = Literal[
    "robots", "ai_txt", "tdm", "directive", "licence", "part_licence", "spdx", "copyright"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: Begins the place of what a site's file said later than at the page's date.
LATEST = "latest "
#: Lines of an HTTP head that may hold a signal.
_SAYING = frozenset(("x-robots-tag", "tdm-reservation", "link"))
_SPDX = "SPDX-License-Identifier:"
#: `<address>; rel="license"` in a Link header.
_LINK = re.compile(r"<([^<>]{1,2000})>([^<]*)")
_REL = re.compile(r"""\brel\s*=\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))""", re.I)


class Signal(NamedTuple):
    """One rights signal of a document; see the module."""

    kind: Kind
    place: str
    agent: str | None
    value: str


def document_rights(
    page: Page, said: PageRights | None, text: str, of_site: Sequence[Signal] = ()
) -> dict[str, Any] | None:
    """Return the value of a document's column `rights`, None where nothing can be known.

    Args:
        page: with the lines that were kept of its HTTP head.
        said: what an HTML page says, None for other pages and where extraction failed.
        text: of the document.
        of_site: what the site's files say of the page.
    """
    signals = list(of_site)
    if any(name in _SAYING for name, _ in page.headers):
        signals += _of_headers(page.headers)
    if said is not None:
        signals += _of_page(said)
    if _SPDX in text:
        signals += [Signal("spdx", "body", None, one) for one in spdx_identifiers(text)]
    if not signals:
        return None if said is None and page.status is None else {"licence": None, "signals": []}
    return {
        "licence": _licence(page, said, signals),
        "signals": [signal._asdict() for signal in dict.fromkeys(signals)],
    }


def _licence(page: Page, said: PageRights | None, signals: Iterable[Signal]) -> str | None:
    """The page's own licence: its HTTP head's, the page's; of a file of code, that of its code."""
    for signal in signals:
        if (signal.kind, signal.place) == ("licence", "header"):
            if found := licence_of(signal.value):
                return found.name
    if said is not None:
        return said.licence.name if said.licence else None
    is_code = page.kind == "text"
    return next((s.value for s in signals if s.kind == "spdx" and is_code), None)


def _of_headers(headers: Sequence[tuple[str, str]]) -> Iterator[Signal]:
    lines: dict[str, list[str]] = {}
    for name, value in headers:
        lines.setdefault(name, []).append(value)
    for value in lines.get("x-robots-tag", ()):
        yield from _directives(parse_directives(value), "header")
    reserved = reservation(lines.get("tdm-reservation", ()), lines.get("tdm-policy", ()))
    if reserved:
        yield of_reservation(reserved, "header")
    for value in lines.get("link", ()):
        for address in _licence_links(value):
            yield Signal("licence", "header", None, address)


def _licence_links(value: str) -> Iterator[str]:
    for address, parameters in _LINK.findall(value):
        rel = _REL.search(parameters)
        if rel and "license" in "".join(filter(None, rel.groups())).lower().split():
            yield address.strip()


def _of_page(said: PageRights) -> Iterator[Signal]:
    yield from _directives(said.directives, "head")
    if said.reservation:
        yield of_reservation(said.reservation, "head")
    for one in said.statements:
        kind: Kind = "licence" if one.scope == "page" else "part_licence"
        yield Signal(kind, one.place, None, one.value)
    if said.copyright:
        yield Signal("copyright", "footer", None, said.copyright)


def _directives(directives: Iterable[Directive], place: str) -> Iterator[Signal]:
    for one in directives:
        yield Signal("directive", place, one.agent or "*", one.name)


def of_reservation(said: Reservation, place: str) -> Signal:
    """Return a reservation as a signal."""
    value = f"{int(said.reserved)} {said.policy}" if said.policy else str(int(said.reserved))
    return Signal("tdm", place, None, value)


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
