"""Exact copies and near duplicates of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam import PCollection

from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.facts import bucketed
from curation.dedup.sorting import sort_pairs
from curation.errors import ConfigError
from curation.hashing import mix64
from pipelines.dedup.graph import NO_EDGES, components, edge_pairs
from pipelines.dedup_documents.clusters import Clusters
from pipelines.dedup_documents.link import linked
from pipelines.dedup_documents.members import (
    carriers,
    group_pairs,
    member_columns,
    shingle_data,
    signature_data,
)
from pipelines.dedup_documents.sign import Sign
from pipelines.dedup_documents.verdicts import document_verdicts
from pipelines.storage.exchange import UInt64, concatenated, document_numbers
from pipelines.transforms.compare import (
    PARTS,
    by_shard,
    gathered,
    passes,
    place_of,
    refuse_indexes,
    remove,
    rows_of_shard,
    shard_names,
    sorted_rows,
)
from pipelines.transforms.judge import Judged, of_recipe
from pipelines.transforms.keys import Keyed, OfPart, OfShard

#: Facts of a document that its buckets follow from.
_SIGNED = ["exact", "exact_low", "scope", "id_hash", "signature"]


@dataclass
class DeduplicateDocuments(beam.PTransform):
    """Keep one document of each cluster of copies: exact ones, and near duplicates by MinHash.

    Needs `id`, `url`, `date`, `text`, `source`; `language` where the settings compare within it,
    and `quality` where the policy asks for it. `removed` has `cluster_size`, too.

    Shuffled: 40 bytes and the signature of each document (gathered by shard), 24 bytes for each of
    its bands, and for documents that have a neighbour what decides who stays and their shingle sets
    (or signatures). One worker finds the components of the graph, 16 bytes an edge: where
    `graph.edges_in_memory` does not suffice, the pipeline fails with ConfigError. `curate
    dedup-documents` solves larger graphs, in rounds.

    Args:
        source: a transform that reads the documents, such as `ReadDocuments`: then it is applied
            for each pass (3), and this transform to the pipeline instead of to documents.
        parts: into how many the columns above are divided; a worker has one in memory at a time.

    Examples:
        >>> import apache_beam as beam
        >>> from curation.schema import DOCUMENTS
        >>> from pipelines.transforms import DeduplicateDocuments, ShardKey
        >>> text = "The ferry leaves at nine, and the last one comes back shortly before midnight."
        >>> rows = [{"id": name, "url": f"http://{name}.example/", "text": text} for name in "ab"]
        >>> batch = pa.RecordBatch.from_pylist([{**r, "language": "en"} for r in rows],
        ...                                    DOCUMENTS.append(pa.field("language", pa.string())))
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     documents = pipeline | beam.Create([(ShardKey("s", 0), batch)])
        ...     judged = documents | DeduplicateDocuments()
        ...     columns = ["reason", "value", "cluster_size"]
        ...     _ = judged.removed | beam.Map(lambda e: print(e[1].select(columns).to_pylist()))
        [{'reason': 'document.exact', 'value': 1.0, 'cluster_size': 2}]
    """

    settings: DocumentDedupSettings = field(default_factory=of_recipe("dedup-documents"))
    source: beam.PTransform | None = None
    parts: int = PARTS

    def expand(self, documents: Any) -> Judged:
        refuse_indexes(self.settings.index, "dedup-documents")
        reads = passes(documents, self.source)
        first, second, third = next(reads), next(reads), next(reads)
        shards = shard_names(first)
        labels, pairs = self._graph(first, shards)
        members = self._members(second, shards, labels, pairs)
        groups = gathered(members, self.parts, "Groups")
        decide = beam.ParDo(_Decide(self.settings), shards).with_output_types(OfShard)
        return remove(third, groups | "Decide" >> decide, "dedup-documents", clusters=True)

    def _graph(
        self, documents: PCollection[Keyed], shards: beam.pvalue.AsSingleton
    ) -> tuple[PCollection[OfShard], PCollection[OfShard]]:
        """Labels of the documents that have a neighbour, and candidate pairs, by shard."""
        sign = beam.ParDo(_Sign(Sign("", self.settings))).with_output_types(OfShard)
        facts = documents | "Sign" >> sign | "FactsOfShard" >> beam.GroupByKey()
        bucket = beam.ParDo(_Bucket(self.settings), shards)
        bucket = bucket.with_output_types(pa.RecordBatch, edges=pa.RecordBatch)
        buckets = facts | "Bucket" >> bucket.with_outputs("edges", main="records")
        link = beam.ParDo(_Link(self.settings), shards)
        link = link.with_output_types(pa.RecordBatch, pairs=OfShard)
        records = gathered(buckets.records, self.parts, "Buckets")
        links = records | "Link" >> link.with_outputs("pairs", main="edges")
        edges = (buckets.edges, links.edges) | "Edges" >> beam.Flatten()
        together = beam.Map(lambda batch: (0, batch)).with_output_types(OfPart)
        graph = edges | "Together" >> together | "Graph" >> beam.GroupByKey()
        solve = beam.ParDo(_Solve(self.settings.graph.edges_in_memory), shards)
        return graph | "Solve" >> solve.with_output_types(OfShard), links.pairs

    def _members(
        self,
        documents: PCollection[Keyed],
        shards: beam.pvalue.AsSingleton,
        labels: PCollection[OfShard],
        pairs: PCollection[OfShard],
    ) -> PCollection[pa.RecordBatch]:
        # Pairs by side input: behind a Flatten of members and pairs, FnApiRunner runs no `Judge`.
        found = (beam.pvalue.AsMultiMap(rows) for rows in (labels, pairs))
        find = beam.ParDo(_Members(self.settings), shards, *found)
        return documents | "Members" >> find.with_output_types(pa.RecordBatch)


@dataclass
class _Sign(beam.DoFn):
    """Compute the facts by which documents are compared."""

    step: Sign

    def process(self, element: Keyed) -> Iterator[OfShard]:
        key, batch = element
        facts = self.step.facts(batch, key.row)
        facts = facts.select([name for name in _SIGNED if name in facts.schema.names])
        rows = pa.array(document_numbers(0, batch.num_rows, key.row))
        yield key.shard, facts.append_column("row", rows)


@dataclass
class _Bucket(beam.DoFn):
    """Buckets that documents are in; of equal texts in a shard one record leaves it."""

    settings: DocumentDedupSettings

    def process(
        self, element: tuple[str, Iterable[pa.RecordBatch]], shards: Sequence[str]
    ) -> Iterator[Any]:
        facts = rows_of_shard(*element)
        if not facts.num_rows:
            return
        first = np.uint64(place_of(element[0], shards) << 32)
        numbers = first + facts.column("row").to_numpy()
        for kind, edges, columns in bucketed(facts, numbers, self.settings):
            rows = len(columns["key"])
            record = {
                "key": columns["key"],
                "order": columns.get("order", np.zeros(rows, np.uint64)),
                "number": columns["number"],
                "near": np.full(rows, kind != "exact"),
            }
            yield pa.RecordBatch.from_pydict(record)
            yield beam.pvalue.TaggedOutput("edges", _edges(edges))


def _edges(pairs: UInt64) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": pairs[:, 0], "b": pairs[:, 1]})


@dataclass
class _Link(beam.DoFn):
    """Link the documents of the buckets in a range of keys."""

    settings: DocumentDedupSettings

    def process(
        self, element: tuple[int, Iterable[pa.RecordBatch]], shards: Sequence[str]
    ) -> Iterator[Any]:
        rows = sorted_rows(element[1], "number")
        near = rows.column("near")
        edges, pairs = linked(rows.filter(pc.invert(near)), rows.filter(near), self.settings)
        yield _edges(edges)
        for of_shard in by_shard(_edges(pairs), pairs[:, 0], shards):
            yield beam.pvalue.TaggedOutput("pairs", of_shard)


@dataclass
class _Solve(beam.DoFn):
    """Find the components of the whole graph: the label of each document, by shard."""

    limit: int

    def process(
        self, element: tuple[int, Iterable[pa.RecordBatch]], shards: Sequence[str]
    ) -> Iterator[OfShard]:
        nodes, labels = components(self._within_limit(element[1]))
        found = pa.RecordBatch.from_pydict({"number": nodes, "label": labels})
        yield from by_shard(found, nodes, shards)

    def _within_limit(self, batches: Iterable[pa.RecordBatch]) -> Iterator[UInt64]:
        edges = 0
        for batch in batches:
            edges += batch.num_rows
            if edges > self.limit:
                raise ConfigError(
                    f"dedup-documents.graph.edges_in_memory: the graph has more than "
                    f"{self.limit:,} edges; set it higher, or use `curate dedup-documents`"
                )
            yield edge_pairs(batch)


def _labels(batches: Iterable[pa.RecordBatch]) -> tuple[UInt64, UInt64]:
    """Numbers of a shard's documents that have a neighbour, ascending, and keys of their groups."""
    rows = concatenated([_NO_LABELS, *batches])
    numbers, labels = sort_pairs(rows.column("number").to_numpy(), rows.column("label").to_numpy())
    return numbers, mix64(labels)


