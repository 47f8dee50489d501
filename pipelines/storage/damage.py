"""Files that differ from what was written or planned: detected on reading, rewritten once.

A worker that detects one leaves a note in its stage's scratch folder and its task undone. After the
step the driver finds the note, on any runner, and reruns the task that wrote the file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
from collections.abc import Iterator

import pyarrow as pa

from curation.errors import InputError, WorkerError
from pipelines.storage.files import SCRATCH, Folder

_NOTES = f"{SCRATCH}/damaged"


class DamagedError(InputError):
    """Files whose content is not what was written, or what was hashed for the plan.

    Attributes:
        files: description of the damage, by URL or path of the file.
    """

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        more = f" (and {len(files) - 1} more)" if len(files) > 1 else ""
        super().__init__(*(f"{file}: {detail}{more}" for file, detail in list(files.items())[:1]))

    def __reduce__(self) -> tuple[type[DamagedError], tuple[dict[str, str]]]:
        return DamagedError, (self.files,)


def damaged(folder: Folder, name: str, detail: str) -> DamagedError:
    """Return the error for one file of a folder."""
    return DamagedError({folder.url_of(name): detail})


def is_damage(error: Exception) -> bool:
    """Return whether a read error is due to the file's content, or to its absence."""
    if isinstance(error, OSError):
        return error.errno in (None, errno.EIO, errno.ENOENT)
    return isinstance(error, pa.ArrowInvalid | EOFError | ValueError)


def check_content(folder: Folder, name: str, sha256: str) -> None:
    """Raise DamagedError unless the file exists with this content."""
    try:
        found = folder.digest(name)
    except FileNotFoundError:
        raise damaged(folder, name, "no such file") from None
    if found != sha256:
        raise damaged(folder, name, "not the bytes that were written")


def note(folder: Folder, error: DamagedError) -> None:
    """Leave a note for the driver, on any runner, of what a task of this folder could not read."""
    for file, detail in error.files.items():
        name = hashlib.sha256(file.encode()).hexdigest()[:24]
        folder.write_own_json(f"{_NOTES}/{name}.json", {"file": file, "detail": detail})


@contextlib.contextmanager
def noticed(folder: Folder) -> Iterator[None]:
    """Raise DamagedError if tasks that ran inside this context left notes."""
    try:
        yield
    except WorkerError as error:
        _raise(folder, error)
        raise
    _raise(folder)


def _raise(folder: Folder, cause: Exception | None = None) -> None:
    notes = folder / _NOTES
    names = notes.names(".json")
    found = [record for record in notes.each(notes.read_own_json, names) if record]
    if names:
        notes.remove()
    if found:
        raise DamagedError({record["file"]: record["detail"] for record in found}) from cause
