"""Files away from this machine: every request tried again while its failure may pass.

Any file system of fsspec: object stores (s3://, gs://, abfs://), hdfs://, https://. Their libraries
try again, too, each in its own way and not always; the tries here come on top and are the same for
all. Answers are checked for length, and no listing is ever taken from a cache.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import http.client
import io
import logging
import random
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, TypeVar, cast

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.spec import AbstractFileSystem
from fsspec.utils import glob_translate

from curation.errors import CurationError, StoreError

T = TypeVar("T")
U = TypeVar("U")
_MAGIC = re.compile(r"[*?\[]")
_LOG = logging.getLogger(__name__)

#: Tries of one request; with the pauses below about two minutes on average, within which an object
#: store that throttles has made room.
TRIES = 8
#: Pauses are drawn evenly from 0 to so many seconds, doubled each time up to the longest ("full
#: jitter", https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0

#: Objects up to this size are written in one request, larger ones in parts of this size.
PART_BYTES = 16 << 20
#: What a reader asks for at least; doubled, up to the most, as long as it reads forwards.
LEAST_AHEAD = 256 << 10
MOST_AHEAD = 8 << 20

#: File systems where a file appears whole, when it is closed. On others it is renamed.
_WHOLE_ON_CLOSE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "memory"}

#: Error numbers that s3fs gives to answers 500, 503 and unknown ones, and those of broken networks.
_PASSING = {
    getattr(errno, name)
    for name in (
        "EAGAIN EBUSY ECONNABORTED ECONNREFUSED ECONNRESET EHOSTUNREACH EINTR EIO ENETUNREACH "
        "EPIPE EREMOTEIO ETIMEDOUT"
    ).split()
    if hasattr(errno, name)
}
_LASTING = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError)
#: Answers of HTTP that may be others next time: timeout, too early, too many requests.
_PASSING_ANSWERS = {408, 425, 429}
#: Errors of libraries that need not be installed: broken connections and answers.
_PASSING_TYPES = {
    "aiohttp.client_exceptions.ClientError",
    "botocore.exceptions.ConnectionError",
    "botocore.exceptions.HTTPClientError",
    "botocore.parsers.ResponseParserError",
    "google.auth.exceptions.TransportError",
    "requests.exceptions.ConnectionError",
    "requests.exceptions.Timeout",
    "requests.exceptions.ChunkedEncodingError",
}


class UnfinishedError(OSError):
    """An answer without error, but not with all that was asked for."""


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, _LASTING):
        return False
    if isinstance(error, TimeoutError | ConnectionError | http.client.HTTPException | EOFError):
        return True
    status = _http_status(error)
    if status is not None:
        return status >= 500 or status in _PASSING_ANSWERS
    if isinstance(error, UnfinishedError):
        return True
    if isinstance(error, OSError) and error.errno in _PASSING:
        return True
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    return bool(names & _PASSING_TYPES)


def _http_status(error: BaseException) -> int | None:
    """The status of the answer that an error of aiohttp, gcsfs, requests or botocore holds."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status if isinstance(status, int) else None
    for place in (error, answer):
        for name in ("status", "code", "status_code"):
            status = getattr(place, name, None)
            if isinstance(status, int | str) and str(status).isdigit():
                return int(status)
    return None


