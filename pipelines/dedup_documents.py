"""Stage `dedup-documents`: exact copies and near duplicates over the whole data set.

Documents that share a bucket (of a MinHash band, or of equal normalised text) are neighbours in one
graph; of each connected component one document stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.components import (
    connected_components,
    contract,
    spanning_forest,
    star_edges,
    unique_edges,
)
from curation.dedup.exact import exact_keys
from curation.dedup.keys import language_scopes, string_keys, within
from curation.dedup.lsh import band_hashes, band_threshold, bucket_records
from curation.dedup.minhash import signatures
from curation.dedup.settings import DocumentDedupSettings
from curation.dedup.survivors import choose_survivors
from pipelines.engine.duplicates import (
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
from pipelines.engine.exchange import (
    UInt64,
    document_numbers,
    gather,
    read_columns,
    write_columns,
    write_run,
)
from pipelines.engine.files import Folder
from pipelines.engine.shards import read_batches
from pipelines.engine.stage import StageRun
from pipelines.engine.tasks import Progress, Result, Task
from pipelines.engine.transform import column_names

_ABSENT_DATE = np.iinfo(np.int64).min
_NO_EDGES = np.zeros((0, 2), np.uint64)


@dataclass(frozen=True)
class Sign:
    """Map: exact keys, signatures and buckets of every document of a shard."""

    settings_key: str
    settings: DocumentDedupSettings
    name: str = "signatures"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        present = column_names(shard)
        columns = [c for c in ("id", "date", "text", "language", "quality") if c in present]
        facts: list[pa.RecordBatch] = []
        buckets: list[tuple[UInt64, UInt64]] = []
        row = 0
        for batch in read_batches(shard.folder, shard.file, columns):
            numbers = document_numbers(index, batch.num_rows, row)
            row += batch.num_rows
            fact, found = self._sign(batch, numbers)
            facts.append(fact)
            buckets += found
            progress(batch.num_rows, batch.num_rows)
        return Result(self._write(folder, shard.name, facts, buckets))

    def _sign(
        self, batch: pa.RecordBatch, numbers: UInt64
    ) -> tuple[pa.RecordBatch, list[tuple[UInt64, UInt64]]]:
        texts, settings = batch.column("text"), self.settings
        exact = exact_keys(texts, settings.exact.normalization)
        facts: dict[str, Any] = {
            "id": batch.column("id"),
            "date": batch.column("date").cast(pa.int64()).fill_null(_ABSENT_DATE),
            "length": pc.utf8_length(texts).cast(pa.int64()),
            "id_hash": pa.array(string_keys(batch.column("id"))[:, 0]),
            "exact": pa.array(exact.keys[:, 0]),
            "exact_low": pa.array(exact.keys[:, 1]),
        }
        if "quality" in batch.schema.names:
            facts["quality"] = batch.column("quality").cast(pa.float64())
        found = []
        if settings.exact.enabled:
            same = self._scoped(batch, exact.keys[:, 0])
            found.append((same[exact.lengths > 0], numbers[exact.lengths > 0]))
        if settings.minhash.enabled:
            minhash = settings.minhash
            signed = signatures(texts, minhash)
            hashes = band_hashes(signed.values, minhash.bands, minhash.rows)
            found.append(bucket_records(self._scoped(batch, hashes), numbers, signed.shingles))
            facts["signature"] = _binary_rows(signed.values)
        return pa.RecordBatch.from_pydict(facts), found

    def _scoped(self, batch: pa.RecordBatch, hashes: UInt64) -> UInt64:
        """Hashes that meet only within a language, where the recipe says so."""
        if not self.settings.per_language:
            return hashes
        return within(hashes, language_scopes(batch.column("language").fill_null("")))

    def _write(
        self,
        folder: Folder,
        shard: str,
        facts: Sequence[pa.RecordBatch],
        buckets: Sequence[tuple[UInt64, UInt64]],
    ) -> dict[str, Any]:
        keys = np.concatenate([b[0] for b in buckets] or [np.zeros(0, np.uint64)])
        numbers = np.concatenate([b[1] for b in buckets] or [np.zeros(0, np.uint64)])
        # One record per bucket leaves the shard, whatever the bucket's size: the rest are edges.
        local = contract(keys, numbers)
        table = pa.Table.from_batches(facts).combine_chunks() if facts else pa.table({})
        out = {
            "facts": {n: _one(table[n]) for n in table.column_names},
            "edges": {"a": local.edges[:, 0], "b": local.edges[:, 1]},
        }
        files = {
            scratch(kind, shard): write_columns(folder, scratch(kind, shard), columns)
            for kind, columns in out.items()
        }
        name = scratch("buckets", shard)
        files[name] = write_run(folder, name, "key", {"key": local.buckets, "number": local.doc64})
        return files


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.array([], column.type)


def _binary_rows(values: npt.NDArray[Any]) -> pa.Array:
    """Rows of a matrix as fixed-size binary values."""
    width = values.shape[1] * values.itemsize
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, data])


@dataclass(frozen=True)
class Link:
    """Reduce: edges between the documents of each bucket in a range of bucket keys."""

    settings_key: str
    name: str = "links"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high, shards = task.payload
        batch = read_key_range(folder, "buckets", shards, low, high)
        edges = _NO_EDGES
        if batch is not None:
            pairs = star_edges(batch.column("key").to_numpy(), batch.column("number").to_numpy())
            edges = spanning_forest(pairs)
        name = scratch("links", task.name)
        return Result(
            {name: write_columns(folder, name, {"a": edges[:, 0], "b": edges[:, 1]})},
            {"edges": len(edges)},
        )


@dataclass(frozen=True)
class Solve:
    """One task: components of the whole graph, and the survivor of each."""

    settings_key: str
    settings: DocumentDedupSettings
    name: str = "components"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        edge_files, shards = task.payload
        parts = [_edges(folder, name) for name in edge_files]
        edges = unique_edges(np.concatenate([*parts, _NO_EDGES]))
        nodes, labels = connected_components(edges)
        policy = self.settings.survivor.policy
        wanted = ["date", "length", "id_hash"] + ["quality"] * ("highest_quality" in policy)
        facts = gather(folder, [scratch("facts", s) for s in shards], nodes, wanted)
        order: dict[str, npt.NDArray[Any]] = {}
        if len(nodes):
            order = {c.replace("id_hash", "id"): facts[c].to_numpy() for c in wanted}
            order["date"] = order["date"].astype("datetime64[us]")
        else:
            order = {c.replace("id_hash", "id"): np.zeros(0) for c in wanted}
        removed, kept = choose_survivors(labels, nodes, order, policy)
        _, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        cluster = sizes[place][np.searchsorted(nodes, removed)] if len(removed) else sizes[:0]
        name = scratch("components", "removed")
        columns = {"key": removed, "kept": kept, "size": cluster.astype(np.int64)}
        counts = {"edges": len(edges), "clusters": len(sizes), "largest": int(sizes.max(initial=0))}
        return Result({name: write_run(folder, name, "key", columns)}, counts)


def _edges(folder: Folder, name: str) -> UInt64:
    batch = read_columns(folder, name)
    return np.stack([batch.column("a").to_numpy(), batch.column("b").to_numpy()], axis=1)


@dataclass(frozen=True)
class DocumentVerdicts:
    """For each shard, which rows go: exact or near copy, of what, how similar."""

    settings_key: str
    settings: DocumentDedupSettings
    name: str = "verdicts"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard, shards = task.payload
        name = scratch("verdicts", shard)
        rows = removals_of_shard(folder, "components", ["removed"], index)
        if rows is None:
            return Result({name: no_verdicts(folder, shard)})
        removed, kept = rows.column("key").to_numpy(), rows.column("kept").to_numpy()
        facts = [scratch("facts", s) for s in shards]
        columns = ["id", "exact", "exact_low"]
        if self.settings.minhash.enabled:
            columns.append("signature")
        own, other = gather(folder, facts, removed, columns), gather(folder, facts, kept, columns)
        same = _equal(own, other, "exact") & _equal(own, other, "exact_low")
        threshold = np.ones(len(removed))
        similarity = np.ones(len(removed))
        if self.settings.minhash.enabled:
            minhash = self.settings.minhash
            near = band_threshold(minhash.bands, minhash.rows)
            threshold = np.where(same, 1.0, near)
            similarity = np.where(same, 1.0, _estimated_jaccard(own, other, minhash.num_perm))
        reasons = np.where(same, "document.exact", "document.near").tolist()
        kept_id = other["id"].combine_chunks()
        return Result(
            {name: write_verdicts(folder, shard, removed, reasons, similarity, threshold, kept_id)}
        )


def _equal(own: pa.Table, other: pa.Table, column: str) -> npt.NDArray[np.bool_]:
    return own[column].to_numpy() == other[column].to_numpy()


def _estimated_jaccard(own: pa.Table, other: pa.Table, num_perm: int) -> npt.NDArray[np.float64]:
    """Share of equal hash values: the MinHash estimate of Jaccard similarity."""
    a, b = (_signature_matrix(t["signature"], num_perm) for t in (own, other))
    return (a == b).mean(axis=1)


def _signature_matrix(column: pa.ChunkedArray, num_perm: int) -> npt.NDArray[Any]:
    array = column.combine_chunks()
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1], np.uint8)
    data = data[array.offset * width : (array.offset + len(array)) * width]
    return data.view(f"<u{width // num_perm}").reshape(len(array), num_perm)


def run(run: StageRun) -> dict[str, Any]:
    """Keep one document of each cluster of copies."""
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    shards = [s.name for s in run.inputs]
    sign = Sign(run.settings_key, run.settings)
    sign_tasks = numbered_tasks(run.inputs)
    run.run(sign, sign_tasks)
    signed = files_of(run.folder, sign, sign_tasks)

    link = Link(run.settings_key)
    link_tasks = range_tasks(signed, "buckets", shards)
    run.run(link, link_tasks)

    solve = Solve(run.settings_key, run.settings)
    linked = files_of(run.folder, link, link_tasks)
    edge_files = [scratch("edges", s) for s in shards] + [
        scratch("links", t.name) for t in link_tasks
    ]
    source = (("edges", output_fingerprint([*signed, *linked])),)
    solve_task = Task("all", source, 0, (edge_files, shards))
    run.run(solve, [solve_task])
    solved = files_of(run.folder, solve, [solve_task])

    found = output_fingerprint([*solved, *signed])
    payloads = [(i, name, shards) for i, name in enumerate(shards)]
    step = DocumentVerdicts(run.settings_key, run.settings)
    return run_verdicts(run, step, found, payloads, {"graph": solved[0]["counts"]})
