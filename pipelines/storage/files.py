"""Folders on local disks and object stores, written so that a file is either whole or absent."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import logging
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO, ClassVar, Self, TypeVar, cast

import pyarrow as pa

from curation import stores
from curation.credentials import redact
from curation.errors import ConfigError, InputError, StoreError

A = TypeVar("A")
T = TypeVar("T")

_LOG = logging.getLogger(__name__)

#: Scratch folder inside a stage folder: unfinished files and what only the stage itself reads.
SCRATCH = ".work"


#: Ends the name of a file in it that is being written; a killed process leaves such files.
_PART = ".part"


@dataclass(frozen=True)
class FileRecord:
    """What a manifest says of one file."""

    rows: int
    bytes: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "bytes": self.bytes, "sha256": self.sha256}


class HashingSink:
    """A binary file that is written once from start to end, and hashed on the way."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._size = 0
        self.closed = self._abandoned = False

    def abandon(self) -> None:
        """Take no notice of what is still written: writers end their files when collected."""
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

    def flush(self) -> None:
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True  # the folder closes the file beneath, once it is complete

    def record(self, rows: int) -> FileRecord:
        return FileRecord(rows, self._size, self._hash.hexdigest())


@dataclass(frozen=True)
class Folder:
    """A folder by local path or fsspec URL. Names inside it use `/` on every system.

    What is written here is what object stores need; of a folder on this machine's disks the class
    makes a `LocalFolder`. With `sync`, files on local disks and their folders are on the disk, and
    not only in its cache, before `create` ends.
    """

    url: str
    sync: bool = field(default=True, compare=False)

    is_local: ClassVar[bool] = False

    def __new__(cls, url: str, *others: Any, **named: Any) -> Self:
        return super().__new__(LocalFolder if cls is Folder and _is_local(url) else cls)  # type: ignore[return-value]

    def __getnewargs__(self) -> tuple[str]:
        return (self.url,)

    def __post_init__(self) -> None:
        url = self.url.rstrip("/")
        if url.endswith(":") and self.url.startswith(f"{url}//"):
            raise ConfigError(f"{self.url}: names no folder")
        # Workers may have another working directory than the driver.
        object.__setattr__(self, "url", url if stores.is_url(url) else os.path.abspath(url or "/"))

    def __getstate__(self) -> dict[str, Any]:
        # File systems are opened again elsewhere: by that machine's settings, and without caches.
        return {k: v for k, v in self.__dict__.items() if k != "_fs_path"}

    @property
    def shown(self) -> str:
        """For people: relative to the working directory where that is shorter."""
        if stores.is_url(self.url):
            return redact(self.url)
        return min(self.url, os.path.relpath(self.url), key=len)

    @cached_property
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
        """URL of a file inside, for messages."""
        return f"{self.url}/{name}" if name else self.url

    def _persistently(self, name: str, action: Callable[[str], T]) -> T:
        """Do something with a path, again while its failure may pass."""
        return stores.persistently(self.url_of(name), lambda: action(self.path(name)))

    def exists(self, name: str = "") -> bool:
        return stores.info(self.fs, self.path(name), self.url_of(name)) is not None

    def size(self, name: str) -> int | None:
        """Size in bytes, or None when there is no such file."""
        try:
            return int(self._persistently(name, self.fs.size))
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> str:
        """What changes with a file's content: size and times, or what a store has for these."""
        return str(self._persistently(name, self.fs.checksum))

    def digest(self, name: str) -> str:
        """SHA-256 of a file's content, read once as long as the file stays as it is."""
        return _digest(self, name, self.stamp(name))

    def holds(
        self, files: Mapping[str, dict[str, Any]], witness: str, sizes: Mapping[str, int] | None
    ) -> bool:
        """Whether files are here as `witness` names them, which was written after them.

        Looks at sizes (`sizes` lists them; None: not listed yet) and, on local disks, at the
        content of what changed after the witness was written. A file that is not what was written
        is named in the log, and removed.
        """
        found = self.tree() if sizes is None else sizes
        return self._removed([n for n, f in files.items() if found.get(n) != f["bytes"]])

    def _removed(self, wrong: Sequence[str]) -> bool:
        """Remove files that are not what was written; whether there are none."""
        for name in wrong:
            if self.exists(name):
                _LOG.warning("%s: not the bytes that were written; made again", self.url_of(name))
                self.remove(name)
        return not wrong

    def names(self, suffix: str = "") -> list[str]:
        """Names of the files directly inside, sorted; empty when the folder is absent."""
        return sorted(n for n in self.sizes() if n.endswith(suffix))

    def sizes(self) -> dict[str, int]:
        """Sizes of the files directly inside: one listing, however many files.

        Hidden ones are left out: file managers leave them, a run never does.
        """
        return {name: e["size"] for name, e in self._listing("file").items()}

    def folders(self) -> list[str]:
        """Names of the folders directly inside, sorted, hidden ones left out."""
        return sorted(self._listing("directory"))

    def _listing(self, kind: str) -> dict[str, dict[str, Any]]:
        found = stores.listing(self.fs, self.path(), self.url)
        named = {e["name"].rstrip("/").rpartition("/")[2]: e for e in found if e["type"] == kind}
        return {name: entry for name, entry in named.items() if not name.startswith(".")}

    def tree(self) -> dict[str, int]:
        """Sizes of all files below, by name relative to this folder, in order of the names."""
        found = stores.tree(self.fs, self.path(), self.url)
        return self._below({path: facts["size"] for path, facts in found.items()})

    def _below(self, sizes: Mapping[str, int]) -> dict[str, int]:
        base = len(self.path())
        return {path[base:].lstrip("/"): sizes[path] for path in sorted(sizes)}

    def mapped(self, name: str) -> Any:
        """All of a file as an Arrow buffer, of which only what is used is read; None in stores."""
        return None

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, stores.open_url(self.url_of(name)))

    def read_bytes(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """Bytes of a file from `start` to before `end`, fewer where the file ends sooner."""
        return self._persistently(
            name, lambda path: cast(bytes, self.fs.cat_file(path, start=start or None, end=end))
        )

    def read_json(self, name: str) -> Any:
        """Parsed JSON. Raises InputError with the file's name when it is absent or broken."""
        try:
            return json.loads(self.read_bytes(name))
        except FileNotFoundError:
            raise InputError(f"{self.url}/{name}: no such file") from None
        except ValueError as error:
            raise InputError(f"{self.url}/{name}: not valid JSON ({error})") from None

    def write_own_json(self, name: str, value: dict[str, Any]) -> FileRecord:
        """Canonical JSON that begins with the SHA-256 of all that follows it."""
        rest = _json(value)[1:] if value else b"\n}\n"
        digest = hashlib.sha256(rest).hexdigest()
        comma = b"," if value else b""
        return self.write_bytes(name, f'{{\n "sha256": "{digest}"'.encode() + comma + rest)

    def read_own_json(self, name: str) -> dict[str, Any]:
        """An object that `write_own_json` wrote, and that a run can do without.

        Empty where it is absent, or damaged (its hash is another), which the log says.
        """
        try:
            data = self.read_bytes(name)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        content = unsealed(data)
        if content is None:
            _LOG.warning(
                "%s: damaged, not used: its content is computed again", redact(self.url_of(name))
            )
            return {}
        return content

    def each(self, action: Callable[[A], T], items: Iterable[A]) -> list[T]:
        """Do something with files of this folder; results in order. Many at a time if far away."""
        return list(stores.each(action, items))

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[HashingSink]:
        """Write a file whole or not at all.

        On local disks the bytes go to the scratch folder and are renamed at the end. For object
        stores they wait here, in memory or beyond a part's size in a temporary file, until they are
        complete: an upload that fails begins again. After an exception nothing is left.
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
        """Path for a file that is being written."""
        return self.path(f"{SCRATCH}/{uuid.uuid4().hex}{_PART}")

    def remove_parts(self) -> None:
        """Remove what killed processes had begun to write, which may be much."""
        scratch = self / SCRATCH
        scratch.each(scratch.remove, scratch.names(_PART))

    def write_bytes(self, name: str, data: bytes) -> FileRecord:
        with self.create(name) as sink:
            sink.write(data)
        return sink.record(0)

    def write_json(self, name: str, value: Any) -> None:
        """Canonical JSON: sorted keys, so equal values are equal bytes."""
        self.write_bytes(name, _json(value))

    def remove(self, name: str = "") -> None:
        """Remove a file or a whole folder; absent is fine."""
        stores.remove(self.fs, self.path(name), self.url_of(name))


class LocalFolder(Folder):
    """A folder on this machine's disks."""

    is_local = True

    def _persistently(self, name: str, action: Callable[[str], T]) -> T:
        return action(self.path(name))

    def exists(self, name: str = "") -> bool:
        return os.path.exists(self.path(name))

    def size(self, name: str) -> int | None:
        try:
            return os.stat(self.path(name)).st_size
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> str:
        status = os.stat(self.path(name))
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        return f"{status.st_size} {status.st_ino} {times}"

    def holds(
        self, files: Mapping[str, dict[str, Any]], witness: str, sizes: Mapping[str, int] | None
    ) -> bool:
        try:
            since = os.stat(self.path(witness)).st_ctime_ns
        except FileNotFoundError:
            return False
        return self._removed([n for n, f in files.items() if not self._is_as_named(n, f, since)])

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
        # not fsspec's `find`, to which a folder that can't be read is an empty one
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
                    yield HashingSink(cast(BinaryIO, file))
                    if self.sync:
                        file.flush()
                        os.fsync(file.fileno())
                os.replace(temporary, target)
                self._sync_entries(os.path.dirname(target))
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise

    def _make(self, path: str) -> None:
        """Make a local folder and those above it."""
        if not os.path.isdir(path):
            self._make(os.path.dirname(path))
            with contextlib.suppress(FileExistsError):  # another worker was faster
                os.mkdir(path)
            self._sync_entries(os.path.dirname(path))

    def _sync_entries(self, path: str) -> None:
        """Bring what a local folder lists to the disk: a file's own sync leaves its name out."""
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


@functools.lru_cache(maxsize=1 << 17)  # planned, then run: a file is read once as long as it stays
def _digest(folder: Folder, name: str, stamp: str) -> str:
    """SHA-256 of a file that has this stamp."""
    with folder.open(name) as handle:
        return hashlib.file_digest(cast(Any, handle), "sha256").hexdigest()


def _json(value: Any) -> bytes:
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


_SEAL = re.compile(rb'\{\n "sha256": "([0-9a-f]{64})",?')


def unsealed(data: bytes) -> dict[str, Any] | None:
    """What `write_own_json` wrote; None where a byte is another."""
    seal = _SEAL.match(data)
    if seal is None or hashlib.sha256(data[seal.end() :]).hexdigest().encode() != seal[1]:
        return None
    content: dict[str, Any] = json.loads(data)
    del content["sha256"]
    return content


@contextlib.contextmanager
def room_for(place: str) -> Iterator[None]:
    """Raises StoreError, with the place, where a disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StoreError(
            f"{place}: {error.strerror}; make room, and the same command goes on from here"
        ) from error


def canonical_json(value: Any) -> str:
    """One spelling for equal values; the base of every fingerprint."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fingerprint(value: Any) -> str:
    """sha256 of a JSON-like value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
