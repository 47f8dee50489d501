"""An on-disk index of site files (robots.txt, licences in RSL, ...), queried page by page.

Captures come from archives, tables and folders.

An index is one SQLite file: a row for each capture of a file with what it says to the agents that
are asked about. Memory is that of one row and of the rows used last, whatever the number of sites.
"""

import contextlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from curation.errors import InputError
from curation.hosts import ascii_host
from curation.readers.index import read_index
from curation.readers.records import Page
from curation.readers.settings import ReaderSettings
from curation.resources import resolve
from curation.rights.robots import RobotsFile, Rule, Term, best_rule, parse_robots, path_of
from curation.rights.rsl import MEDIA_TYPE
from curation.rights.signals import (
    LATEST,
    Signal,
    absolute,
    of_robots,
    of_tdm_file,
    rights_of,
    with_terms,
)
from curation.rights.tdm import Rules, parse_tdm_file

ROBOTS, RSL = "robots", "rsl"
_PATHS = {
    "/robots.txt": ROBOTS,
    "/.well-known/tdmrep.json": "tdm",
    "/ai.txt": "ai_txt",
    "/.well-known/ai.txt": "ai_txt",
}
#: How a licence in RSL begins, whatever its address, and bytes in which that is looked for.
_RSL = re.compile(  # nothing is tried twice: files begin with any number of comments
    rb"[\xef\xbb\xbf\xff\xfe\s]*+(?>(?:<!--.*?-->|<[?!][^>]*>)\s*)*+<(?:[\w-]+:)?rsl[\s>]", re.S
)
_HEAD_BYTES = 4096
_IN_FOLDER = re.compile(
    r"(?:.*/)?([^/]+)(/robots\.txt|/ai\.txt|/\.well-known/(?:tdmrep\.json|ai\.txt))|"
    r"([^/]+)(/.+\.(?:xml|rsl))"
)
#: Types with which servers send these files, and errors in their place.
_TYPES = (
    *("", "text/plain", "text/html", "application/xhtml+xml", "application/json", "text/json"),
    *("application/octet-stream", "text/robots", "application/problem+json", "text/xml"),
    *(MEDIA_TYPE, "application/xml", "text/markdown", "text/x-robots", "unk", "unknown"),
)


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
    return known or (RSL if _RSL.match(content[:_HEAD_BYTES].replace(b"\0", b"")) else "")


def read_site_files(paths: Sequence[str], settings: ReaderSettings) -> Iterator[SiteFile]:
    """Yield the captures in files and folders, in their order.

    Other files and damaged ones are skipped. Raises InputError if a path has no such file at all.
    """
    types = {
        "text_types": _TYPES,
        "normalize_text": "none",
        "index": settings.index | {"where": ""},
    }
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
            content = file.read_bytes()
            if kind := kind_of(url, content):
                yield SiteFile(kind, url, None, None, "", content)
        else:
            yield from _of_file(str(file), readers)


def _of_file(path: str, readers: ReaderSettings) -> Iterator[SiteFile]:
    for event in read_index(path, readers):
        if isinstance(event, Page):
            status = event.status or (event.fields or {}).get("status")
            status = int(str(status)) if str(status).isdecimal() else None
            location = dict(event.headers).get("location", "")
            moved = location if status is not None and 300 <= status < 400 else ""
            kind = kind_of(event.url, event.content)
            if kind := kind or (RSL if moved and ".xml" in event.url.lower() else ""):
                yield SiteFile(kind, event.url, event.date, status, moved, event.content)


_SCHEMA = "CREATE TABLE files (site TEXT, kind TEXT, date INTEGER, said BLOB)"
_INDEX = "CREATE INDEX by_site ON files (site, kind, date)"
#: The latest capture that is not after the page, else the first one after it.
_NEAREST = tuple(
    f"SELECT rowid, said FROM files WHERE site=? AND kind=? AND date{nearest} LIMIT 1"
    for nearest in ("<=? ORDER BY date DESC, rowid DESC", ">? ORDER BY date, rowid")
)
_COUNTS = "SELECT kind, COUNT(*) FROM files GROUP BY kind ORDER BY kind"
_PLACES = {"robots": "robots.txt", "ai_txt": "ai.txt", "tdm": "tdmrep.json"}
#: RFC 9309, 2.3.1.2: crawlers should follow at least five redirects.
_MOST_REDIRECTS = 5
#: Parsed files that are kept in memory.
_PARSED = 512
_NEVER, _FOREVER = -(1 << 62), 1 << 62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PORTS = {"http": "80", "https": "443"}


