"""The file system behind a URL, and what it says of a file.

Listings that are complete, or an error.
"""

import errno
import fnmatch
import heapq
import os
import re
import stat
import sys
from collections.abc import Callable
from typing import Any, cast

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem
from fsspec.utils import glob_translate

from curation.errors import ConfigError, missing
from curation.stores.persist import each, is_transient, is_unknown_host, persistently


def is_url(place: str) -> bool:
    """Return whether fsspec has to find a place (`s3://`, `zip://x::s3://`), which is no local
    path."""
    return "://" in place and not os.path.isabs(place)


def misread() -> str:
    """Return why the name of a file or folder could not be read as text, and what to do."""
    encoding = sys.getfilesystemencoding()
    if encoding == "utf-8":
        return "not UTF-8; rename the file or folder"
    return f"this locale has only {encoding}; set LC_ALL=C.UTF-8 or PYTHONUTF8=1"


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL or path, and the path inside it. Listings are never cached.

    Raises ConfigError where there is no file system of that name, or its library is not there.
    fsspec keeps one instance per kind and options, so what another part of the process lists is
    fresh from then on, too.
    """
    if not is_url(url):
        local = fsspec.filesystem("file")
        return local, local._strip_protocol(url)
    parts = [part for part in url.partition("://")[2].split("/") if part]
    if not parts or (url.startswith("hf://datasets/") and len(parts) < 3):
        examples = "s3://BUCKET/FOLDER, https://HOST/FILE, hf://datasets/OWNER/NAME"
        raise ConfigError(f"{url}: an incomplete address; write one as {examples}")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        package = _PACKAGES.get(url.rpartition("::")[2].partition("://")[0])
        raise missing(package, url) if package else ConfigError(f"{url}: {error}") from None
    except ValueError as error:
        raise ConfigError(f"{url}: {error}") from None
    cache: Any = getattr(system, "dircache", None)
    if getattr(cache, "use_listings_cache", False):
        cache.use_listings_cache = False
        cache.clear()
    if hasattr(system, "max_concurrency"):
        # s3fs asks for the size of all it reads, to fetch large files in pieces at a time.
        system.max_concurrency = 1
    return system, path


#: Packages of extras, by the kind of URL that needs them.
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub"}
_PACKAGES |= dict.fromkeys(("http", "https"), "aiohttp")


def protocols(system: Any) -> set[str]:
    """Return names under which the file system is known, as `s3`."""
    return {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)


def info(system: Any, path: str, url: str) -> dict[str, Any] | None:
    """Return what is known of a file or folder, None when there is none.

    fsspec's `exists` and `isdir` take any error for a no.
    Raises StoreError, on local disks OSError.
    """
    if isinstance(system, LocalFileSystem):
        try:
            return local_info(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
    try:
        return cast(dict[str, Any], persistently(url, lambda: _reached(system, path)))
    except FileNotFoundError:
        return None


def _reached(system: Any, path: str) -> Any:
    """Return what the file system says; of web servers, fsspec says that what it can't reach isn't
    there.

    Raises FileNotFoundError, and what kept the file system from asking.
    """
    try:
        return system.info(path)
    except FileNotFoundError as error:
        cause = error.__cause__
        if cause is not None and (is_transient(cause) or is_unknown_host(cause)):
            raise cause from None
        raise


def local_info(path: str) -> dict[str, Any]:
    """Return the same of a local path, which is there: of what a link leads to.

    Its type is `file`, `directory` or `other`, such as a link to nothing. Raises OSError.
    """
    try:
        facts = os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            raise
        facts = os.lstat(path)
    kind = "file" if stat.S_ISREG(facts.st_mode) else "other"
    if stat.S_ISDIR(facts.st_mode):
        kind = "directory"
    identity = (facts.st_dev, facts.st_ino)
    return {"name": path, "type": kind, "size": facts.st_size, "identity": identity}


def version(info: dict[str, Any]) -> str:
    """Return what a store says of an object's content: entity tag, generation or time of change."""
    for name in ("ETag", "etag", "md5Hash", "generation", "LastModified", "updated", "mtime"):
        if value := info.get(name):
            return f"{name}={str(value).strip(chr(34))}"
    return ""


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
    """Return every file below a folder, by its path. Raises StoreError, on local disks OSError."""
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
    """Return what is below a local folder and is none itself, by its path; links are followed.

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
    """Return what a pattern of `*`, `?`, `[...]` and `**` matches, by path: files, and what is
    none.

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
