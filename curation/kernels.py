"""The cache of compiled kernels: one file per kernel and argument types, found by its name.

A name identifies everything that decides the machine code: the sources of the kernel's module and
of the modules it imports, Python, numba, llvmlite, the processor and the argument types. So no
cached file can be out of date, whatever its modification time, and concurrent compilations don't
interfere. What was compiled for a level of processors serves all that have it: a wheel may bring
such kernels (`hatch_build.py`). (Numba's own cache doesn't notice changes in a kernel called from
another module's kernel, and becomes unreadable when a class moves to another module.) A file begins
with a hash of the rest (XXH3), so that a damaged one is compiled again.
"""

import contextlib
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import itertools
import mmap
import os
import pickle
import re
import sys
import tempfile
import unicodedata
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import xxhash

_P = ParamSpec("_P")
_T = TypeVar("_T")
_PACKAGE = Path(__file__).parent
#: Kernels that a wheel brings.
OF_WHEEL = _PACKAGE / "_resources" / "kernels"
_VARIABLE = "NUMBA_CACHE_DIR"
#: Names the processor, which file names have in another place.
_PROCESSOR = "NUMBA_CPU_NAME"
#: LLVM's names of levels of processors, and what one must have (System V ABI, AMD64 supplement).
_LEVELS = {
    "x86-64-v3": (
        "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3 avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
    ),
    "generic": "",
}
#: Versions of a kernel's sources kept in the cache, for switching between branches.
_KEPT = 2
#: Files kept of one kernel, or of one function's tables.
_MOST = 24
#: Bytes of a line of a processor's cache.
_LINE = 64
#: Packages besides Python that decide what `kept` keeps.
_TABLES_BY = ("datasketch", "regex")
SUFFIX = ".kernel"
_SUM = 16  # bytes of the hash at the beginning of a file
#: Top-level imports: what a function imports when it runs can't be part of machine code.
_IMPORT = re.compile(r"\n(?:from|import) ((?:curation|models)\b[\w.]*)(?: import (\([^)]*\)|.*))?")


@functools.cache
def sources_stamp(source: Path) -> str:
    """Return a digest of a module, the modules of the toolkit that it imports, and the compiler."""
    digest = hashlib.sha256(repr(software()).encode())
    for path in sorted(_closure(source)):
        digest.update(_read(path)[0])
    return digest.hexdigest()[:16]


