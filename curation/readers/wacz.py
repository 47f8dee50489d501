"""WACZ packages (Web Archive Collection Zipped 1.1.1): the archives inside a ZIP file."""

import errno
import lzma
import shutil
import struct
import tempfile
import zipfile
import zlib
from typing import IO

from curation.errors import InputError, StoreError
from curation.readers.raw import RawFile

_ARCHIVES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")
_BITS = 48  # of an offset inside an archive; the archive's number is above them
#: Archives that an offset of 64 bits can tell apart; what lies behind them is set aside.
MOST_ARCHIVES = (1 << 63 - _BITS) - 1
_LOCAL_HEADER = 30  # bytes before the name
_RECENT = 1 << 20  # bytes behind the furthest that are kept
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError)
_ODD = (NotImplementedError, RuntimeError, ValueError, OverflowError, LookupError)


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


class Package:
    """The archives of a package, in the order of its directory, which is read once.

    Of other packages than WACZ `suffixes` are those of the files that are wanted. Raises InputError
    if the file is not a package.
    """

    def __init__(self, raw: RawFile, suffixes: tuple[str, ...] = _ARCHIVES) -> None:
        self._raw = raw
        try:
            self._file = zipfile.ZipFile(raw.handle)
        except (*_BROKEN, *_ODD, OSError) as error:
            raise InputError(str(error) or type(error).__name__) from error
        self.archives = [
            info for info in self._file.infolist() if info.filename.lower().endswith(suffixes)
        ]
        self._overlapping = _overlapping(self.archives)

    def open(self, number: int) -> RawFile:
        """Open one archive as a file. Raises InputError if there is none."""
        if not 0 <= number < len(self.archives):
            raise InputError("no such archive")
        if number in self._overlapping:
            raise InputError("it overlaps another archive of the package")
        info = self.archives[number]
        try:
            archive = _Archive(self._file, info)
        except (*_BROKEN, *_ODD, OSError) as error:
            raise InputError(str(error) or type(error).__name__) from error
        return RawFile(archive, f"{self._raw.name}#{info.filename}")


def _overlapping(archives: list[zipfile.ZipInfo]) -> set[int]:
    """Numbers of archives that begin inside another: a package may name the same bytes often."""
    end, found = 0, set()
    for number, info in sorted(enumerate(archives), key=lambda one: one[1].header_offset):
        if info.header_offset < end:
            found.add(number)
        behind = info.header_offset + _LOCAL_HEADER + len(info.filename) + info.compress_size
        end = max(end, behind)
    return found


class _Archive:
    """One archive as a file to read. Raises OSError for whatever is wrong with it.

    Its bytes come in order, as the ZIP file is checked then. Going back further than a little is
    rare (after damage) but must not read everything again each time: then it is read from a
    temporary file.
    """

    def __init__(self, package: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self._package = package
        self._info = info
        self._stream: IO[bytes] = package.open(info)
        self._recent = bytearray()
        self._end = 0  # behind what is kept
        self._at = 0
        self._whole: IO[bytes] | None = None

    def seek(self, offset: int) -> None:
        self._at = offset

    def read(self, size: int) -> bytes:
        try:
            data = self._read(size)
        except (*_BROKEN, *_ODD) as error:
            raise OSError(str(error) or type(error).__name__) from error
        self._at += len(data)
        return data

    def close(self) -> None:
        self._stream.close()
        if self._whole:
            self._whole.close()

    def _read(self, size: int) -> bytes:
        if self._at < self._end - len(self._recent):
            return self._read_again(size)
        while self._end < self._at + size:
            more = self._stream.read(min(_RECENT, max(size, 1 << 16)))
            if not more:
                break
            self._recent += more
            self._end += len(more)
            first = self._end - len(self._recent)
            over = min(len(self._recent) - _RECENT, self._at - first)
            if over > 0:
                del self._recent[:over]
        begin = self._at - (self._end - len(self._recent))
        return bytes(self._recent[begin : begin + size])

    def _read_again(self, size: int) -> bytes:
        if self._whole is None:
            self._whole = _unpacked(self._package, self._info)
        self._whole.seek(self._at)
        return self._whole.read(size)


def _unpacked(package: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Return the archive in a temporary file, as far as it is sound."""
    whole = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with package.open(info) as stream:
            shutil.copyfileobj(stream, whole, _RECENT)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreError(f"{tempfile.gettempdir()}: {error.strerror}") from error
        raise
    except _BROKEN:
        pass  # reported when it was read for the first time
    return whole
