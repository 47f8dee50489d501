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

from curation.dedup.keys import string_keys
from curation.dedup.lines import (
    FrequentLines,
    LineCounts,
    assign_buckets,
    count_lines,
    frequent_lines,
    line_hashes,
    line_scopes,
    merge_counts,
    remove_lines,
    verdicts,
)
from curation.dedup.settings import LineDedupSettings
from curation.schema import with_column
from pipelines.engine.duplicates import (
    files_of,
    numbered_tasks,
    output_fingerprint,
    range_tasks,
    read_key_range,
    scratch,
)
from pipelines.engine.exchange import UInt64, document_numbers, read_columns, write_run
from pipelines.engine.files import Folder
from pipelines.engine.shards import add_counts, read_batches
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.tasks import Progress, Result, Task
from pipelines.engine.transform import Outcome, TransformShards, shard_tasks

#: Most frequent removed lines that the report shows.
_SHOWN_LINES = 50
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Scopes:
    """Which lines are counted together: those of a language, and of a bucket of its documents."""

    settings: LineDedupSettings
    documents: tuple[tuple[str, int], ...]  # documents by language, or all under ""

    def of(self, batch: pa.RecordBatch) -> UInt64:
        """Scope of each document -> uint64 [rows]."""
        ids = string_keys(batch.column("id"))[:, 0]
        languages = _languages(batch, self.settings)
        buckets = np.zeros(batch.num_rows, np.int64)
        for language, documents in self.documents:
            mine = pc.equal(languages, language).to_numpy(zero_copy_only=False)
            buckets[mine] = assign_buckets(ids[mine], documents, self.settings.bucket_documents)
        return line_scopes(buckets, languages)


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
        found: Counter[str] = Counter()
        for batch in read_batches(shard.folder, shard.file, _columns(self.settings, "id")):
            found.update(_languages(batch, self.settings).to_pylist())
        return Result({}, dict(sorted(found.items())))


@dataclass(frozen=True)
class CountLines:
    """Map: how often each line of a shard occurs there."""

    settings_key: str
    settings: LineDedupSettings
    scopes: Scopes
    name: str = "lines"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        parts: list[LineCounts] = []
        row = 0
        for batch in read_batches(shard.folder, shard.file, _columns(self.settings, "id", "text")):
            lines = line_hashes(batch.column("text"), self.settings, self.scopes.of(batch))
            numbers = document_numbers(index, batch.num_rows, row)
            parts.append(count_lines(lines, numbers, self.settings))
            row += batch.num_rows
            progress(batch.num_rows, batch.num_rows)
        counts = merge_counts(parts)
        name = scratch("lines", shard.name)
        columns = {"key": counts.hashes, "count": counts.counts, "first": counts.first}
        return Result({name: write_run(folder, name, "key", columns)})


@dataclass(frozen=True)
class FindFrequent:
    """Reduce: the lines of a range of hashes that occur too often over all shards."""

    settings_key: str
    settings: LineDedupSettings
    name: str = "frequent"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high, shards = task.payload
        batch = read_key_range(folder, "lines", shards, low, high)
        counts = merge_counts([])
        if batch is not None:
            columns = (batch.column(n).to_numpy() for n in ("key", "count", "first"))
            counts = merge_counts([LineCounts(*columns)])
        frequent = frequent_lines(counts, self.settings)
        often = counts.counts[np.isin(counts.hashes, frequent.hashes)]
        name = scratch("frequent", task.name)
        table = {"key": frequent.hashes, "first": frequent.first, "count": often}
        return Result(
            {name: write_run(folder, name, "key", table)},
            {"lines": len(counts.hashes), "frequent": len(frequent.hashes)},
        )