@functools.cache
def software() -> dict[str, str]:
    """Return what decides machine code besides sources: versions and numba's settings."""
    found = {name: importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")}
    found["Python"] = importlib.machinery.EXTENSION_SUFFIXES[0].split(".")[1]
    left_out = (_VARIABLE, _PROCESSOR, "NUMBA_CPU_FEATURES")
    given = {n: v for n, v in os.environ.items() if n.startswith("NUMBA_") and n not in left_out}
    return found | dict(sorted(given.items()))


def processor() -> str:
    """Return the name of the processor that is compiled for."""
    from llvmlite import binding

    return os.environ.get(_PROCESSOR) or str(binding.get_host_cpu_name())


@functools.cache
def levels() -> tuple[str, ...]:
    """Return the levels that this processor has, the highest first.

    None if another processor is named, or if a wheel's kernels gave wrong answers (`refuse`).
    """
    from llvmlite import binding

    if os.environ.get(_PROCESSOR) or read_kept(_refusal()):
        return ()
    has = binding.get_host_cpu_features()
    return tuple(n for n, needed in _LEVELS.items() if all(map(has.get, needed.split())))


def refuse() -> None:
    """Use only kernels that were compiled for this very processor from now on."""
    keep(_refusal(), b"refused")
    levels.cache_clear()


def _refusal() -> str:
    return f"refused.{processor().replace('-', '_')}-{sources_stamp(Path(__file__))}-all{SUFFIX}"


def _closure(source: Path) -> set[Path]:
    """Return the module and all modules of the toolkit that it imports, directly or indirectly."""
    found: set[Path] = set()
    waiting = {source}
    while waiting:
        found |= waiting
        waiting = {path for read in waiting for path in _read(read)[1]} - found
    return found


@functools.cache
def _read(source: Path) -> tuple[bytes, frozenset[Path]]:
    """Return a module's SHA-256, and which modules of the toolkit it imports."""
    content = source.read_bytes()
    paths: set[Path | None] = set()
    for base, names in _IMPORT.findall("\n" + content.decode()):
        paths.add(found := source_of(base))
        if found is None or found.stem == "__init__":  # else what it names are no modules
            listed = re.sub(r"#.*|[()]", "", names).split(",")
            paths |= {source_of(f"{base}.{name.split()[0]}") for name in listed if name.strip()}
    return hashlib.sha256(content).digest(), frozenset(path for path in paths if path)


@functools.cache
def source_of(module: str) -> Path | None:
    """Return the file of one of the toolkit's modules; None if there is no such module."""
    path = _PACKAGE.parent.joinpath(*module.split("."))
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@functools.cache
def places() -> tuple[Path, ...]:
    """Return the folders searched for kernels; writable ones come first.

    `NUMBA_CACHE_DIR` sets one. Otherwise it is the toolkit's own folder, the user's cache or, if
    neither is writable, a temporary one. A cache is code: a folder created by another user in a
    world-writable place is not used.
    """
    given = os.environ.get(_VARIABLE)
    if given:
        return (Path(given) / "curation",)
    usual = [_PACKAGE / "__pycache__" / "kernels", _of_user() / "curation" / "kernels"]
    if not any(map(_writable, usual)):
        return (_temporary(), *usual)
    return tuple(sorted(usual, key=lambda place: not _writable(place)))


def read_kept(name: str) -> memoryview | None:
    """Return the content of a file; None if it is missing or damaged.

    It is in memory that processes share until they write to it.
    """
    for place in (*places(), OF_WHEEL):
        with contextlib.suppress(OSError, ValueError), open(place / name, "rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
            if xxhash.xxh3_128_digest(data[_SUM:]) == data[:_SUM]:
                return data[_SUM:]
    return None


def keep(name: str, content: bytes) -> None:
    """Write a file to the first writable folder."""
    for place in places():
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            part = place / f"{uuid.uuid4().hex}.part"
            try:
                part.write_bytes(xxhash.xxh3_128_digest(content) + content)
                part.replace(place / name)
            finally:
                part.unlink(missing_ok=True)
            _forget(place, name)
            return


def kept(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Keep in the cache what a function returns: tables that take long to build.

    Its arguments are plain values, which `repr` identifies, and paths of files, which their content
    does.
    """
    from curation.resources import sha256_of

    source = Path(function.__code__.co_filename)

    @functools.wraps(function)
    def found(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            plain = [sha256_of(value) if isinstance(value, Path) else value for value in args]
        except OSError:
            return function(*args, **kwargs)  # says which file it can't read
        given = repr((plain, kwargs, unicodedata.unidata_version, _versions()))
        name = f"{function.__module__}.{function.__qualname__}-{sources_stamp(source)}"
        name += f"-{hashlib.sha256(given.encode()).hexdigest()[:16]}{SUFFIX}"
        if (content := read_kept(name)) is not None:
            with contextlib.suppress(Exception):  # by another build of a library
                return _unpacked(content)  # type: ignore[no-any-return]
        made = function(*args, **kwargs)
        keep(name, _packed(made))
        return made

    return found


def _packed(value: object) -> bytes:
    """Return a pickle behind the arrays in it; in the file each is at the beginning of a line of
    the processor's cache."""
    arrays = list[pickle.PickleBuffer]()
    stream = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    raw = [*map(bytes, arrays)]
    index = pickle.dumps(([*map(len, raw)], stream))
    padded = [array + bytes(-len(array) % _LINE) for array in raw]
    return b"".join([bytes(_LINE - _SUM), *padded, index, len(index).to_bytes(8, "little")])


def _unpacked(content: memoryview) -> Any:
    """Return the value, whose arrays are views of the content."""
    sizes, stream = pickle.loads(content[-8 - int.from_bytes(content[-8:], "little") : -8])
    begins = itertools.accumulate((size + -size % _LINE for size in sizes), initial=_LINE - _SUM)
    arrays = [content[begin : begin + size] for begin, size in zip(begins, sizes, strict=False)]
    return pickle.loads(stream, buffers=arrays)


@functools.cache
def _versions() -> tuple[str, ...]:
    return tuple(importlib.metadata.version(name) for name in _TABLES_BY)


def _forget(place: Path, name: str) -> None:
    """Remove files of the same name: from older sources, and the oldest of many."""
    prefix, stamp, _ = name.rsplit("-", 2)
    times: dict[str, float] = {}
    changed: dict[Path, float] = {}
    files = [(path, path.name.split("-")[-2]) for path in place.glob(f"{prefix}-*-*{SUFFIX}")]
    for path, state in files:
        with contextlib.suppress(OSError):
            changed[path] = path.stat().st_mtime
            times[state] = max(times.get(state, 0.0), changed[path])
    kept = {stamp, *sorted(times, key=lambda state: times[state])[-_KEPT:]}
    newest = sorted(changed, key=lambda path: changed[path])[-_MOST:]
    for path, state in files:
        if state not in kept or path not in newest:
            path.unlink(missing_ok=True)


def _temporary() -> Path:
    folder = Path(tempfile.gettempdir()) / f"curation-kernels-{os.getuid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
            return folder
    return Path(tempfile.mkdtemp(prefix="curation-kernels-"))


def _of_user() -> Path:
    caches = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    # Not Path.expanduser, which raises for a user without a home.
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(caches))


def _writable(folder: Path) -> bool:
    """Return whether files can be written to a folder that may not exist yet."""
    there = next(p for p in (folder, *folder.parents) if p.exists())
    return os.access(there, os.W_OK | os.X_OK)
