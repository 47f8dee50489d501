"""Everything that decides a stage's outputs besides its input: models, lists, code, software."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import curation
from curation import resources, stores
from curation.config import Settings
from curation.credentials import redact
from curation.errors import ConfigError, first_line
from curation.extras import missing
from curation.golden import golden_digest
from curation.judging import check_opens
from curation.models import sha256_of
from curation.stages import Stage
from curation.user_code import codes_of


def stage_facts(
    stage: Stage[Any], settings: Settings, also: Mapping[str, Settings]
) -> dict[str, Any]:
    """Return software versions and checksums of models, lists and code, for key and manifest.

    `also` are other sections that the stage reads. Raises ConfigError if a model, list or code is
    missing, or a package not installed.
    """
    code = _code({stage.name: settings, **also})
    packages = {"pyarrow", *stage.packages_of(settings)}
    lists: dict[str, str] = {}
    for named in stage.files(settings):
        lists |= _checksums(named.path)
    versions = {name: _version(name, stage.name) for name in sorted(packages)}
    golden = golden_digest(stage.name)
    if golden:  # instead of numba's version: the same whenever kernels give the same results
        versions["kernels"] = golden
    facts = {
        "software": {"curation": curation.__version__, **versions},
        "models": stage.models(settings, also),
        "lists": lists,
    }
    return facts | {"code": code} if code else facts


def _version(package: str, stage: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise missing(package, stage) from None


def _code(sections: Mapping[str, Settings]) -> dict[str, str]:
    """Return the SHA-256 of user code, by reference."""
    digests = {}
    for section, settings in sections.items():
        for key, code, given in codes_of(settings, section):
            check_opens(code, given, key, code.positional)
            digests[code.reference] = code.found.sha256
    return digests


def _checksums(name: str) -> dict[str, str]:
    """Return the SHA-256 of a list: of its file, each file in its folder, or its URL's content."""
    if "://" in name:
        try:
            return {redact(name): _url_sha256(name)}
        except Exception as error:  # every file system raises its own exceptions
            reason = first_line(error)
            raise ConfigError(f"{name}: the list can't be read: {reason}") from None
    path = Path(resources.resolve(name))
    if not path.exists():
        raise ConfigError(f"{name}: no such list")
    if path.is_file():
        return {name: _file_sha256(path)}
    # What Python leaves beside a module depends on how it was installed and run.
    files = sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {f"{name.rstrip('/')}/{f.relative_to(path).as_posix()}": _file_sha256(f) for f in files}


@functools.cache
def _url_sha256(url: str) -> str:
    with stores.open_url(url) as content:
        return hashlib.file_digest(cast(Any, content), "sha256").hexdigest()


def _file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, which is read again when it has changed."""
    status = path.stat()
    return _sha256_at(path, (status.st_size, status.st_mtime_ns, status.st_ino))


@functools.cache
def _sha256_at(path: Path, stamp: tuple[int, int, int]) -> str:
    return sha256_of(path)
