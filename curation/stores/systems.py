"""The file system behind a URL, and what it says of a file."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Any, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem

from curation.errors import ConfigError, missing
from curation.stores.persist import is_transient, is_unknown_host, persistently


def is_url(place: str) -> bool:
    """Whether fsspec has to find a place (`s3://`, `zip://x::s3://`), which is no local path."""
    return "://" in place and not os.path.isabs(place)


def misread() -> str:
    """Return why the name of a file or folder could not be read as text, and what to do."""
    encoding = sys.getfilesystemencoding()
    if encoding == "utf-8":
        return "not UTF-8; rename the file or folder"
    return f"this locale has only {encoding}; set LC_ALL=C.UTF-8 or PYTHONUTF8=1"


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL or path, and the path inside it. Listings are never cached.

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
    """Names under which the file system is known, as `s3`."""
    return {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)


def info(system: Any, path: str, url: str) -> dict[str, Any] | None:
    """What is known of a file or folder, None when there is none.

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
    """What the file system says; of web servers, fsspec says that what it can't reach isn't there.

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
    """The same of a local path, which is there: of what a link leads to.

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
    """What a store says of an object's content: entity tag, generation or time of change."""
    for name in ("ETag", "etag", "md5Hash", "generation", "LastModified", "updated", "mtime"):
        if value := info.get(name):
            return f"{name}={str(value).strip(chr(34))}"
    return ""
