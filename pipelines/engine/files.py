"""Folders on local disks and object stores, written so that a file is either whole or absent."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, TypeVar, cast

from fsspec.implementations.local import LocalFileSystem

from curation import stores
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
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data)
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
    """A folder by local path or fsspec URL. Names inside it use `/` on every system."""

    url: str

    def __post_init__(self) -> None:
        url = self.url.rstrip("/")
        if url.endswith(":") and self.url.startswith(f"{url}//"):
            raise ConfigError(f"{self.url}: names no folder")
        # Workers may have another working directory than the driver.
        object.__setattr__(self, "url", url if stores.is_url(url) else os.path.abspath(url or "/"))

    def __getstate__(self) -> dict[str, Any]:
        # File systems are opened anew elsewhere: by that machine's settings, and without caches.
        return {k: v for k, v in self.__dict__.items() if k != "_fs_path"}

    @property
    def shown(self) -> str:
        """For people: relative to the working directory where that is shorter."""
        if stores.is_url(self.url):
            return self.url
        return min(self.url, os.path.relpath(self.url), key=len)

    @cached_property
    def _fs_path(self) -> tuple[Any, str]:
        fs, path = stores.file_system(self.url)
        return fs, path.rstrip("/") or "/"

    @property
    def fs(self) -> Any:
        return self._fs_path[0]

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, LocalFileSystem)

    def path(self, name: str = "") -> str:
        """Path inside `fs`."""
        base = self._fs_path[1]
        return f"{base}/{name}" if name else base

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.url.rstrip('/')}/{name}")

    def url_of(self, name: str = "") -> str:
        """URL of a file inside, for messages."""
        return f"{self.url}/{name}" if name else self.url

    def _persistently(self, name: str, action: Callable[[str], T]) -> T:
        """Do something with a path; on other file systems than the local one, persistently."""
        path = self.path(name)
        if self.is_local:
            return action(path)
        return stores.persistently(self.url_of(name), lambda: action(path))

    def exists(self, name: str = "") -> bool:
        if self.is_local:
            return os.path.exists(self.path(name))
        return stores.info(self.fs, self.path(name), self.url_of(name)) is not None

    def size(self, name: str) -> int | None:
        """Size in bytes, or None when there is no such file."""
        try:
            if self.is_local:
                return os.stat(self.path(name)).st_size
            return int(self._persistently(name, self.fs.size))
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> str:
        """What changes with a file's content: size and time, or what a store has for these."""
        if self.is_local:
            status = os.stat(self.path(name))
            return f"{status.st_size} {status.st_mtime_ns}"
        return str(self._persistently(name, self.fs.checksum))

    def names(self, suffix: str = "") -> list[str]:
        """Names of the files directly inside, sorted; empty when the folder is absent."""
        return sorted(n for n in self.sizes() if n.endswith(suffix))

    def sizes(self) -> dict[str, int]:
        """Sizes of the files directly inside: one listing, however many files.

        Hidden ones are left out: file managers leave them, a run never does.
        """
        if self.is_local:
            try:
                with os.scandir(self.path()) as entries:
                    sizes = {e.name: e.stat().st_size for e in entries if e.is_file()}
            except FileNotFoundError:
                return {}
        else:
            found = stores.listing(self.fs, self.path(), self.url)
            sizes = {e["name"].rsplit("/", 1)[-1]: e["size"] for e in found if e["type"] == "file"}
        return {name: size for name, size in sizes.items() if not name.startswith(".")}

    def folders(self) -> list[str]:
        """Names of the folders directly inside, sorted, hidden ones left out."""
        found = stores.listing(self.fs, self.path(), self.url)
        inside = (e["name"].rstrip("/") for e in found if e["type"] == "directory")
        names = (name.rpartition("/")[2] for name in inside)
        return sorted(name for name in names if not name.startswith("."))

    def tree(self) -> dict[str, int]:
        """Sizes of all files below, by name relative to this folder, in order of the names."""
        base = self.path()
        if self.is_local:
            found = self.fs.find(base, detail=True)
        else:
            found = stores.tree(self.fs, base, self.url)
        return {p[len(base) :].lstrip("/"): found[p]["size"] for p in sorted(found)}

    def open(self, name: str) -> BinaryIO:
        if self.is_local:
            return cast(BinaryIO, self.fs.open(self.path(name), "rb"))
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

    def read_own_json(self, name: str) -> dict[str, Any]:
        """An object that a run notes for itself, and can do without.

        Empty where it is absent, or broken (as power failures leave files), which the log says.
        """
        try:
            content = json.loads(self.read_bytes(name))
        except FileNotFoundError:
            return {}
        except ValueError:
            content = None
        if not isinstance(content, dict):
            _LOG.warning("%s: damaged, not used: what it said is found out anew", self.url_of(name))
            return {}
        return content

    def each(self, action: Callable[[A], T], items: Iterable[A]) -> list[T]:
        """Do something with files of this folder; results in order. Many at a time if far away."""
        return list(map(action, items) if self.is_local else stores.each(action, items))

    def read_jsons(self, names: Iterable[str]) -> list[Any]:
        """Parsed JSON of many files, in order."""
        return self.each(self.read_json, names)

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[HashingSink]:
        """Write a file whole or not at all.

        On local disks the bytes go to the scratch folder and are renamed at the end. For object
        stores they wait here, in memory or beyond a part's size in a temporary file, until they are
        complete: an upload that fails begins anew. After an exception nothing is left.
        """
        target = self.path(name)
        if not self.is_local:
            temporary = tempfile.gettempdir()
            with room_for(temporary), tempfile.SpooledTemporaryFile(stores.PART_BYTES) as spool:
                sink = HashingSink(cast(BinaryIO, spool))
                yield sink
                stores.write(self.fs, target, self.url_of(name), spool, sink.tell())
            return
        scratch = self.path(SCRATCH)
        temporary = f"{scratch}/{uuid.uuid4().hex}{_PART}"
        with room_for(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.makedirs(scratch, exist_ok=True)
            try:
                with open(temporary, "wb") as file:
                    yield HashingSink(cast(BinaryIO, file))
                os.replace(temporary, target)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise

    def remove_parts(self) -> None:
        """Remove what killed processes had begun to write, which may be much."""
        if self.is_local:
            scratch = self / SCRATCH
            scratch.each(scratch.remove, scratch.names(_PART))

    def write_bytes(self, name: str, data: bytes) -> FileRecord:
        with self.create(name) as sink:
            sink.write(data)
        return sink.record(0)

    def write_json(self, name: str, value: Any) -> None:
        """Canonical JSON: sorted keys, so equal values are equal bytes."""
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
        self.write_bytes(name, text.encode() + b"\n")

    def remove(self, name: str = "") -> None:
        """Remove a file or a whole folder; absent is fine."""
        if not self.is_local:
            stores.remove(self.fs, self.path(name), self.url_of(name))
            return
        with contextlib.suppress(FileNotFoundError):
            self.fs.rm(self.path(name), recursive=True)


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
