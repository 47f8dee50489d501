"""Reduce: link the documents of the buckets in a range of keys."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from curation.dedup.candidates import bucket_pairs
from curation.dedup.components import spanning_forest, star_edges
from curation.dedup.dedup_settings import DocumentDedupSettings
from pipelines.dedup.duplicates import OverRanges, read_key_range
from pipelines.dedup.graph import NO_EDGES, write_edges
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import UInt64, scratch, write_run
from pipelines.storage.files import Folder


@dataclass(frozen=True)
class Link(OverRanges):
    """Write edges between the documents of a bucket, and candidate pairs if they are verified."""

    settings_key: str
    settings: DocumentDedupSettings
    shards: tuple[str, ...]
    name: str = "links"
    sends = ("candidates",)

    def runs(self) -> list[str]:
        return [scratch(kind, s) for kind in ("exact", "buckets") for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high = task.payload
        exact = read_key_range(folder, "exact", self.shards, low, high)
        near = read_key_range(folder, "buckets", self.shards, low, high)
        edges, pairs = linked(exact, near, self.settings)
        links, candidates = scratch("links", task.name), scratch("candidates", task.name)
        files = {
            links: write_edges(folder, links, edges),
            candidates: write_run(
                folder, candidates, "key", {"key": pairs[:, 0], "b": pairs[:, 1]}
            ),
        }
        return Result(files, {"edges": len(edges)})


def linked(
    exact: pa.RecordBatch | None, near: pa.RecordBatch | None, settings: DocumentDedupSettings
) -> tuple[UInt64, UInt64]:
    """Return edges and candidate pairs, each uint64 [n, 2], of the buckets in a range of keys.

    Records of equal (`key`, `order`) must be in ascending order of `number`.
    """
    # A bucket links all its documents to one group, whichever candidates it has.
    edges = spanning_forest(np.concatenate([_stars(exact), _stars(near)]))
    if settings.verify.method == "none" or near is None:
        return edges, NO_EDGES
    keys, order, numbers = (near.column(n).to_numpy() for n in ("key", "order", "number"))
    return edges, bucket_pairs(keys, order, numbers, settings.verify.window)


def _stars(batch: pa.RecordBatch | None) -> UInt64:
    if batch is None:
        return NO_EDGES
    return star_edges(batch.column("key").to_numpy(), batch.column("number").to_numpy())
