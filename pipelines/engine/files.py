"""Folders on local disks and object stores, written so that a file is either whole or absent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem

from curation.errors import InputError

#: Scratch folder inside a stage folder: unfinished files and what only the stage itself reads.
SCRATCH = ".work"


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
        # Workers may have another working directory than the driver.
        if "://" not in self.url:
            object.__setattr__(self, "url", os.path.abspath(self.url))

    @property
    def shown(self) -> str:
        """For people: relative to the working directory where that is shorter."""
        if "://" in self.url:
            return self.url
        return min(self.url, os.path.relpath(self.url), key=len)

    @cached_property
    def _fs_path(self) -> tuple[Any, str]:
        fs, path = fsspec.core.url_to_fs(self.url)
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

    def exists(self, name: str = "") -> bool:
        return bool(self.fs.exists(self.path(name)))

    def size(self, name: str) -> int | None:
        """Size in bytes, or None when there is no such file."""
        if self.is_local:
            try:
                return os.stat(self.path(name)).st_size
            except FileNotFoundError:
                return None
        try:
            return int(self.fs.size(self.path(name)))
        except FileNotFoundError:
            return None

    def names(self, suffix: str = "") -> list[str]:
        """Names of the files directly inside, sorted; empty when the folder is absent."""
        try:
            entries = self.fs.ls(self.path(), detail=True)
        except FileNotFoundError:
            return []
        found = [e["name"].rsplit("/", 1)[-1] for e in entries if e["type"] == "file"]
        return sorted(n for n in found if n.endswith(suffix))

    def sizes(self) -> dict[str, int]:
        """Sizes of the files directly inside: one listing, however many files."""
        try:
            entries = self.fs.ls(self.path(), detail=True, refresh=True)
        except TypeError:
            entries = self.fs.ls(self.path(), detail=True)
        except FileNotFoundError:
            return {}
        return {e["name"].rsplit("/", 1)[-1]: e["size"] for e in entries if e["type"] == "file"}

    def find(self) -> list[str]:
        """Names of all files below, relative to this folder, sorted."""
        base = self.path()
        return sorted(str(p)[len(base) :].lstrip("/") for p in self.fs.find(base))

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self.fs.open(self.path(name), "rb"))

    def read_bytes(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """Bytes of a file from `start` to before `end`, fewer where the file ends sooner."""
        return cast(bytes, self.fs.cat_file(self.path(name), start or None, end))

    def read_json(self, name: str) -> Any:
        """Parsed JSON. Raises InputError with the file's name when it is absent or broken."""
        try:
            return json.loads(self.read_bytes(name))
        except FileNotFoundError:
            raise InputError(f"{self.url}/{name}: no such file") from None
        except ValueError as error:
            raise InputError(f"{self.url}/{name}: not valid JSON ({error})") from None

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[HashingSink]:
        """Write a file whole or not at all.

        On local disks the bytes go to the scratch folder and are renamed at the end; on object
        stores an object appears only when it is closed. After an exception nothing is left.
        """
        target = self.path(name)
        if not self.is_local:
            file = self.fs.open(target, "wb")
            try:
                yield HashingSink(file)
            except BaseException:
                with contextlib.suppress(Exception):
                    file.discard()
                raise
            file.close()
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        scratch = self.path(SCRATCH)
        os.makedirs(scratch, exist_ok=True)
        temporary = f"{scratch}/{uuid.uuid4().hex}.part"
        try:
            with open(temporary, "wb") as file:
                yield HashingSink(cast(BinaryIO, file))
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

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
        with contextlib.suppress(FileNotFoundError):
            self.fs.rm(self.path(name), recursive=True)


def canonical_json(value: Any) -> str:
    """One spelling for equal values; the base of every fingerprint."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fingerprint(value: Any) -> str:
    """sha256 of a JSON-like value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
