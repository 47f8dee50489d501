"""Which hosts and source files lose most of their documents: an alarm for each.

There may be as many hosts as documents. So what each shard's audit says of them goes by name to
the tasks of key ranges, of which each has its part of the hosts in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.audit import SOURCES, losses_noted
from curation.dedup.keys import half_keys
from pipelines.dedup.duplicates import AUDIT, OverRanges, read_key_range
from pipelines.dedup_documents.clusters import SAMPLES
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import concatenated, scratch, write_run
from pipelines.storage.files import Folder
from pipelines.storage.shards import read_batches

#: Bytes of the rows for a document: its host's and its file's.
ROW_BYTES = 128


@dataclass(frozen=True)
class ListLosses:
    """Map: write what hosts and files had and lost in a shard, by the key of their name."""

    settings_key: str
    name: str = "losses"
    sends = ("losses",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        audit = read_batches(folder, f"{AUDIT}/{task.name}.parquet", SOURCES.names)
        rows = concatenated([*audit], SOURCES)
        named = pc.and_(pc.not_equal(rows["kind"], "language"), pc.not_equal(rows["name"], ""))
        rows = rows.filter(named)
        rows = rows.append_column("key", pa.array(half_keys(rows["name"])))
        name = scratch("losses", task.name)
        return Result({name: write_run(folder, name, "key", rows)})


@dataclass(frozen=True)
class SumLosses(OverRanges):
    """Reduce: note in the counts which hosts and files of a range of keys lose too much."""

    settings_key: str
    share: float  # of a host's or file's documents; above there is an alarm
    shards: tuple[str, ...]
    name: str = "hosts"

    def runs(self) -> list[str]:
        return [scratch("losses", s) for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows = read_key_range(folder, "losses", self.shards, *task.payload)
        found = [] if rows is None else [rows.select(SOURCES.names)]
        noted = losses_noted(found, self.share, "documents")
        return Result({}, {"alarms": noted.get("alarms", [])[:SAMPLES]})


def worst(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the alarms of these records of SumLosses, the largest losses first."""
    alarms = [alarm for record in records for alarm in record["counts"]["alarms"]]

    def place(alarm: dict[str, Any]) -> tuple[int, str, str]:
        kind = "file" if "file" in alarm else "host"
        return -alarm["removed"], kind, alarm[kind]

    return sorted(alarms, key=place)[:SAMPLES]
