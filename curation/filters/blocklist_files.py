"""Read block lists of millions of lines: host lists, hosts files, AdBlock rules, UT1 categories.

A line is one of

* a host, which stands for itself and everything below it: `example.com`, `.example.com`,
  `*.example.com`, `0.0.0.0 example.com` (hosts file), `||example.com^` (AdBlock);
* a page, which stands for itself and everything under its path: `example.com/path`,
  `https://example.com/path`, `||example.com/path`;
* an exception, which takes hosts out of its own list: `@@||example.com^`;
* a comment: `#`, `!` or `[` first, and what follows a space or `#` after a host.

Other AdBlock rules (element hiding, wildcards, regular expressions, rules for certain sites) say
nothing about a page as such; they are passed over.
"""

import io
import re
import tarfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import fsspec
import numpy as np
import numpy.typing as npt
import xxhash

from curation.errors import ConfigError, first_line
from curation.hosts import ascii_host
from curation.resources import resolve

_HOST, _PAGE, _EXCEPTION = range(3)

#: Most lines of long lists: hosts without anything else, found together as lists have millions.
_HOSTS = re.compile(rb"^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*$", re.MULTILINE)
#: Address and host of a hosts file: digits, dots and colons, as an address has them.
_ADDRESS = re.compile(rb"(?:\d*(?:\.\d*){3}|[\d.:]{1,3}|:[\d.:]*)[ \t]+([^\s#]+)")
#: `@@` of exceptions, signs that stand for hosts below, host, path; a comment may follow.
_PLAIN = re.compile(rb"(@@)?(?:[^\s/#]*://)?([*.]*)([^\s/#]*)(/\S*)?")
#: The same of an AdBlock rule, whose options must not name certain sites.
_ADBLOCK = re.compile(
    rb"(@@)?\|\|(?:[^\s/#]*://)?([*.]*)([^\s/#^$|]*)(/[^\s^$|]*)?\^*(?:\s.*|\$(?!.*dom..n=).*)?$"
)
#: `##` and `#@` hide elements of pages.
_HIDES = re.compile(rb"[^\s#]*#[#@]")

#: Of the hashes of hosts and pages.
_SEED = 0x626C6F636B
_UT1 = ("domains", "urls")  # not `expressions`, which hit far more than is listed
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


class Entries(NamedTuple):
    """Hashes of what a list names (see `hash_text`)."""

    hosts: npt.NDArray[np.uint64]
    pages: npt.NDArray[np.uint64]
    exceptions: npt.NDArray[np.uint64]


def _entry(line: bytes) -> tuple[int, bytes] | None:
    """Return the kind of a stripped line in lower case, and what it names; None: no page."""
    if line[:1] in (b"#", b"!", b"[") or _HIDES.match(line):
        return None
    if address := _ADDRESS.match(line):
        return (_HOST, address[1]) if b"." in address[1] else None
    anchored = line.startswith((b"||", b"@@||"))
    found = (_ADBLOCK if anchored else _PLAIN).match(line)
    if not found or (found[1] and not anchored):
        return None
    _, signs, host, path = found.groups(b"")
    name = (host + path).rstrip(b"./")
    is_host = len(name) <= len(host)
    below = anchored or signs or b"." in host
    if not name or not below or b"*" in name or b"|" in name or (found[1] and not is_host):
        return None
    if is_host:
        return (_EXCEPTION if found[1] else _HOST), name
    return _PAGE, name.removeprefix(b"www.")


def hash_text(text: bytes) -> int:
    """Hash of a host, or of a page without scheme and `www.`, all in lower case."""
    return xxhash.xxh64_intdigest(text, _SEED)


def parse(raw: bytes) -> Entries:
    """The entries of one list."""
    text = raw.removeprefix(b"\xef\xbb\xbf").lower().replace(b"\r\n", b"\n")
    hashes: tuple[list[int], ...] = (list(map(hash_text, _HOSTS.findall(text))), [], [])
    for line in re.findall(rb".+", _HOSTS.sub(b"", text)):
        entry = _entry(stripped) if (stripped := line.strip()) else None
        if entry is not None:
            kind, name = entry
            if not name.isascii():
                host, slash, path = name.decode(errors="replace").partition("/")
                name = f"{ascii_host(host)}{slash}{path}".encode()
            hashes[kind].append(hash_text(name))
    return Entries(*(np.array(found, np.uint64) for found in hashes))


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
    return _joined([parse(files[kind]) for kind in _UT1 if kind in files])


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
    return Entries(*map(np.concatenate, zip(*parts, strict=True)))


def _bytes(path: str) -> bytes:
    try:
        with fsspec.open(path, "rb", compression="infer") as file:
            raw: bytes = file.read()
    except Exception as error:  # every file system has its own exceptions
        reason = first_line(error)
        raise ConfigError(f"{path}: the block list can't be read: {reason}") from None
    return raw
