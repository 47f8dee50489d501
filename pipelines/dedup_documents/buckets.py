"""Which documents share a bucket: of equal texts, or of a band of their signatures.

Map: compute exact keys, signatures and buckets of every document of a shard. Reduce: link the
documents of the buckets in a range of keys. One task: find the connected components.
"""

import tempfile
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from curation.dedup.candidates import bucket_pairs
from curation.dedup.components import ALONE, Numbering, join, settled, spanning_forest, star_edges
from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.facts import bucketed, document_facts
from curation.rights.policy import Policy
from curation.rights.rights_settings import RightsSettings
from curation.schema import RIGHTS, column_of
from pipelines.dedup.duplicates import OverRanges, check_languages, read_key_range
from pipelines.dedup.indexes import Place
from pipelines.engine.documents import answers, noted, over_documents
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import (
    UInt64,
    concatenated,
    document_numbers,
    read_columns,
    run_of,
    scratch,
    write_columns,
)
from pipelines.storage.files import FileRecord, Folder, room_for

NO_EDGES = np.zeros((0, 2), np.uint64)
#: Documents whose labels are in one file.
_PART = 1 << 23
_STAGE = "dedup-documents"
#: Column of facts: whether the rights that follow texts exclude the document.
REFUSED = "refused"


@dataclass(frozen=True)
class Sign:
    """Read a shard once: write each document's facts and the buckets it is in.

    Of a shard of an index, which has the facts, write only the buckets.
    """

    settings_key: str
    settings: DocumentDedupSettings
    policy: RightsSettings | None = None  # a document that it excludes is kept for no other one
    name: str = "signatures"
    sends = ("exact", "buckets")

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        place: Place = task.payload
        files: dict[str, FileRecord] = {}
        aside: dict[int, str] = {}
        if place.index_file is None:
            wanted = ["id", "url", "date", "text", "source", "language", "quality"]
            wanted += [c for c in self.settings.survivor.columns if c not in wanted]
            wanted += ["rights"] if self.policy else []
            parts = over_documents(_STAGE, place.shard, self.facts, wanted)
            found, aside = answers(parts, progress)
            name, facts = scratch("facts", place.name), concatenated(found)
            files[name] = write_columns(folder, name, facts)
        else:
            facts = place.facts(folder)
        numbers = document_numbers(place.index, facts.num_rows)
        records = list(bucketed(facts, numbers, self.settings)) if facts.num_rows else []
        runs = {kind: columns for kind, _, columns in records}
        for kind in self.sends:
            files |= run_of(folder, kind, place.name, runs.get(kind, _NO_RECORDS))
        edges = np.concatenate([NO_EDGES, *(inner for _, inner, _ in records)])
        name = scratch("edges", place.name)
        files[name] = write_edges(folder, name, edges)
        return Result(files, {"edges": len(edges), **noted(aside)})

    def facts(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the facts of a batch's documents. Raises InputError if languages are missing."""
        check_languages(batch, self.settings, _STAGE)
        facts = document_facts(batch, self.settings)
        if self.policy is None:
            return facts
        rulings = Policy(self.policy).rulings(column_of(batch, "rights", RIGHTS))
        refused = [ruling is not None for ruling in rulings]
        return facts.append_column(REFUSED, pa.array(refused, pa.bool_()))


_NO_RECORDS = {n: np.zeros(0, np.uint64) for n in ("key", "number", "order")}


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
        # A bucket links all its documents to one group, whichever candidates it has.
        edges, pairs = spanning_forest(np.concatenate([_stars(exact), _stars(near)])), NO_EDGES
        if self.settings.verify.method != "none" and near is not None:
            keys, order, numbers = (near.column(n).to_numpy() for n in ("key", "order", "number"))
            pairs = bucket_pairs(keys, order, numbers, self.settings.verify.window)
        columns, name = {"key": pairs[:, 0], "b": pairs[:, 1]}, scratch("links", task.name)
        files = run_of(folder, "candidates", task.name, columns)
        files[name] = write_edges(folder, name, edges)
        return Result(files, {"edges": len(edges)})


def _stars(batch: pa.RecordBatch | None) -> UInt64:
    if batch is None:
        return NO_EDGES
    return star_edges(batch.column("key").to_numpy(), batch.column("number").to_numpy())


def write_edges(folder: Folder, name: str, edges: UInt64) -> FileRecord:
    return write_columns(folder, name, {"a": edges[:, 0], "b": edges[:, 1]})


@dataclass(frozen=True)
class Solve:
    """One task: label each document that has a neighbour with the smallest one of its component.

    Labels are runs sorted by document (`key`), with the column `label`. The forest of union-find
    has 8 bytes for each document of the corpus. It is in a file that is mapped into memory, so that
    one larger than the memory takes time, not the memory. The payload names the files of edges.
    """

    settings_key: str
    rows: tuple[int, ...]  # of each shard
    name: str = "components"
    sends = ("labels",)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the runs of labels, each of the next _PART documents."""
        return tuple(f"part-{i:05d}" for i in range(-(-sum(self.rows) // _PART)))

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        numbering, files = Numbering.of(self.rows), dict[str, FileRecord]()
        size = max(1, numbering.size)  # an empty file can't be mapped
        with tempfile.TemporaryFile() as file:
            with room_for(tempfile.gettempdir()):  # a full disk would end a process that maps it
                for first in range(0, size, _PART):
                    file.write(np.full(min(_PART, size - first), ALONE).data)
                file.flush()
            parents = np.asarray(np.memmap(file, np.int64, "r+"))
            for name in task.payload:
                edges = read_columns(folder, name)
                ends = (numbering.dense(edges[end].to_numpy()) for end in ("a", "b"))
                join(parents, np.stack([*ends], axis=1))
            for i, name in enumerate(self.labels):
                nodes, roots = settled(parents, i * _PART, (i + 1) * _PART)
                columns = {"key": numbering.ids(nodes), "label": numbering.ids(roots)}
                files |= run_of(folder, "labels", name, columns)
        return Result(files)
