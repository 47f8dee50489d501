"""Code shared by the transforms that compare documents with one another.

Documents are numbered: the place of their shard among all shards, by name, and their row in it. So
narrow columns say of which document they are, and what is decided does not depend on the order in
which batches arrive. What is found returns to the documents as verdicts by shard, in a side input
that workers look up: the documents themselves are never shuffled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam import PCollection
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from curation.errors import ConfigError, InputError
from pipelines.dedup.duplicates import ApplyVerdicts, no_verdicts
from pipelines.storage.exchange import concatenated, key_ranges, shard_of
from pipelines.transforms.judge import Judged, judge, outputs
from pipelines.transforms.keys import Keyed, OfPart, OfShard

#: Into how many parts the columns are divided that are compared. A worker has one in memory at a
#: time. No result depends on it.
PARTS = 64

#: Scattered rows are collected up to this many bytes, so that elements of a shuffle are not tiny.
_SCATTER_BYTES = 8 << 20


def passes(given: Any, source: beam.PTransform | None) -> Iterator[PCollection[Keyed]]:
    """Yield the documents for each pass: those given, or read again."""
    number = 0
    while True:
        number += 1
        yield given if source is None else given.pipeline | f"Read {number}" >> source


def refuse_indexes(index: Any, stage: str) -> None:
    """Raise ConfigError if documents are to be compared with those of earlier runs."""
    if index.against:
        raise ConfigError(f"{stage}.index.against: not for Beam transforms; use `curate {stage}`")


def shard_names(documents: PCollection[Keyed]) -> beam.pvalue.AsSingleton:
    """Return the sorted names of all shards as a side input: a shard's position is its number."""
    names = documents | "ShardOf" >> beam.Map(_shard).with_output_types(str)
    found = names | "Shards" >> beam.Distinct() | "List" >> beam.combiners.ToList()
    return beam.pvalue.AsSingleton(found | "Sort" >> beam.Map(sorted))


def _shard(element: Keyed) -> str:
    return element[0].shard


def place_of(shard: str, shards: Sequence[str]) -> int:
    """Return a shard's position among the sorted names."""
    return bisect_left(shards, shard)


@dataclass
class Scatter(beam.DoFn):
    """Send rows to the part whose key range contains their uint64 column `key`.

    Tables of other columns stay elements of their own.
    """

    parts: int
    _waiting: list[pa.RecordBatch] = field(default_factory=list)

    def start_bundle(self) -> None:
        self._waiting = []

    def process(self, batch: pa.RecordBatch) -> Iterator[OfPart]:
        self._waiting.append(batch)
        if sum(b.nbytes for b in self._waiting) >= _SCATTER_BYTES:
            yield from self._scattered()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        window = GlobalWindow()
        for element in self._scattered():
            yield WindowedValue(element, window.max_timestamp(), [window])

    def _scattered(self) -> Iterator[OfPart]:
        tables: dict[tuple[str, ...], list[pa.RecordBatch]] = {}
        for batch in self._waiting:
            if batch.num_rows:
                tables.setdefault(tuple(batch.schema.names), []).append(batch)
        self._waiting = []
        lows = np.array([low for low, _ in key_ranges(self.parts)], np.uint64)
        for batches in tables.values():
            rows = concatenated(batches)
            parts = np.searchsorted(lows, rows.column("key").to_numpy(), side="right") - 1
            for part in np.unique(parts).tolist():
                yield part, rows.filter(pa.array(parts == part))


def gathered(rows: PCollection[pa.RecordBatch], parts: int, what: str) -> PCollection[Any]:
    """Rows with a column `key` -> (part, all batches of the part), by one GroupByKey."""
    scatter = beam.ParDo(Scatter(parts)).with_output_types(OfPart)
    return rows | f"Scatter{what}" >> scatter | f"Gather{what}" >> beam.GroupByKey()


def sorted_rows(batches: Iterable[pa.RecordBatch], *columns: str) -> pa.RecordBatch:
    """Concatenate rows in an order that does not depend on how they arrived."""
    rows = concatenated(list(batches))
    order = np.lexsort([rows.column(name).to_numpy() for name in reversed(columns)])
    return rows.take(pa.array(order))


def rows_of_shard(shard: str, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Return all rows of a shard, sorted by `row`. Raises InputError for duplicates."""
    rows = sorted_rows(batches, "row")
    places = rows.column("row").to_numpy()
    twice = np.flatnonzero(places[1:] == places[:-1])
    if len(twice):
        raise InputError(f"shard {shard!r} has two documents in row {places[twice[0]]}")
    return rows


def by_shard(rows: pa.RecordBatch, numbers: Any, shards: Sequence[str]) -> Iterator[OfShard]:
    """Divide rows by the shards of the documents that `numbers` [rows] name."""
    places = shard_of(numbers)
    for place in np.unique(places).tolist():
        yield shards[place], rows.filter(pa.array(places == place))


@dataclass
class _Remove(beam.DoFn):
    stage: str
    clusters: bool

    def process(self, element: Keyed, verdicts: Any) -> Iterator[Any]:
        key, batch = element
        found = pa.Table.from_batches([no_verdicts(self.clusters), *verdicts[key.shard]])
        rows = found.combine_chunks().sort_by("row").to_batches() or [no_verdicts(self.clusters)]
        apply = ApplyVerdicts(rows[0].column("row").to_numpy(), rows[0])
        yield from outputs(key, apply.apply(batch, key.row), self.stage)


def remove(
    documents: PCollection[Keyed], verdicts: PCollection[OfShard], stage: str, clusters: bool
) -> Judged:
    """Remove documents by verdicts. `clusters`: these include a cluster's size."""
    side = beam.pvalue.AsMultiMap(verdicts)
    return judge(Judged, documents, _Remove(stage, clusters), side)
