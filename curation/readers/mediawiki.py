"""Dumps of MediaWiki (export formats 0.10, 0.11): `pages-articles.xml.bz2` of Wikipedia and others.

Each article becomes a page of HTML, all of which is content, by `wikitext`. Pages of other
namespaces than the main one, redirects, and what isn't wikitext are skipped and counted. Of several
revisions the last in the file is taken.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import IO
from urllib.parse import quote

from curation.readers.records import Fault, Row, Skipped
from curation.readers.wikitext import to_html
from curation.readers.xml_records import elements, parsed

_BASE = re.compile(rb"<base>([^<]*/)")
_NAMESPACE = re.compile(rb'<namespace key="(?:6|14)"[^<>]*+>([^<]++)</namespace>')
_SHOWN_NOWHERE = {"file", "image", "category"}  # in any language, besides the wiki's own names


def rows(file: IO[bytes], longest: int) -> Iterator[Row]:
    """Yield a row for each article: `html`, `title`, `url` and `date`, that of its revision."""
    records = elements(file, b"<page>", b"</page>", longest)
    head = next(records)
    assert isinstance(head, bytes)
    base = _BASE.search(head)
    address = unescape(base[1].decode("utf-8", "replace")) if base else ""
    names = (unescape(name.decode("utf-8", "replace")) for name in _NAMESPACE.findall(head))
    unshown = frozenset(_SHOWN_NOWHERE | {name.lower() for name in names})
    for element in records:
        found = element if isinstance(element, Fault) else parsed(element)
        if isinstance(found, Fault):
            yield found
            continue
        page, told = found
        title, namespace = page.findtext("title", ""), page.findtext("ns", "0")
        revision = (page.findall("revision") or [page])[-1]
        model = revision.findtext("model", "wikitext")
        if namespace != "0":
            yield Skipped(f"namespace:{namespace if namespace.isdecimal() else 'unknown'}")
        elif page.find("redirect") is not None:
            yield Skipped("redirect")
        elif model != "wikitext":
            yield Skipped("no_wikitext")
        else:
            row = {
                "html": to_html(revision.findtext("text", ""), unshown),
                "title": title,
                "url": address and address + quote(title.replace(" ", "_"), "/:@!$&'()*+,;=~"),
                "date": revision.findtext("timestamp"),
            }
            yield row, told
