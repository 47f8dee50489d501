"""Pages blocked by their address: lists of hosts and pages, and words in URLs.

Lists lie in memory as sorted 64-bit hashes: 8 bytes for a host, with a chance of about 1 in 10^12
that a host hits a list of a million entries by accident.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import Texts, text_buffers
from curation.bytes import ascii as by
from curation.bytes.ascii import byte_set
from curation.bytes.search import stands_at, word
from curation.compiled import Bool, Bytes, Int, Int64s, Uint64s, borrowing, kernel
from curation.errors import ConfigError
from curation.filters.blocklist_files import (
    SEED,
    hash_text,
    lower_bytes,
    read_entries,
)
from curation.filters.filter_settings import BlockListSettings
from curation.filters.lists import read_list
from curation.hashing import xxh64
from curation.hosts import ascii_host

_ENDS_HOST, _PARTS_PATH = byte_set("/?#\\"), byte_set("/?#&")
_WWW = word(b"www.")
_NONE, _SOFT, _HARD, _LISTS = 0, 1, 2, 3  # codes of reasons; list k has the code _LISTS + k
_BUCKET_BITS = 16
_SHIFT = np.uint64(64 - _BUCKET_BITS)


class _Hashes(NamedTuple):
    """Sorted hashes with the number of the list of each; equal hashes are side by side."""

    keys: npt.NDArray[np.uint64]  # [n] ascending
    lists: npt.NDArray[np.uint16]  # [n]
    buckets: npt.NDArray[np.int64]  # [2^16 + 1] first key of every upper half word

    @classmethod
    def of(cls, parts: Sequence[npt.NDArray[np.uint64]]) -> _Hashes:
        unique = [_distinct(part) for part in parts]
        keys = np.concatenate([np.zeros(0, np.uint64), *unique])
        numbers = np.repeat(np.arange(len(parts), dtype=np.uint16), list(map(len, unique)))
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        marks = np.arange(1 << _BUCKET_BITS, dtype=np.uint64) << _SHIFT
        buckets = np.append(np.searchsorted(keys, marks), len(keys)).astype(np.int64)
        return cls(keys, numbers[order], buckets)


class _Lists(NamedTuple):
    """All lists, as the kernel takes them."""

    hosts: _Hashes
    pages: _Hashes
    exceptions: _Hashes
    allowed: _Hashes
    hard: _Hashes
    soft: _Hashes
    min_soft_words: int


def _distinct(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Sorted, each once; np.unique takes five times as long on hashes."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]


@borrowing
def _find(table: _Hashes, key: Int) -> Int:
    """Index of the first entry with this key, or -1."""
    keys = table.keys
    bucket = np.int64(key >> _SHIFT)
    low = table.buckets[bucket]
    high = table.buckets[bucket + 1]
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low] == key else -1


@borrowing
def _host(data: Bytes, begin: Int, end: Int) -> tuple[Int, Int, Int]:
    """(start, end) of the host in a URL, and where its path begins."""
    a = begin
    for k in range(begin, min(end - 1, begin + 32)):
        if data[k] == by.SLASH or data[k] == by.QUESTION:
            if (
                data[k] == by.SLASH
                and data[k + 1] == by.SLASH
                and (k == begin or data[k - 1] == by.COLON)
            ):
                a = k + 2
            break
    path = a
    while path < end and not _ENDS_HOST[data[path]]:
        path += 1
    z = path
    for k in range(a, path):
        if data[k] == by.AT:
            a = k + 1
    if a < z and data[a] == by.BRACKET:  # [IPv6]
        a += 1
        k = a
        while k < z and data[k] != by.END_BRACKET:
            k += 1
        return a, k, path
    for k in range(a, z):
        if data[k] == by.COLON:
            z = k
            break
    while z > a and data[z - 1] == by.DOT:
        z -= 1
    return a, z, path


@borrowing
def _excepted(data: Bytes, a: Int, z: Int, number: Int, exceptions: _Hashes) -> Bool:
    """Whether list `number` excepts the host data[a:z] or one above it."""
    for k in range(a, z):
        if k == a or data[k - 1] == by.DOT:
            key = xxh64(data, k, z, SEED)
            i = _find(exceptions, key)
            while 0 <= i < len(exceptions.keys) and exceptions.keys[i] == key:
                if exceptions.lists[i] == number:
                    return True
                i += 1
    return False


@borrowing
def _listed(data: Bytes, a: Int, z: Int, key: Int, table: _Hashes, exceptions: _Hashes) -> Int:
    """Number of the first list that holds `key` and does not except the host, or -1."""
    i = _find(table, key)
    while 0 <= i < len(table.keys) and table.keys[i] == key:
        if not _excepted(data, a, z, table.lists[i], exceptions):
            return np.int64(table.lists[i])
        i += 1
    return -1


@borrowing
def _words(
    data: Bytes, begin: Int, end: Int, hard: _Hashes, soft: _Hashes, found: Uint64s
) -> tuple[Bool, Int]:
    """(whether a hard word occurs, number of different soft words) in data[begin:end]."""
    different = 0
    i = begin
    while i < end:
        a = i
        while i < end and (97 <= data[i] <= 122 or 48 <= data[i] <= 57 or data[i] >= 0x80):
            i += 1
        if i > a:
            key = xxh64(data, a, i, SEED)
            if _find(hard, key) >= 0:
                return True, different
            if _find(soft, key) >= 0:
                new = True
                for k in range(min(different, len(found))):
                    if found[k] == key:
                        new = False
                if new and different < len(found):
                    found[different] = key
                    different += 1
        i += 1
    return False, different


@kernel
def _check(data: Bytes, offsets: Int64s, lists: _Lists, out: Int64s) -> None:
    pages, exceptions, least = lists.pages, lists.exceptions, lists.min_soft_words
    found = np.zeros(max(least, 1), np.uint64)
    by_word = len(lists.hard.keys) + len(lists.soft.keys) > 0
    for d in range(len(offsets) - 1):
        begin = offsets[d]
        end = offsets[d + 1]
        out[d] = _NONE
        a, z, path = _host(data, begin, end)
        if a == z:
            continue
        code = -1
        free = False
        for k in range(a, z):
            if k == a or data[k - 1] == by.DOT:
                key = xxh64(data, k, z, SEED)
                if _find(lists.allowed, key) >= 0:
                    free = True
                    break
                if code < 0:
                    code = _listed(data, a, z, key, lists.hosts, exceptions)
        if free:
            continue
        if code < 0 and len(pages.keys):
            first = a + 4 if z - a > len(_WWW) and stands_at(data, a, z, _WWW) else a
            for k in range(path + 1, end + 1):
                if k < end and not _PARTS_PATH[data[k]]:
                    continue
                if k > path + 1 and not (k == end and data[k - 1] == by.SLASH):
                    code = _listed(data, a, z, xxh64(data, first, k, SEED), pages, exceptions)
                    if code >= 0:
                        break
        if code >= 0:
            out[d] = _LISTS + code
        elif by_word:
            bad, different = _words(data, a, end, lists.hard, lists.soft, found)
            if bad:
                out[d] = _HARD
            elif len(lists.soft.keys) and different >= least:
                out[d] = _SOFT


class UrlBlocker:
    """Block lists in memory. Safe to share between threads and to pickle.

    `passed_over` says for each list how many of its lines were rules that cannot be judged by a
    page's address alone.
    """

    def __init__(self, settings: BlockListSettings) -> None:
        entries = {reason: read_entries(path, reason) for reason, path in settings.lists.items()}
        if len(entries) > np.iinfo(np.uint16).max:
            raise ConfigError("too many block lists")
        self.passed_over = {reason: held.passed for reason, held in entries.items()}
        self._lists = _Lists(
            _Hashes.of([e.hosts for e in entries.values()]),
            _Hashes.of([e.pages for e in entries.values()]),
            _Hashes.of([e.exceptions for e in entries.values()]),
            _Hashes.of([read_entries(path).hosts for path in settings.allow]),
            _Hashes.of([_word_hashes(settings.hard_words)]),
            _Hashes.of([_word_hashes(settings.soft_words)]),
            settings.min_soft_words,
        )
        self._reasons = pa.array(
            [
                None,
                "blocklist.soft_words",
                "blocklist.hard_word",
                *(f"blocklist.{reason}" for reason in entries),
            ],
            pa.string(),
        )

    def __len__(self) -> int:
        """Hosts and pages in the lists."""
        return len(self._lists.hosts.keys) + len(self._lists.pages.keys)

    def check(self, urls: Texts) -> pa.Array:
        """Why each URL is blocked: string such as `blocklist.adult`, null where it is not.

        The most complete host name that a list holds decides, then pages, then words; where
        several lists hold it, the first. A null or empty URL is never blocked.
        """
        offsets, data = text_buffers(_ascii_hosts(urls))
        first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
        codes = np.zeros(len(offsets) - 1, np.int64)
        _check(lower_bytes(data[first:last]), offsets - first, self._lists, codes)
        return self._reasons.take(pa.array(codes))


def _word_hashes(path: str | None) -> npt.NDArray[np.uint64]:
    words = [] if path is None else read_list(path)
    return np.array([hash_text(word.lower().encode()) for word in words], np.uint64)


def _ascii_hosts(urls: Texts) -> Texts:
    """URLs whose host is written in other letters than ASCII, with the host as DNS knows it."""
    _, data = text_buffers(urls)
    if not len(data) or int(data.max()) < 0x80:
        return urls
    held = urls.to_pylist() if isinstance(urls, (pa.Array, pa.ChunkedArray)) else list(urls)
    return [_ascii_url(url) if url and not url.isascii() else url or "" for url in held]


def _ascii_url(url: str) -> str:
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        scheme, rest = "", url
    ends = [i for i in (rest.find(mark) for mark in "/?#") if i >= 0]
    cut = min(ends, default=len(rest))
    user, at, host = rest[:cut].rpartition("@")
    name, colon, port = host.partition(":")
    return scheme + slashes + user + at + ascii_host(name) + colon + port + rest[cut:]


@functools.lru_cache(maxsize=4)
def _load(settings: str) -> UrlBlocker:
    return UrlBlocker(BlockListSettings.model_validate_json(settings))


def load(settings: BlockListSettings) -> UrlBlocker:
    """The lists of the settings, read once per process.

    Raises ConfigError when a list is absent or not readable.
    """
    return _load(settings.model_dump_json(round_trip=True))
