"""The facts of each document for finding copies, and the buckets it is in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.candidates import bucket_order
from curation.dedup.components import contract
from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.exact import exact_keys
from curation.dedup.keys import half_keys, within
from curation.dedup.lsh import band_hashes
from curation.dedup.minhash import has_signature, signatures
from curation.dedup.sorting import Ids
from curation.dedup.survivors import ranks_of

#: Date of a document without one, in microseconds.
ABSENT_DATE = np.iinfo(np.int64).min


def document_facts(batch: pa.RecordBatch, settings: DocumentDedupSettings) -> pa.RecordBatch:
    """Return the columns by which documents are compared and survivors chosen.

    Args:
        batch: documents with `id`, `date` and `text`; `language` with `per_language`, `url` and
            `source` with preferred sources, and `quality` if known.
    """
    texts = batch.column("text")
    exact = exact_keys(texts, settings.exact.normalization)
    keys = np.where((exact.lengths > 0)[:, None], exact.keys, np.uint64(0))  # 0: nothing left
    scopes = np.zeros(batch.num_rows, np.uint64)
    if settings.per_language:
        scopes = half_keys(batch.column("language").fill_null(""))
    facts: dict[str, Any] = {
        "id": batch.column("id"),
        "date": batch.column("date").cast(pa.int64()).fill_null(ABSENT_DATE),
        "length": pc.utf8_length(texts).cast(pa.int64()),
        "id_hash": half_keys(batch.column("id")),
        "exact": keys[:, 0],
        "exact_low": keys[:, 1],
        "scope": scopes,
        "quality": np.full(batch.num_rows, np.nan),
        "source_rank": ranks_of(batch, settings.survivor),
    }
    if "quality" in batch.schema.names:
        facts["quality"] = batch.column("quality").cast(pa.float64()).fill_null(np.nan)
    if settings.minhash.enabled:
        facts["signature"] = binary_rows(signatures(texts, settings.minhash).values)
    return pa.RecordBatch.from_pydict(facts)


def bucketed(
    facts: pa.RecordBatch, numbers: Ids, settings: DocumentDedupSettings
) -> Iterator[tuple[str, Ids, dict[str, Ids]]]:
    """Yield, for each kind of bucket, edges among these documents and the records that remain.

    One record per bucket of equal texts remains, whatever the bucket's size: the rest are edges.
    The same is true of all buckets where these alone decide; where pairs are verified, a text's
    first document represents its copies.

    Args:
        facts: of `document_facts`, at least one.
        numbers: [documents], ascending.
    """
    exact, scopes = facts.column("exact").to_numpy(), facts.column("scope").to_numpy()
    first = np.ones(len(numbers), bool)
    if settings.exact.enabled:
        some = exact != 0
        same = contract(within(exact, scopes)[some], numbers[some])
        first[np.searchsorted(numbers, same.edges[:, 0])] = False
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
    hashes = text_hashes(settings, facts)[signed]
    order = bucket_order(values, minhash.bands, minhash.rows, hashes).reshape(-1)
    none = np.zeros((0, 2), np.uint64)
    yield "buckets", none, {"key": keys, "order": order, "number": own}


def text_hashes(settings: DocumentDedupSettings, facts: pa.RecordBatch) -> Ids:
    """Return a hash that documents with the same text share: uint64 [documents]."""
    exact: Ids = facts.column("exact_low").to_numpy()
    return exact if settings.exact.enabled else facts.column("id_hash").to_numpy()


def binary_rows(values: npt.NDArray[Any]) -> pa.Array:
    """Return the rows of a matrix as fixed-size binary values."""
    width = values.shape[1] * values.itemsize
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, data])


def signature_matrix(column: pa.Array, num_perm: int) -> npt.NDArray[Any]:
    """Return signatures [documents, num_perm] from fixed-size binary values."""
    width = column.type.byte_width
    data = np.frombuffer(column.buffers()[1], np.uint8)
    data = data[column.offset * width : (column.offset + len(column)) * width]
    return data.view(f"<u{width // num_perm}").reshape(len(column), num_perm)
