"""Facts of documents and of captures of a URL by which copies are found, and the survivors.

Choose which document of each group of duplicates to keep.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.candidates import bucket_order
from curation.dedup.components import contract
from curation.dedup.dedup_settings import (
    DocumentDedupSettings,
    OrderRule,
    UrlDedupSettings,
)
from curation.dedup.keys import Ids, half_keys, run_lengths, run_starts, string_keys, within
from curation.dedup.minhash import band_hashes, has_signature, signatures
from curation.dedup.normalize import exact_keys
from curation.dedup.urls import canonical_urls
from curation.errors import ConfigError, InputError

#: Column that each rule reads, and whether its greatest value wins.
RULES: dict[OrderRule, tuple[str, bool]] = {
    "newest": ("date", True),
    "oldest": ("date", False),
    "longest": ("length", True),
    "shortest": ("length", False),
    "highest_quality": ("quality", True),
    "preferred": ("source_rank", False),
    "id": ("id", False),
}


class Removals(NamedTuple):
    """Documents to remove, sorted, and the document kept instead of each."""

    removed: npt.NDArray[np.uint64]  # [removed documents]
    kept: npt.NDArray[np.uint64]  # [removed documents]


def choose_survivors(
    keys: npt.NDArray[np.uint64],
    doc64: npt.NDArray[np.uint64],
    columns: Mapping[str, npt.NDArray[Any]],
    policy: Sequence[OrderRule],
) -> Removals:
    """Keep one document per key; the result does not depend on the order of the records.

    Args:
        keys: [n] or [n, 2]; records of equal keys are one group.
        doc64: [n] identifiers, each at most once per key.
        columns: what the policy reads, each [n]: `date` (datetime64 or int64), `length` (int64),
            `quality` (float), `source_rank` (int64, of `ranks_of`), `id` (uint64 hash of the
            document's id), and `priority` (int64), which outweighs all rules: the least wins. NaN
            and NaT lose.
        policy: rules in order of weight. Between equals the smaller `id` stays where that column
            is given, then the smaller doc64.

    Raises ConfigError when the policy reads a column that is not given.
    """
    order: list[npt.NDArray[Any]] = []
    if "priority" in columns:
        order.append(_rank(columns["priority"], greatest=False))
    for rule in policy:
        name, greatest = RULES[rule]
        if name not in columns:
            raise ConfigError(f"survivor policy {rule!r} needs the column {name!r}")
        order.append(_rank(columns[name], greatest))
    if "id" in columns and "id" not in policy:
        order.append(_rank(columns["id"], greatest=False))
    parts = [keys] if keys.ndim == 1 else list(keys.T)
    rows = np.lexsort([doc64, *reversed(order), *parts])  # the last key of lexsort weighs most
    starts = run_starts(*(part[rows] for part in parts))
    documents = doc64[rows].astype(np.uint64)
    survivors = np.repeat(documents[starts], run_lengths(starts, len(rows)))
    lost = np.ones(len(rows), bool)
    lost[starts] = False
    removed, kept = documents[lost], survivors[lost]
    ascending = np.lexsort([kept, removed])
    return Removals(removed[ascending], kept[ascending])


def ranks_of(batch: pa.RecordBatch, policy: Sequence[OrderRule]) -> npt.NDArray[np.int64]:
    """`source_rank` of documents: integers in the opposite order of the column `preference`, the
    last where it is null; zeros if no rule reads it. Raises InputError if it has no numbers."""
    if "preferred" not in policy:
        return np.zeros(batch.num_rows, np.int64)
    try:
        column = batch.column("preference").cast(pa.float64(), safe=False)
    except (KeyError, pa.ArrowException) as error:
        raise InputError(f"survivor.policy reads numbers of 'preference': {error}") from None
    numbers = column.to_numpy(zero_copy_only=False)
    bits = (-numbers).view(np.int64)  # ordered as the numbers are, but for the negative ones
    last = np.iinfo(np.int64).max
    return np.where(np.isnan(numbers), last, np.where(bits < 0, bits ^ np.int64(last), bits))


def _rank(values: npt.NDArray[Any], greatest: bool) -> npt.NDArray[Any]:
    """Keys that sort the preferred value first and an absent one last."""
    absent = np.isnan(values)  # also NaT
    if values.dtype.kind == "f":
        return np.where(absent, np.inf, -values if greatest else values)
    values = values.astype(np.int64) if values.dtype.kind == "M" else values
    # The complement turns the order of integers round without overflow.
    return np.where(absent, np.iinfo(values.dtype).max, ~values if greatest else values)


#: Date of a document without one, in microseconds.
ABSENT_DATE = np.iinfo(np.int64).min


def document_facts(batch: pa.RecordBatch, settings: DocumentDedupSettings) -> pa.RecordBatch:
    """Return the columns by which documents are compared and survivors chosen.

    Args:
        batch: documents with `id`, `date` and `text`; `language` with `per_language`, and
            `quality` if known.
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
        "source_rank": ranks_of(batch, settings.survivor.policy),
    }
    if "quality" in batch.schema.names:
        facts["quality"] = batch.column("quality").cast(pa.float64()).fill_null(np.nan)
    if settings.minhash.enabled:
        facts["signature"] = binary_rows(signatures(texts, settings.minhash))
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
    signed = has_signature(values)
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


