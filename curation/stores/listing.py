"""Listings that are complete, or an error."""

from __future__ import annotations

import fnmatch
import heapq
import os
import re
from collections.abc import Callable
from typing import Any

from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem
from fsspec.utils import glob_translate

from curation.stores.persist import each, persistently
from curation.stores.systems import info, local_info

_MAGIC = re.compile(r"[*?\[]")


def listing(system: Any, path: str, url: str) -> list[dict[str, Any]]:
    """Files and folders directly inside; none where there is no such folder.

    Raises StoreError, on local disks OSError.
    """
    if isinstance(system, LocalFileSystem):
        return _local_listing(path)
    try:
        entries = persistently(url, lambda: system.ls(path, detail=True))
    except FileNotFoundError:
        return []
    inside = path.rstrip("/") + "/"
    # A file lists itself, and some tools put empty objects `folder/` where folders are.
    return [e for e in entries if e["name"].startswith(inside) and not e["name"].endswith("/")]


def tree(system: Any, path: str, url: str) -> dict[str, dict[str, Any]]:
    """Every file below a folder, by its path. Raises StoreError, on local disks OSError."""
    if isinstance(system, LocalFileSystem):
        return local_tree(path)
    kind = type(system)
    # By default fsspec's own walk leaves out folders that can't be listed.
    plain = kind.find is AbstractFileSystem.find or (
        isinstance(system, AsyncFileSystem) and kind._find is AsyncFileSystem._find
    )
    options = {"on_error": "raise"} if plain else {}
    try:
        found = persistently(url, lambda: system.find(path, detail=True, **options))
    except FileNotFoundError:
        return {}
    return {name: info for name, info in found.items() if not name.endswith("/")}


def local_tree(
    path: str, enter: Callable[[str], bool] = lambda folder: True
) -> dict[str, dict[str, Any]]:
    """What is below a local folder and is none itself, by its path; links are followed.

    Each folder is entered once, however many links lead to it: where it lies if that is below
    `path`, else by the first link in the order of paths. Folders for which `enter` says no are left
    out. Raises OSError for a folder that can't be listed.
    """
    found: dict[str, dict[str, Any]] = {}
    entered = {local_info(path)["identity"]}
    folders, links = [path], list[tuple[str, Any]]()  # links as a heap
    while folders or links:
        if not folders:
            link, identity = heapq.heappop(links)
            if identity in entered:
                continue
            entered.add(identity)
            folders.append(link)
        for entry in _local_listing(folders.pop()):
            name, identity = entry["name"], entry["identity"]
            if entry["type"] != "directory":
                found[name] = entry
            elif not enter(name):
                continue
            elif os.path.islink(name):
                heapq.heappush(links, (name, identity))
            elif identity not in entered:
                entered.add(identity)
                folders.append(name)
    return found


def _local_listing(path: str) -> list[dict[str, Any]]:
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [local_info(os.path.join(path, name)) for name in sorted(names)]


def glob(system: Any, pattern: str, url: str) -> dict[str, dict[str, Any]]:
    """What a pattern of `*`, `?`, `[...]` and `**` matches, by path: files, and what is none.

    Folders that `**` leads to are not among it, but what is in them. Only the folders that the
    pattern leads to are listed. fsspec's `glob` leaves out what can't be listed just then, so that
    input files would be missed without a word. Raises StoreError, on local disks OSError.
    """
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if _MAGIC.search(part))
    return _matching(system, "/".join(parts[:first]), parts[first:], url)


def _matching(system: Any, base: str, rest: list[str], url: str) -> dict[str, dict[str, Any]]:
    """Files below a folder, which is no pattern, that the parts of a pattern lead to."""
    folder = base or ("/" if isinstance(system, LocalFileSystem) else "")
    if not _MAGIC.search(rest[0]):
        path = f"{base}/{rest[0]}"
        if len(rest) > 1:
            return _matching(system, path, rest[1:], url)
        found = info(system, path, url)
        return {found["name"]: found} if found is not None else {}
    if "**" in rest[0]:
        matches = re.compile(glob_translate("/".join(rest))).match
        below = tree(system, folder, url).items()
        return {p: i for p, i in below if matches(p[len(base) :].lstrip("/"))}
    entries = [
        e
        for e in listing(system, folder, url)
        if fnmatch.fnmatchcase(e["name"].rsplit("/", 1)[-1], rest[0])
    ]
    if len(rest) == 1:
        return {e["name"]: e for e in entries}
    matched: dict[str, dict[str, Any]] = {}
    folders = [e["name"] for e in entries if e["type"] == "directory"]
    for part in each(lambda path: _matching(system, path, rest[1:], url), folders):
        matched |= part
    return matched
