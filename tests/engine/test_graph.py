"""Components over files are those of the edges in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curation.dedup.components import connected_components
from curation.errors import StoreError
from pipelines.dedup_documents import buckets as graph
from pipelines.dedup_documents.buckets import Solve, write_edges
from pipelines.runners.tasks import Task, no_progress
from pipelines.storage.exchange import read_columns, scratch
from pipelines.storage.files import Folder

#: Rows of three shards.
ROWS = (700, 0, 1900)


def edges_of(rng: np.random.Generator) -> np.ndarray:
    """A long path in a shuffled order, a star, and many small components."""
    documents = np.concatenate(
        [(shard << 32) + np.arange(rows) for shard, rows in enumerate(ROWS)]
    ).astype(np.uint64)
    drawn = rng.permutation(documents)
    path, star, some = drawn[:300], drawn[300:400], drawn[400:1200]
    edges = [
        np.stack([path[:-1], path[1:]], axis=1),
        np.stack([np.full(99, star[0]), star[1:]], axis=1),
        rng.choice(some, (400, 2)),
    ]
    return rng.permutation(np.concatenate(edges))


@pytest.mark.parametrize("part", [1 << 20, 100])
@pytest.mark.parametrize("files", [1, 5])
def test_labels_are_the_smallest_of_each_component(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, part: int
) -> None:
    monkeypatch.setattr(graph, "_PART", part)
    folder, edges = Folder(str(tmp_path)), edges_of(np.random.default_rng(7))
    names = tuple(scratch("edges", str(i)) for i in range(files))
    for i, name in enumerate(names):
        write_edges(folder, name, edges[i::files])
    solve = Solve("k", ROWS)
    solve.run(Task("all", (), 0, names), folder, no_progress)
    assert len(solve.labels) == -(-sum(ROWS) // part)
    found = [read_columns(folder, scratch("labels", name)) for name in solve.labels]
    nodes, labels = (
        np.concatenate([b.column(c).to_numpy() for b in found]) for c in ("key", "label")
    )
    expected = connected_components(edges)
    assert nodes.tolist() == expected.nodes.tolist()
    assert labels.tolist() == expected.labels.tolist()


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapped file without room would kill the process."""
    full = open("/dev/full", "r+b", 0)  # noqa: SIM115 (the step closes it)
    monkeypatch.setattr(graph.tempfile, "TemporaryFile", lambda: full)
    with pytest.raises(StoreError, match="No space left on device"):
        Solve("k", (3,)).run(Task("all", (), 0, ()), Folder(str(tmp_path)), no_progress)
