"""Read by ranges, so that an error costs one of them; write files that are whole or absent."""

import contextlib
import errno
import io
import shutil
import tempfile
from typing import IO, Any, cast

import fsspec
from fsspec.asyn import AsyncFileSystem

from curation.errors import StoreError
from curation.stores import persist
from curation.stores.persist import UnfinishedError, persistently
from curation.stores.systems import file_system, info, protocols, tree

#: Objects up to this size are written in one request, larger ones in parts of this size.
PART_BYTES = 16 << 20
#: File systems where a file appears whole, when it is closed. On others it is renamed.
_WHOLE_ON_CLOSE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "memory"}


def write(system: Any, path: str, url: str, content: IO[bytes], size: int, temporary: str) -> None:
    """Write the `size` bytes of a seekable file as one file that is whole or not there at all.

    Where a file grows as it is written it has the path `temporary` until it is whole. The memory it
    takes is that of one part. Raises StoreError.
    """
    try:
        _write(system, path, url, content, size, temporary)
    except FileNotFoundError as error:
        raise StoreError(f"{url}: {error}") from error


def _write(system: Any, path: str, url: str, content: IO[bytes], size: int, temporary: str) -> None:
    if _WHOLE_ON_CLOSE & protocols(system):
        persistently(url, lambda: _write_once(system, path, content, size))
        return

    def written_and_renamed() -> None:
        for name in (path, temporary):
            system.makedirs(name.rpartition("/")[0], exist_ok=True)
        try:
            _write_once(system, temporary, content, size)
            system.mv(temporary, path)
        except BaseException:
            with contextlib.suppress(Exception):
                system.rm_file(temporary)
            raise

    persistently(url, written_and_renamed)


def _write_once(system: Any, path: str, content: IO[bytes], size: int) -> None:
    content.seek(0)
    if size <= PART_BYTES:
        system.pipe_file(path, content.read())
        return
    file = system.open(path, "wb", block_size=PART_BYTES)
    try:
        shutil.copyfileobj(content, file, PART_BYTES)
        file.close()
    except BaseException:
        with contextlib.suppress(Exception):
            # Ends the upload, so that its parts are not kept and paid for.
            persistently(path, file.discard)
        # fsspec would close, and so commit, a file that is collected as garbage.
        file.closed = True
        raise


def remove(system: Any, path: str, url: str) -> None:
    """Remove a file or a folder with all that is in it; absent is fine. Raises StoreError."""

    def remove_files() -> None:
        with contextlib.suppress(FileNotFoundError):
            if isinstance(system, AsyncFileSystem):
                system.rm(files)  # many in one request
            else:
                for file in files:
                    system.rm_file(file)

    def remove_folder() -> None:
        with contextlib.suppress(FileNotFoundError):
            system.rm(path, recursive=True)

    # Looked at again afterwards: s3fs says nothing of objects that a request left where they were.
    for _ in range(persist.TRIES):
        files = list(tree(system, path, url))
        if not files and info(system, path, url) is None:
            return
        persistently(url, remove_files if files else remove_folder)
    raise StoreError(f"{url}: can't be removed")


#: What a reader asks for at least; doubled, up to the most, as long as it reads forwards.
LEAST_AHEAD = 256 << 10
MOST_AHEAD = 8 << 20


def reads_ranges(url: str) -> bool:
    """Return whether a part of a file can be read without the bytes before it."""
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
    """Return a file that can only be read forwards, in memory or a temporary file."""
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


def fetch(url: str, start: int, end: int) -> bytes:
    """Return the bytes from `start` to before `end` in one request; fewer where the file ends.

    Raises FileNotFoundError, and StoreError where the server gives no ranges.
    """
    system, path = file_system(url)
    try:
        return read_part(system, path, url, start, end, inside=False)
    except StoreError:
        found = info(system, path, url)
        if found is None or not (found.get("size") or 0) <= start:
            raise
        return b""  # nothing begins behind the end, which servers call an error


def read_part(system: Any, path: str, url: str, start: int, end: int, inside: bool = True) -> bytes:
    """Bytes from `start` to before `end`, which lies `inside` the file. Raises StoreError."""

    def once() -> bytes:
        data = bytes(system.cat_file(path, start=start, end=end))
        if len(data) > end - start and not inside:
            raise StoreError(f"{url}: its server ignores ranges and sends the whole file")
        lacks = len(data) != end - start
        if lacks and (inside or start + len(data) != system.info(path)["size"]):
            raise UnfinishedError(f"{len(data)} bytes in answer to {end - start} at {start}")
        return data

    return persistently(url, once)
