"""User code named in a recipe: find it, hash it, and send it to where it runs.

A recipe has `python: "module:name"`, `python: "path/to/file.py:name"`, or the name of an entry
point of an installed package. Files are searched for in the folder of the recipe and of those it
extends, then in the working directory; `module` may be such a file, too (`rules` for `rules.py`).
The source of a file is sent with the settings to other processes and machines, and so are the files
that its arguments name, but nothing else in its folder: code of several files must be a
package installed on the workers.

Such code is trusted like the recipe.
"""

import atexit
import contextlib
import dataclasses
import functools
import gc
import hashlib
import importlib
import importlib.metadata
import importlib.util
import itertools
import linecache
import os
import re
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    SerializationInfo,
    ValidationInfo,
)
from pydantic_core import CoreSchema, core_schema

from curation.config import Settings, nearest
from curation.errors import raising, told
from curation.resources import PREFIX, NamedPath, root
from curation.text.surrogates import everywhere

T = TypeVar("T")

#: Description of the field `files`.
FILES = "arguments that are files or folders; null: strings in `settings` that are a path of one"
#: Most files in a folder that is found without being declared.
_MOST_FILES = 10_000
#: Hidden folders, those above, of installed packages, and of what Python and numba compile.
_NOT_OWN = re.compile(r"\..*|(site|dist)-packages|__pycache__|.*\.(dist|egg)-info")


class Found(NamedTuple):
    """Location and hash of user code."""

    module: str  # module name or file path
    name: str  # name of the function or class in it
    source: str | None  # source of the file; None: the module is imported
    sha256: str  # of the text, and of the version of an installed package


class UserCode:
    """A function or class named in a recipe. It is located on first use.

    Subclasses set the group of entry points that can be given by bare name.
    """

    group: ClassVar[str] = ""
    #: Number of arguments passed in each call.
    positional: ClassVar[int] = 1

    def __init__(
        self, reference: str, folders: Sequence[str] = (), found: Found | None = None
    ) -> None:
        self.reference, self.folders, self._found = reference, tuple(folders), found

    @property
    def found(self) -> Found:
        """The code's location. Raises ValueError if there is none."""
        if self._found is None:
            self._found = _find(self.reference, self.folders, self.group)
        return self._found

    def load(self) -> Any:
        """Return the function or class; a module is executed once per process.

        Raises ValueError if there is none, or its module fails.
        """
        found = self.found
        module = _module(found.module, found.source, found.sha256)
        loaded = getattr(module, found.name, None)
        if not callable(loaded):
            public = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
            what = "is not a function or class" if hasattr(module, found.name) else "is not in it"
            raise ValueError(f"{found.module}: {found.name!r} {what}{nearest(found.name, public)}")
        return loaded

    def __repr__(self) -> str:
        return self.reference

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserCode):
            return NotImplemented
        return (self.reference, self._found) == (other.reference, other._found)

    def __hash__(self) -> int:
        return hash(self.reference)

    def __getstate__(self) -> dict[str, Any]:
        return {"reference": self.reference, "folders": (), "_found": self.found}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(
                _serialized, info_arg=True
            ),
        )

    @classmethod
    def _validated(cls, value: Any, info: ValidationInfo) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, dict) and value.keys() == {"reference", "found"}:  # of `_serialized`
            return cls(value["reference"], (), Found(*value["found"]))
        if not isinstance(value, str) or not value.strip():
            raise ValueError("expected module:name, path/to/file.py:name or an entry point")
        return cls(value.strip(), (info.context or {}).get("folders", ()))


def _serialized(code: UserCode, info: SerializationInfo) -> Any:
    """Return the reference; for another process, also the source."""
    if not info.round_trip:
        return code.reference
    return {"reference": code.reference, "found": list(code.found)}


def _with_paths(given: Any, info: ValidationInfo) -> Any:
    """Return the arguments of code with those in `files`; without `files`, find paths among them.

    Those of another process are as it found them.
    """
    files, folders = info.data.get("files"), (info.context or {}).get("folders", ())

    def found(value: Any) -> Any:
        if not isinstance(value, str) or isinstance(value, NamedPath):
            return value
        if info.context is None:
            return NamedPath(value) if "\0" in value else value
        return value if files is not None else _found(value, folders)

    return (
        everywhere(given, found, keys=False) | (files or {}) if isinstance(given, dict) else given
    )


