"""Listings that are complete, or an error."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

from fsspec.asyn import AsyncFileSystem
from fsspec.spec import AbstractFileSystem
from fsspec.utils import glob_translate

from curation.stores.persist import each, persistently
from curation.stores.systems import info

_MAGIC = re.compile(r"[*?\[]")


def listing(system: Any, path: str, url: str) -> list[dict[str, Any]]:
    """Files and folders directly inside; none where there is no such folder. Raises StoreError."""
    try:
        entries = persistently(url, lambda: system.ls(path, detail=True))
    except FileNotFoundError:
        return []
    inside = path.rstrip("/") + "/"
    # A file lists itself, and some tools put empty objects `folder/` where folders are.
    return [e for e in entries if e["name"].startswith(inside) and not e["name"].endswith("/")]


def tree(system: Any, path: str, url: str) -> dict[str, dict[str, Any]]:
    """Every file below a folder, by its path. Raises StoreError."""
    kind = type(system)
    # Unless told so, fsspec's own walk leaves out folders that can't be listed.
    plain = kind.find is AbstractFileSystem.find or (
        isinstance(system, AsyncFileSystem) and kind._find is AsyncFileSystem._find
    )
    options = {"on_error": "raise"} if plain else {}
    try:
        found = persistently(url, lambda: system.find(path, detail=True, **options))
    except FileNotFoundError:
        return {}
    return {name: info for name, info in found.items() if not name.endswith("/")}


def glob(system: Any, pattern: str, url: str) -> dict[str, dict[str, Any]]:
    """Files that a pattern of `*`, `?`, `[...]` and `**` matches, by path. Raises StoreError.

    Lists only the folders that the pattern leads to. fsspec's `glob` leaves out what can't be
    listed just then, so that input files would be missed without a word.
    """
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if _MAGIC.search(part))
    base, rest = "/".join(parts[:first]), parts[first:]
    if "**" in rest[0]:
        matches = re.compile(glob_translate(pattern)).match
        return {p: i for p, i in tree(system, base, url).items() if matches(p)}
    entries = [
        e
        for e in listing(system, base, url)
        if fnmatch.fnmatchcase(e["name"].rsplit("/", 1)[-1], rest[0])
    ]
    if len(rest) == 1:
        return {e["name"]: e for e in entries if e["type"] == "file"}
    found: dict[str, dict[str, Any]] = {}
    below = ["/".join([e["name"], *rest[1:]]) for e in entries if e["type"] == "directory"]
    for part in each(lambda path: _matching(system, path, url), below):
        found |= part
    return found


def _matching(system: Any, pattern: str, url: str) -> dict[str, dict[str, Any]]:
    if _MAGIC.search(pattern):
        return glob(system, pattern, url)
    found = info(system, pattern, url)
    return {found["name"]: found} if found is not None and found["type"] == "file" else {}
