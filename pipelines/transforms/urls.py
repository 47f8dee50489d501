"""One capture of each URL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.dedup_settings import UrlDedupSettings
from curation.dedup.keys import string_keys
from curation.schema import with_column
from pipelines.dedup_urls import UrlKeys, url_copies, url_verdicts
from pipelines.storage.exchange import UInt64
from pipelines.transforms.compare import (
    PARTS,
    by_shard,
    gathered,
    passes,
    refuse_indexes,
    remove,
    shard_names,
    sorted_rows,
)
from pipelines.transforms.judge import Judged, of_recipe
from pipelines.transforms.keys import Keyed, OfShard


@dataclass
class DeduplicateUrls(beam.PTransform):
    """Keep one document of each canonical URL: the newest, or what the settings' policy says.

    Needs `id`, `url`, `date`, `text`, and `source` where the policy prefers sources.

    Shuffled: about 60 bytes and the id of each document, once.

    Args:
        source: a transform that reads the documents, such as `ReadDocuments`: then it is applied
            for each pass (2), and this transform to the pipeline instead of to documents.
        parts: into how many the columns above are divided; a worker has one in memory at a time.

    Examples:
        >>> import apache_beam as beam
        >>> from curation.schema import DOCUMENTS
        >>> from pipelines.transforms import DeduplicateUrls, ShardKey
        >>> rows = [{"id": name, "url": "http://a.example/", "text": "x" * i,
        ...          "source": {"file": "f"}}
        ...         for i, name in enumerate("ab")]
        >>> batch = pa.RecordBatch.from_pylist(rows, DOCUMENTS)
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     judged = pipeline | beam.Create([(ShardKey("s", 0), batch)]) | DeduplicateUrls()
        ...     columns = ["id", "reason", "kept_id"]
        ...     _ = judged.removed | beam.Map(lambda e: print(e[1].select(columns).to_pylist()))
        [{'id': 'a', 'reason': 'url.duplicate', 'kept_id': 'b'}]
    """

    settings: UrlDedupSettings = field(default_factory=of_recipe("dedup-urls"))
    source: beam.PTransform | None = None
    parts: int = PARTS

    def expand(self, documents: Any) -> Judged:
        refuse_indexes(self.settings.index, "dedup-urls")
        reads = passes(documents, self.source)
        compared = next(reads)
        keys = beam.ParDo(_Keys(UrlKeys("", self.settings))).with_output_types(pa.RecordBatch)
        ranges = gathered(compared | "Keys" >> keys, self.parts, "Keys")
        choose = beam.ParDo(_Choose(self.settings), shard_names(compared))
        verdicts = ranges | "Choose" >> choose.with_output_types(OfShard)
        return remove(next(reads), verdicts, "dedup-urls", clusters=False)


@dataclass
class _Keys(beam.DoFn):
    step: UrlKeys

    def process(self, element: Keyed) -> Iterator[pa.RecordBatch]:
        # Numbers without the shard's: to wait for the names of all shards would keep the documents.
        key, batch = element
        rows = self.step.keys_of(0, batch, key.row)
        shard = np.full(rows.num_rows, _hash([key.shard])[0])
        yield rows.append_column("shard", pa.array(shard, pa.uint64()))


def _hash(shards: Sequence[str]) -> UInt64:
    return string_keys(pa.array(shards, pa.string()))[:, 0]


@dataclass
class _Choose(beam.DoFn):
    settings: UrlDedupSettings

    def process(
        self, element: tuple[int, Iterable[pa.RecordBatch]], shards: Sequence[str]
    ) -> Iterator[OfShard]:
        rows = sorted_rows(_numbered(element[1], shards), "number")
        copies = url_copies(rows, np.zeros(rows.num_rows, np.int64), self.settings)
        numbers = copies.column("key").to_numpy()
        yield from by_shard(url_verdicts(copies), numbers, shards)


def _numbered(batches: Iterable[pa.RecordBatch], shards: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Complete the numbers of documents by those of their shards."""
    hashes = pa.array(_hash(shards))
    for batch in batches:
        places = pc.index_in(batch.column("shard"), hashes).to_numpy().astype(np.uint64)
        numbers = (places << np.uint64(32)) | batch.column("number").to_numpy()
        yield with_column(batch, "number", pa.array(numbers))
