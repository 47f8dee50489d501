"""Map: exact keys, signatures and buckets of every document of a shard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.candidates import bucket_order
from curation.dedup.components import contract
from curation.dedup.exact import exact_keys
from curation.dedup.keys import language_scopes, string_keys, within
from curation.dedup.lsh import band_hashes
from curation.dedup.minhash import has_signature, signatures
from curation.dedup.settings import DocumentDedupSettings
from curation.dedup.survivors import source_ranks
from curation.dedup.urls import hosts
from pipelines.engine.documents import column_names, noted, over_documents
from pipelines.engine.duplicates import check_languages, scratch
from pipelines.engine.exchange import (
    UInt64,
    concatenated,
    document_numbers,
    write_columns,
    write_run,
)
from pipelines.engine.files import FileRecord, Folder
from pipelines.engine.graph import write_edges
from pipelines.engine.tasks import Progress, Result, Task

_STAGE = "dedup-documents"
_ABSENT_DATE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Sign:
    """Read a shard once: what is compared of each document, and the buckets that it is in."""

    settings_key: str
    settings: DocumentDedupSettings
    name: str = "signatures"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        present = column_names(shard)
        if self.settings.per_language:
            check_languages(present, "dedup-documents")
        wanted = ("id", "url", "date", "text", "source", "language", "quality")
        facts: list[pa.RecordBatch] = []
        aside: dict[int, str] = {}
        columns = [c for c in wanted if c in present]
        for part in over_documents(_STAGE, shard, self._facts, columns):
            facts.append(part.answer)
            aside |= part.aside
            progress(part.batch.num_rows, part.batch.num_rows)
        name = scratch("facts", shard.name)
        table = concatenated(facts)
        files = {
            name: write_columns(
                folder, name, dict(zip(table.schema.names, table.columns, strict=True))
            )
        }
        result = write_buckets(folder, shard.name, self.settings, index, table, files)
        return Result(result.files, result.counts | noted(aside))

    def _facts(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        texts, settings = batch.column("text"), self.settings
        exact = exact_keys(texts, settings.exact.normalization)
        keys = np.where((exact.lengths > 0)[:, None], exact.keys, np.uint64(0))  # 0: nothing left
        scopes = np.zeros(batch.num_rows, np.uint64)
        if settings.per_language:
            scopes = language_scopes(batch.column("language").fill_null(""))
        facts: dict[str, Any] = {
            "id": batch.column("id"),
            "date": batch.column("date").cast(pa.int64()).fill_null(_ABSENT_DATE),
            "length": pc.utf8_length(texts).cast(pa.int64()),
            "id_hash": string_keys(batch.column("id"))[:, 0],
            "exact": keys[:, 0],
            "exact_low": keys[:, 1],
            "scope": scopes,
            "quality": np.full(batch.num_rows, np.nan),
            "source_rank": np.zeros(batch.num_rows, np.int64),
        }
        if "quality" in batch.schema.names:
            facts["quality"] = batch.column("quality").cast(pa.float64()).fill_null(np.nan)
        if settings.survivor.preferred_sources:
            facts["source_rank"] = source_ranks(
                hosts(batch.column("url")),
                pc.struct_field(batch.column("source"), "file").cast(pa.large_string()),
                settings.survivor.preferred_sources,
            )
        if settings.minhash.enabled:
            facts["signature"] = binary_rows(signatures(texts, settings.minhash).values)
        return pa.RecordBatch.from_pydict(facts)


@dataclass(frozen=True)
class SignIndexed:
    """The same for a shard of an index, where the facts are at hand: only buckets are made."""

    settings_key: str
    settings: DocumentDedupSettings
    name: str = "indexed"

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
    """Write which documents of a shard are in which buckets, and the edges known already.

    One record per bucket of equal texts leaves the shard, whatever the bucket's size: the rest are
    edges. The same holds for all buckets where these alone decide; where pairs are verified, a
    text's first document stands for its copies in the shard.
    """
    records = list(_records(settings, index, facts)) if facts.num_rows else []
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


def _records(
    settings: DocumentDedupSettings, index: int, facts: pa.RecordBatch
) -> Iterator[tuple[str, UInt64, dict[str, UInt64]]]:
    """Kind of bucket, edges inside the shard, records that leave it."""
    numbers = document_numbers(index, facts.num_rows)
    exact, scopes = facts.column("exact").to_numpy(), facts.column("scope").to_numpy()
    first = np.ones(len(numbers), bool)
    if settings.exact.enabled:
        some = exact != 0
        same = contract(within(exact, scopes)[some], numbers[some])
        first[(same.edges[:, 0] - numbers[0]).astype(np.int64)] = False
        yield "exact", same.edges, {"key": same.buckets, "number": same.doc64}
    minhash = settings.minhash
    if not minhash.enabled:
        return
    values = signature_matrix(facts.column("signature"), minhash.num_perm)
    signed = has_signature(values, minhash.scheme)
    if settings.verify.method != "none":
        signed &= first
    values, own = values[signed], numbers[signed]
    keys = within(band_hashes(values, minhash.bands, minhash.rows), scopes[signed]).reshape(-1)
    own = np.repeat(own, minhash.bands)
    if settings.verify.method == "none":
        local = contract(keys, own)
        yield "buckets", local.edges, {"key": local.buckets, "number": local.doc64}
        return
    twins = text_hashes(settings, facts)[signed]
    order = bucket_order(values, minhash.bands, minhash.rows, twins).reshape(-1)
    none = np.zeros((0, 2), np.uint64)
    yield "buckets", none, {"key": keys, "order": order, "number": own}


def text_hashes(settings: DocumentDedupSettings, facts: pa.RecordBatch) -> UInt64:
    """What documents of the same text share -> uint64 [documents]."""
    exact: UInt64 = facts.column("exact_low").to_numpy()
    return exact if settings.exact.enabled else facts.column("id_hash").to_numpy()


def binary_rows(values: npt.NDArray[Any]) -> pa.Array:
    """Rows of a matrix as fixed-size binary values."""
    width = values.shape[1] * values.itemsize
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, data])


def signature_matrix(column: pa.Array, num_perm: int) -> npt.NDArray[Any]:
    """Signatures [documents, num_perm] from fixed-size binary values."""
    width = column.type.byte_width
    data = np.frombuffer(column.buffers()[1], np.uint8)
    data = data[column.offset * width : (column.offset + len(column)) * width]
    return data.view(f"<u{width // num_perm}").reshape(len(column), num_perm)