KEYS = pa.schema(
    [
        ("key", pa.uint64()),
        ("key_low", pa.uint64()),
        ("number", pa.uint64()),
        ("date", pa.int64()),
        ("length", pa.int64()),
        ("id_hash", pa.uint64()),
        ("source_rank", pa.int64()),
        ("id", pa.string()),
    ]
)


def capture_keys(batch: pa.RecordBatch, numbers: Ids, settings: UrlDedupSettings) -> pa.RecordBatch:
    """Return the key of each document's canonical URL, with the survivor columns: KEYS.

    Documents without a URL have no key: they are never duplicates.

    Args:
        batch: documents with `id`, `url`, `date` and `text`.
        numbers: [documents].
    """
    urls = canonical_urls(batch.column("url"), settings.canonical)
    keys = string_keys(urls)
    columns = [
        *(pa.array(column) for column in (keys[:, 0], keys[:, 1], numbers)),
        batch.column("date").cast(pa.int64()).fill_null(ABSENT_DATE),
        pc.utf8_length(batch.column("text")).cast(pa.int64()),
        pa.array(half_keys(batch.column("id"))),
        pa.array(ranks_of(batch, settings.survivor.policy)),
        batch.column("id"),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=KEYS).filter(pc.is_valid(urls))


def choose_captures(
    rows: pa.RecordBatch, priority: npt.NDArray[np.int64], policy: Sequence[OrderRule]
) -> pa.RecordBatch:
    """Return which captures to remove, and which one is kept instead of each.

    Args:
        rows: KEYS, by ascending number.
        priority: [rows]; the least outweighs all rules of the policy.

    -> columns `place` (row in `rows`), `key` (number), `date`, `kept_date`, `kept_id`.
    """
    column = {n: rows.column(n).to_numpy() for n in rows.schema.names if n != "id"}
    removed, kept = choose_survivors(
        np.stack([column["key"], column["key_low"]], axis=1),
        np.arange(rows.num_rows, dtype=np.uint64),
        {
            "priority": priority,
            "date": column["date"].astype("datetime64[us]"),
            "length": column["length"],
            "source_rank": column["source_rank"],
            "id": column["id_hash"],
        },
        policy,
    )
    gone, stays = pa.array(removed), pa.array(kept)
    columns = {
        "place": gone,
        "key": rows.column("number").take(gone),
        "date": rows.column("date").take(gone),
        "kept_date": rows.column("date").take(stays),
        "kept_id": rows.column("id").take(stays),
    }
    return pa.RecordBatch.from_pydict(columns)


def capture_verdicts(
    own: npt.NDArray[np.int64], kept: npt.NDArray[np.int64]
) -> tuple[list[str], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return reasons, values and thresholds of removed captures, by the dates."""
    reasons = np.where(own < kept, "url.older_capture", "url.duplicate").tolist()
    return reasons, _seconds(own), _seconds(kept)


def _seconds(microseconds: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Seconds since 1970; NaN for documents without a date."""
    return np.where(microseconds == ABSENT_DATE, np.nan, microseconds / 1e6)