def persistently(url: str, action: Callable[[], T]) -> T:
    """Do something, again after a pause while its failure may pass.

    `action` must come to the same when done twice. Raises FileNotFoundError as it comes, and
    StoreError with the URL for whatever else is in the way.
    """
    for tried in range(1, TRIES + 1):
        try:
            return action()
        except (FileNotFoundError, CurationError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            if not is_transient(error):
                raise StoreError(f"{url}: {reason}") from error
            if tried == TRIES:
                raise StoreError(f"{url}: gave up after {TRIES} tries: {reason}") from error
            pause = random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tried - 1)))
            _LOG.info("%s: try %d failed (%s); again in %.1f s", url, tried, reason, pause)
            time.sleep(pause)
    raise AssertionError


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL or path, and the path inside it. Listings are never cached.

    fsspec keeps one instance per kind and options, so what another part of the process lists is
    fresh from then on, too.
    """
    system, path = fsspec.core.url_to_fs(url)
    cache: Any = getattr(system, "dircache", None)
    if getattr(cache, "use_listings_cache", False):
        cache.use_listings_cache = False
        cache.clear()
    if hasattr(system, "max_concurrency"):
        # s3fs asks for the size of all it reads, to fetch large files in pieces at a time.
        system.max_concurrency = 1
    return system, path


def _protocols(system: Any) -> set[str]:
    return {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)


def open_url(url: str) -> IO[bytes]:
    """Open for reading, with random access. Raises FileNotFoundError and StoreError."""
    if "::" in url:
        return cast(IO[bytes], fsspec.open(url, "rb").open())
    system, path = file_system(url)
    info = persistently(url, lambda: system.info(path))
    if info["type"] == "directory":
        raise IsADirectoryError(errno.EISDIR, "is a folder", url)
    size = info.get("size")
    if "https" in _protocols(system) and not (size and _gives_ranges(system, path, url)):
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


def write(system: Any, path: str, url: str, content: IO[bytes], size: int) -> None:
    """Write the `size` bytes of a seekable file as one file that is whole or not there at all.

    The memory it takes is that of one part. Raises StoreError.
    """
    try:
        _write(system, path, url, content, size)
    except FileNotFoundError as error:
        raise StoreError(f"{url}: {error}") from error


def _write(system: Any, path: str, url: str, content: IO[bytes], size: int) -> None:
    if _WHOLE_ON_CLOSE & _protocols(system):
        persistently(url, lambda: _write_once(system, path, content, size))
        return
    folder = path.rpartition("/")[0]
    temporary = f"{folder}/.{uuid.uuid4().hex}.part"

    def written_and_renamed() -> None:
        system.makedirs(folder, exist_ok=True)
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


def info(system: Any, path: str, url: str) -> dict[str, Any] | None:
    """What is known of a file or folder, None when there is none. Raises StoreError.

    fsspec's `exists` and `isdir` take any error for a no.
    """
    try:
        return cast(dict[str, Any], persistently(url, lambda: system.info(path)))
    except FileNotFoundError:
        return None


def version(info: dict[str, Any]) -> str:
    """What a store says of an object's content: entity tag, generation or time of change."""
    for name in ("ETag", "etag", "md5Hash", "generation", "LastModified", "updated", "mtime"):
        if value := info.get(name):
            return f"{name}={str(value).strip(chr(34))}"
    return ""


def listing(system: Any, path: str, url: str) -> list[dict[str, Any]]:
    """Files and folders directly inside; none where there is no such folder. Raises StoreError."""
    try:
        entries = persistently(url, lambda: system.ls(path, detail=True))
    except FileNotFoundError:
        return []
    inside = path.rstrip("/") + "/"
    # A file lists itself, and some tools put empty objects `folder/` where folders are.
    return [e for e in entries if e["name"].startswith(inside) and not e["name"].endswith("/")]


def tree(system: Any, path: str, url: str) -> dict[str, dict[str, Any]]:
    """Every file below a folder, by its path. Raises StoreError."""
    kind = type(system)
    # Unless told so, fsspec's own walk leaves out folders that can't be listed.
    plain = kind.find is AbstractFileSystem.find or (
        isinstance(system, AsyncFileSystem) and kind._find is AsyncFileSystem._find
    )
    options = {"on_error": "raise"} if plain else {}
    try:
        found = persistently(url, lambda: system.find(path, detail=True, **options))
    except FileNotFoundError:
        return {}
    return {name: info for name, info in found.items() if not name.endswith("/")}


def glob(system: Any, pattern: str, url: str) -> dict[str, dict[str, Any]]:
    """Files that a pattern of `*`, `?`, `[...]` and `**` matches, by path. Raises StoreError.

    Lists only the folders that the pattern leads to. fsspec's `glob` leaves out what can't be
    listed just then, so that input files would be missed without a word.
    """
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if _MAGIC.search(part))
    base, rest = "/".join(parts[:first]), parts[first:]
    if "**" in rest[0]:
        matches = re.compile(glob_translate(pattern)).match
        return {p: i for p, i in tree(system, base, url).items() if matches(p)}
    entries = [
        e
        for e in listing(system, base, url)
        if fnmatch.fnmatchcase(e["name"].rsplit("/", 1)[-1], rest[0])
    ]
    if len(rest) == 1:
        return {e["name"]: e for e in entries if e["type"] == "file"}
    found: dict[str, dict[str, Any]] = {}
    below = ["/".join([e["name"], *rest[1:]]) for e in entries if e["type"] == "directory"]
    for part in each(lambda path: _matching(system, path, url), below):
        found |= part
    return found


def _matching(system: Any, pattern: str, url: str) -> dict[str, dict[str, Any]]:
    if _MAGIC.search(pattern):
        return glob(system, pattern, url)
    found = info(system, pattern, url)
    return {found["name"]: found} if found is not None and found["type"] == "file" else {}


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
    for _ in range(TRIES):
        files = list(tree(system, path, url))
        if not files and info(system, path, url) is None:
            return
        persistently(url, remove_files if files else remove_folder)
    raise StoreError(f"{url}: can't be removed")


def each(action: Callable[[U], T], items: Iterable[U], at_once: int = 32) -> Iterator[T]:
    """Results in order, several under way at a time: an object store answers slowly, but many."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(action, items)
