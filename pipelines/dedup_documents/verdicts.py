"""For each shard, write which rows to remove and why."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.minhash import band_threshold
from pipelines.dedup.duplicates import (
    OfShard,
    no_verdicts,
    verdict_rows,
    write_verdicts,
)
from pipelines.dedup_documents.buckets import Sign
from pipelines.dedup_documents.members import Members
from pipelines.engine.documents import set_aside_by
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import scratch
from pipelines.storage.files import Folder

_STAGE = "dedup-documents"


@dataclass(frozen=True)
class DocumentVerdicts(OfShard):
    """Write verdicts: exact or near copy, of which document, how similar."""

    settings: DocumentDedupSettings
    name: str = "verdicts"
    gathers: ClassVar[str] = "removed"
    sends: ClassVar[tuple[str, ...]] = ("verdicts",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard, rows = task.payload[1], self.rows(task, folder)
        aside = set_aside_by(folder, Sign.name, shard.name)
        aside |= set_aside_by(folder, Members.name, shard.name)
        verdicts = no_verdicts(clusters=True)
        if rows is not None:
            verdicts = document_verdicts(rows, self.settings)
        written = write_verdicts(folder, shard.name, verdicts, aside)
        return Result({scratch("verdicts", shard.name): written})


def document_verdicts(rows: pa.RecordBatch, settings: DocumentDedupSettings) -> pa.RecordBatch:
    """Return the verdicts on the documents that `Clusters` removes."""
    exact = rows.column("exact").to_numpy(zero_copy_only=False)
    return verdict_rows(
        rows.column("key").to_numpy(),
        np.where(exact, "document.exact", "document.near").tolist(),
        rows.column("similarity").to_numpy().round(6),
        np.where(exact, 1.0, near_threshold(settings)),
        rows.column("kept_id"),
        rows.column("size").to_numpy(),
    )


def near_threshold(settings: DocumentDedupSettings) -> float:
    """Return the threshold for the value of a near duplicate."""
    if settings.verify.method != "none":
        return settings.verify.threshold
    return band_threshold(settings.minhash.bands, settings.minhash.rows)