class _Said(NamedTuple):
    """What one capture of a file says."""

    status: int  # of HTTP, where the file wasn't given; else 0
    to: str  # where a redirect leads
    file: RobotsFile  # robots.txt and ai.txt, by agent; `*` for all without a group
    tdm: Rules
    terms: bytes  # a licence in RSL


def site_of(url: str) -> str:
    """Return scheme and authority of a URL, as `https://example.org`; empty where it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host or parts.scheme not in _PORTS:
        return ""
    host = host if host.isascii() else ascii_host(host)
    usual = port is None or str(port) == _PORTS[parts.scheme]
    return f"{parts.scheme}://{host}" + ("" if usual else f":{port}")


def build_index(files: Iterable[SiteFile], agents: Sequence[str], path: Path) -> None:
    """Write the index of sites' files, which appears whole or not at all.

    Of two captures of one moment the later one in `files` counts.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{path.name}-", dir=path.parent) as part:
        made = Path(part) / path.name
        _write(_rows(files, agents), made)
        os.replace(made, path)


def _rows(
    files: Iterable[SiteFile], agents: Sequence[str]
) -> Iterator[tuple[str, str, int, bytes]]:
    for file in files:
        if site := file.url if file.kind == RSL else site_of(file.url):
            yield site, file.kind, _moment(file.date, _NEVER), _compact(file, agents)