@dataclass(frozen=True)
class CutLines:
    """The transform that cuts frequent lines and removes what they leave too short."""

    settings: LineDedupSettings
    scopes: Scopes
    ranges: tuple[str, ...]
    indexes: dict[str, int]
    frequent: FrequentLines | None = None
    index: int = 0

    def open(self, shard: str, folder: Folder) -> CutLines:
        frequent, _ = _read_frequent(folder, self.ranges)
        return replace(self, frequent=frequent, index=self.indexes[shard])

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        assert self.frequent is not None
        numbers = document_numbers(self.index, batch.num_rows, first_row)
        scopes = self.scopes.of(batch)
        removal = remove_lines(batch.column("text"), numbers, self.frequent, self.settings, scopes)
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


def _read_frequent(
    folder: Folder, ranges: Sequence[str]
) -> tuple[FrequentLines, npt.NDArray[np.int64]]:
    """All frequent lines by ascending hash (the ranges are in order), and their counts."""
    batches = [read_columns(folder, scratch("frequent", name)) for name in ranges]
    table = pa.Table.from_batches(batches)
    keys, first, often = (table[c].to_numpy() for c in ("key", "first", "count"))
    return FrequentLines(keys, first), often


def _most_frequent(
    run: StageRun, frequent: FrequentLines, often: Any, scopes: Scopes
) -> list[dict[str, Any]]:
    """The lines that occurred most, with their text: read back from the shards' edits."""
    order = np.lexsort([frequent.hashes, -often])[:_SHOWN_LINES]
    wanted = {int(frequent.hashes[i]): int(often[i]) for i in order}
    found: dict[int, dict[str, Any]] = {}
    for shard in run.inputs:
        if len(found) == len(wanted):
            break
        for batch in read_batches(shard.folder, shard.file, _columns(run.settings, "id", "text")):
            lines = line_hashes(batch.column("text"), run.settings, scopes.of(batch))
            rows = np.repeat(np.arange(batch.num_rows), np.diff(lines.doc_offsets))
            hits = np.flatnonzero(np.isin(lines.hashes, np.array(list(wanted), np.uint64)))
            for hit in hits:
                key = int(lines.hashes[hit])
                if key not in found:
                    start, end = lines.spans[hit]
                    text = batch.column("text")[int(rows[hit])].as_py().encode()[start:end].decode()
                    found[key] = {
                        "line": text.strip()[:_SHOWN_CHARACTERS],
                        "occurrences": wanted[key],
                        "characters": wanted[key] * len(text),
                    }
    return [found[k] for k in wanted if k in found]


def run(run: StageRun) -> dict[str, Any]:
    """Cut the lines that occur more than `max_occurrences` times in their bucket."""
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    settings: LineDedupSettings = run.settings
    shards = [s.name for s in run.inputs]
    census = Census(run.settings_key, settings)
    census_tasks = shard_tasks(run.inputs)
    run.run(census, census_tasks)
    documents: dict[str, int] = {}
    for record in files_of(run.folder, census, census_tasks):
        add_counts(documents, record["counts"])
    scopes = Scopes(settings, tuple(sorted(documents.items())))

    count = CountLines(run.settings_key, settings, scopes)
    # How many documents a language has decides the buckets, and so belongs to the fingerprint.
    totals = ("documents", str(scopes.documents))
    count_tasks = [replace(t, inputs=(*t.inputs, totals)) for t in numbered_tasks(run.inputs)]
    run.run(count, count_tasks)

    find = FindFrequent(run.settings_key, settings)
    find_tasks = range_tasks(files_of(run.folder, count, count_tasks), "lines", shards)
    run.run(find, find_tasks)
    found = files_of(run.folder, find, find_tasks)

    ranges = tuple(t.name for t in find_tasks)
    cut = CutLines(settings, scopes, ranges, {s: i for i, s in enumerate(shards)})
    apply = TransformShards(run.stage, run.settings_key, cut, writes_edits=True)
    same = {s: f"{output_fingerprint(found)} {totals[1]}" for s in shards}
    tasks = shard_tasks(run.inputs, same)
    run.run(apply, tasks)
    frequent, often = _read_frequent(run.folder, ranges)
    notes = {"most frequent lines removed": _most_frequent(run, frequent, often, scopes)}
    return run.finish(tasks, inputs, {"notes": notes})
