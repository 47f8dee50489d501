"""Bytes of one input file, by offset, on any file system."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import IO, Any, ClassVar

from curation.errors import InputError
from curation.resources import resolve

HEAD = 1 << 13  # bytes needed to detect the format


class RawFile:
    """Random access to a file that is mostly read forwards: seeks only when it has to.

    Raises InputError when the file can't be opened or read, StoreError when a file system away
    from this machine fails for good: that must never pass for damage of the file.
    """

    #: Bytes that this process has read of files by `open`: how far a task is. What is read again,
    #: as beginnings are to tell formats, counts once.
    fetched: ClassVar[int] = 0

    def __init__(self, handle: IO[bytes] | Any, name: str, counts: bool = False) -> None:
        self.name = name
        self.handle = handle
        self._at = 0
        self._seen = range(0)  # what was last read without a gap
        self._counts = counts

    @functools.cached_property
    def head(self) -> bytes:
        """The first bytes, which tell the format."""
        return self.fetch(0, HEAD)

    @functools.cached_property
    def size(self) -> int:
        """Bytes of the file."""
        try:
            self._at = self.handle.seek(0, os.SEEK_END)
        except (OSError, ValueError) as error:
            raise InputError(f"{self.name}: its size can't be read: {error}") from error
        return self._at

    @classmethod
    def open(cls, path: str) -> RawFile:
        """Open a local path, a `builtin:` path or any URL that fsspec knows."""
        from curation.stores import is_url, open_url  # fsspec; a page in hand needs none

        local = resolve(path)
        try:
            if not is_url(local):
                return cls(Path(local).open("rb", buffering=0), path, counts=True)
            return cls(open_url(local), path, counts=True)
        except (OSError, ValueError, ImportError) as error:
            raise InputError(f"{path}: can't be opened: {error}") from error

    def fetch(self, offset: int, size: int) -> bytes:
        """`size` bytes at `offset`, fewer only at the end of the file."""
        try:
            if offset != self._at:
                self.handle.seek(offset)
                self._at = offset
            parts = []
            while size > 0:
                part = self.handle.read(size)
                if not part:
                    break
                parts.append(part)
                size -= len(part)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{self.name}: can't be read at byte {offset}: {error}") from error
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._at += len(data)
        if self._counts:
            if not self._seen.start <= offset <= self._seen.stop:
                self._seen = range(offset, offset)
            RawFile.fetched += max(0, self._at - self._seen.stop)
            self._seen = range(self._seen.start, max(self._seen.stop, self._at))
        return data

    def __enter__(self) -> RawFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.handle.close()