def _write(rows: Iterable[tuple[str, str, int, bytes]], path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA journal_mode=OFF")  # a file that is not whole is never seen
        base.execute("PRAGMA synchronous=OFF")
        base.execute(_SCHEMA)
        base.execute("BEGIN")
        base.executemany("INSERT INTO files VALUES (?, ?, ?, ?)", rows)
        base.execute("COMMIT")
        base.execute(_INDEX)


def _moment(date: datetime | None, unknown: int) -> int:
    """Microseconds since 1970."""
    if date is None:
        return unknown
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return int((aware - _EPOCH).total_seconds() * 1_000_000)


def _compact(file: SiteFile, agents: Sequence[str]) -> bytes:
    """Return what a file says to these agents: a small part of what it says."""
    said: dict[str, Any] = {}
    if file.location:
        said = {"to": absolute(file.url, file.location)}
    elif file.status is not None and not 200 <= file.status < 300:
        said = {"status": file.status}
    elif file.kind == "tdm":
        said = {"tdm": file.content.decode("utf-8", "replace")}
    elif file.kind == RSL:
        said = {"rsl": file.content.decode("latin-1")}  # its bytes, of whatever encoding
    else:
        asked = parse_robots(file.content).asked_by(agents)
        said = {
            "rules": {
                agent: [[r.allows, r.path] for r in of] for agent, of in asked.groups.items()
            },
            "terms": {agent: of for agent, of in asked.terms.items() if of},
        }
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _said(stored: bytes) -> _Said:
    said = json.loads(stored.decode("utf-8", "surrogatepass"))
    rules = {
        agent: [Rule.of(allows, path) for allows, path in of]
        for agent, of in said.get("rules", {}).items()
    }
    terms = {agent: [Term(*one) for one in of] for agent, of in said.get("terms", {}).items()}
    tdm = parse_tdm_file(said["tdm"].encode()) if "tdm" in said else []
    file = RobotsFile(rules, terms)
    rsl = said.get("rsl", "").encode("latin-1")
    return _Said(said.get("status", 0), said.get("to", ""), file, tdm, rsl)


class SiteIndex:
    """Answers what site files say about pages."""

    def __init__(self, path: Path) -> None:
        place = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._base = sqlite3.connect(place, uri=True, check_same_thread=False)
        self._parsed = lru_cache(_PARSED)(lambda row, stored: _said(stored))
        counted = self._base.execute(_COUNTS)
        #: Captures by kind.
        self.counts: dict[str, int] = dict(counted.fetchall())
        self._kinds = [kind for kind in _PLACES if kind in self.counts]

    def signals(self, url: str, date: datetime | None) -> list[Signal]:
        """Return a site's signals for a page at its date, or the latest ones without a date."""
        site, at = site_of(url), _moment(date, _FOREVER)
        found: list[Signal] = []
        for kind in self._kinds if site else ():
            then, last = (self._of_site(site, kind, when) for when in (at, _FOREVER))
            signals = list(_signals(kind, then, url)) if then else []
            found += signals
            later = list(_signals(kind, last, url)) if last and last is not then else signals
            if later != signals:  # all of it: who has a group in this file
                found += [s._replace(place=f"{LATEST}{s.place}") for s in later]
        return found

    def renewed(self, rights: Mapping[str, Any] | None, url: str) -> dict[str, Any] | None:
        """Return a document's rights with what the latest files of its site say, where these exist.

        Args:
            rights: a value of the column; its licences in RSL are looked up again.
        """
        site = site_of(url)
        places = {_PLACES[k] for k in self._kinds if self._of_site(site, k, _FOREVER)}
        before = (Signal(**one) for one in (rights or {}).get("signals") or ())
        kept = [one for one in before if one.place.removeprefix(LATEST) not in places]
        now = self.with_terms([*self.signals(url, None), *kept], url, None)
        licence = rights["licence"] if rights else None
        return rights_of(licence, now) if rights or now else None

    def with_terms(
        self, signals: Iterable[Signal], url: str, date: datetime | None
    ) -> list[Signal]:
        """Return a page's signals, those of RSL with the licences that the index has.

        Where one says something else now, all licences of its place are in that of the latest ones,
        too, with the answers that tell who has a group there.
        """
        given = dict.fromkeys(signals)
        if all(one.kind != RSL for one in given):  # of nearly all documents
            return [*given]

        def read(one: Signal, at: int) -> Iterator[Signal]:
            when = _FOREVER if one.place.startswith(LATEST) else at
            return with_terms([one], url, lambda address: self._terms(address, when))

        at = _moment(date, _FOREVER)
        found, now = (dict.fromkeys(s for g in given for s in read(g, t)) for t in (at, _FOREVER))
        known = {s.place for s in given}
        changed = {s.place for s in now if s not in found and LATEST + s.place not in known}
        later = (s for s in now if s.place in changed and s.kind in (ROBOTS, RSL))
        return [*found, *(s._replace(place=LATEST + s.place) for s in later)]

    def _terms(self, address: str, at: int) -> bytes | None:
        for _ in range(_MOST_REDIRECTS + 1):
            said = self._capture(address, RSL, at)
            if said is None or not said.to:
                return said.terms if said and not said.status else None
            address = said.to
        return None

    def _of_site(self, site: str, kind: str, at: int) -> _Said | None:
        for _ in range(_MOST_REDIRECTS + 1):
            said = self._capture(site, kind, at)
            if said is None or not said.to:
                return said
            site = site_of(said.to) if kind_of(said.to) == kind else ""
        return None

    def _capture(self, site: str, kind: str, at: int) -> _Said | None:
        """Return the capture at a date, of this site (or file) or of that with the other scheme."""
        scheme, _, authority = site.partition("://")
        other = "http" if scheme == "https" else "https"
        for one in (site, f"{other}://{authority}"):
            for query in _NEAREST:
                if row := self._base.execute(query, (one, kind, at)).fetchone():
                    return self._parsed(*row)
        return None


def _signals(kind: str, said: _Said, url: str) -> Iterator[Signal]:
    place = _PLACES[kind]
    if kind == "tdm":
        yield from of_tdm_file(said.tdm, url, place)
        return
    if said.status:
        if kind == ROBOTS:
            yield Signal("robots", place, "*", f"HTTP {said.status}")
        return
    path = path_of(url)
    for agent, rules in said.file.groups.items():
        rule = best_rule(rules, path)
        if rule is None and kind == "ai_txt" and "." not in path.rpartition("/")[2]:
            rule = best_rule(rules, f"{path.partition('?')[0]}.html")  # which a page is by type
        line = rule.line if rule else ""
        yield Signal("robots" if kind == ROBOTS else "ai_txt", place, agent, line)
    if kind == ROBOTS:
        yield from of_robots(said.file, url, place)
