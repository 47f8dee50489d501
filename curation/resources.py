"""Locate the files that settings name: the user's, and those shipped with the toolkit.

The toolkit's recipes, lists, models and samples are top-level folders in a checkout (`configs/`,
`models/`, `data_samples/`); a wheel carries them inside the package. Paths in recipes reach them as
`builtin:configs/lists/...`. Every setting that names a file or a folder is a `NamedPath`.
"""

import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, SerializationInfo, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from curation.errors import ConfigError

PREFIX = "builtin:"


@functools.cache
def root() -> Path:
    """Return the folder that contains `configs`, `models` and `data_samples`."""
    package = Path(__file__).resolve().parent
    packed = package / "_resources"
    return packed if packed.is_dir() else package.parent


def resolve(path: str) -> str:
    """Return the local path of `builtin:models/x` or a NamedPath; any other path is unchanged.

    Raises ConfigError for a built-in file that does not exist, and for a named one that has changed
    since the run began. Globs are not expanded here.
    """
    if not path.startswith(PREFIX):
        return path.local if isinstance(path, NamedPath) else path
    local = root() / path.removeprefix(PREFIX)
    if "*" not in path and not local.exists():
        raise ConfigError(f"{path}: no such built-in file")
    return str(local)


class NamedPath(str):
    """A file or folder that a setting names; as a string, what the setting says.

    It is searched for in the folder of the recipe and of those it extends, then in the working
    directory, as user code is; `resolve` returns where it is. Its content is part of the
    fingerprint of every stage with the setting, and is sent to workers (`pipelines.named_files`).
    Two are equal only if their contents are: caches never return what an earlier content gave.
    """

    #: What it must be; empty if its reader checks it.
    kind: ClassVar[str] = "file or folder"
    #: Of the files by language in a folder.
    suffix: ClassVar[str] = ""

    #: URL of the folder with a copy for workers, or empty.
    store: str
    #: Where it is searched for before the working directory.
    folders: tuple[str, ...]
    _sent: list[str]

    def __new__(cls, name: str, folders: Sequence[str] = ()) -> Self:
        """Make one of a name, or of what `packed` returned in another process."""
        name, *sent = name.split("\0")
        path = super().__new__(cls, name)
        path.folders, path._sent, path.store = tuple(folders), sent, sent[2] if sent else ""
        return path

    @functools.cached_property
    def place(self) -> str:
        """The absolute path; empty if there is none, for a URL and for a built-in file."""
        if self._sent:
            return self._sent[0]
        if self.startswith(PREFIX) or "://" in self:
            return ""
        found = (os.path.join(folder, self) for folder in (*self.folders, "."))
        return next((os.path.abspath(path) for path in found if os.path.exists(path)), "")

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the content; empty if there is no path."""
        return self._sent[1] if self._sent else self.place and sha256_of_all(self.place)

    @functools.cached_property
    def local(self) -> str:
        """The path on this machine: the name itself if it is a URL, absent, or one from here.

        Raises ConfigError if the content is no longer what was sent.
        """
        if not self._sent or not self.sha256 or sha256_of_all(self.place) == self.sha256:
            is_elsewhere = self.place and self.place != os.path.abspath(self)
            return self.place if is_elsewhere else str(self)
        fetched = self.store and _fetched(self.store, self.sha256, os.path.basename(self.place))
        if fetched and sha256_of_all(fetched) == self.sha256:
            return fetched
        raise ConfigError(
            f"{self}: {self.place} has changed since the run began, or is not on this machine; "
            "run the same command again"
        )

    @property
    def witness(self) -> str:
        """What is hashed for manifests: the path itself; empty if they list it elsewhere."""
        return self

    @property
    def packed(self) -> str:
        """The name with all that other processes need to find the file."""
        parts = [self, self.place, self.sha256, self.store]
        return "\0".join(parts) if self.place else str(self)

    def __eq__(self, other: object) -> bool:
        same = str.__eq__(self, other)
        return self.sha256 == other.sha256 if same and isinstance(other, NamedPath) else same

    def __hash__(self) -> int:
        _ = self.sha256  # a key of a cache stands for the content of now
        return str.__hash__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.packed,)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(
                NamedPath.written, info_arg=True
            ),
        )

    @classmethod
    def _validated(cls, value: Any, info: ValidationInfo) -> Self:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("an empty path" if value == "" else "input should be a valid string")
        if isinstance(value, NamedPath):
            return value if isinstance(value, cls) else cls(value.packed)
        return cls(value, (info.context or {}).get("folders", ()))

    def written(self, info: SerializationInfo) -> Any:
        """Return the name for JSON, or, for another process, what `packed` is."""
        name = self.packed if info.round_trip else str(self)
        return name if info.mode == "json" else self


class NamedFile(NamedPath):
    """A file: not a folder."""

    kind = "file"


class TextFolder(NamedPath):
    """A folder with a list for each language."""

    kind, suffix = "folder", ".txt"


class ArrayFolder(NamedPath):
    """A folder with a model for each language."""

    kind, suffix = "folder", ".npz"


class ModelPath(NamedPath):
    """A model, which its reader checks; manifests list it under what it is for."""

    kind, witness = "", ""


class RunFolder(NamedPath):
    """A finished run, known by its manifests and never copied: workers read it where it is."""

    kind, witness, sha256 = "", "", ""


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of a local file, which is read again only when it has changed."""
    status = os.stat(path)
    stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return _sha256_at(str(path), stamp)


@functools.lru_cache(1 << 16)
def _sha256_at(path: str, stamp: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_below(path: str) -> list[str]:
    """Return the files in a folder, relative and sorted; of a file, one empty name.

    Links are followed. What Python leaves next to modules depends on how they were run: left out.
    """
    from curation import stores  # fsspec; most settings name no folder

    if not os.path.isdir(path):
        return [""]
    found = stores.local_tree(path, lambda folder: os.path.basename(folder) != "__pycache__")
    return sorted(os.path.relpath(name, path) for name, e in found.items() if e["type"] == "file")


def sha256_of_all(path: str) -> str:
    """Return a SHA-256 of a file's content, or of names and contents in a folder.

    Empty if there is neither.
    """
    if os.path.isdir(path):
        inside = [(name, sha256_of(os.path.join(path, name))) for name in files_below(path)]
        return hashlib.sha256(json.dumps(inside).encode()).hexdigest()
    return sha256_of(path) if os.path.isfile(path) else ""


def _fetched(store: str, sha256: str, name: str) -> str:
    """Return the path of a copy from a store, which the processes of a machine share."""
    from curation import stores

    target = Path(tempfile.gettempdir()) / f"curation-files-{os.getuid()}" / sha256
    if sha256_of_all(str(target / name)) != sha256:
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=target.parent))
        system, base = stores.file_system(store)
        stores.persistently(store, lambda: system.get(base, f"{part}/copy", recursive=True))
        with contextlib.suppress(OSError):  # another process was faster
            (part / "copy").rename(target)
        shutil.rmtree(part)
    return str(target / name)
