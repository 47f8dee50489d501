"""What decides a stage's outputs besides its input: settings, lists, models, software."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curation.models import model_checksums
from pydantic import BaseModel

import curation
from curation import resources
from curation.extract.engines import engine_packages

#: Packages whose version can change a stage's bytes, besides pyarrow, which writes them all.
_PACKAGES = {
    "extract": ["fastwarc", "brotli", "zstandard"],
    "dedup-urls": ["numpy"],
    "dedup-documents": ["numpy", "numba"],
    "dedup-lines": ["numpy", "numba"],
    "identify-language": ["fasttext-community"],
    "filter": ["numpy", "numba"],
    "classify": ["numpy", "numba"],
    "mix": ["numpy", "tiktoken"],
    "tokenize": ["numpy", "tiktoken"],
}


def stage_facts(stage: str, settings: BaseModel) -> dict[str, Any]:
    """Software versions, checksums of models and of list files, for key and manifest."""
    packages = ["pyarrow", *_PACKAGES[stage]]
    if stage == "extract":
        packages += engine_packages(settings.engine)  # type: ignore[attr-defined]
    versions = {name: importlib.metadata.version(name) for name in sorted(set(packages))}
    return {
        "software": {"curation": curation.__version__, **versions},
        "models": model_checksums(stage, settings),
        "lists": dict(sorted(_list_checksums(settings.model_dump(mode="json")))),
    }


def _list_checksums(value: Any) -> Iterator[tuple[str, str]]:
    """Checksums of every file or folder that the settings name."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _list_checksums(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_checksums(item)
    elif isinstance(value, str) and value:
        path = Path(resources.resolve(value)) if value.startswith(resources.PREFIX) else None
        if path is None and "/" in value and len(value) < 4096 and "\n" not in value:
            path = Path(value)
        if path is not None and path.exists():
            yield value, _checksum(path)


@functools.cache
def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        digest.update(str(file.relative_to(path)).encode() + b"\0")
        with file.open("rb") as content:
            while chunk := content.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
