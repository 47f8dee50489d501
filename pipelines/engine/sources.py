"""Raw input files of the first stage: fingerprints of their content, and shards made of them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import xxhash

from curation import stores
from curation.errors import InputError
from curation.readers import InputFile
from pipelines.engine.damage import DamagedError
from pipelines.engine.files import SCRATCH, Folder
from pipelines.engine.manifest import TIMINGS

#: Hashes of the input files, and by what they are known again without being read, for resumed runs.
KNOWN_INPUTS = f"{SCRATCH}/inputs.json"

_CHANGED = "changed since it was hashed"
_CHUNK = 4 << 20
#: Files smaller than this share a shard; larger ones have their own.
_GROUP_BELOW = 1 << 20
#: One name in this many ends a group, whatever stands before it: adding a file changes one group.
_GROUP_CUT = 256
#: A group is also cut when it reaches this many bytes.
_GROUP_BYTES = 32 << 20


@dataclass(frozen=True)
class SourceShard:
    """Input files that become one shard, in order."""

    name: str
    files: tuple[tuple[str, str], ...]  # (path, name)
    size: int


def content_fingerprints(files: Sequence[InputFile], folder: Folder) -> dict[str, str]:
    """Hash of every file's content, by name.

    A local file whose size, inode and times of modification and of change are as in an earlier run
    is not read again: no program can set the last of them. An object's size and entity tag, as
    listed, stand for its content.
    """
    known = _known_fingerprints(folder)
    found: dict[str, list[Any]] = {}

    def one(file: InputFile) -> None:
        if stores.is_url(file.path):
            found[file.name] = [f"{file.size} {file.version or _checksum(file.path)}"]
            return
        state = _state(file.path)
        old = known.get(file.name)
        if old and old[1:] == state:
            found[file.name] = old
        else:
            found[file.name] = [_content_hash(file.path), *state]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, files))
    ordered = {name: found[name] for name in sorted(found)}
    folder.write_own_json(KNOWN_INPUTS, {"inputs": ordered})
    return {name: entry[0] for name, entry in ordered.items()}


def _checksum(url: str) -> str:
    system, path = stores.file_system(url)
    return str(stores.persistently(url, lambda: system.checksum(path)))


@contextlib.contextmanager
def as_planned(path: str, fingerprint: str) -> Iterator[None]:
    """Around the reading of an input file: its content is what was hashed for the plan, and stays.

    Raises DamagedError where it is not.
    """
    before = _state(path)
    if stores.is_url(path):
        found = f"{before[0]} {before[1] or _checksum(path)}"
    else:
        found = _content_hash(path)
    if found != fingerprint:
        raise DamagedError({path: _CHANGED})
    try:
        yield
    except InputError as error:
        if _state(path) != before:
            raise DamagedError({path: _CHANGED}) from error
        raise
    if _state(path) != before:
        raise DamagedError({path: _CHANGED})


def _state(path: str) -> list[Any]:
    """What changes with the content of a file or object. Raises InputError where there is none."""
    if not stores.is_url(path):
        try:
            facts = os.stat(path)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        return [facts.st_size, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns]
    system, place = stores.file_system(path)
    found = stores.info(system, place, path)
    if found is None:
        raise InputError(f"{path}: no such object")
    return [found.get("size"), stores.version(found)]


def _content_hash(path: str) -> str:
    digest = xxhash.xxh3_128()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    return digest.hexdigest()


def _known_fingerprints(folder: Folder) -> dict[str, list[Any]]:
    known: dict[str, list[Any]] = {}
    for name in (TIMINGS, KNOWN_INPUTS):
        known |= folder.read_own_json(name).get("inputs", {})
    return known


def source_shards(files: Sequence[InputFile]) -> list[SourceShard]:
    """Plan shards: one per large file, groups of neighbouring small files.

    Where a group ends depends on the names alone (and a size limit), so that a file that comes or
    goes changes its own group and leaves the others as they are.
    """
    shards: list[SourceShard] = []
    group: list[InputFile] = []

    def close() -> None:
        if group:
            shards.append(_shard(group, grouped=len(group) > 1))
            group.clear()

    for file in sorted(files, key=lambda f: f.name):
        if file.size >= _GROUP_BELOW:
            shards.append(_shard([file], grouped=False))
            continue
        group.append(file)
        ends = xxhash.xxh64_intdigest(file.name.encode()) % _GROUP_CUT == 0
        if ends or sum(f.size for f in group) >= _GROUP_BYTES:
            close()
    close()
    return sorted(shards, key=lambda s: s.name)


def _shard(files: Sequence[InputFile], grouped: bool) -> SourceShard:
    first = files[0].name
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", first.rsplit("/", 1)[-1])[:80].strip("._") or "input"
    name = f"{stem}{'-and-more' if grouped else ''}-{xxhash.xxh32_hexdigest(first.encode())}"
    places = tuple((_absolute(f.path), f.name) for f in files)
    return SourceShard(name, places, sum(f.size for f in files))


def _absolute(path: str) -> str:
    return path if stores.is_url(path) else os.path.abspath(path)
