"""Stage `dedup-lines`: cut lines that repeat across the documents of a bucket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.keys import language_scopes, string_keys
from curation.dedup.lines import (
    FrequentLines,
    LineCounts,
    add_known,
    assign_buckets,
    count_lines,
    frequent_lines,
    in_buckets,
    line_hashes,
    merge_counts,
    out_of_buckets,
    remove_lines,
    verdicts,
)
from curation.dedup.settings import LineDedupSettings
from curation.dedup.sorting import run_starts, sort_pairs
from curation.schema import with_column
from pipelines.engine.duplicates import (
    OverRanges,
    check_languages,
    files_of,
    numbered_tasks,
    output_fingerprint,
    range_tasks,
    read_key_range,
    scratch,
)
from pipelines.engine.exchange import (
    UInt64,
    document_numbers,
    read_columns,
    read_range,
    row_of,
    shard_of,
    write_columns,
    write_run,
)
from pipelines.engine.files import Folder
from pipelines.engine.indexes import INDEX, Indexed, check_settings, index_file, index_files
from pipelines.engine.shards import add_counts, read_batches
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.tasks import Progress, Result, Task
from pipelines.engine.transform import Outcome, TransformShards, column_names, shard_tasks

#: Most frequent removed lines that the report shows.
_SHOWN_LINES = 50
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Buckets:
    """Which lines are counted together: those of a language, and of a bucket of its documents."""

    settings: LineDedupSettings
    documents: tuple[tuple[str, int], ...]  # documents by language, or all under ""

    def of(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Bucket of each document, within its language -> int64 [rows]."""
        ids = string_keys(batch.column("id"))[:, 0]
        languages = _languages(batch, self.settings)
        buckets = np.zeros(batch.num_rows, np.int64)
        for language, documents in self.documents:
            mine = pc.equal(languages, language).to_numpy(zero_copy_only=False)
            buckets[mine] = assign_buckets(ids[mine], documents, self.settings.bucket_documents)
        return buckets

    def scopes(self, batch: pa.RecordBatch) -> UInt64:
        """Scope of each document: its language -> uint64 [rows]."""
        return language_scopes(_languages(batch, self.settings))


def _languages(batch: pa.RecordBatch, settings: LineDedupSettings) -> pa.Array:
    if settings.per_language:
        return batch.column("language").fill_null("")
    return pa.array([""] * batch.num_rows, pa.string())


def _columns(settings: LineDedupSettings, *names: str) -> list[str]:
    return [*names, "language"] if settings.per_language else list(names)


@dataclass(frozen=True)
class Census:
    """Map: documents by language, which decides how many buckets there are."""

    settings_key: str
    settings: LineDedupSettings
    name: str = "census"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        if self.settings.per_language:
            check_languages(column_names(shard), "dedup-lines")
        found: Counter[str] = Counter()
        for batch in read_batches(shard.folder, shard.file, _columns(self.settings, "id")):
            found.update(_languages(batch, self.settings).to_pylist())
        return Result({}, dict(sorted(found.items())))


@dataclass(frozen=True)
class CountLines:
    """Map: how often each line of a shard occurs there, by bucket."""

    settings_key: str
    settings: LineDedupSettings
    buckets: Buckets
    name: str = "lines"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        parts: list[LineCounts] = []
        placed: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
        row = 0
        for batch in read_batches(shard.folder, shard.file, _columns(self.settings, "id", "text")):
            lines = line_hashes(batch.column("text"), self.settings, self.buckets.scopes(batch))
            placed.append(self.buckets.of(batch))
            of_lines = np.repeat(placed[-1], np.diff(lines.doc_offsets))
            lines = lines._replace(hashes=in_buckets(lines.hashes, of_lines))
            numbers = document_numbers(index, batch.num_rows, row)
            parts.append(count_lines(lines, numbers, self.settings))
            row += batch.num_rows
            progress(batch.num_rows, batch.num_rows)
        counts = merge_counts(parts)
        buckets = np.concatenate(placed)[row_of(counts.first)]
        name = scratch("lines", shard.name)
        # The key is the line's in all buckets: an index knows of lines, not of buckets.
        columns = {
            "key": out_of_buckets(counts.hashes, buckets),
            "bucket": buckets,
            "count": counts.counts,
            "first": counts.first,
            "bytes": counts.bytes,
        }
        return Result({name: write_run(folder, name, "key", columns)})


