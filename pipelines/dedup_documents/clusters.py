"""Reduce: in a range of groups, verify candidates, form clusters and choose survivors.

For each shard, write which rows to remove and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.candidates import ShingleSets, estimated_jaccard, jaccard
from curation.dedup.components import cluster_sizes, confirmed_clusters, same_text
from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.facts import choose_survivors
from curation.dedup.keys import within
from curation.dedup.minhash import band_threshold
from pipelines.dedup.duplicates import OverRanges, WriteVerdicts, read_key_range, verdict_rows
from pipelines.dedup_documents.buckets import Sign
from pipelines.dedup_documents.members import Members
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import UInt64, read_range, run_of, scratch
from pipelines.storage.files import Folder

#: Alarms of each kind, and documents of each, that are shown.
SAMPLES = 20
#: Approximate bytes of sets in memory at once, besides the two longest.
_BLOCK_BYTES = 64 << 20

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Clusters(OverRanges):
    """One task per range of groups; no group is split across tasks."""

    settings_key: str
    settings: DocumentDedupSettings
    shards: tuple[str, ...]
    own_shards: int  # shards from this number on belong to an index: their documents are kept
    name: str = "clusters"
    sends = ("removed",)

    def runs(self) -> list[str]:
        return [scratch(k, s) for k in ("members", "pairs", "sets") for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high = task.payload
        members = read_key_range(folder, "members", self.shards, low, high)
        columns, counts = _NOTHING, _NO_COUNTS | {"large": []}
        if members is not None:
            group = _Group.of(members, self.settings)
            names = [scratch("sets", s) for s in self.shards]
            sets = partial(read_range, folder, names, "key", low, high)
            similarity = Similarity(self.settings, sets)
            pairs = group.pairs(read_key_range(folder, "pairs", self.shards, low, high))
            columns, counts = self._clusters(group, pairs, similarity)
        return Result(run_of(folder, "removed", task.name, columns), counts)

    def _clusters(
        self, group: _Group, pairs: Positions, similarity: Similarity
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return columns of the documents to remove, and counts."""
        candidates, labels = len(pairs), group.keys
        if self.settings.verify.method != "none":
            values = similarity.of(group, pairs)
            pairs = pairs[values >= self.settings.verify.threshold]
            labels = confirmed_clusters(group.keys, group.exact, pairs)
        counts = _NO_COUNTS | {"candidates": candidates, "confirmed": len(pairs)}
        return self._decide(group, labels, similarity, counts)

    def _decide(
        self,
        group: _Group,
        labels: UInt64,
        similarity: Similarity,
        counts: dict[str, Any],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        sizes = cluster_sizes(labels)
        found = choose_survivors(labels, group.numbers, group.order, self.settings.survivor.policy)
        own = found.removed >> np.uint64(32) < np.uint64(self.own_shards)
        removed = group.positions(found.removed[own])
        kept = group.positions(found.kept[own])
        exact = same_text(group.exact, removed, kept)
        values = np.ones(len(removed))
        values[~exact] = similarity.of(group, np.stack([removed, kept], axis=1)[~exact])
        columns = {
            "key": group.numbers[removed],
            "exact": exact,
            "similarity": values,
            "size": sizes[removed],
            "kept": group.numbers[kept],
            "kept_id": group.members.column("id").take(pa.array(kept)),
        }
        counts["clusters"] = len(np.unique(labels[sizes > 1]))
        counts["largest"] = int(sizes.max(initial=0))
        counts["large"] = self._large(group, labels, sizes, removed, kept)
        return columns, counts

    def _large(
        self,
        group: _Group,
        labels: UInt64,
        sizes: Positions,
        removed: Positions,
        kept: Positions,
    ) -> list[dict[str, Any]]:
        """Return clusters above the alarm's size, the largest first."""
        alarms = self.settings.alarms
        found = np.unique(labels[removed][sizes[removed] > alarms.cluster_size])
        ids = group.members.column("id")
        clusters = []
        for label in found.tolist():
            some = removed[labels[removed] == np.uint64(label)]
            survivor = kept[labels[removed] == np.uint64(label)][0]
            clusters.append(
                {
                    "documents": int(sizes[some[0]]),
                    "removed": len(some),
                    "kept_id": ids[int(survivor)].as_py(),
                    "samples": [ids[int(i)].as_py() for i in some[:SAMPLES]],
                }
            )
        return sorted(clusters, key=lambda c: (-c["documents"], c["kept_id"]))[:SAMPLES]


_NO_COUNTS: dict[str, Any] = {"candidates": 0, "confirmed": 0, "clusters": 0, "largest": 0}
_NOTHING: dict[str, Any] = {
    "key": np.zeros(0, np.uint64),
    "exact": np.zeros(0, bool),
    "similarity": np.zeros(0),
    "size": np.zeros(0, np.int64),
    "kept": np.zeros(0, np.uint64),
    "kept_id": pa.array([], pa.string()),
}


@dataclass(frozen=True)
class _Group:
    """Members of all groups in a range, by document number."""

    members: pa.RecordBatch
    numbers: UInt64  # ascending
    keys: UInt64
    texts: UInt64
    exact: UInt64  # [members, 2], zeros where exact copies are not compared
    order: dict[str, npt.NDArray[Any]]  # columns for choosing survivors

    @classmethod
    def of(cls, members: pa.RecordBatch, settings: DocumentDedupSettings) -> _Group:
        rows = np.argsort(members.column("number").to_numpy(), kind="stable")
        members = members.take(pa.array(rows))
        column = {n: members.column(n).to_numpy() for n in members.schema.names if n != "id"}
        exact = np.stack([column["exact"], column["exact_low"]], axis=1)
        if not settings.exact.enabled:
            exact = np.zeros_like(exact)
        order = {
            "date": column["date"].astype("datetime64[us]"),
            "length": column["length"],
            "quality": column["quality"],
            "source_rank": column["source_rank"],
            "priority": column["priority"],
            "id": column["id_hash"],
        }
        return cls(members, column["number"], column["key"], column["text"], exact, order)

    def positions(self, numbers: UInt64) -> Positions:
        return np.searchsorted(self.numbers, numbers)

    def pairs(self, batch: pa.RecordBatch | None) -> Positions:
        if batch is None:
            return np.zeros((0, 2), np.int64)
        return np.stack([self.positions(batch.column(n).to_numpy()) for n in ("a", "b")], axis=1)


@dataclass
class Similarity:
    """Similarities of members, from the sets (or signatures) of a range of groups.

    Sets stay in their files, memory-mapped on local disks; each block of pairs loads those it
    needs.
    """

    settings: DocumentDedupSettings
    read: Callable[[], Iterable[pa.RecordBatch]]  # columns `key`, `text`, `data`
    _pieces: list[pa.RecordBatch] = field(default_factory=list)
    _keys: UInt64 = field(default_factory=lambda: np.zeros(0, np.uint64))  # of (group, text)
    _places: Positions = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    _bytes: Positions = field(default_factory=lambda: np.zeros(0, np.int64))

    def of(self, group: _Group, pairs: Positions) -> npt.NDArray[np.float64]:
        """Return the similarity of each pair of positions: float64 [pairs]."""
        result = np.zeros(len(pairs))
        if not len(pairs):
            return result
        self._open()
        wanted = within(group.texts, group.keys)
        sets = np.searchsorted(self._keys, wanted[pairs.reshape(-1)]).reshape(-1, 2)
        weight = np.cumsum(self._bytes[sets].sum(axis=1))
        blocks = weight // _BLOCK_BYTES
        for part in np.split(np.arange(len(pairs)), np.flatnonzero(np.diff(blocks)) + 1):
            needed, ends = np.unique(sets[part], return_inverse=True)
            ends = ends.reshape(-1, 2)
            result[part] = self._measure(self._take(needed), ends[:, 0], ends[:, 1])
        return result

    def _measure(
        self, data: pa.LargeBinaryArray, first: Positions, second: Positions
    ) -> npt.NDArray[np.float64]:
        offsets = np.frombuffer(data.buffers()[1], np.int64)[: len(data) + 1]
        content = np.frombuffer(data.buffers()[2] or b"", np.uint8)
        if self.settings.verify.method == "jaccard":
            return jaccard(ShingleSets(content.view(np.uint32), offsets // 4), first, second)
        values = content.view(np.uint32).reshape(len(data), self.settings.minhash.num_perm)
        return estimated_jaccard(values, first, second)

    def _open(self) -> None:
        if self._pieces:
            return
        self._pieces = list(self.read())
        keys, places, sizes = [], [], []
        for i, piece in enumerate(self._pieces):
            keys.append(within(piece.column("text").to_numpy(), piece.column("key").to_numpy()))
            places.append(np.stack([np.full(len(piece), i), np.arange(len(piece))], axis=1))
            sizes.append(pc.binary_length(piece.column("data")).to_numpy())
        joined = np.concatenate(keys)
        self._keys, first = np.unique(joined, return_index=True)
        self._places = np.concatenate(places)[first]
        self._bytes = np.concatenate(sizes)[first]

    def _take(self, needed: Positions) -> pa.LargeBinaryArray:
        """Return the data of the given sets, end to end."""
        places = self._places[needed]
        order = np.argsort(places[:, 0], kind="stable")
        cuts = np.flatnonzero(np.diff(places[order, 0])) + 1
        parts = [
            self._pieces[int(places[rows[0], 0])].column("data").take(pa.array(places[rows, 1]))
            for rows in np.split(order, cuts)
        ]
        inverse = np.empty(len(order), np.int64)
        inverse[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(pa.array(inverse))


@dataclass(frozen=True)
class DocumentVerdicts(WriteVerdicts):
    """Write verdicts: exact or near copy, of which document, how similar."""

    settings: DocumentDedupSettings
    name: str = "verdicts"
    gathers: ClassVar[str] = "removed"
    read_by: ClassVar[tuple[str, ...]] = (Sign.name, Members.name)
    clusters: ClassVar[bool] = True

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        exact = rows.column("exact").to_numpy(zero_copy_only=False)
        verify, minhash = self.settings.verify, self.settings.minhash
        near = band_threshold(minhash.bands, minhash.rows)
        return verdict_rows(
            rows.column("key").to_numpy(),
            np.where(exact, "document.exact", "document.near").tolist(),
            rows.column("similarity").to_numpy().round(6),
            np.where(exact, 1.0, near if verify.method == "none" else verify.threshold),
            rows.column("kept_id"),
            rows.column("size").to_numpy(),
        )
