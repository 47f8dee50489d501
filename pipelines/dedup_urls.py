"""Stage `dedup-urls`: keep one capture of each URL over the whole data set."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from curation.dedup.dedup_settings import UrlDedupSettings
from curation.dedup.facts import KEYS, capture_keys, capture_verdicts, choose_captures
from pipelines.dedup.duplicates import (
    OverRanges,
    WriteVerdicts,
    numbered_tasks,
    range_tasks,
    verdict_passes,
    verdict_rows,
)
from pipelines.dedup.indexes import Indexed, WriteIndex, checked_indexes, indexes_fingerprint
from pipelines.engine.documents import answers, noted, over_documents
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import shard_tasks
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Task, records_of
from pipelines.storage.exchange import (
    concatenated,
    document_numbers,
    read_range,
    run_of,
    scratch,
)
from pipelines.storage.files import Folder

_STAGE = "dedup-urls"
#: Bytes of a row of keys, including its id.
_ROW_BYTES = 128
_COLUMNS = ["id", "url", "date", "text", "source"]


@dataclass(frozen=True)
class UrlKeys:
    """Map: write the key of each document's canonical URL, with the survivor columns."""

    settings_key: str
    settings: UrlDedupSettings
    name: str = "keys"
    sends = ("keys",)

    @property
    def keeps(self) -> tuple[str, ...]:
        return self.sends if self.settings.index.write else ()

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        keys_of = partial(self.keys_of, index)
        columns = [*_COLUMNS, *self.settings.survivor.columns]
        parts, aside = answers(over_documents(_STAGE, shard, keys_of, columns), progress)
        return Result(run_of(folder, "keys", shard.name, concatenated(parts)), noted(aside))

    def keys_of(self, index: int, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the keys of a batch's documents that have a URL."""
        numbers = document_numbers(index, batch.num_rows, first_row)
        return capture_keys(batch, numbers, self.settings)


@dataclass(frozen=True)
class UrlSurvivors(OverRanges):
    """Reduce: choose survivors in a range of keys. Documents of an index take precedence."""

    settings_key: str
    settings: UrlDedupSettings
    indexed: tuple[Indexed, ...]
    shards: tuple[str, ...]
    name: str = "survivors"
    sends = ("survivors",)

    def runs(self) -> list[str]:
        return [scratch("keys", s) for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high = task.payload
        own = list(read_range(folder, self.runs(), "key", low, high))
        others, priorities = [], []
        for i, part in enumerate(self.indexed):
            for batch in read_range(part.folder, [part.file], "key", low, high):
                # Numbers above those of the input's shards, used only for ordering.
                numbers = document_numbers(len(self.shards) + i, batch.num_rows)
                place = batch.schema.get_field_index("number")
                others.append(batch.set_column(place, "number", pa.array(numbers)))
                priorities.append(np.full(batch.num_rows, part.priority))
        rows = concatenated([pa.RecordBatch.from_pylist([], schema=KEYS), *own, *others])
        count = sum(batch.num_rows for batch in own)
        last = np.full(count, len(self.settings.index.against))
        policy = self.settings.survivor.policy
        found = choose_captures(rows, np.concatenate([last, *priorities]), policy)
        found = found.filter(pa.array(found.column("place").to_numpy() < count))
        return Result(run_of(folder, "survivors", task.name, found.select(found.schema.names[1:])))


@dataclass(frozen=True)
class UrlVerdicts(WriteVerdicts):
    """For each shard, write which rows to remove, why, and what is kept instead."""

    name: str = "verdicts"
    gathers: ClassVar[str] = "survivors"
    read_by: ClassVar[tuple[str, ...]] = (UrlKeys.name,)

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        numbers, own, kept = (rows.column(n).to_numpy() for n in ("key", "date", "kept_date"))
        return verdict_rows(numbers, *capture_verdicts(own, kept), rows.column("kept_id"))


def check_indexes(settings: UrlDedupSettings) -> list[Indexed]:
    """Return the files of the indexes in the settings. Raises ConfigError for an unusable one."""
    return checked_indexes(_STAGE, settings, ["canonical"])


def run(run: StageRun) -> dict[str, Any]:
    """Keep the newest capture of each URL (or what the recipe's policy says)."""
    indexed = check_indexes(run.settings)
    run.begin()
    shards = tuple(s.name for s in run.inputs)
    rows = run.documents + sum(i.rows for i in indexed)
    ranges = range_tasks(_ROW_BYTES * rows, source=indexes_fingerprint(indexed))
    verdicts = UrlVerdicts(run.settings_key, tuple(r.name for r in ranges))
    survivors = UrlSurvivors(run.settings_key, run.settings, tuple(indexed), shards)
    passes = [
        Pass(UrlKeys(run.settings_key, run.settings), numbered_tasks(run.inputs)),
        Pass(survivors, ranges, after=(UrlKeys.name,)),
        *verdict_passes(run, verdicts, survivors.name),
    ]
    index, tasks = WriteIndex(run.settings_key, UrlKeys.name), shard_tasks(run.inputs)
    if run.settings.index.write:
        passes.append(Pass(index, tasks, beside=verdicts.name))
    run.chain(passes)
    written = records_of(run.folder, index, tasks) if run.settings.index.write else []
    return run.finish(tasks, run.compared, also=written)
