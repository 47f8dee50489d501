"""Components over files: one worker and rounds give the same labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curation.dedup.components import connected_components
from pipelines.dedup import duplicates
from pipelines.dedup.duplicates import scratch
from pipelines.dedup.graph import label_components, write_edges
from pipelines.engine.stage import StageRun
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.storage.exchange import read_columns
from pipelines.storage.files import Folder


def graph() -> np.ndarray:
    """A long path in a shuffled order, a star, and many small components."""
    rng = np.random.default_rng(7)
    path = rng.permutation(300).astype(np.uint64)
    star = np.arange(400, 500, dtype=np.uint64)
    some = rng.integers(1000, 2000, (400, 2)).astype(np.uint64)
    edges = [
        np.stack([path[:-1], path[1:]], axis=1),
        np.stack([np.full(100, 450, np.uint64), star], axis=1),
        some << np.uint64(20),
    ]
    drawn = rng.permutation(np.concatenate(edges))
    return drawn[drawn[:, 0] != drawn[:, 1]]


@pytest.mark.parametrize("files", [1, 5])
@pytest.mark.parametrize("range_bytes", [1 << 20, 4000])
def test_rounds_end_in_the_labels_of_one_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, range_bytes: int
) -> None:
    monkeypatch.setattr(duplicates, "RANGE_BYTES", range_bytes)
    folder, edges = Folder(str(tmp_path)), graph()
    names = [scratch("edges", str(i)) for i in range(files)]
    for i, name in enumerate(names):
        write_edges(folder, name, edges[i::files])
    with Executor(parse_beam_args([], 0)) as executor:
        run = StageRun("toy", folder, None, "k", executor, {})
        expected = connected_components(edges)
        for limit in (len(edges), 0):
            labels = label_components(run, names, len(edges), "source", limit)
            assert (labels.rounds == 0) == (limit > 0 or files == 1)
            assert (len(labels.names) > 1) == (limit == 0 and range_bytes < 1 << 20)
            found = [read_columns(folder, scratch("labels", n)) for n in labels.names]
            nodes, values = (
                np.concatenate([b.column(c).to_numpy() for b in found]) for c in ("key", "label")
            )
            order = np.argsort(nodes)
            assert (nodes[order] == expected.nodes).all()
            assert (values[order] == expected.labels).all()
