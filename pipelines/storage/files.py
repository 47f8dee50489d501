"""Folders on local disks and in object stores, with atomic writes: a file is whole or absent."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import json
import logging
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar, NamedTuple, Self, TypeVar, cast

import pyarrow as pa

from curation import stores
from curation.credentials import redact
from curation.errors import ConfigError, InputError, StoreError

A = TypeVar("A")
T = TypeVar("T")

_LOG = logging.getLogger(__name__)

#: Scratch folder inside a stage folder: unfinished files, and files only the stage itself reads.
SCRATCH = ".work"


_LONGEST_NAME = 255  # bytes, of a file or folder
#: Suffix of a file being written; a killed process leaves such files behind.
_PART = ".part"


class FileRecord(NamedTuple):
    """A manifest's record of one file."""

    rows: int
    bytes: int
    sha256: str


class HashingSink(io.RawIOBase):
    """A binary file written once from start to end, hashed while it is written.

    To close it leaves the file open, which the folder closes once it is complete.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._size = 0
        self._abandoned = False

    def abandon(self) -> None:
        """Ignore further writes: writers finish their files when garbage-collected."""
        self._abandoned = True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        if self._abandoned:
            return view.nbytes
        self._hash.update(view)
        self._file.write(view)
        self._size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._size

    def writable(self) -> bool:
        return True

    def record(self, rows: int) -> FileRecord:
        return FileRecord(rows, self._size, self._hash.hexdigest())


@dataclass(frozen=True)
class Folder:
    """A folder given by local path or fsspec URL. Names inside it use `/` on every system.

    This class implements object stores; for a folder on local disks it creates a `LocalFolder`.
    With `sync`, `create` returns only after local files and their folder entries are on the disk.
    """

    url: str
    sync: bool = field(default=True, compare=False)

    is_local: ClassVar[bool] = False

    def __new__(cls, url: str, *others: Any, **named: Any) -> Self:
        return super().__new__(LocalFolder if cls is Folder and _is_local(url) else cls)  # type: ignore[return-value]

    def __getnewargs__(self) -> tuple[str]:
        return (self.url,)

    def __post_init__(self) -> None:
        url = os.path.expanduser(self.url.rstrip("/"))
        if url.endswith(":") and "/" not in url and self.url.startswith(f"{url}//"):
            raise ConfigError(f"{self.url}: not the name of a folder")
        longest = 0 if stores.is_url(url) else max(map(len, os.fsencode(url).split(b"/")))
        if longest > _LONGEST_NAME:
            raise ConfigError(f"{self.url}: a name of over {_LONGEST_NAME} bytes")
        # Workers may have a different working directory from the driver.
        object.__setattr__(self, "url", url if stores.is_url(url) else os.path.abspath(url or "/"))

    def __getstate__(self) -> dict[str, Any]:
        # File systems are opened again elsewhere: with that machine's settings, without caches.
        return {k: v for k, v in self.__dict__.items() if k != "_fs_path"}

    @property
    def shown(self) -> str:
        """The path for messages: relative to the working directory if it lies there."""
        if stores.is_url(self.url):
            return redact(self.url)
        near = os.path.relpath(self.url)
        return self.url if near.split(os.sep)[0] == os.pardir else near

    @functools.cached_property
    def _fs_path(self) -> tuple[Any, str]:
        fs, path = stores.file_system(self.url)
        return fs, path.rstrip("/") or "/"

    @property
    def fs(self) -> Any:
        return self._fs_path[0]

    def path(self, name: str = "") -> str:
        """Path inside `fs`."""
        base = self._fs_path[1]
        return f"{base}/{name}" if name else base

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.url.rstrip('/')}/{name}", self.sync)

    def url_of(self, name: str = "") -> str:
        """Return the URL of a file in the folder, for messages."""
        return f"{self.url}/{name}" if name else self.url

    def _persistently(self, name: str, action: Callable[[str], T]) -> T:
        """Apply an action to a path, retrying transient failures."""
        return stores.persistently(self.url_of(name), lambda: action(self.path(name)))

    def exists(self, name: str = "") -> bool:
        return stores.info(self.fs, self.path(name), self.url_of(name)) is not None

    def size(self, name: str) -> int | None:
        """Return the size in bytes, or None if there is no such file."""
        try:
            return int(self._persistently(name, self.fs.size))
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> str:
        """Return a value that changes with a file's content: size and times, or a store's tag."""
        return str(self._persistently(name, self.fs.checksum))

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file's content, known as long as the file is unchanged."""
        known = _known(self.url_of(name), self.stamp(name))
        if not known:
            with self.open(name) as handle:
                known.append(hashlib.file_digest(cast(Any, handle), "sha256").hexdigest())
        return known[0]

    def holds(
        self, files: Mapping[str, dict[str, Any]], witness: str, sizes: Mapping[str, int] | None
    ) -> bool:
        """Return whether files are intact; `witness` records them and was written after them.

        Compares sizes (`sizes` lists them; None: not listed yet) and, on local disks, the content
        of files changed after the witness was written. A file that differs is logged and removed.
        """
        wrong = self.differing(files, witness, sizes)
        for name in wrong:
            if self.exists(name):
                _LOG.warning(
                    "%s: not the bytes that were written; making it again", self.url_of(name)
                )
                self.remove(name)
        return not wrong

    def differing(
        self, files: Mapping[str, dict[str, Any]], witness: str, sizes: Mapping[str, int] | None
    ) -> list[str]:
        """Return the names of the files that `holds` removes, without doing so."""
        found = self.tree() if sizes is None else sizes
        return [n for n, f in files.items() if found.get(n) != f["bytes"]]

    def names(self, suffix: str = "") -> list[str]:
        """Return the names of the files directly inside, sorted; empty if there is no folder."""
        return sorted(n for n in self.sizes() if n.endswith(suffix))

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files directly inside, from a single listing.

        Hidden files are left out: file managers create them, a run never does.
        """
        return {name: e["size"] for name, e in self._listing("file").items()}

    def folders(self) -> list[str]:
        """Return the names of the folders directly inside, sorted, without hidden ones."""
        return sorted(self._listing("directory"))

    def _listing(self, kind: str) -> dict[str, dict[str, Any]]:
        found = stores.listing(self.fs, self.path(), self.url)
        named = {e["name"].rstrip("/").rpartition("/")[2]: e for e in found if e["type"] == kind}
        return {name: entry for name, entry in named.items() if not name.startswith(".")}

    def tree(self) -> dict[str, int]:
        """Return the sizes of all files below, by name relative to this folder, sorted."""
        found = stores.tree(self.fs, self.path(), self.url)
        return self._below({path: facts["size"] for path, facts in found.items()})

    def _below(self, sizes: Mapping[str, int]) -> dict[str, int]:
        base = len(self.path())
        return {path[base:].lstrip("/"): sizes[path] for path in sorted(sizes)}

    def mapped(self, name: str) -> Any:
        """Return a file as a memory-mapped Arrow buffer; None in object stores."""
        return None

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, stores.open_url(self.url_of(name)))

    def read_bytes(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes [start, end) of a file, fewer if the file ends sooner."""
        return self._persistently(
            name, lambda path: cast(bytes, self.fs.cat_file(path, start=start or None, end=end))
        )

    def read_json(self, name: str) -> Any:
        """Parse a JSON file. Raises InputError with its name if it is missing or invalid."""
        try:
            return json.loads(self.read_bytes(name))
        except FileNotFoundError:
            raise InputError(f"{self.url}/{name}: no such file") from None
        except ValueError as error:
            raise InputError(f"{self.url}/{name}: not valid JSON ({error})") from None

    def write_own_json(self, name: str, value: dict[str, Any]) -> FileRecord:
        """Write canonical JSON that begins with the SHA-256 of everything after it."""
        rest = _json(value)[1:] if value else b"\n}\n"
        digest = hashlib.sha256(rest).hexdigest()
        comma = b"," if value else b""
        return self.write_bytes(name, f'{{\n "sha256": "{digest}"'.encode() + comma + rest)

    def read_own_json(self, name: str) -> dict[str, Any]:
        """Read an object written by `write_own_json`, without which a run can work.

        Empty if the file is missing or damaged (its hash differs); damage is logged.
        """
        try:
            data = self.read_bytes(name)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        content = unsealed(data)
        if content is None:
            _LOG.warning("%s: damaged; the same run makes it again", redact(self.url_of(name)))
            return {}
        return content

    def each(self, action: Callable[[A], T], items: Iterable[A]) -> list[T]:
        """Apply an action to files of this folder, concurrently if remote; keep their order."""
        return list(stores.each(action, items))

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[HashingSink]:
        """Write a file atomically.

        On local disks the bytes go to the scratch folder and the file is renamed at the end. For
        object stores they are buffered until complete, in memory or, beyond a part's size, in a
        temporary file, so that a failed upload can start again. After an exception nothing is left.
        """
        with (
            room_for(tempfile.gettempdir()),
            tempfile.SpooledTemporaryFile(stores.PART_BYTES) as spool,
        ):
            sink = HashingSink(cast(BinaryIO, spool))
            yield sink
            target, part = self.path(name), self._part()
            stores.write(self.fs, target, self.url_of(name), spool, sink.tell(), part)

    def _part(self) -> str:
        """Return a path for a file being written."""
        return self.path(f"{SCRATCH}/{uuid.uuid4().hex}{_PART}")

    def remove_parts(self) -> None:
        """Remove unfinished files of killed processes, which may be large."""
        scratch = self / SCRATCH
        scratch.each(scratch.remove, scratch.names(_PART))

    def write_bytes(self, name: str, data: bytes) -> FileRecord:
        with self.create(name) as sink:
            sink.write(data)
        return sink.record(0)

    def add(self, name: str, path: str, rows: int = 0) -> FileRecord:
        """Copy a file of this machine into the folder."""
        with open(path, "rb") as file, self.create(name) as sink:
            shutil.copyfileobj(file, sink, 1 << 20)
        return sink.record(rows)

    def write_json(self, name: str, value: Any) -> None:
        """Write canonical JSON: sorted keys, so equal values are equal bytes.

        It may go next to a user's files, so the scratch folder does not stay if nothing is in it.
        """
        self.write_bytes(name, _json(value))
        if self.is_local:
            with contextlib.suppress(OSError):
                os.rmdir(self.path(SCRATCH))

    def remove(self, name: str = "") -> None:
        """Remove a file or a whole folder, if it exists."""
        stores.remove(self.fs, self.path(name), self.url_of(name))