@dataclass(frozen=True)
class FindFrequent(OverRanges):
    """Reduce: the lines of a range of keys that occur too often over all shards.

    A line of an index counts in each bucket here as often as in the bucket there that has most.
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
        counts, keys, buckets = merge_counts([]), _NO_KEYS, np.zeros(0, np.int64)
        if batch is not None:
            column = {n: batch.column(n).to_numpy() for n in batch.schema.names}
            own = in_buckets(column["key"], column["bucket"])
            counts = merge_counts([LineCounts(own, *(column[n] for n in _COUNTS))])
            _, rows = np.unique(own, return_index=True)
            keys, buckets = column["key"][rows], column["bucket"][rows]
        files = {}
        if self.settings.index.write:
            name = index_file(task.name)
            files[name] = write_columns(folder, name, _greatest(keys, counts.counts))
        for known in self.indexed:
            counts = self._with_known(counts, keys, buckets, known, low, high)
        frequent = frequent_lines(counts, self.settings)
        found = np.isin(counts.hashes, frequent.hashes)
        table = {
            "key": frequent.hashes,
            "first": frequent.first,
            "count": counts.counts[found],
            "bytes": counts.bytes[found],
            "here": np.zeros(0, np.uint64) if batch is None else _here(batch, own, frequent.hashes),
        }
        name = scratch("frequent", task.name)
        files[name] = write_run(folder, name, "key", table)
        return Result(files, {"lines": len(counts.hashes), "frequent": len(frequent.hashes)})

    def _with_known(
        self,
        counts: LineCounts,
        keys: UInt64,
        buckets: npt.NDArray[np.int64],
        known: Indexed,
        low: int,
        high: int,
    ) -> LineCounts:
        for batch in read_range(known.folder, [known.file], "key", low, high):
            there = batch.column("key").to_numpy()
            places = np.minimum(np.searchsorted(there, keys), len(there) - 1)
            both = np.flatnonzero(there[places] == keys)
            often = batch.column("count").to_numpy()[places[both]]
            counts = add_known(counts, in_buckets(keys[both], buckets[both]), often)
        return counts


_NO_KEYS = np.zeros(0, np.uint64)
_COUNTS = ("count", "first", "bytes")


def _here(batch: pa.RecordBatch, own: UInt64, hashes: UInt64) -> UInt64:
    """A document of this run that has each line, whoever had it before."""
    first = np.full(len(hashes), np.iinfo(np.uint64).max, np.uint64)
    places = np.minimum(np.searchsorted(hashes, own), max(0, len(hashes) - 1))
    if len(hashes):
        both = hashes[places] == own
        np.minimum.at(first, places[both], batch.column("first").to_numpy()[both])
    return first


def _greatest(keys: UInt64, counts: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Of each line, the count of the bucket that has most of it, by ascending key."""
    order = np.lexsort([-counts, keys])
    keys, counts = keys[order], counts[order]
    starts = run_starts(keys)
    return {"key": keys[starts], "count": counts[starts]}


@dataclass(frozen=True)
class CutLines:
    """The transform that cuts frequent lines and removes what they leave too short."""

    settings: LineDedupSettings
    buckets: Buckets
    ranges: tuple[str, ...]
    indexes: dict[str, int]
    frequent: FrequentLines | None = None
    index: int = 0

    def open(self, shard: str, folder: Folder) -> CutLines:
        table = _read_frequent(folder, self.ranges)
        hashes, order = sort_pairs(table["key"], np.arange(len(table["key"]), dtype=np.uint64))
        frequent = FrequentLines(hashes, table["first"][order.astype(np.int64)])
        return replace(self, frequent=frequent, index=self.indexes[shard])

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        assert self.frequent is not None
        removal = remove_lines(
            batch.column("text"),
            document_numbers(self.index, batch.num_rows, first_row),
            self.frequent,
            self.settings,
            self.buckets.scopes(batch),
            self.buckets.of(batch),
        )
        edits = pa.RecordBatch.from_arrays(
            [
                batch.column("id").take(pa.array(removal.cut_rows)),
                pa.array(["lines.frequent"] * len(removal.cut_rows), pa.string()),
                pa.array(removal.cut_positions, pa.int64()),
                removal.cut_texts,
            ],
            names=["id", "reason", "position", "text"],
        )
        extra = {
            "lines_cut": len(removal.cut_rows),
            "characters_cut": int(removal.characters_removed.sum()),
        }
        batch = with_column(batch, "text", removal.texts)
        return Outcome(batch, verdicts(removal, self.settings), edits, extra)


def _read_frequent(folder: Folder, ranges: Sequence[str]) -> dict[str, Any]:
    """All frequent lines with their counts, range after range."""
    batches = [read_columns(folder, scratch("frequent", name)) for name in ranges]
    table = pa.Table.from_batches(batches)
    return {n: table[n].to_numpy() for n in table.column_names}


