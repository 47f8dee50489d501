"""WACZ packages (Web Archive Collection Zipped 1.1.1): the archives inside a ZIP file."""

from __future__ import annotations

import zipfile
import zlib
from typing import IO

from curation.readers.raw import RawFile

_ARCHIVES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")
_BITS = 48  # of an offset inside an archive; the archive's number stands above them
ERRORS = (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError)


def pack(archive: int, offset: int) -> int:
    """Offset of a page in the package: the archive's place in the ZIP directory and its own.

    The sign of the inner offset is kept: (archive + 1) * 2**48 + offset, or minus that.
    """
    number = (archive + 1 << _BITS) + abs(offset)
    return -number if offset < 0 else number


def unpack(offset: int) -> tuple[int, int]:
    """Archive and offset inside it."""
    archive, inner = divmod(abs(offset), 1 << _BITS)
    return archive - 1, -inner if offset < 0 else inner


def archives(raw: RawFile) -> list[zipfile.ZipInfo]:
    """Archives of the package, in the order of its directory. Raises one of ERRORS."""
    with zipfile.ZipFile(raw.handle) as package:
        return [info for info in package.infolist() if info.filename.lower().endswith(_ARCHIVES)]


def open_archive(raw: RawFile, info: zipfile.ZipInfo) -> RawFile:
    """One archive as a file of its own. Raises one of ERRORS."""
    package = zipfile.ZipFile(raw.handle)
    handle: IO[bytes] = package.open(info)
    return RawFile(handle, f"{raw.name}#{info.filename}")
