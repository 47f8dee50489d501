"""From patterns to input files with names that don't change when the data moves."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

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
    remote = "://" in local or "::" in local
    try:
        system, path = fsspec.core.url_to_fs(local if remote else str(Path(local).absolute()))
        wild = _GLOB.search(path)
        if wild:
            base = path[: wild.start()].rpartition("/")[0]
            infos = system.glob(path, detail=True).values()
        elif system.isdir(path):
            base = path.rstrip("/")
            infos = [
                info for name, info in system.find(path, detail=True).items() if _known(name, base)
            ]
        elif system.exists(path):
            base = path.rpartition("/")[0]
            infos = [system.info(path)]
        else:
            return []
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{pattern}: can't be listed: {error}") from error
    files = [info for info in infos if info["type"] == "file"]
    return [_input_file(info, system, base, local if remote else "") for info in files]


def _known(path: str, base: str) -> bool:
    parts = path[len(base) :].split("/")
    return bool(_SUFFIX.search(path)) and not any(part.startswith((".", "_")) for part in parts)


def _input_file(info: dict[str, Any], system: Any, base: str, url: str) -> InputFile:
    path = info["name"]
    name = path[len(base) :].lstrip("/")
    full = system.unstrip_protocol(path) if url else path
    return InputFile(full, name, int(info.get("size") or 0))


def _distinct(files: list[InputFile]) -> list[InputFile]:
    """Names made different by parent folders."""
    while True:
        by_name: defaultdict[str, int] = defaultdict(int)
        for file in files:
            by_name[file.name] += 1
        if len(by_name) == len(files):
            return files
        files = [
            InputFile(file.path, _longer(file), file.size) if by_name[file.name] > 1 else file
            for file in files
        ]


def _longer(file: InputFile) -> str:
    """The name with one more parent folder before it."""
    parts = file.path.split("/")
    return "/".join(parts[-(file.name.count("/") + 2) :])
