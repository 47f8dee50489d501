"""Count personal data by host."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import summed
from curation.hosts import host_of

#: One row per host of a batch: its documents, those that hold personal data, and how many items.
HOSTS = pa.schema(
    [
        ("host", pa.string()),
        ("pages", pa.int64()),
        ("documents", pa.int64()),
        ("items", pa.int64()),
    ]
)
#: Folder of these tables in that of the stage.
FOLDER = "personal_hosts"


def count_hosts(urls: pa.Array, items: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Hosts of the documents, with their personal data; `items` are counts per document.

    URLs without a host count as the host of no name.
    """
    found = pa.table(
        {
            "host": pa.array([host_of(url or "") for url in urls.to_pylist()], pa.string()),
            "pages": np.ones(len(urls), np.int64),
            "documents": (items > 0).astype(np.int64),
            "items": items,
        },
        HOSTS,
    )
    summed_up = total(found.to_batches()).combine_chunks().to_batches()
    return summed_up[0] if len(urls) else pa.RecordBatch.from_pylist([], schema=HOSTS)


def most_personal(
    batches: Iterable[pa.RecordBatch], min_items: int = 20, most: int = 100
) -> list[dict[str, object]]:
    """Return the hosts with `min_items` or more, those with the most first: host, documents,
    items."""
    held = total(batch.filter(pc.greater(batch["items"], 0)) for batch in batches)
    held = held.filter(pc.greater_equal(held["items"], min_items)).drop_columns(["pages"])
    order = [("items", "descending"), ("documents", "descending"), ("host", "ascending")]
    return held.sort_by(order).slice(0, most).to_pylist()


def total(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Sums over batches of HOSTS, one row per host."""
    return summed(batches, HOSTS, ("host",), ("pages", "documents", "items"))
