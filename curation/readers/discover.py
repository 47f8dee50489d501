"""From patterns to input files with names that don't change when the data moves."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from curation import stores
from curation.errors import InputError
from curation.resources import resolve

_GLOB = re.compile(r"[*?\[]")
_SUFFIX = re.compile(
    r"\.(warc|arc|wet|wat|wacz|parquet|jsonl|ndjson|json|html|htm|xhtml|txt)(\.(gz|zst|lz4|bz2|xz))?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read. `name` is its path below the fixed part of the pattern that found it."""

    path: str
    name: str
    size: int
    version: str = ""  # of an object: what its store says of its content, as it was listed


def discover(patterns: Sequence[str]) -> list[InputFile]:
    """Files of all patterns, sorted by name, each path once.

    A pattern is a file, a folder (searched recursively for known suffixes, hidden ones left out)
    or a glob (`*`, `?`, `[...]`, `**`), local or as a URL of fsspec. Files of the same name from
    different folders get so many of their parent folders before their names that these differ.

    Raises InputError, naming the pattern, when it can't be listed or nothing matches.
    """
    found: dict[str, InputFile] = {}
    for pattern in patterns:
        matches = _match(pattern)
        if not matches:
            raise InputError(f"{pattern}: no input file matches")
        for file in matches:
            found.setdefault(file.path, file)
    return sorted(_distinct(list(found.values())), key=lambda file: (file.name, file.path))


def _match(pattern: str) -> list[InputFile]:
    local = resolve(pattern)
    if "://" in local or "::" in local:
        return _remote_match(local)
    path = Path(local).absolute()
    try:
        system, place = stores.file_system(str(path))
        wild = _GLOB.search(place)
        if wild:
            base = place[: wild.start()].rpartition("/")[0]
            infos = system.glob(place, detail=True).values()
        elif path.is_dir():
            base, infos = place, system.find(place, detail=True).values()
            infos = [info for info in infos if _known(info["name"], base)]
        elif path.exists():
            base, infos = place.rpartition("/")[0], [system.info(place)]
        else:
            return []
    except (OSError, ValueError) as error:
        raise InputError(f"{pattern}: can't be listed: {error}") from error
    files = [info for info in infos if info["type"] == "file"]
    return [_input_file(info["name"], info, base) for info in files]


def _remote_match(url: str) -> list[InputFile]:
    try:
        system, path = stores.file_system(url)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{url}: can't be listed: {error}") from error
    wild = _GLOB.search(path)
    if wild:
        base = path[: wild.start()].rpartition("/")[0]
        found = stores.glob(system, path, url)
    else:
        info = stores.info(system, path, url)
        if info is None:
            return []
        if info["type"] == "file":
            base, found = path.rpartition("/")[0], {info["name"]: info}
        else:
            base = path.rstrip("/")
            files = stores.tree(system, path, url)
            found = {name: info for name, info in files.items() if _known(name, base)}
    return [_input_file(system.unstrip_protocol(p), found[p], base, p) for p in sorted(found)]


def _known(path: str, base: str) -> bool:
    parts = path[len(base) :].split("/")
    return bool(_SUFFIX.search(path)) and not any(part.startswith((".", "_")) for part in parts)


def _input_file(full: str, info: dict[str, Any], base: str, path: str = "") -> InputFile:
    name = (path or full)[len(base) :].lstrip("/")
    return InputFile(full, name, int(info.get("size") or 0), stores.version(info) if path else "")


def _distinct(files: list[InputFile]) -> list[InputFile]:
    """Names made different by parent folders."""
    while True:
        by_name: defaultdict[str, int] = defaultdict(int)
        for file in files:
            by_name[file.name] += 1
        if len(by_name) == len(files):
            return files
        files = [
            replace(file, name=_longer(file)) if by_name[file.name] > 1 else file for file in files
        ]


def _longer(file: InputFile) -> str:
    """The name with one more parent folder before it."""
    parts = file.path.split("/")
    return "/".join(parts[-(file.name.count("/") + 2) :])