class LocalFolder(Folder):
    """A folder on this machine's disks."""

    is_local = True

    def _persistently(self, name: str, action: Callable[[str], T]) -> T:
        return action(self.path(name))

    def exists(self, name: str = "") -> bool:
        return os.path.exists(self.path(name))

    def stamp(self, name: str) -> str:
        status = os.stat(self.path(name))
        return f"{status.st_size} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"

    def differing(
        self, files: Mapping[str, dict[str, Any]], witness: str, sizes: Mapping[str, int] | None
    ) -> list[str]:
        try:
            since = os.stat(self.path(witness)).st_ctime_ns
        except FileNotFoundError:
            return [witness]
        return [n for n, f in files.items() if not self._is_as_named(n, f, since)]

    def _is_as_named(self, name: str, file: dict[str, Any], since: int) -> bool:
        try:
            status = os.stat(self.path(name))
        except (FileNotFoundError, NotADirectoryError):
            return False
        if status.st_size != file["bytes"]:
            return False
        return status.st_ctime_ns < since or self.digest(name) == file["sha256"]

    def sizes(self) -> dict[str, int]:
        try:
            with os.scandir(self.path()) as entries:
                sizes = {e.name: e.stat().st_size for e in entries if e.is_file()}
        except FileNotFoundError:
            return {}
        return {name: size for name, size in sizes.items() if not name.startswith(".")}

    def tree(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        # not fsspec's `find`, which treats an unreadable folder as empty
        for place, _, names in os.walk(self.path(), onerror=_raise_unless_absent):
            for path in (f"{place}/{name}" for name in names):
                with contextlib.suppress(FileNotFoundError):
                    sizes[path] = os.stat(path).st_size
        return self._below(sizes)

    def mapped(self, name: str) -> Any:
        return pa.memory_map(self.path(name)).read_buffer()

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self.fs.open(self.path(name), "rb"))

    def each(self, action: Callable[[A], T], items: Iterable[A]) -> list[T]:
        return list(map(action, items))

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[HashingSink]:
        target, temporary = self.path(name), self._part()
        with room_for(target):
            self._make(os.path.dirname(target))
            os.makedirs(self.path(SCRATCH), exist_ok=True)
            try:
                with open(temporary, "wb") as file:
                    sink = HashingSink(cast(BinaryIO, file))
                    yield sink
                    if self.sync:
                        file.flush()
                        os.fsync(file.fileno())
                os.replace(temporary, target)
                _known(self.url_of(name), self.stamp(name))[:] = [sink.record(0).sha256]
                self._sync_entries(os.path.dirname(target))
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise

    def _make(self, path: str) -> None:
        """Create a local folder and its parents."""
        if not os.path.isdir(path):
            self._make(os.path.dirname(path))
            with contextlib.suppress(FileExistsError):  # another worker created it first
                os.mkdir(path)
            self._sync_entries(os.path.dirname(path))

    def _sync_entries(self, path: str) -> None:
        """Sync the entries of a local folder: syncing a file does not sync its name."""
        if self.sync:
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def remove(self, name: str = "") -> None:
        with contextlib.suppress(FileNotFoundError):
            self.fs.rm(self.path(name), recursive=True)


