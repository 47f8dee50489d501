"""Stage `dedup-lines`: cut lines that repeat across the documents of a bucket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.audit import AUDIT, audit_lines, summary
from curation.dedup.dedup_settings import LineDedupSettings
from curation.dedup.keys import run_starts
from curation.dedup.lines import (
    Buckets,
    LineCounts,
    LineTotals,
    add_known,
    frequent_lines,
    in_buckets,
    languages,
    lines_of,
    merge_counts,
    out_of_buckets,
    remove_lines,
    total_lines,
    verdicts,
    with_pages,
)
from curation.schema import edits_of, with_column
from pipelines.dedup.duplicates import (
    OverRanges,
    check_languages,
    numbered_tasks,
    range_tasks,
    read_key_range,
)
from pipelines.dedup.indexes import Indexed, checked_indexes, index_file, indexes_fingerprint
from pipelines.engine.documents import answers, noted, over_documents
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.transform import (
    Applied,
    Outcome,
    Transform,
    TransformShards,
    batches_beside,
    shard_tasks,
)
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Task, read_record, records_of
from pipelines.storage.damage import damaged
from pipelines.storage.exchange import (
    UInt64,
    document_numbers,
    read_columns,
    read_range,
    row_of,
    run_of,
    scratch,
    write_columns,
    write_run,
)
from pipelines.storage.files import SCRATCH, Folder, unsealed
from pipelines.storage.shards import add_counts

#: Folder of the audit: every frequent line of each shard, with its verdict.
_AUDIT = "audit"
#: Key of the counts of documents by language.
_DOCUMENTS = f"{SCRATCH}/data/documents.json"
#: Column and file of the hashes of each document's lines, which are computed once.
_HASHES = "hashes"
_STAGE = "dedup-lines"


def _columns(settings: LineDedupSettings, *names: str) -> list[str]:
    return [*names, "language"] if settings.per_language else list(names)


@dataclass(frozen=True)
class Census:
    """Map: count documents by language, which decides the number of buckets."""

    settings_key: str
    settings: LineDedupSettings
    name: str = "census"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        found: Counter[str] = Counter()
        for batch in shard.batches(_columns(self.settings, "id")):
            check_languages(batch, self.settings, _STAGE)
            found.update(languages(batch, self.settings).to_pylist())
        return Result({}, dict(sorted(found.items())))


@dataclass(frozen=True)
class SumCensus:
    """One task: sum the documents by language over all shards."""

    settings_key: str
    shards: tuple[str, ...]
    name: str = "buckets"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        places = [f"{SCRATCH}/records/{Census.name}/{shard}.json" for shard in self.shards]
        documents: dict[str, int] = {}
        for record in folder.each(partial(read_record, folder), places):
            add_counts(documents, record["counts"])
        return Result({_DOCUMENTS: folder.write_own_json(_DOCUMENTS, documents)})


def _read_buckets(folder: Folder, settings: LineDedupSettings) -> Buckets:
    documents = unsealed(folder.read_bytes(_DOCUMENTS))
    if documents is None:
        raise damaged(folder, _DOCUMENTS, "not the bytes that were written")
    return Buckets(settings, tuple(sorted(documents.items())))


@dataclass(frozen=True)
class CountLines:
    """Map: count how often each line occurs in a shard, by bucket."""

    settings_key: str
    settings: LineDedupSettings
    name: str = "lines"
    sends = ("lines",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        read = _columns(self.settings, "id", "url", "text")
        function = partial(_lines_of, index, _read_buckets(folder, self.settings))
        parts = over_documents(_STAGE, shard, function, read)
        found, aside = answers(parts, progress)
        lines, places, hosts, hashes = zip(*found, strict=True)
        counts = with_pages(merge_counts(lines), np.concatenate(hosts))
        buckets = np.concatenate(places)[row_of(counts.first)]
        # The key is the line's hash without bucket: an index has lines but no buckets.
        columns = {"key": out_of_buckets(counts.hashes, buckets), "bucket": buckets}
        columns |= dict(zip(_COUNTS, counts[1:], strict=True))
        name = scratch(_HASHES, shard.name)
        files = run_of(folder, "lines", shard.name, columns)
        files[name] = write_columns(folder, name, {_HASHES: pa.concat_arrays(hashes)})
        return Result(files, noted(aside))


def _lines_of(
    index: int, buckets: Buckets, batch: pa.RecordBatch, first_row: int
) -> tuple[LineCounts, npt.NDArray[np.int64], UInt64, pa.Array]:
    """Return the lines of a batch, and bucket, host and hashes of lines of each document."""
    return lines_of(batch, document_numbers(index, batch.num_rows, first_row), buckets)


@dataclass(frozen=True)
class FindFrequent(OverRanges):
    """Reduce: find the lines in a range of keys that occur too often over all shards.

    A line of an index counts in each bucket with the highest count of any bucket of the index.
    """

    settings_key: str
    settings: LineDedupSettings
    indexed: tuple[Indexed, ...]
    shards: tuple[str, ...]
    name: str = "frequent"

    def runs(self) -> list[str]:
        return [scratch("lines", s) for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high = task.payload
        batch = read_key_range(folder, "lines", self.shards, low, high)
        totals, keys, buckets = total_lines(merge_counts([])), _NO_KEYS, np.zeros(0, np.int64)
        if batch is not None:
            column = {n: batch.column(n).to_numpy() for n in batch.schema.names}
            own = in_buckets(column["key"], column["bucket"])
            totals = total_lines(merge_counts([LineCounts(own, *(column[n] for n in _COUNTS))]))
            _, first = np.unique(own, return_index=True)
            keys, buckets = column["key"][first], column["bucket"][first]
        files = {}
        if self.settings.index.write:
            name = index_file(task.name)
            files[name] = write_columns(folder, name, _greatest(keys, totals))
        for known in self.indexed:
            for there in read_range(known.folder, [known.file], "key", low, high):
                column = {n: there.column(n).to_numpy() for n in ("key", *_KNOWN)}
                places = np.searchsorted(column["key"], keys).clip(max=there.num_rows - 1)
                both = np.flatnonzero(column["key"][places] == keys)
                counts = (column[n][places[both]] for n in _KNOWN)
                totals = add_known(totals, in_buckets(keys[both], buckets[both]), *counts)
        frequent = frequent_lines(totals, self.settings)
        name = scratch("frequent", task.name)
        files[name] = write_run(folder, name, "hashes", frequent._asdict())
        return Result(files, {"lines": len(totals.hashes), "frequent": len(frequent.hashes)})


_NO_KEYS = np.zeros(0, np.uint64)
_COUNTS = ("host", "count", "edges", "pages", "first", "bytes")
_KNOWN = ("count", "edges", "pages")


def _greatest(keys: UInt64, totals: LineTotals) -> dict[str, Any]:
    """Return each line's counts in the bucket where it is most frequent, by ascending key."""
    order = np.lexsort([-totals.counts, keys])
    order = order[run_starts(keys[order])]
    known = (totals.counts, totals.edges, totals.pages)
    return {"key": keys[order], **{n: c[order] for n, c in zip(_KNOWN, known, strict=True)}}


