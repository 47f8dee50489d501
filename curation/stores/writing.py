"""Writing and removing: files are whole or not there at all."""

from __future__ import annotations

import contextlib
import shutil
from typing import IO, Any

from fsspec.asyn import AsyncFileSystem

from curation.errors import StoreError
from curation.stores import persist
from curation.stores.listing import tree
from curation.stores.persist import persistently
from curation.stores.systems import info, protocols

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
