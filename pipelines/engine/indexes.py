"""Indexes: what a finished stage leaves so that a later run can be deduplicated against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from curation.errors import ConfigError, InputError
from pipelines.engine.files import Folder
from pipelines.engine.stage import MANIFEST

INDEX = "index"


def index_file(shard: str) -> str:
    """File of a shard's index, relative to the stage folder."""
    return f"{INDEX}/{shard}.arrow"


def open_index(path: str, stage: str) -> tuple[Folder, dict[str, Any]]:
    """Folder and manifest of a finished stage with an index; `path` may also name its run.

    Raises ConfigError when there is none.
    """
    for folder in (Folder(path.rstrip("/")), Folder(path.rstrip("/")) / stage):
        if not folder.exists(MANIFEST):
            continue
        try:
            manifest: dict[str, Any] = folder.read_json(MANIFEST)
        except InputError as error:
            raise ConfigError(str(error)) from error
        if manifest["stage"] != stage:
            raise ConfigError(f"{path}: an index of {manifest['stage']}, not of {stage}")
        if not any(name.startswith(f"{INDEX}/") for name in manifest["files"]):
            raise ConfigError(
                f"{path}: {stage} left no index; run it with {stage}.index.write=true"
            )
        return folder, manifest
    raise ConfigError(f"{path}: no complete stage folder {stage}; an index is a finished run")


def check_settings(
    path: str, stage: str, manifest: dict[str, Any], settings: BaseModel, keys: Sequence[str]
) -> None:
    """Raise ConfigError where the index was made with other values of settings that must agree."""
    own = settings.model_dump(mode="json", by_alias=True)
    for key in keys:
        here, there = own, manifest["settings"]
        for part in key.split("."):
            here, there = here[part], (there or {}).get(part)
        if here != there:
            raise ConfigError(f"{path}: made with {stage}.{key} = {there!r}, this run has {here!r}")
