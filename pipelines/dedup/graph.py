"""Connected components of a graph stored in files, by one task."""

import tempfile
from dataclasses import dataclass

import numpy as np

from curation.dedup.components import ALONE, Numbering, join, settled
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import UInt64, read_columns, scratch, write_columns, write_run
from pipelines.storage.files import FileRecord, Folder, room_for

NO_EDGES = np.zeros((0, 2), np.uint64)
#: Documents whose labels are in one file.
_PART = 1 << 23


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
        numbering, files = Numbering.of(self.rows), {}
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
                run = scratch("labels", name)
                files[run] = write_run(folder, run, "key", columns)
        return Result(files)
