"""Which lines are counted together, and their counts in a batch of documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.dedup_settings import LineDedupSettings
from curation.dedup.keys import Ids, half_keys, within
from curation.dedup.lines import (
    LineCounts,
    assign_buckets,
    count_lines,
    host_keys,
    in_buckets,
    line_hashes,
)


@dataclass(frozen=True)
class Buckets:
    """Which lines are counted together: those of a language, and of a bucket of its documents."""

    settings: LineDedupSettings
    documents: tuple[tuple[str, int], ...]  # documents by language, or all under ""

    def of(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Bucket of each document, within its language -> int64 [rows]."""
        ids = half_keys(batch.column("id"))
        names = languages(batch, self.settings)
        buckets = np.zeros(batch.num_rows, np.int64)
        for language, documents in self.documents:
            mine = pc.equal(names, language).to_numpy(zero_copy_only=False)
            buckets[mine] = assign_buckets(ids[mine], documents, self.settings.bucket_documents)
        return buckets

    def scopes(self, batch: pa.RecordBatch) -> Ids:
        """Scope of each document: its language -> uint64 [rows]."""
        return half_keys(languages(batch, self.settings))

    def hosts(self, batch: pa.RecordBatch, numbers: Ids) -> Ids:
        """Host of each document, where the rule looks at hosts: those of a language and bucket."""
        if self.settings.rule != "pattern":
            return np.zeros(batch.num_rows, np.uint64)
        hosts = within(host_keys(batch.column("url"), numbers), self.scopes(batch))
        return in_buckets(hosts, self.of(batch))


def languages(batch: pa.RecordBatch, settings: LineDedupSettings) -> pa.Array:
    """Return the language of each document, or "" where all are counted together: string."""
    if settings.per_language:
        return batch.column("language").fill_null("")
    return pa.array([""] * batch.num_rows, pa.string())


def lines_of(
    batch: pa.RecordBatch, numbers: Ids, buckets: Buckets
) -> tuple[LineCounts, npt.NDArray[np.int64], Ids]:
    """Return the lines of a batch, and the bucket and host of each document.

    Args:
        batch: documents with `id`, `url`, `text`, and `language` with `per_language`.
        numbers: [documents].
    """
    settings, scopes, places = buckets.settings, buckets.scopes(batch), buckets.of(batch)
    lines = line_hashes(batch.column("text"), settings, scopes)
    of_lines = np.repeat(places, np.diff(lines.doc_offsets))
    lines = lines._replace(hashes=in_buckets(lines.hashes, of_lines))
    hosts = buckets.hosts(batch, numbers)
    return count_lines(lines, numbers, settings, hosts), places, hosts
