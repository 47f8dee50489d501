"""Pages blocked by their address: lists of hosts and pages, and words in URLs.

Lists lie in memory as sorted 64-bit hashes: 8 bytes for a host, with a chance of about 1 in 10^12
that a host hits a list of a million entries by accident.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import Texts, large_strings
from curation.errors import ConfigError
from curation.filters.blocklist_files import hash_text, read_entries
from curation.filters.filter_settings import BlockListSettings
from curation.filters.lists import read_list
from curation.hosts import ascii_host

#: Scheme, authority and rest of a URL in lower case.
_URL = re.compile(rb"(?:(?:[^/?]{0,30}:)?//)?([^/?#\\]*)(.*)", re.S)
#: What is before a host, and the host.
_HOST = re.compile(r"\A((?:[^/?#]*://)?(?:[^/?#]*@)?)([^/?#:]*)")
#: Ends of the parts of a path.
_PART = re.compile(rb"[/?#&]|(?<!/)\Z")
_WORD = re.compile(rb"[a-z0-9\x80-\xff]+")


class _Hashes(NamedTuple):
    """Sorted hashes with the number of the list of each; equal hashes are side by side."""

    keys: npt.NDArray[np.uint64]  # [n] ascending
    lists: npt.NDArray[np.uint16]  # [n]

    @classmethod
    def of(cls, parts: Sequence[npt.NDArray[np.uint64]]) -> _Hashes:
        unique = [_distinct(part) for part in parts]
        keys = np.concatenate([np.zeros(0, np.uint64), *unique])
        numbers = np.repeat(np.arange(len(parts), dtype=np.uint16), list(map(len, unique)))
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], numbers[order])

    def holding(self, text: bytes) -> list[int]:
        """Return the numbers of the lists that have a host or page, ascending."""
        if not len(self.keys):
            return []
        key = np.uint64(hash_text(text))
        low = int(np.searchsorted(self.keys, key))
        if low == len(self.keys) or self.keys[low] != key:
            return []
        return self.lists[low : np.searchsorted(self.keys, key, "right")].tolist()


def _distinct(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Sorted, each once; np.unique takes five times as long on hashes."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]


class UrlBlocker:
    """Block lists in memory. Safe to share between threads and to pickle."""

    def __init__(self, settings: BlockListSettings) -> None:
        entries = {reason: read_entries(path, reason) for reason, path in settings.lists.items()}
        if len(entries) > np.iinfo(np.uint16).max:
            raise ConfigError("too many block lists")
        self._names = list(entries)
        self._hosts = _Hashes.of([e.hosts for e in entries.values()])
        self._pages = _Hashes.of([e.pages for e in entries.values()])
        self._exceptions = _Hashes.of([e.exceptions for e in entries.values()])
        self._allowed = _Hashes.of([read_entries(path).hosts for path in settings.allow])
        self._soft, self._least = _words(settings.soft_words), settings.min_soft_words

    def __len__(self) -> int:
        """Hosts and pages in the lists."""
        return len(self._hosts.keys) + len(self._pages.keys)

    def check(self, urls: Texts) -> pa.Array:
        """Why each URL is blocked: string such as `blocklist.adult`, null where it is not.

        The most complete host name that a list holds decides, then pages, then words; where
        several lists hold it, the first. A null or empty URL is never blocked.
        """
        found = (self._reason(url) if url else None for url in large_strings(urls).to_pylist())
        return pa.array((f"blocklist.{why}" if why else None for why in found), pa.string())

    def _reason(self, url: str) -> str | None:
        if not url.isascii():
            url = _HOST.sub(lambda found: found[1] + ascii_host(found[2]), url, 1)
        authority, path = _URL.match(url.encode().lower()).groups()  # type: ignore[union-attr]
        rest = authority.rpartition(b"@")[2]
        is_ipv6 = rest.startswith(b"[")
        host = rest[1:].partition(b"]")[0] if is_ipv6 else rest.partition(b":")[0].rstrip(b".")
        names = [host[dot:] for dot in (0, *(at + 1 for at in range(len(host)) if host[at] == 46))]
        if not host or any(map(self._allowed.holding, names)):
            return None
        page = rest.removeprefix(b"www.") if len(host) > len(b"www.") else rest
        for number in (*self._of_hosts(names), *self._of_pages(page, path)):
            if not any(number in self._exceptions.holding(name) for name in names):
                return self._names[number]
        words = self._soft.intersection(_WORD.findall(rest + path)) if self._soft else ()
        return "soft_words" if len(words) >= self._least else None

    def _of_hosts(self, names: Sequence[bytes]) -> Iterator[int]:
        for name in names:
            yield from self._hosts.holding(name)

    def _of_pages(self, page: bytes, path: bytes) -> Iterator[int]:
        if len(self._pages.keys) and len(path) > 1:
            for end in _PART.finditer(path, 2):
                yield from self._pages.holding(page + path[: end.start()])


def _words(path: str | None) -> set[bytes]:
    return set() if path is None else {word.lower().encode() for word in read_list(path)}


@functools.lru_cache(maxsize=4)
def _load(settings: str) -> UrlBlocker:
    return UrlBlocker(BlockListSettings.model_validate_json(settings))


def load(settings: BlockListSettings) -> UrlBlocker:
    """The lists of the settings, read once per process.

    Raises ConfigError when a list is absent or not readable.
    """
    return _load(settings.model_dump_json(round_trip=True))