def _most_frequent(run: StageRun, ranges: Sequence[str], buckets: Buckets) -> list[dict[str, Any]]:
    """The lines that occurred most, how much text they held, and one spelling of each."""
    table = _read_frequent(run.folder, ranges)
    order = np.lexsort([table["key"], -table["count"]])[:_SHOWN_LINES]
    spellings: dict[int, str] = {}
    for shard in np.unique(shard_of(table["here"][order])).tolist():
        mine = order[shard_of(table["here"][order]) == shard]
        rows = dict(zip(row_of(table["here"][mine]).tolist(), range(len(mine)), strict=False))
        wanted = set(table["key"][mine].tolist())
        spellings |= _spellings(run, run.inputs[shard], set(rows), wanted, buckets)
    return [
        {
            "line": spellings.get(int(table["key"][i]), ""),
            "occurrences": int(table["count"][i]),
            "bytes": int(table["bytes"][i]),
        }
        for i in order
    ]


def _spellings(
    run: StageRun, shard: Shard, rows: set[int], wanted: set[int], buckets: Buckets
) -> dict[int, str]:
    """The text of lines given by hash, from the given rows of a shard."""
    found: dict[int, str] = {}
    first = 0
    for batch in read_batches(shard.folder, shard.file, _columns(run.settings, "id", "text")):
        mine = sorted(r - first for r in rows if first <= r < first + batch.num_rows)
        first += batch.num_rows
        if not mine:
            continue
        some = batch.take(pa.array(mine))
        lines = line_hashes(some.column("text"), run.settings, buckets.scopes(some))
        of_lines = np.repeat(np.arange(len(mine)), np.diff(lines.doc_offsets))
        hashes = in_buckets(lines.hashes, buckets.of(some)[of_lines])
        for i in np.flatnonzero(np.isin(hashes, np.array(sorted(wanted), np.uint64))).tolist():
            start, end = lines.spans[i]
            text = some.column("text")[int(of_lines[i])].as_py().encode()[start:end].decode()
            found.setdefault(int(hashes[i]), text.strip()[:_SHOWN_CHARACTERS])
    return found


def check_indexes(settings: LineDedupSettings) -> list[Indexed]:
    """The files of the indexes that the settings name. Raises ConfigError where one can't serve."""
    indexed: list[Indexed] = []
    for priority, path in enumerate(settings.index.against):
        shared = ["normalization", "per_language", "count_per_document", "min_line_characters"]
        check_settings(path, "dedup-lines", settings, shared)
        indexed += index_files(path, "dedup-lines", priority)
    return indexed


def run(run: StageRun) -> dict[str, Any]:
    """Cut the lines that occur more than `max_occurrences` times in their bucket."""
    settings: LineDedupSettings = run.settings
    indexed = check_indexes(settings)
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    inputs += [(i.name, i.fingerprint) for i in indexed]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    shards = [s.name for s in run.inputs]
    buckets = _buckets(run)
    count = CountLines(run.settings_key, settings, buckets)
    # How many documents a language has decides the buckets, and so belongs to the fingerprint.
    totals = ("documents", str(buckets.documents))
    count_tasks = [replace(t, inputs=(*t.inputs, totals)) for t in numbered_tasks(run.inputs)]
    run.run(count, count_tasks)

    find = FindFrequent(run.settings_key, settings, tuple(indexed), tuple(shards))
    records = [*files_of(run.folder, count, count_tasks), *(i.as_record("lines") for i in indexed)]
    find_tasks = range_tasks(records, "lines")
    run.run(find, find_tasks)
    found = files_of(run.folder, find, find_tasks)

    ranges = tuple(t.name for t in find_tasks)
    cut = CutLines(settings, buckets, ranges, {s: i for i, s in enumerate(shards)})
    apply = TransformShards(run.stage, run.settings_key, cut, writes_edits=True)
    same = {s: f"{output_fingerprint(found)} {totals[1]}" for s in shards}
    tasks = shard_tasks(run.inputs, same)
    run.run(apply, tasks)
    notes = {"most frequent lines removed": _most_frequent(run, ranges, buckets)}
    return run.finish(tasks, inputs, {"notes": notes}, also=_only_index(found))


def _buckets(run: StageRun) -> Buckets:
    census = Census(run.settings_key, run.settings)
    tasks = shard_tasks(run.inputs)
    run.run(census, tasks)
    documents: dict[str, int] = {}
    for record in files_of(run.folder, census, tasks):
        add_counts(documents, record["counts"])
    return Buckets(run.settings, tuple(sorted(documents.items())))


def _only_index(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = f"{INDEX}/"
    return [{"files": {n: f for n, f in r["files"].items() if n.startswith(kept)}} for r in records]
