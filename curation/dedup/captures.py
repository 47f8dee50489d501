"""Captures of one URL: their keys, the survivor, and the verdicts on the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.dedup_settings import OrderRule, UrlDedupSettings
from curation.dedup.facts import ABSENT_DATE
from curation.dedup.keys import half_keys, string_keys
from curation.dedup.sorting import Ids
from curation.dedup.survivors import choose_survivors, ranks_of
from curation.dedup.urls import canonical_urls

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
        batch: documents with `id`, `url`, `date`, `text`, and `source` with preferred sources.
        numbers: [documents].
    """
    urls = canonical_urls(batch.column("url"), settings.canonical)
    keys = string_keys(urls)
    columns = [
        *(pa.array(column) for column in (keys[:, 0], keys[:, 1], numbers)),
        batch.column("date").cast(pa.int64()).fill_null(ABSENT_DATE),
        pc.utf8_length(batch.column("text")).cast(pa.int64()),
        pa.array(half_keys(batch.column("id"))),
        pa.array(ranks_of(batch, settings.survivor)),
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
