"""The file system behind a URL, and what it says of a file."""

from __future__ import annotations

from typing import Any, cast

import fsspec

from curation.stores.persist import persistently


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL or path, and the path inside it. Listings are never cached.

    fsspec keeps one instance per kind and options, so what another part of the process lists is
    fresh from then on, too.
    """
    system, path = fsspec.core.url_to_fs(url)
    cache: Any = getattr(system, "dircache", None)
    if getattr(cache, "use_listings_cache", False):
        cache.use_listings_cache = False
        cache.clear()
    if hasattr(system, "max_concurrency"):
        # s3fs asks for the size of all it reads, to fetch large files in pieces at a time.
        system.max_concurrency = 1
    return system, path


def protocols(system: Any) -> set[str]:
    """Names under which the file system is known, as `s3`."""
    return {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)


def info(system: Any, path: str, url: str) -> dict[str, Any] | None:
    """What is known of a file or folder, None when there is none. Raises StoreError.

    fsspec's `exists` and `isdir` take any error for a no.
    """
    try:
        return cast(dict[str, Any], persistently(url, lambda: system.info(path)))
    except FileNotFoundError:
        return None


def version(info: dict[str, Any]) -> str:
    """What a store says of an object's content: entity tag, generation or time of change."""
    for name in ("ETag", "etag", "md5Hash", "generation", "LastModified", "updated", "mtime"):
        if value := info.get(name):
            return f"{name}={str(value).strip(chr(34))}"
    return ""
