"""Lists, folders and indexes that a recipe names, checked before the first stage runs.

Model files are checked with their checksums (`pipelines.facts`).
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from curation import resources
from curation.config import Settings
from curation.errors import ConfigError
from curation.stages import NamedFile, Stage
from pipelines.storage.files import Folder


def check_named_files(stage: Stage[Any], settings: Settings) -> None:
    """Raise ConfigError, with key and path, for a missing or unusable file of a stage."""
    for named in stage.files(settings):
        _check(named)
    index: Any = getattr(settings, "index", None)
    if stage.is_indexed and index.against:
        try:
            importlib.import_module(stage.module).check_indexes(settings)
        except ConfigError as error:
            raise ConfigError(f"{stage.name}.index.against: {error}") from None


def _check(named: NamedFile) -> None:
    try:
        path = resources.resolve(named.path)
    except ConfigError as error:
        raise ConfigError(f"{named.key}: {error}") from None
    if not _exists(path, named.kind):
        raise ConfigError(f"{named.key}: {named.path}: no such {named.kind}")
    if named.suffix and not any(Path(path).glob(f"*{named.suffix}")):
        raise ConfigError(f"{named.key}: {named.path}: no <language>{named.suffix}")


def _exists(path: str, kind: str) -> bool:
    if kind == "file or folder":
        return Folder(path).exists()
    return Path(path).is_file() if kind == "file" else Path(path).is_dir()
