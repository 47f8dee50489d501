"""Read block lists of millions of lines: host lists, hosts files, AdBlock rules, UT1 categories.

A line is one of

* a host, which stands for itself and everything below it: `example.com`, `.example.com`,
  `*.example.com`, `0.0.0.0 example.com` (hosts file), `||example.com^` (AdBlock);
* a page, which stands for itself and everything under its path: `example.com/path`,
  `https://example.com/path`, `||example.com/path`;
* an exception, which takes hosts out of its own list: `@@||example.com^`;
* a comment: `#`, `!` or `[` first, and what follows a space or `#` after a host.

Other AdBlock rules (element hiding, wildcards, regular expressions, rules for certain sites) say
nothing about a page as such; they are counted as passed over.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import fsspec
import numpy as np
import numpy.typing as npt

from curation.compiled import borrowing, inlined
from curation.errors import ConfigError, first_line
from curation.hashing import xxh64
from curation.hosts import ascii_host
from curation.resources import resolve

HOST, PAGE, EXCEPTION, PASSED, FOREIGN = 1, 2, 3, 4, 5

#: Of the hashes of hosts, pages and words.
SEED = np.uint64(0x626C6F636B)
_UT1 = ("domains", "urls")
_UT1_OTHER = ("expressions",)  # regular expressions over URLs, which hit far more than is listed
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


class Entries(NamedTuple):
    """Hashes of what a list names (see `hash_text`), and lines that could not be used."""

    hosts: npt.NDArray[np.uint64]
    pages: npt.NDArray[np.uint64]
    exceptions: npt.NDArray[np.uint64]
    passed: int


@inlined
def _is_space(b):  # type: ignore[no-untyped-def]
    return b == 32 or b == 9 or b == 13


@inlined
def begins_www(data, start, end):  # type: ignore[no-untyped-def]
    """Whether a host begins with `www.` and goes on."""
    return (
        end - start > 4
        and data[start] == 119
        and data[start + 1] == 119
        and data[start + 2] == 119
        and data[start + 3] == 46
    )


@borrowing
def _classify(data, start, end):  # type: ignore[no-untyped-def]
    """(kind, start, end) of one stripped line; kind 0 is a comment."""
    b = data[start]
    if b == 35:  # '##' hides elements, '#' comments
        if start + 1 < end and (data[start + 1] == 35 or data[start + 1] == 64):
            return PASSED, start, end
        return 0, start, end
    if b == 33 or b == 91:
        return 0, start, end
    rule = False
    kind = HOST
    a = start
    if end - a > 2 and data[a] == 64 and data[a + 1] == 64:
        kind = EXCEPTION
        a += 2
        if data[a] != 124:
            return PASSED, start, end
    if end - a > 2 and data[a] == 124 and data[a + 1] == 124:
        rule = True
        a += 2
    z = a
    slash = -1
    dots = 0
    digits = True
    while z < end and not _is_space(data[z]):
        c = data[z]
        if c == 35:  # host#comment, or host##element
            if z + 1 < end and (data[z + 1] == 35 or data[z + 1] == 64):
                return PASSED, start, end
            if slash < 0:
                break
        if rule and (c == 94 or c == 36 or c == 124):
            break
        if c == 58 and z + 2 < end and data[z + 1] == 47 and data[z + 2] == 47:
            a = z + 3
            z = a
            dots = 0
            digits = True
            continue
        if c == 47 and slash < 0:
            slash = z
        if slash < 0:
            dots += c == 46
            digits = digits and (48 <= c <= 57 or c == 46 or c == 58)
        z += 1
    rest = z
    if rule:
        while rest < end and data[rest] == 94:
            rest += 1
        if rest < end and not _is_space(data[rest]):
            if data[rest] != 36:
                return PASSED, start, end
            for k in range(rest, end - 6):  # $domain=... speaks of certain sites only
                if (
                    data[k] == 100 and data[k + 1] == 111 and data[k + 2] == 109
                    and data[k + 5] == 110 and data[k + 6] == 61
                ):  # fmt: skip
                    return PASSED, start, end
    elif digits and slash < 0 and (dots == 3 or z - a < 4 or data[a] == 58):
        while rest < end and _is_space(data[rest]):  # address of a hosts file
            rest += 1
        if rest < end and data[rest] != 35:
            return _classify_host(data, rest, end)
    while a < z and (data[a] == 42 or data[a] == 46):
        rule = True
        a += 1
    if slash >= 0 and slash < z - 1:
        kind = PAGE if kind == HOST else PASSED
    elif slash >= 0:
        z = slash
    while z > a and (data[z - 1] == 46 or data[z - 1] == 47):
        z -= 1
    for k in range(a, z):
        if data[k] == 42 or data[k] == 124:
            return PASSED, start, end
    if z == a or (dots == 0 and not rule):
        return PASSED, start, end
    return kind, a, z


@borrowing
def _classify_host(data, start, end):  # type: ignore[no-untyped-def]
    """The host behind the address in a hosts file."""
    z = start
    dots = 0
    while z < end and not _is_space(data[z]) and data[z] != 35:
        dots += data[z] == 46
        z += 1
    return (HOST if dots else PASSED), start, z


@borrowing
def _read(data, seed, kinds, hashes, starts, ends):  # type: ignore[no-untyped-def]
    """Classify all lines of lower-case `data`; return how many entries were written."""
    n = 0
    size = len(data)
    i = 0
    while i < size:
        stop = i
        wide = False
        while stop < size and data[stop] != 10:
            wide |= data[stop] >= 0x80
            stop += 1
        a = i
        z = stop
        i = stop + 1
        while a < z and _is_space(data[a]):
            a += 1
        while z > a and _is_space(data[z - 1]):
            z -= 1
        if a == z:
            continue
        kind, a, z = _classify(data, a, z)
        if kind == 0:
            continue
        if wide and kind != PASSED:
            kind = kind + FOREIGN
        elif kind == PAGE and begins_www(data, a, z):
            a += 4
        kinds[n] = kind
        hashes[n] = xxh64(data, a, z, seed)
        starts[n] = a
        ends[n] = z
        n += 1
    return n


def hash_text(text: bytes) -> int:
    """Hash of a host, a page without scheme and `www.`, or a word, all in lower case."""
    return int(xxh64(np.frombuffer(text, np.uint8), 0, len(text), SEED))


def lower_bytes(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """ASCII capitals in lower case; a copy."""
    return data + (((data >= 65) & (data <= 90)).astype(np.uint8) << 5)


def parse(raw: bytes) -> Entries:
    """The entries of one list."""
    data = lower_bytes(np.frombuffer(raw.removeprefix(b"\xef\xbb\xbf"), np.uint8))
    lines = int(np.count_nonzero(data == 10)) + 1
    kinds = np.empty(lines, np.int64)
    hashes = np.empty(lines, np.uint64)
    starts = np.empty(lines, np.int64)
    ends = np.empty(lines, np.int64)
    n = _read(data, SEED, kinds, hashes, starts, ends)
    kinds, hashes = kinds[:n], hashes[:n]
    for i in np.flatnonzero(kinds > FOREIGN):
        text = bytes(data[starts[i] : ends[i]]).decode(errors="replace")
        host, slash, path = text.partition("/")
        name = ascii_host(host)
        if slash:
            name = name.removeprefix("www.")
        hashes[i] = hash_text((name + slash + path).encode())
        kinds[i] -= FOREIGN
    return Entries(
        hashes[kinds == HOST],
        hashes[kinds == PAGE],
        hashes[kinds == EXCEPTION],
        int((kinds == PASSED).sum()),
    )


def read_entries(path: str, category: str = "") -> Entries:
    """The entries of a list file (also .gz, .bz2, .xz, .zst, or a URL), a folder or a tar archive.

    A UT1 category is a folder with `domains` and `urls`. Where a folder or an archive has several
    of them, `category` is read; of any other folder all files count.
    Raises ConfigError when there is nothing to read.
    """
    local = resolve(path)
    if local.lower().endswith(_ARCHIVES):
        return _category(_archived(path, _bytes(local), category))
    if "://" in local or not Path(local).is_dir():
        return parse(_bytes(local))
    folder = Path(local)
    listed = {p.parent.name for p in folder.glob("*/*") if _kind(p.name) in _UT1}
    if listed and not any(_kind(p.name) in _UT1 for p in folder.iterdir()):
        folder /= _chosen(path, listed, category)
    files = sorted(p for p in folder.iterdir() if p.is_file())
    if not files:
        raise ConfigError(f"{path}: no block list in this folder")
    if any(_kind(p.name) in _UT1 for p in files):
        return _category({_kind(p.name): _bytes(str(p)) for p in files})
    return _joined([parse(_bytes(str(p))) for p in files])


def _kind(name: str) -> str:
    return name.split(".")[0]


def _category(files: Mapping[str, bytes]) -> Entries:
    """The entries of a UT1 category; `files` are by name, without suffixes."""
    held = _joined([parse(files[kind]) for kind in _UT1 if kind in files])
    other = [line for kind in _UT1_OTHER for line in files.get(kind, b"").splitlines()]
    return held._replace(passed=held.passed + sum(1 for line in other if line.strip()))


def _chosen(path: str, listed: Collection[str], category: str) -> str:
    """The category to read: the only one, or the one of this name."""
    if len(listed) > 1 and category not in listed:
        names = ", ".join(sorted(listed))
        raise ConfigError(f"{path}: no category {category!r}; it has: {names}")
    return category if category in listed else next(iter(listed))


def _archived(path: str, raw: bytes, category: str) -> dict[str, bytes]:
    """The files of one UT1 category in a tar archive, by name without suffixes."""
    found: dict[str, dict[str, tarfile.TarInfo]] = {}
    links: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            for member in archive:
                place = PurePosixPath(member.name)
                if member.issym():  # UT1 keeps former names of categories as links
                    links[place.name] = PurePosixPath(member.linkname).name
                elif member.isfile():
                    found.setdefault(place.parent.name, {})[_kind(place.name)] = member
            listed = {name: files for name, files in found.items() if files.keys() & set(_UT1)}
            if not listed:
                raise ConfigError(f"{path}: no UT1 category in this archive")
            files = listed[_chosen(path, listed, links.get(category, category))]
            opened = {kind: archive.extractfile(member) for kind, member in files.items()}
            return {kind: file.read() for kind, file in opened.items() if file is not None}
    except (tarfile.TarError, EOFError) as error:
        raise ConfigError(f"{path}: the archive can't be read: {error}") from None


def _joined(parts: Sequence[Entries]) -> Entries:
    return Entries(
        np.concatenate([p.hosts for p in parts]),
        np.concatenate([p.pages for p in parts]),
        np.concatenate([p.exceptions for p in parts]),
        sum(p.passed for p in parts),
    )


def _bytes(path: str) -> bytes:
    try:
        with fsspec.open(path, "rb", compression="infer") as file:
            raw: bytes = file.read()
    except Exception as error:  # every file system has its own exceptions
        reason = first_line(error)
        raise ConfigError(f"{path}: the block list can't be read: {reason}") from None
    return raw