def _found(name: str, folders: Sequence[str]) -> str:
    """Return a NamedPath if there is a file or folder of this name, else the name.

    Raises ValueError for a folder of very many files.
    """
    path = NamedPath(name, folders)
    if os.path.basename(name.rstrip("/")) in ("", ".", ".."):  # signs rather than paths
        return name
    counts = itertools.accumulate(len(files) for *_, files in os.walk(path.place))
    if any(files > _MOST_FILES for files in counts):
        raise ValueError(
            f"{name!r} is a folder of over {_MOST_FILES:,} files: name it under `files`, "
            "or write `files: {}` if it is meant as a word"
        )
    is_path = os.path.isfile(path.place) or os.path.isdir(path.place) or name.startswith(PREFIX)
    return path if is_path else name


def _written(given: dict[str, Any], info: SerializationInfo) -> Any:
    return everywhere(given, lambda v: v.written(info) if isinstance(v, NamedPath) else v)


#: Arguments of user code by name, after the field `files`.
Arguments = Annotated[dict[str, Any], BeforeValidator(_with_paths), PlainSerializer(_written)]


class CodeSettings(Settings):
    """User code with its arguments; subclasses add the field `python` of their type."""

    files: dict[str, NamedPath] | None = Field(default=None, description=FILES)
    settings: Arguments = Field(
        default={},
        validate_default=True,
        description="arguments of the function by name, or of its class",
    )

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


#: What most settings are: never of a kind that is looked for.
_LEAVES = {str, int, float, bool, type(None)}


def walk(
    settings: Any, key: str, kinds: tuple[type[T], ...], given: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, T, Mapping[str, Any]]]:
    """Yield all objects of some kinds in settings, in order.

    Each comes with its key, which is below `key`, and, if it is user code, its arguments.
    """
    if isinstance(settings, kinds):
        yield key, settings, given or {}
        return
    parts: Iterator[tuple[str, Any]] = iter(())
    if isinstance(settings, BaseModel):
        fields = type(settings).model_fields.items()
        parts = ((f".{field.alias or name}", getattr(settings, name)) for name, field in fields)
    elif dataclasses.is_dataclass(settings):
        parts = ((f".{f.name}", getattr(settings, f.name)) for f in dataclasses.fields(settings))
    elif isinstance(settings, Mapping):
        parts = ((f".{name}", part) for name, part in settings.items())
    elif isinstance(settings, list | tuple):
        parts = ((f"[{i}]", part) for i, part in enumerate(settings))
    for name, part in parts:
        if type(part) not in _LEAVES:
            yield from walk(part, f"{key}{name}", kinds, getattr(settings, "settings", None))


def entry_points(group: str) -> dict[str, importlib.metadata.EntryPoint]:
    """Return the entry points of installed packages in a group, by name."""
    return {entry.name: entry for entry in importlib.metadata.entry_points(group=group)}


def _find(reference: str, folders: Sequence[str], group: str) -> Found:
    place, colon, name = reference.rpartition(":")
    if not colon:
        known = entry_points(group)
        if reference not in known:
            raise ValueError(
                f"{reference!r}: no entry point of {group}{nearest(reference, known)}; expected "
                "module:name or path/to/file.py:name"
            )
        place, _, name = known[reference].value.partition(":")
        return _installed(place, name)
    if not place or not name.isidentifier():
        raise ValueError(f"{reference!r}: expected module:name or path/to/file.py:name")
    file = _file(place, (*folders, "."))
    if file is not None:
        return _of_file(file, place, name)
    if place.endswith(".py"):
        looked = ", ".join(dict.fromkeys([*folders, "the working directory"]))
        raise ValueError(f"{place}: no such file (looked in {looked})")
    return _installed(place, name)


def _file(place: str, folders: Sequence[str]) -> Path | None:
    path = place if place.endswith(".py") else f"{place.replace('.', '/')}.py"
    return next((f for f in (Path(folder) / path for folder in folders) if f.is_file()), None)


