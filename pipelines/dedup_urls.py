"""Stage `dedup-urls`: one capture of each URL over the whole data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.keys import string_keys
from curation.dedup.settings import UrlDedupSettings
from curation.dedup.survivors import choose_survivors
from curation.dedup.urls import canonical_urls
from pipelines.engine.duplicates import (
    apply_verdicts,
    files_of,
    no_verdicts,
    numbered_tasks,
    output_fingerprint,
    range_tasks,
    read_key_range,
    removals_of_shard,
    run_verdicts,
    scratch,
    write_verdicts,
)
from pipelines.engine.exchange import document_numbers, gather, write_columns, write_run
from pipelines.engine.files import Folder
from pipelines.engine.shards import read_batches
from pipelines.engine.stage import StageRun
from pipelines.engine.tasks import Progress, Result, Task

_COLUMNS = ["id", "url", "date", "text"]


@dataclass(frozen=True)
class UrlKeys:
    """Map: the key of each document's canonical URL, with what decides who survives."""

    settings_key: str
    settings: UrlDedupSettings
    name: str = "keys"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        parts: list[dict[str, Any]] = []
        row = 0
        for batch in read_batches(shard.folder, shard.file, _COLUMNS):
            parts.append(self._keys(batch, document_numbers(index, batch.num_rows, row)))
            row += batch.num_rows
            progress(batch.num_rows, batch.num_rows)
        columns = _concatenate(parts)
        facts = {k: columns[k] for k in ("id", "date")}
        # Documents without a URL have no key: they are copies of nothing.
        has_url = columns.pop("has_url")
        keys = {k: v[has_url] for k, v in columns.items() if isinstance(v, np.ndarray)}
        return Result(
            {
                scratch("keys", shard.name): write_run(
                    folder, scratch("keys", shard.name), "key", keys
                ),
                scratch("facts", shard.name): write_columns(
                    folder, scratch("facts", shard.name), facts
                ),
            }
        )

    def _keys(self, batch: pa.RecordBatch, numbers: Any) -> dict[str, Any]:
        urls = canonical_urls(batch.column("url"), self.settings.canonical)
        keys = string_keys(urls)
        return {
            "key": keys[:, 0],
            "key_low": keys[:, 1],
            "number": numbers,
            "date": batch.column("date")
            .cast(pa.int64())
            .fill_null(np.iinfo(np.int64).min)
            .to_numpy(),
            "length": pc.utf8_length(batch.column("text")).cast(pa.int64()).to_numpy(),
            "id_hash": string_keys(batch.column("id"))[:, 0],
            "id": batch.column("id"),
            "has_url": pc.is_valid(urls).to_numpy(zero_copy_only=False),
        }


@dataclass(frozen=True)
class UrlSurvivors:
    """Reduce: in a range of keys, who goes and who stays."""

    settings_key: str
    settings: UrlDedupSettings
    name: str = "survivors"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high, shards = task.payload
        batch = read_key_range(folder, "keys", shards, low, high)
        if batch is None:
            removed = kept = np.zeros(0, np.uint64)
        else:
            columns = {name: batch.column(name).to_numpy() for name in batch.schema.names}
            removed, kept = choose_survivors(
                np.stack([columns["key"], columns["key_low"]], axis=1),
                columns["number"],
                {
                    "date": columns["date"].astype("datetime64[us]"),
                    "length": columns["length"],
                    "id": columns["id_hash"],
                },
                self.settings.survivor.policy,
            )
        name = scratch("survivors", task.name)
        return Result({name: write_run(folder, name, "key", {"key": removed, "kept": kept})})


@dataclass(frozen=True)
class UrlVerdicts:
    """For each shard, which rows go, why, and what stays in their place."""

    settings_key: str
    name: str = "verdicts"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard, ranges, shards = task.payload
        name = scratch("verdicts", shard)
        rows = removals_of_shard(folder, "survivors", ranges, index)
        if rows is None:
            return Result({name: no_verdicts(folder, shard)})
        facts = [scratch("facts", s) for s in shards]
        removed, kept = rows.column("key").to_numpy(), rows.column("kept").to_numpy()
        own = gather(folder, facts, removed, ["date"])["date"].to_numpy()
        other = gather(folder, facts, kept, ["id", "date"])
        dates = other["date"].to_numpy()
        reasons = [
            "url.older_capture" if a < b else "url.duplicate"
            for a, b in zip(own, dates, strict=True)
        ]
        kept_id = other["id"].combine_chunks()
        return Result(
            {
                name: write_verdicts(
                    folder, shard, removed, reasons, _seconds(own), _seconds(dates), kept_id
                )
            }
        )


def _seconds(microseconds: Any) -> Any:
    """Seconds since 1970; NaN for documents without a date."""
    absent = microseconds == np.iinfo(np.int64).min
    return np.where(absent, np.nan, microseconds / 1e6)


def _concatenate(parts: list[dict[str, Any]]) -> dict[str, Any]:
    if not parts:
        numbers = np.zeros(0, np.uint64)
        days = np.zeros(0, np.int64)
        return {
            "key": numbers,
            "key_low": numbers,
            "number": numbers,
            "date": days,
            "length": days,
            "id_hash": numbers,
            "id": pa.array([], pa.string()),
            "has_url": np.zeros(0, bool),
        }
    return {
        k: pa.concat_arrays([p[k] for p in parts])
        if isinstance(parts[0][k], pa.Array)
        else np.concatenate([p[k] for p in parts])
        for k in parts[0]
    }


def run(run: StageRun) -> dict[str, Any]:
    """Keep the newest capture of each URL (or what the recipe's policy says)."""
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    shards = [s.name for s in run.inputs]
    keys = UrlKeys(run.settings_key, run.settings)
    key_tasks = numbered_tasks(run.inputs)
    run.run(keys, key_tasks)

    survivors = UrlSurvivors(run.settings_key, run.settings)
    ranges = range_tasks(files_of(run.folder, keys, key_tasks), "keys", shards)
    run.run(survivors, ranges)

    found = output_fingerprint(files_of(run.folder, survivors, ranges))
    names = [r.name for r in ranges]
    payloads = [(i, name, names, shards) for i, name in enumerate(shards)]
    verdicts = UrlVerdicts(run.settings_key)
    tasks = run_verdicts(run, verdicts, found, payloads)
    return apply_verdicts(run, verdicts, tasks, inputs)
