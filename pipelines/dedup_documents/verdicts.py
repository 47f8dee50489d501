"""For each shard, write which rows to remove and why, and the losses by host and source file."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.audit import FEWEST_DOCUMENTS
from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.keys import string_keys
from curation.dedup.minhash import band_threshold
from curation.dedup.urls import hosts
from pipelines.dedup.duplicates import (
    OfShard,
    OverRanges,
    no_verdicts,
    read_key_range,
    verdict_rows,
    write_verdicts,
)
from pipelines.dedup_documents.buckets import Sign
from pipelines.dedup_documents.clusters import SAMPLES
from pipelines.dedup_documents.members import Members
from pipelines.engine.documents import answers, over_documents, set_aside_by
from pipelines.engine.stage import Shard
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import scratch, write_run
from pipelines.storage.files import FileRecord, Folder

_STAGE = "dedup-documents"


@dataclass(frozen=True)
class DocumentVerdicts(OfShard):
    """Write verdicts (exact or near copy, of which document, how similar) and losses."""

    settings: DocumentDedupSettings
    name: str = "verdicts"
    gathers: ClassVar[str] = "removed"
    sends: ClassVar[tuple[str, ...]] = ("verdicts", "losses")

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard, rows = task.payload[1], self.rows(task, folder)
        aside = set_aside_by(folder, Sign.name, shard.name)
        aside |= set_aside_by(folder, Members.name, shard.name)
        verdicts = no_verdicts(clusters=True)
        if rows is not None:
            verdicts = document_verdicts(rows, self.settings)
        losses = _losses(folder, shard, np.sort(verdicts.column("row").to_numpy()), aside)
        written = write_verdicts(folder, shard.name, verdicts, aside)
        return Result({scratch("verdicts", shard.name): written, **losses})


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


def _losses(
    folder: Folder, shard: Shard, lost: Any, aside: dict[int, str]
) -> dict[str, FileRecord]:
    """Count documents in and lost by host and source file, with the id of a lost one.

    `lost` marks the rows of duplicates; rows set aside here are added to `aside`.
    """
    wanted = ["id", "url", "source"]
    found = over_documents(_STAGE, shard, partial(_lost, lost), wanted, known=aside.copy())
    parts, more = answers(found)
    aside |= more
    sums = _sum(pa.concat_tables(parts))
    name = scratch("losses", shard.name)
    keys = string_keys(pc.binary_join_element_wise(sums["kind"], sums["name"], " "))[:, 0]
    columns = {n: sums[n].combine_chunks() for n in sums.column_names}
    return {name: write_run(folder, name, "key", {"key": keys, **columns})}


def _lost(lost: Any, batch: pa.RecordBatch, first_row: int) -> pa.Table:
    low, high = np.searchsorted(lost, [first_row, first_row + batch.num_rows])
    gone = np.zeros(batch.num_rows, bool)
    gone[lost[low:high] - first_row] = True
    ids = pc.if_else(pa.array(gone), batch.column("id"), pa.scalar(None, pa.string()))
    files = pc.struct_field(batch.column("source"), "file")
    tables = []
    for kind, names in (("host", hosts(batch.column("url"))), ("file", files)):
        columns = {
            "kind": pa.array([kind] * batch.num_rows, pa.string()),
            "name": pc.fill_null(names.cast(pa.string()), ""),
            "lost": gone.astype(np.int64),
            "id": ids,
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _sum(table: pa.Table) -> pa.Table:
    summed = table.group_by(["kind", "name"], use_threads=False).aggregate(
        [("lost", "sum"), ("lost", "count"), ("id", "min")]
    )
    return summed.select(["kind", "name", "lost_count", "lost_sum", "id_min"]).rename_columns(
        ["kind", "name", "documents", "lost", "id"]
    )


@dataclass(frozen=True)
class FindLosses(OverRanges):
    """Reduce: find hosts and source files that lose more than the alarm's share."""

    settings_key: str
    settings: DocumentDedupSettings
    shards: tuple[str, ...]
    name: str = "losses"

    def runs(self) -> list[str]:
        return [scratch("losses", s) for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high = task.payload
        batch = read_key_range(folder, "losses", self.shards, low, high)
        if batch is None:
            return Result({}, {"losing": []})
        alarms = self.settings.alarms
        table = pa.Table.from_batches([batch]).filter(pc.not_equal(batch.column("name"), ""))
        sums = table.group_by(["kind", "name"], use_threads=False).aggregate(
            [("documents", "sum"), ("lost", "sum"), ("id", "list")]
        )
        found = []
        for row in sums.to_pylist():
            documents, lost = row["documents_sum"], row["lost_sum"]
            if documents >= FEWEST_DOCUMENTS and lost > alarms.lost_share * documents:
                samples = sorted(i for i in row["id_list"] if i is not None)[:SAMPLES]
                found.append(
                    {
                        row["kind"]: row["name"],
                        "documents": documents,
                        "removed": lost,
                        "samples": samples,
                    }
                )
        return Result({}, {"losing": found})


def near_threshold(settings: DocumentDedupSettings) -> float:
    """Return the threshold for the value of a near duplicate."""
    if settings.verify.method != "none":
        return settings.verify.threshold
    return band_threshold(settings.minhash.bands, settings.minhash.rows)
