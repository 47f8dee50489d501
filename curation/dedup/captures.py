"""Captures of one URL: their keys, the survivor, and the verdicts on the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.dedup_settings import OrderRule, UrlDedupSettings
from curation.dedup.facts import ABSENT_DATE
from curation.dedup.keys import half_keys, string_keys
from curation.dedup.sorting import Ids
from curation.dedup.survivors import Removals, choose_survivors, ranks_of
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
) -> Removals:
    """Keep one capture per key; the result names rows by their position.

    Args:
        rows: KEYS.
        priority: [rows]; the least outweighs all rules of the policy.
    """
    column = {n: rows.column(n).to_numpy() for n in rows.schema.names if n != "id"}
    return choose_survivors(
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


class Lost(NamedTuple):
    """Why documents are removed; all have one entry per document."""

    reason: Sequence[str]
    value: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]


def capture_verdicts(own: npt.NDArray[np.int64], kept: npt.NDArray[np.int64]) -> Lost:
    """Return why captures are removed, from their dates and those of the kept captures."""
    reasons = np.where(own < kept, "url.older_capture", "url.duplicate").tolist()
    return Lost(reasons, _seconds(own), _seconds(kept))


def _seconds(microseconds: npt.NDArray[np.int64]) -> Any:
    """Seconds since 1970; NaN for documents without a date."""
    return np.where(microseconds == ABSENT_DATE, np.nan, microseconds / 1e6)
