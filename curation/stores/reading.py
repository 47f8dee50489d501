"""Reading by ranges: an error costs one of them, not the file."""

from __future__ import annotations

import errno
import io
import shutil
import tempfile
from typing import IO, Any, cast

import fsspec

from curation.stores.persist import UnfinishedError, persistently
from curation.stores.systems import file_system, protocols
from curation.stores.writing import PART_BYTES

#: What a reader asks for at least; doubled, up to the most, as long as it reads forwards.
LEAST_AHEAD = 256 << 10
MOST_AHEAD = 8 << 20


def reads_ranges(url: str) -> bool:
    """Whether a part of a file can be read without the bytes before it."""
    if "::" in url:
        return False
    system, path = file_system(url)
    if "https" not in protocols(system):
        return True
    info = persistently(url, lambda: system.info(path))
    return bool(info.get("size")) and _gives_ranges(system, path, url)


def open_url(url: str) -> IO[bytes]:
    """Open for reading, with random access. Raises FileNotFoundError and StoreError."""
    if "::" in url:
        return cast(IO[bytes], fsspec.open(url, "rb").open())
    system, path = file_system(url)
    info = persistently(url, lambda: system.info(path))
    if info["type"] == "directory":
        raise IsADirectoryError(errno.EISDIR, "is a folder", url)
    size = info.get("size")
    if "https" in protocols(system) and not (size and _gives_ranges(system, path, url)):
        return persistently(url, lambda: _copied(system, path, size))
    return cast(IO[bytes], StoredFile(system, path, url, size or 0))


def _gives_ranges(system: Any, path: str, url: str) -> bool:
    """Many servers of HTTP answer a range with the whole file, whatever they say of themselves."""
    return persistently(url, lambda: len(system.cat_file(path, start=0, end=1)) == 1)


def _copied(system: Any, path: str, size: int | None) -> IO[bytes]:
    """A file that can only be read forwards, in memory or a temporary file."""
    copy = tempfile.SpooledTemporaryFile(PART_BYTES)  # noqa: SIM115 (the caller closes it)
    try:
        with system.open(path, "rb", block_size=0) as source:
            shutil.copyfileobj(source, copy, PART_BYTES)
        if size and copy.tell() != size:
            raise UnfinishedError(f"{copy.tell()} bytes of {size}")
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return cast(IO[bytes], copy)


class StoredFile(io.RawIOBase):
    """A file of `size` bytes, read by ranges: an error costs one range, not the file."""

    def __init__(self, system: Any, path: str, url: str, size: int) -> None:
        self._system, self._path, self._url, self._size = system, path, url, size
        self._at = 0
        self._block, self._start = b"", 0  # what was read last, and its offset in the file
        self._ahead = LEAST_AHEAD

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self.read()

    def read(self, size: int | None = -1, /) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        if not self._start <= self._at or end > self._start + len(self._block):
            self._fill(end)
        data = self._block[self._at - self._start : end - self._start]
        self._at = end
        return data

    def _fill(self, end: int) -> None:
        """Make the block begin at the present place and reach at least to `end`."""
        known = self._start + len(self._block)
        forwards = self._start <= self._at <= known and known > 0
        self._ahead = min(2 * self._ahead, MOST_AHEAD) if forwards else LEAST_AHEAD
        rest = self._block[self._at - self._start :] if forwards else b""
        first = self._at + len(rest)
        last = min(self._size, max(end, first + self._ahead))
        data = read_part(self._system, self._path, self._url, first, last)
        self._block, self._start = rest + data, self._at


def read_part(system: Any, path: str, url: str, start: int, end: int) -> bytes:
    """Bytes from `start` to before `end`, which lies inside the file. Raises StoreError."""

    def once() -> bytes:
        data = system.cat_file(path, start=start, end=end)
        if len(data) != end - start:
            raise UnfinishedError(f"{len(data)} bytes in answer to {end - start} at {start}")
        return bytes(data)

    return persistently(url, once)
