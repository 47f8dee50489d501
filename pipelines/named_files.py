"""Lists, models' folders and indexes that a recipe names: looked for before the first stage runs.

Files of models are looked at with their checksums (`pipelines.facts`).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from curation import resources
from curation.dedup.settings import UrlDedupSettings
from curation.errors import ConfigError
from curation.filters.personal_hosts import manifest_url
from curation.filters.settings import FilterSettings
from pipelines.engine.files import Folder

#: A list of hosts may also lie in an object store or on the web, everything else is local.
Kind = Literal["file", "folder", "file or folder"]

#: Keys of `filter.signals` that name a folder with one file per language.
_FOLDERS = {
    "stop_words": ".txt",
    "dirty_words": ".txt",
    "allowed_words": ".txt",
    "reference": ".npz",
    "perplexity": ".npz",
}


class NamedFile(NamedTuple):
    """A path in a recipe, and the key that it stands under."""

    key: str
    path: str
    kind: Kind
    suffix: str = ""  # of the files by language in a folder


def check_named_files(stage: str, settings: BaseModel) -> None:
    """Raise ConfigError, with key and path, where a stage names what is absent or can't be used."""
    for named in named_files(stage, settings):
        _check(named)
    index: Any = getattr(settings, "index", None)
    if index is not None and index.against:
        module = importlib.import_module(f"pipelines.{stage.replace('-', '_')}")
        try:
            module.check_indexes(settings)
        except ConfigError as error:
            raise ConfigError(f"{stage}.index.against: {error}") from None


def named_files(stage: str, settings: BaseModel) -> Iterator[NamedFile]:
    """Every list and folder that the settings of a stage name."""
    if isinstance(settings, UrlDedupSettings):
        names = settings.canonical.tracking_parameters
        if names is not None:
            yield NamedFile(f"{stage}.canonical.tracking_parameters", names, "file")
    if isinstance(settings, FilterSettings):
        for key, suffix in _FOLDERS.items():
            folder = getattr(settings.signals, key)
            if folder is not None:
                yield NamedFile(f"{stage}.signals.{key}", folder, "folder", suffix)
        lists = settings.blocklists
        for reason, path in lists.lists.items():
            yield NamedFile(f"{stage}.blocklists.lists.{reason}", path, "file or folder")
        for i, path in enumerate(lists.allow):
            yield NamedFile(f"{stage}.blocklists.allow[{i}]", path, "file or folder")
        for key in ("hard_words", "soft_words"):
            words = getattr(lists, key)
            if words is not None:
                yield NamedFile(f"{stage}.blocklists.{key}", words, "file")
        for i, run in enumerate(settings.personal_hosts.runs if settings.personal_hosts else ()):
            key = f"{stage}.personal_hosts.runs[{i}]"
            try:  # the manifest has the checksums of the stage's files
                yield NamedFile(key, manifest_url(run), "file or folder")
            except ConfigError as error:
                raise ConfigError(f"{key}: {error}") from None


def _check(named: NamedFile) -> None:
    try:
        path = resources.resolve(named.path)
    except ConfigError as error:
        raise ConfigError(f"{named.key}: {error}") from None
    if not _exists(path, named.kind):
        raise ConfigError(f"{named.key}: {named.path}: no such {named.kind}")
    if named.suffix and not any(Path(path).glob(f"*{named.suffix}")):
        raise ConfigError(f"{named.key}: {named.path}: holds no <language>{named.suffix}")


def _exists(path: str, kind: Kind) -> bool:
    if kind == "file or folder":
        return Folder(path).exists()
    return Path(path).is_file() if kind == "file" else Path(path).is_dir()