_NO_LABELS = pa.RecordBatch.from_pydict(
    {name: np.zeros(0, np.uint64) for name in ("number", "label")}
)


@dataclass
class _Members(beam.DoFn):
    """Send documents that have a neighbour, with survivor columns and similarity data.

    Tables of three kinds, with the key of their group: members, candidate pairs whose first
    document is of the batch, and sets of shingles or signatures.
    """

    settings: DocumentDedupSettings

    def process(
        self, element: Keyed, shards: Sequence[str], labels: Any, pairs: Any
    ) -> Iterator[pa.RecordBatch]:
        key, batch = element
        numbers, keys = _labels(labels[key.shard])
        own = document_numbers(place_of(key.shard, shards), batch.num_rows, key.row)
        rows = np.flatnonzero(np.isin(own, numbers))
        if not len(rows):
            return
        documents, mine = batch.take(pa.array(rows)), own[rows]
        ends = edge_pairs(concatenated([_edges(NO_EDGES), *pairs[key.shard]]))
        ends = ends[np.isin(ends[:, 0], mine)]
        yield pa.RecordBatch.from_pydict(group_pairs(numbers, keys, *ends.T))
        keys = keys[np.searchsorted(numbers, mine)]
        facts = Sign("", self._settings_of_facts()).facts(documents, 0)
        members = member_columns(self.settings, facts, mine, keys, 0)
        yield pa.RecordBatch.from_pydict(members)
        first = carriers(self.settings, keys, members["text"])
        if len(first):
            columns = {"key": keys[first], "text": members["text"][first]}
            data = self._data(documents, facts, first)
            yield pa.RecordBatch.from_pydict({**columns, "data": data})

    def _settings_of_facts(self) -> DocumentDedupSettings:
        """Without signatures, where similarity is measured by shingles."""
        if self.settings.verify.method != "jaccard":
            return self.settings
        minhash = self.settings.minhash.model_copy(update={"enabled": False})
        return self.settings.model_copy(update={"minhash": minhash})

    def _data(self, documents: pa.RecordBatch, facts: pa.RecordBatch, rows: Any) -> pa.Array:
        if self.settings.verify.method == "jaccard":
            return shingle_data(self.settings, documents.column("text").take(pa.array(rows)))
        return signature_data(self.settings, facts, rows)


@dataclass
class _Decide(beam.DoFn):
    """Verify candidates, form clusters and choose survivors, in a range of groups."""

    settings: DocumentDedupSettings

    def process(
        self, element: tuple[int, Iterable[pa.RecordBatch]], shards: Sequence[str]
    ) -> Iterator[OfShard]:
        members: list[pa.RecordBatch] = []
        pairs: list[pa.RecordBatch] = []
        sets: list[pa.RecordBatch] = []
        for batch in element[1]:
            names = batch.schema.names
            (members if "id" in names else sets if "data" in names else pairs).append(batch)
        step = Clusters("", self.settings, (), own_shards=len(shards))
        columns, _ = step.of(_joined(members), _joined(pairs), lambda: sets)
        removed = pa.RecordBatch.from_pydict(columns)
        numbers = removed.column("key").to_numpy()
        yield from by_shard(document_verdicts(removed, self.settings), numbers, shards)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch | None:
    return concatenated(batches) if batches else None
