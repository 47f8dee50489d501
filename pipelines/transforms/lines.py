"""Lines that repeat across documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam import PCollection

from curation.dedup.buckets import Buckets, lines_of
from curation.dedup.dedup_settings import LineDedupSettings
from curation.dedup.lines import LineTotals, frequent_lines, merge_counts, total_lines
from pipelines.dedup_lines import (
    CutLines,
    count_columns,
    counted_totals,
    documents_by_language,
)
from pipelines.storage.exchange import concatenated, document_numbers, shard_of
from pipelines.transforms.compare import (
    PARTS,
    gathered,
    passes,
    place_of,
    refuse_indexes,
    rows_of_shard,
    shard_names,
    sorted_rows,
)
from pipelines.transforms.judge import Edited, judge, of_recipe, outputs
from pipelines.transforms.keys import Keyed, OfShard

#: Columns that name documents, their languages and hosts.
_NARROW = ["id", "url", "language"]


@dataclass
class DeduplicateLines(beam.PTransform):
    """Cut lines that occur in too many documents; remove documents that get too short.

    Needs `id`, `url`, `text`; `language` where the settings count within it.

    Shuffled: id, URL and language of each document (gathered by shard), and 64 bytes for each line
    of a batch that counts. Each worker has all frequent lines in memory, 56 bytes each.

    Args:
        source: a transform that reads the documents, such as `ReadDocuments`: then it is applied
            for each pass (3), and this transform to the pipeline instead of to documents.
        parts: into how many the columns above are divided; a worker has one in memory at a time.

    Examples:
        >>> import apache_beam as beam
        >>> from curation.recipe import load
        >>> from pipelines.transforms import DeduplicateLines, ShardKey
        >>> rows = [{"id": f"{i}", "url": "http://a.example/", "text": f"Home\\nPage {'x' * i}"}
        ...         for i in range(9)]
        >>> batch = pa.RecordBatch.from_pylist(rows)
        >>> recipe = load("llama3", ["dedup-lines.rule=published",
        ...                          "dedup-lines.per_language=false"])
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     documents = pipeline | beam.Create([(ShardKey("s", 0), batch)])
        ...     judged = documents | DeduplicateLines(recipe.dedup_lines)
        ...     _ = judged.edits | beam.Map(lambda e: print(e[1]["text"].to_pylist()[:2]))
        ['Home\\n', 'Home\\n']
    """

    settings: LineDedupSettings = field(default_factory=of_recipe("dedup-lines"))
    source: beam.PTransform | None = None
    parts: int = PARTS

    def expand(self, documents: Any) -> Edited:
        refuse_indexes(self.settings.index, "dedup-lines")
        reads = passes(documents, self.source)
        first, second, third = next(reads), next(reads), next(reads)
        shards = shard_names(first)
        narrow = beam.ParDo(_Narrow(self.settings)).with_output_types(OfShard)
        named = first | "Narrow" >> narrow
        buckets = self._buckets(named)
        count = beam.ParDo(_Pages(), shards, buckets).with_output_types(OfShard)
        pages = named | "OfShard" >> beam.GroupByKey() | "Pages" >> count
        frequent = self._frequent(second, shards, buckets, beam.pvalue.AsMultiMap(pages))
        return judge(Edited, third, _Cut(self.settings), shards, buckets, frequent)

    def _buckets(self, narrow: PCollection[OfShard]) -> beam.pvalue.AsSingleton:
        """Buckets of documents, from how many there are of each language."""
        count = beam.Map(_languages, self.settings)
        total = beam.CombineGlobally(_total)
        made = beam.Map(_made, self.settings)
        return beam.pvalue.AsSingleton(
            narrow | "Languages" >> count | "Census" >> total | "Buckets" >> made
        )

    def _frequent(
        self, documents: PCollection[Keyed], shards: Any, buckets: Any, pages: Any
    ) -> beam.pvalue.AsSingleton:
        """Return all frequent lines, by ascending hash."""
        count = beam.ParDo(_Count(self.settings), shards, buckets, pages)
        find = beam.ParDo(_Find(self.settings)).with_output_types(pa.RecordBatch)
        counts = documents | "Count" >> count.with_output_types(pa.RecordBatch)
        lines = gathered(counts, self.parts, "Lines")
        together = beam.CombineGlobally(_together).with_output_types(pa.RecordBatch)
        return beam.pvalue.AsSingleton(lines | "Find" >> find | "Together" >> together)


@dataclass
class _Narrow(beam.DoFn):
    settings: LineDedupSettings

    def process(self, element: Keyed) -> Iterator[OfShard]:
        key, batch = element
        narrow = batch.select([name for name in _NARROW if name in batch.schema.names])
        rows = pa.array(document_numbers(0, batch.num_rows, key.row))
        yield key.shard, narrow.append_column("row", rows)


def _languages(element: OfShard, settings: LineDedupSettings) -> dict[str, int]:
    return dict(documents_by_language(element[1], settings))


def _total(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for some in counts:
        total.update(some)
    return dict(total)


def _made(documents: dict[str, int], settings: LineDedupSettings) -> Buckets:
    return Buckets(settings, tuple(sorted(documents.items())))


class _Pages(beam.DoFn):
    """How many documents each host has in a shard: columns `host` (ascending), `pages`."""

    def process(
        self,
        element: tuple[str, Iterable[pa.RecordBatch]],
        shards: Sequence[str],
        buckets: Buckets,
    ) -> Iterator[OfShard]:
        narrow = rows_of_shard(*element)
        first = np.uint64(place_of(element[0], shards) << 32)
        hosts = buckets.hosts(narrow, first + narrow.column("row").to_numpy())
        keys, pages = np.unique(hosts, return_counts=True)
        yield element[0], pa.RecordBatch.from_pydict({"host": keys, "pages": pages})


@dataclass
class _Count(beam.DoFn):
    """Count how often each line occurs in a batch."""

    settings: LineDedupSettings

    def process(
        self, element: Keyed, shards: Sequence[str], buckets: Buckets, pages: Any
    ) -> Iterator[pa.RecordBatch]:
        key, batch = element
        numbers = document_numbers(place_of(key.shard, shards), batch.num_rows, key.row)
        counts, places, _ = lines_of(batch, numbers, buckets)
        if not len(counts.hashes):
            return
        (known,) = pages[key.shard]
        rows = np.searchsorted(known.column("host").to_numpy(), counts.hosts)
        counts = counts._replace(pages=known.column("pages").to_numpy()[rows])
        owners = (counts.first & np.uint64(0xFFFFFFFF)).astype(np.int64) - key.row
        yield pa.RecordBatch.from_pydict(count_columns(counts, places[owners]))


@dataclass
class _Find(beam.DoFn):
    """Find the lines in a range of keys that occur too often."""

    settings: LineDedupSettings

    def process(self, element: tuple[int, Iterable[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        totals, _, _ = counted_totals(_summed(concatenated(list(element[1]))))
        yield pa.RecordBatch.from_pydict(frequent_lines(totals, self.settings)._asdict())


def _summed(counts: pa.RecordBatch) -> pa.RecordBatch:
    """Counts of batches, summed over those of a shard; `pages` are the shard's as they are."""
    rows = pa.Table.from_batches([counts])
    rows = rows.append_column("shard", pa.array(shard_of(counts.column("first").to_numpy())))
    sums = rows.group_by(["key", "bucket", "host", "shard"], use_threads=False).aggregate(
        [("count", "sum"), ("edges", "sum"), ("pages", "max"), ("first", "min"), ("bytes", "sum")]
    )
    sums = sums.rename_columns([n.rpartition("_")[0] or n for n in sums.column_names])
    return concatenated(sums.select(counts.schema.names).combine_chunks().to_batches())


def _together(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    return sorted_rows([_NO_LINES, *batches], "hashes")


_NO_LINES = pa.RecordBatch.from_pydict(total_lines(merge_counts([]))._asdict())


@dataclass
class _Cut(beam.DoFn):
    """Cut frequent lines out of documents."""

    settings: LineDedupSettings

    def process(
        self, element: Keyed, shards: Sequence[str], buckets: Buckets, frequent: pa.RecordBatch
    ) -> Iterator[Any]:
        key, batch = element
        lines = LineTotals(*(frequent.column(n).to_numpy() for n in LineTotals._fields))
        step = CutLines(self.settings, (), {}, buckets, lines, place_of(key.shard, shards))
        yield from outputs(key, step.apply(batch, key.row), "dedup-lines")