def _is_local(url: str) -> bool:
    return not stores.is_url(url) or url.partition("://")[0] in ("file", "local")


def _raise_unless_absent(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


@functools.lru_cache(maxsize=1 << 17)  # written or planned, then run: hashed once if unchanged
def _known(url: str, stamp: str) -> list[str]:
    """Return where the SHA-256 of a file that has this stamp is noted: empty until it is known."""
    return []


def _json(value: Any) -> bytes:
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


_SEAL = re.compile(rb'\{\n "sha256": "([0-9a-f]{64})",?')


def unsealed(data: bytes) -> dict[str, Any] | None:
    """Parse what `write_own_json` wrote; None if a byte differs."""
    seal = _SEAL.match(data)
    if seal is None or hashlib.sha256(data[seal.end() :]).hexdigest().encode() != seal[1]:
        return None
    content: dict[str, Any] = json.loads(data)
    del content["sha256"]
    return content


@contextlib.contextmanager
def room_for(place: str) -> Iterator[None]:
    """Raise StoreError with the path if the disk is full; any other error gets the path."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            error.filename = place if error.filename is None else error.filename
            raise
        raise StoreError(
            f"{place}: {error.strerror}; free some space, then run the same command again to resume"
        ) from error


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of a JSON-like value; equal values have equal ones."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
