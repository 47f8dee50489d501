"""Captures of robots.txt, tdmrep.json, ai.txt and RSL in archives, tables and folders.

In a folder, a site's files lie below a folder of the site's name: `example.org/robots.txt`,
`example.org/.well-known/tdmrep.json`. Tables have the file's address, its date, its text and, if
need be, its HTTP status.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from curation.errors import InputError
from curation.readers.read import read
from curation.readers.records import Page
from curation.readers.settings import ReaderSettings
from curation.resources import resolve
from curation.rights.robots import MOST_BYTES
from curation.rights.rsl import MEDIA_TYPE

ROBOTS, RSL = "robots", "rsl"
_PATHS = {
    "/robots.txt": ROBOTS,
    "/.well-known/tdmrep.json": "tdm",
    "/ai.txt": "ai_txt",
    "/.well-known/ai.txt": "ai_txt",
}
#: How a licence in RSL begins, whatever its address.
_RSL = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:[\w-]+:)?rsl[\s>]", re.S
)
_IN_FOLDER = re.compile(
    r"(?:.*/)?([^/]+)(/robots\.txt|/ai\.txt|/\.well-known/(?:tdmrep\.json|ai\.txt))|"
    r"([^/]+)(/.+\.xml)"
)
#: Types with which servers send these files, and errors in their place.
_TYPES = (
    *("", "text/plain", "text/html", "application/xhtml+xml", "application/json", "text/json"),
    *("application/octet-stream", "text/robots", "application/problem+json", "text/xml"),
    *(MEDIA_TYPE, "application/xml", "text/markdown", "text/x-robots", "unk", "unknown"),
)


#: Bytes in which the element `rsl` is looked for.
_HEAD_BYTES = 4096


class SiteFile(NamedTuple):
    """A capture of a site's file, or of what the site sent in its place."""

    kind: str  # "robots", "tdm", "ai_txt" or "rsl"
    url: str
    date: datetime | None
    status: int | None  # of HTTP; None counts as 200
    location: str  # where a redirect leads; else ""
    content: bytes


def kind_of(url: str, content: bytes = b"") -> str:
    """Return which file of a site this is; "" for any other page.

    All but licences in RSL are known by their address.
    """
    try:
        known = _PATHS.get(urlsplit(url).path, "")
    except ValueError:
        known = ""
    return known or (RSL if _RSL.match(content, 0, _HEAD_BYTES) else "")


def read_site_files(paths: Sequence[str], settings: ReaderSettings) -> Iterator[SiteFile]:
    """Yield the captures in files and folders, in their order.

    Other files and damaged ones are skipped. Raises InputError if a path has no such file at all.
    """
    types = {"html_types": (), "text_types": _TYPES, "normalize_text": "none"}
    readers = settings.model_copy(update=types)
    for path in paths:
        found = False
        for one in _of_path(path, readers):
            found = True
            yield one
        if not found:
            raise InputError(f"{path}: has no robots.txt, tdmrep.json, ai.txt or RSL of any site")


def _of_path(path: str, readers: ReaderSettings) -> Iterator[SiteFile]:
    place = Path(path if "://" in path else resolve(path))
    if "://" in path or not place.is_dir():
        yield from _of_file(path, readers)
        return
    for file in sorted(p for p in place.rglob("*") if p.is_file()):
        inside = _IN_FOLDER.fullmatch(file.relative_to(place).as_posix())
        if inside:
            url = f"https://{inside[1] or inside[3]}{inside[2] or inside[4]}"
            content = file.read_bytes()[: MOST_BYTES + 1]
            if kind := kind_of(url, content):
                yield SiteFile(kind, url, None, None, "", content)
        else:
            yield from _of_file(str(file), readers)


def _of_file(path: str, readers: ReaderSettings) -> Iterator[SiteFile]:
    for event in read(path, readers):
        if isinstance(event, Page) and (kind := kind_of(event.url, event.content)):
            status = event.status or (event.fields or {}).get("status")
            status = int(str(status)) if str(status).isdecimal() else None
            location = dict(event.headers).get("location", "")
            moved = location if status is not None and 300 <= status < 400 else ""
            yield SiteFile(kind, event.url, event.date, status, moved, event.content)
