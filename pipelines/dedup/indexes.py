"""Indexes of finished stages, against which later runs are deduplicated.

The shards to compare: those of the input, and those of the indexes of finished runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.errors import ConfigError
from curation.resources import resolve
from pipelines.engine.stage import Shard, manifest_shards
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import read_columns, row_of, scratch, write_columns, write_run
from pipelines.storage.files import Folder, fingerprint
from pipelines.storage.manifest import complete_manifest, files_of

INDEX = "index"


def index_file(shard: str) -> str:
    """Return the path of a shard's index, relative to the stage folder."""
    return f"{INDEX}/{shard}.arrow"


def _finished(path: str, stage: str) -> tuple[Folder, dict[str, Any]]:
    """Return folder and manifest of a finished stage, or of this one of a run."""
    for folder in (Folder(resolve(path)), Folder(resolve(path)) / stage):
        if manifest := complete_manifest(folder):
            return folder, manifest
    raise ConfigError(f"{path}: no complete stage folder {stage}; an index is a finished run")


def open_index(path: str, stage: str) -> tuple[Folder, dict[str, Any]]:
    """Return folder and manifest of a finished stage with an index; `path` may also be its run.

    Raises ConfigError if there is none.
    """
    folder, manifest = _finished(path, stage)
    if manifest["stage"] != stage:
        raise ConfigError(f"{path}: an index of {manifest['stage']}, not of {stage}")
    if not files_of(manifest, INDEX):
        raise ConfigError(f"{path}: {stage} wrote no index; run it with {stage}.index.write=true")
    return folder, manifest


@dataclass(frozen=True)
class Indexed:
    """One file of an index."""

    name: str
    folder: Folder
    file: str
    priority: int  # position of the index in the recipe: the first takes precedence
    rows: int
    bytes: int
    fingerprint: str


def indexes_fingerprint(files: Sequence[Indexed]) -> str:
    """Return the fingerprint of all files of all indexes; empty if there are none."""
    return fingerprint([[file.name, file.fingerprint] for file in files]) if files else ""


def index_files(path: str, stage: str, priority: int) -> list[Indexed]:
    """Return the files of an index, in order. Raises ConfigError if there is none."""
    folder, manifest = open_index(path, stage)
    return [
        Indexed(f"{priority}~{name}", folder, name, priority, f["rows"], f["bytes"], f["sha256"])
        for name, f in files_of(manifest, INDEX).items()
    ]


def checked_indexes(stage: str, settings: Any, shared: Sequence[str]) -> list[Indexed]:
    """Return the files of the indexes in a stage's settings, those of the first index first.

    Raises ConfigError for one that is not usable, or was made with other `shared` settings.
    """
    found: list[Indexed] = []
    for priority, path in enumerate(settings.index.against):
        check_settings(path, stage, settings, shared)
        found += index_files(path, stage, priority)
    return found


def check_settings(path: str, stage: str, settings: BaseModel, keys: Sequence[str]) -> None:
    """Raise ConfigError if the index was made with different values of settings that must agree."""
    _, manifest = open_index(path, stage)
    own = settings.model_dump(mode="json", by_alias=True)
    for key in keys:
        here, there = own, manifest["settings"]
        for part in key.split("."):
            here, there = here[part], (there or {}).get(part)
        if here != there:
            raise ConfigError(f"{path}: made with {stage}.{key} = {there!r}, here it is {here!r}")


def kept_shards(paths: Sequence[str], stage: str) -> list[Shard]:
    """Return the documents that finished stages left, any or this one of a run, by priority.

    Raises ConfigError if there is none, InputError if it leaves no documents.
    """
    return [
        replace(shard, name=f"{priority}~{shard.name}")
        for priority, path in enumerate(paths)
        for shard in manifest_shards(*_finished(path, stage))
    ]


#: Settings that must be equal in an index and the run that uses it.
_SHARED = [
    *("exact.normalization", "minhash.enabled", "minhash.normalization", "minhash.ngram"),
    *("minhash.num_perm", "minhash.seed", "per_language"),
]


@dataclass(frozen=True)
class Place:
    """A shard with its number in this stage; its facts are in an index or were computed here."""

    name: str
    index: int
    shard: Shard
    priority: int  # priority of the documents: the lowest wins
    index_file: str | None = None
    index_sha256: str = ""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the shard, or of its index file."""
        return f"{self.index_sha256} {self.shard.fingerprint}".strip()

    @property
    def task(self) -> Task:
        """The task of a step whose output depends on the shard's number."""
        inputs = (self.name, self.fingerprint), ("index", str(self.index))
        return Task(self.name, inputs, self.shard.bytes, self)

    def facts(self, folder: Folder) -> pa.RecordBatch:
        if self.index_file is None:
            return read_columns(folder, scratch("facts", self.name))
        return read_columns(self.shard.folder, self.index_file)


def indexed_shards(settings: DocumentDedupSettings, first: int) -> list[Place]:
    """Return the indexes' shards, numbered from `first`, in order of the indexes' priority.

    Raises ConfigError for an index that can't be used.
    """
    places: list[Place] = []
    for priority, path in enumerate(settings.index.against):
        folder, manifest = open_index(path, "dedup-documents")
        check_settings(path, "dedup-documents", settings, _SHARED)
        for left in manifest_shards(folder, manifest):
            own = manifest["files"][index_file(left.name)]
            rows, size = own["rows"], own["bytes"]
            shard = replace(left, name=f"{priority}~{left.name}", rows=rows, bytes=size)
            index = first + len(places)
            known = index_file(left.name), own["sha256"]
            places.append(Place(shard.name, index, shard, priority, *known))
    return places


@dataclass(frozen=True)
class WriteIndex:
    """For each shard, write the rows of the kept documents."""

    settings_key: str
    kind: str  # of the files with a row for each document, or with the documents' numbers
    name: str = "index"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        held = read_columns(folder, scratch(self.kind, task.name))
        gone = read_columns(folder, scratch("verdicts", task.name)).column("row").to_numpy()
        name, rows, write = index_file(task.name), np.arange(held.num_rows), write_columns
        if "number" in held.schema.names:
            rows, write = row_of(held.column("number").to_numpy()), partial(write_run, key="key")
        kept = held.filter(pa.array(~np.isin(rows, gone)))
        return Result({name: write(folder, name, columns=kept)})
