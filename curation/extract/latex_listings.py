"""Listings of pages made by LaTeXML, such as arXiv's: the source that a listing links to is put in its place.

The lines of a listing are elements whose white space is the layout of the page's own source, and
its first element links to the whole listing in base64:

    <div class="ltx_listing_data"><a href="data:text/plain;base64,Zm9y..." download="">&#x2B07;</a></div>
    <div class="ltx_listingline">...</div>
"""

from __future__ import annotations

import base64
import binascii
import html
import re

from curation.text.search import has, word

_NAME = word(b"ltx_listing_data")
_LISTING = re.compile(
    rb"""<div\b[^<>]{0,400}\bltx_listing_data\b[^<>]{0,400}>\s*+
    <a\b[^<>]{0,400}?\bhref=["']data:text/plain[^"',<>]{0,100};base64,(?P<data>[A-Za-z0-9+/=\s]++)["']
    [^<>]{0,400}>[^<>]{0,20}</a>\s*+</div>
    (?P<lines>(?:\s*+<div\b[^<>]{0,400}?\bltx_listingline\b(?:(?!</?div\b).)*+</div>)*+)""",
    re.I | re.S | re.X,
)


def with_sources(source: bytes) -> bytes:
    """A page with each listing that links to its source replaced by it. O(bytes)."""
    return _LISTING.sub(_preformatted, source) if has(source, _NAME) else source


def _preformatted(found: re.Match[bytes]) -> bytes:
    if not found["lines"]:
        return found[0]
    try:
        listing = base64.b64decode(found["data"]).decode()
    except (binascii.Error, UnicodeDecodeError):
        return found[0]
    return b"<pre>\n" + html.escape(listing, quote=False).encode() + b"</pre>"
