"""Connected components of a graph stored in files: by one worker, or in rounds.

Both give the same labels: a node's label is the smallest node of its component. One worker reads
all edges; rounds (alternating stars, see `curation.dedup.components`) need only one key range in
memory per task, and end when no range counts a violation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from curation.dedup.components import (
    both_directions,
    connected_components,
    large_star,
    small_star,
    spanning_forest,
    unique_edges,
    violations,
)
from curation.hashing import mix64
from pipelines.dedup.duplicates import (
    OverRanges,
    bytes_of,
    range_tasks,
    read_key_range,
)
from pipelines.engine.stage import StageRun
from pipelines.runners.tasks import Progress, Result, Task, output_fingerprint, records_of
from pipelines.storage.exchange import UInt64, read_columns, scratch, write_columns, write_run
from pipelines.storage.files import FileRecord, Folder

#: Number of edges after which those read so far are replaced by their spanning forest.
_FOLD_EDGES = 1 << 25

NO_EDGES = np.zeros((0, 2), np.uint64)


@dataclass(frozen=True)
class Labels:
    """Files of the labels: runs sorted by node (`key`), with the column `label`."""

    names: tuple[str, ...]  # of scratch("labels", name)
    source: str  # fingerprint of their content
    rounds: int


def write_edges(folder: Folder, name: str, edges: UInt64) -> FileRecord:
    return write_columns(folder, name, {"a": edges[:, 0], "b": edges[:, 1]})


def read_edges(folder: Folder, name: str) -> UInt64:
    return edge_pairs(read_columns(folder, name))


def edge_pairs(batch: pa.RecordBatch) -> UInt64:
    """Return the columns `a` and `b` as uint64 [edges, 2]."""
    return np.stack([batch.column("a").to_numpy(), batch.column("b").to_numpy()], axis=1)


def components(edges: Iterable[UInt64]) -> tuple[UInt64, UInt64]:
    """Return the nodes, ascending, and their labels, for a graph given as parts [n, 2]."""
    parts, waiting = [NO_EDGES], 0
    for part in edges:
        parts.append(part)
        waiting += len(part)
        if waiting > _FOLD_EDGES:
            parts, waiting = [spanning_forest(np.concatenate(parts))], 0
    return connected_components(np.concatenate(parts))


@dataclass(frozen=True)
class Solve:
    """One task: find the components of the whole graph by union-find."""

    settings_key: str
    name: str = "components"
    sends = ("labels",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        nodes, labels = components(read_edges(folder, name) for name in task.payload)
        name = scratch("labels", "all")
        return Result({name: write_run(folder, name, "key", {"key": nodes, "label": labels})})


@dataclass(frozen=True)
class Spread:
    """Before the first round: partition the edges of a file by the hashes of both ends."""

    settings_key: str
    name: str = "round-000"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        edges = spanning_forest(read_edges(folder, task.payload))
        return Result(_spread(folder, self.name, task.name, both_directions(edges)))


@dataclass(frozen=True)
class _OfRound(OverRanges):
    """A step on the edges in a range of hashes, written by the previous step."""

    settings_key: str
    before: str
    names: tuple[str, ...]  # shards of the previous runs
    name: str

    def runs(self) -> list[str]:
        return [scratch(self.before, n) for n in self.names]

    def edges(self, folder: Folder, task: Task) -> UInt64:
        batch = read_key_range(folder, self.before, self.names, *task.payload)
        return NO_EDGES if batch is None else edge_pairs(batch)


class LargeStar(_OfRound):
    """First half of a round; also counts violations."""

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        edges = self.edges(folder, task)
        files = _spread(folder, self.name, task.name, large_star(edges))
        return Result(files, {"violations": violations(edges)})


class SmallStar(_OfRound):
    """Second half of a round."""

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        edges = small_star(self.edges(folder, task))
        return Result(_spread(folder, self.name, task.name, both_directions(edges)))


class ReadLabels(_OfRound):
    """After the last round: write the label of each node in a range of hashes."""

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        edges = unique_edges(self.edges(folder, task))
        nodes, first = np.unique(edges[:, 0], return_index=True)
        labels = np.minimum(nodes, edges[first, 1])
        name = scratch("labels", task.name)
        return Result({name: write_run(folder, name, "key", {"key": nodes, "label": labels})})


def _spread(folder: Folder, kind: str, name: str, edges: UInt64) -> dict[str, FileRecord]:
    edges = unique_edges(edges)
    file = scratch(kind, name)
    columns = {"key": mix64(edges[:, 0]), "a": edges[:, 0], "b": edges[:, 1]}
    return {file: write_run(folder, file, "key", columns)}


def _tasks(records: Sequence[dict[str, Any]], kind: str) -> list[Task]:
    """Return tasks over key ranges of the previous step's output."""
    return range_tasks(bytes_of(records, kind), source=output_fingerprint(records))


def label_components(
    run: StageRun, edge_files: Sequence[str], edges: int, source: str, limit: int
) -> Labels:
    """Label every node of the graph.

    Args:
        edge_files: files with the columns `a` and `b`.
        edges: total number of edges; up to `limit`, one worker solves the graph.
        source: fingerprint of their content.
    """
    if edges <= limit:
        solve = Solve(run.settings_key)
        task = Task("all", (("edges", source),), 0, tuple(edge_files))
        run.run(solve, [task])
        return Labels(("all",), output_fingerprint(records_of(run.folder, solve, [task])), 0)
    spread = Spread(run.settings_key)
    tasks = [
        Task(f"part-{i:05d}", (("edges", source), ("file", name)), 0, name)
        for i, name in enumerate(edge_files)
    ]
    run.run(spread, tasks)
    records, kind, done = records_of(run.folder, spread, tasks), spread.name, 0
    while True:
        names = tuple(t.name for t in tasks)
        large = LargeStar(run.settings_key, kind, names, f"round-{done + 1:03d}-large")
        ranges = _tasks(records, kind)
        run.run(large, ranges)
        found = records_of(run.folder, large, ranges)
        if not sum(r["counts"]["violations"] for r in found):
            break
        starred = tuple(t.name for t in ranges)
        small = SmallStar(run.settings_key, large.name, starred, f"round-{done + 1:03d}")
        tasks = _tasks(found, large.name)
        run.run(small, tasks)
        records, kind, done = records_of(run.folder, small, tasks), small.name, done + 1
    last = ReadLabels(run.settings_key, kind, names, "labels")
    run.run(last, ranges)
    content = output_fingerprint(records_of(run.folder, last, ranges))
    return Labels(tuple(t.name for t in ranges), content, done)
