"""The shards to compare: those of the input, and those of the indexes of finished runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from curation.dedup.dedup_settings import DocumentDedupSettings
from pipelines.dedup.indexes import check_settings, index_file, open_index
from pipelines.engine.stage import Shard
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import read_columns, scratch, write_columns
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, shard_name

#: Settings that must be equal in an index and the run that uses it.
_SHARED = [
    *("exact.normalization", "minhash.enabled", "minhash.normalization", "minhash.unit"),
    *("minhash.ngram", "minhash.short_documents", "minhash.num_perm", "minhash.seed"),
    *("minhash.scheme", "per_language"),
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
        for name, record in files_of(manifest, "documents").items():
            base = shard_name(name)
            own = manifest["files"][index_file(base)]
            sha256, rows, size = record["sha256"], own["rows"], own["bytes"]
            shard = Shard(f"{priority}~{base}", folder, name, sha256, rows, size)
            index = first + len(places)
            known = index_file(base), own["sha256"]
            places.append(Place(shard.name, index, shard, priority, *known))
    return places


@dataclass(frozen=True)
class WriteIndex:
    """For each shard, write the facts of the kept documents."""

    settings_key: str
    name: str = "index"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        place = task.payload
        facts = place.facts(folder)
        stays = np.ones(facts.num_rows, bool)
        gone = read_columns(folder, scratch("verdicts", place.name)).column("row").to_numpy()
        stays[gone] = False
        name = index_file(place.name)
        return Result({name: write_columns(folder, name, facts.filter(pa.array(stays)))})