@dataclass(frozen=True)
class CutLines(Transform):
    """The transform that cuts frequent lines and removes documents left too short."""

    settings: LineDedupSettings
    ranges: tuple[str, ...]

    def open(self, shard: str, folder: Folder) -> Applied:
        hashes = read_columns(folder, scratch(_HASHES, shard)).column(_HASHES)
        return partial(self._cut, hashes, _read_frequent(folder, self.ranges))

    def _cut(
        self, hashes: pa.Array, frequent: LineTotals, batch: pa.RecordBatch, first_row: int
    ) -> Outcome:
        known = hashes.slice(first_row, batch.num_rows).flatten().to_numpy()
        removal = remove_lines(batch.column("text"), frequent, self.settings, known)
        cuts = removal.cut_positions, removal.cut_texts
        edits = edits_of(batch.column("id"), removal.cut_rows, "lines.frequent", *cuts)
        extra = {
            "lines_cut": len(removal.cut_rows),
            "characters_cut": int(removal.characters_removed.sum()),
        }
        audit = audit_lines(batch.column("text"), removal, frequent)
        batch = with_column(batch, "text", removal.texts)
        return Outcome(batch, verdicts(removal, self.settings), edits, extra, {_AUDIT: audit})


def _read_frequent(folder: Folder, ranges: Sequence[str]) -> LineTotals:
    """Return all frequent lines, by ascending hash."""
    batches = [read_columns(folder, scratch("frequent", name)) for name in ranges]
    table = pa.Table.from_batches(batches)
    totals = LineTotals(*(table[n].to_numpy() for n in LineTotals._fields))
    return totals.take(np.argsort(totals.hashes, kind="stable"))


def check_indexes(settings: LineDedupSettings) -> list[Indexed]:
    """Return the files of the indexes in the settings. Raises ConfigError for an unusable one."""
    shared = ["normalization", "per_language", "min_line_characters"]
    return checked_indexes(_STAGE, settings, shared)


def run(run: StageRun) -> dict[str, Any]:
    """Cut lines that occur too often in their bucket of documents, and audit what was cut."""
    settings: LineDedupSettings = run.settings
    indexed = check_indexes(settings)
    run.begin()
    shards = tuple(s.name for s in run.inputs)
    # Lines take about as many bytes as compressed documents. The number of ranges must not depend
    # on the counts, since indexes are divided in the same way.
    size = sum(s.bytes for s in run.inputs) + sum(i.bytes for i in indexed)
    ranges = range_tasks(size, source=indexes_fingerprint(indexed))
    census = Census(run.settings_key, settings)
    total = SumCensus(run.settings_key, shards)
    count = CountLines(run.settings_key, settings)
    find = FindFrequent(run.settings_key, settings, tuple(indexed), shards)
    cut = CutLines(settings, tuple(t.name for t in ranges))
    apply = TransformShards(
        *(run.stage, run.settings_key, cut),
        beside={_AUDIT: AUDIT},
        counted=(run.folder, count.name),
    )
    tasks = shard_tasks(run.inputs)
    passes = [
        Pass(census, tasks),
        # The number of documents of a language decides its buckets.
        Pass(total, [Task("all", ())], after=(census.name,)),
        Pass(count, numbered_tasks(run.inputs), after=(total.name,)),
        Pass(find, ranges, after=(count.name,)),
        Pass(apply, tasks, after=(find.name, total.name)),
    ]
    run.chain(passes)
    notes = summary(batches_beside(run, _AUDIT))
    also = records_of(run.folder, find, ranges)
    return run.finish(tasks, run.compared, {"notes": notes}, also=also)
