"""Map: compute exact keys, signatures and buckets of every document of a shard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.facts import bucketed, document_facts
from pipelines.dedup.duplicates import check_languages
from pipelines.dedup.graph import write_edges
from pipelines.engine.documents import answers, column_names, noted, over_documents
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import (
    concatenated,
    document_numbers,
    scratch,
    write_columns,
    write_run,
)
from pipelines.storage.files import FileRecord, Folder

_STAGE = "dedup-documents"


@dataclass(frozen=True)
class Sign:
    """Read a shard once: write each document's facts and the buckets it is in."""

    settings_key: str
    settings: DocumentDedupSettings
    name: str = "signatures"
    sends = ("exact", "buckets")

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        present = column_names(shard)
        wanted = ("id", "url", "date", "text", "source", "language", "quality")
        columns = [c for c in wanted if c in present]
        parts = over_documents(_STAGE, shard, self.facts, columns)
        facts, aside = answers(parts, progress)
        name, table = scratch("facts", shard.name), concatenated(facts)
        files = {name: write_columns(folder, name, table)}
        result = write_buckets(folder, shard.name, self.settings, index, table, files)
        return Result(result.files, result.counts | noted(aside))

    def facts(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the facts of a batch's documents. Raises InputError if languages are missing."""
        check_languages(batch, self.settings, _STAGE)
        return document_facts(batch, self.settings)


@dataclass(frozen=True)
class SignIndexed:
    """For a shard of an index, which has the facts: write only the buckets."""

    settings_key: str
    settings: DocumentDedupSettings
    name: str = "indexed"
    sends = ("exact", "buckets")

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        place = task.payload
        facts = place.facts(folder)
        return write_buckets(folder, place.name, self.settings, place.index, facts, {})


def write_buckets(
    folder: Folder,
    shard: str,
    settings: DocumentDedupSettings,
    index: int,
    facts: pa.RecordBatch,
    files: dict[str, FileRecord],
) -> Result:
    """Write which documents of a shard are in which buckets, and the edges within the shard.

    See `curation.dedup.facts.bucketed` for the records written.
    """
    numbers = document_numbers(index, facts.num_rows)
    records = list(bucketed(facts, numbers, settings)) if facts.num_rows else []
    edges = [np.zeros((0, 2), np.uint64)] + [r[1] for r in records]
    runs = {kind: columns for kind, _, columns in records}
    for kind in ("exact", "buckets"):
        name = scratch(kind, shard)
        columns = runs.get(kind, _NO_RECORDS)
        files[name] = write_run(folder, name, "key", columns)
    name = scratch("edges", shard)
    local = np.concatenate(edges)
    files[name] = write_edges(folder, name, local)
    return Result(files, {"edges": len(local)})


_NO_RECORDS = {n: np.zeros(0, np.uint64) for n in ("key", "number", "order")}