def _of_file(file: Path, place: str, name: str) -> Found:
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: can't be read: {error}") from None
    return Found(place, name, source, hashlib.sha256(source.encode()).hexdigest())


def _installed(place: str, name: str) -> Found:
    try:
        spec = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise ValueError(f"no module {place!r}, neither as a file nor installed")
    top = place.partition(".")[0]
    names = sorted({*importlib.metadata.packages_distributions().get(top, [])})
    versions = (f"{known}=={importlib.metadata.version(known)}" for known in names)
    digest = hashlib.sha256(",".join(versions).encode())
    if spec.origin and Path(spec.origin).is_file():
        digest.update(Path(spec.origin).read_bytes())
        for path, file in _of_package(top, names, spec.origin):
            digest.update(f"{path}\0".encode() + file.read_bytes())
    return Found(place, name, None, digest.hexdigest())


def _of_package(top: str, names: Sequence[str], origin: str) -> Iterator[tuple[str, Path]]:
    """Yield the package's modules, unless the version of a distribution stands for them all.

    It does not for an editable one, nor for a folder that is only on the path.
    """
    for name in names:
        distribution = importlib.metadata.distribution(name)
        place = os.path.realpath(str(distribution.locate_file("")))
        path = os.path.relpath(os.path.realpath(origin), place)
        if f"\n{path}," in f"\n{distribution.read_text('RECORD') or ''}":
            return
    spec = importlib.util.find_spec(top)
    for folder in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(folder).rglob("*.py")):
            yield file.relative_to(folder).as_posix(), file


def seek_cycles_at_exit() -> None:
    """Have Python look for cycles when this process ends, after all (`own_process` of pipelines).

    Code that is not the toolkit's may have left files open in a cycle. Only that search closes
    them, and writes what is still in their buffers.
    """
    atexit.unregister(gc.freeze)


@functools.lru_cache(maxsize=64)
def _module(name: str, source: str | None, sha256: str) -> types.ModuleType:
    seek_cycles_at_exit()
    if source is None:
        with raising(lambda error: ValueError(f"{name}: {_told(error)}")):
            return importlib.import_module(name)
    module = types.ModuleType(f"curation_user_{sha256[:16]}")
    module.__file__ = name
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    sys.modules[module.__name__] = module
    try:
        with raising(lambda error: ValueError(f"{name}: {_told(error)}")):
            exec(compile(source, name, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module


forget = _module.cache_clear
_READ = threading.local()


@contextlib.contextmanager
def reading() -> Iterator[set[str]]:
    """Yield the set of files that this thread opens for reading, while it does."""
    _listen()
    _READ.files = files = set[str]()
    try:
        yield files
    finally:
        vars(_READ).pop("files", None)


@functools.cache
def _listen() -> None:
    def note(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and hasattr(_READ, "files") and not isinstance(given[0], int):
            if not (given[2] or 0) & (os.O_WRONLY | os.O_RDWR):
                _READ.files.add(os.path.realpath(os.fsdecode(given[0])))

    sys.addaudithook(note)


def is_own(file: str, folders: Sequence[str]) -> bool:
    """Return whether it is data beside a recipe or in the working directory.

    Code, caches and files of packages are none. Without folders, as in workers, nothing is.
    """
    shipped = (f"{root()}/{name}" for name in ("configs", "models", "data_samples"))
    elsewhere = any(Path(file).is_relative_to(p) for p in (sys.prefix, sys.base_prefix, *shipped))
    if elsewhere or file.endswith(".py") or not os.path.isfile(file):
        return False
    for folder in map(os.path.realpath, (*folders, ".") if folders else ()):
        parts = Path(os.path.relpath(file, folder)).parts
        is_wide = folder in ("/", str(Path.home())) and len(parts) > 1  # anything may lie there
        if not (is_wide or any(_NOT_OWN.fullmatch(part) for part in parts)):
            return True
    return False


def _told(error: BaseException) -> str:
    line = getattr(error, "lineno", None)
    if not line:
        return told(error)
    return f"line {line}: {type(error).__name__}: {getattr(error, 'msg', None) or error}"
