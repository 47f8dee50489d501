"""Which languages, hosts and source files lost most, and an alarm for each that lost too much.

There may be as many hosts as documents. So what each shard's audit says of them goes by name to
the tasks of key ranges, of which each has its part of the hosts in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from curation.dedup.audit import SOURCES, losses_joined, losses_noted, sums_of_losses
from curation.dedup.keys import half_keys
from pipelines.dedup.duplicates import AUDIT, OverRanges, range_tasks
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import shard_tasks
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Task, records_of
from pipelines.storage.exchange import concatenated, read_range, run_of, scratch
from pipelines.storage.files import Folder
from pipelines.storage.shards import read_batches

#: Bytes of the rows for a document: its host's and its file's.
_ROW_BYTES = 128


@dataclass(frozen=True)
class ListLosses:
    """Map: write what a shard's languages, hosts and files had and lost, by their name's key."""

    settings_key: str
    name: str = "losses"
    sends = ("losses",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        audit = read_batches(folder, f"{AUDIT}/{task.name}.parquet", SOURCES.names)
        rows = concatenated(sums_of_losses(audit).to_batches(), SOURCES)
        rows = rows.append_column("key", pa.array(half_keys(rows["name"])))
        return Result(run_of(folder, "losses", task.name, rows))


@dataclass(frozen=True)
class SumLosses(OverRanges):
    """Reduce: note in the counts what those in a range of keys lost."""

    settings_key: str
    share: float  # of a host's or file's documents or bytes; above there is an alarm
    what: Literal["documents", "bytes"]
    shards: tuple[str, ...]
    name: str = "hosts"

    def runs(self) -> list[str]:
        return [scratch("losses", s) for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows = read_range(folder, self.runs(), "key", *self.key_range(task))
        found = (batch.select(SOURCES.names) for batch in rows)
        return Result({}, losses_noted(found, self.share, self.what))


def loss_passes(
    run: StageRun, share: float, what: Literal["documents", "bytes"], after: str
) -> list[Pass]:
    """Return the passes that sum what an audit says was lost.

    Args:
        share, what: as in `losses_noted`.
        after: name of the step beside which the audit is written.
    """
    total = SumLosses(run.settings_key, share, what, tuple(s.name for s in run.inputs))
    return [
        Pass(ListLosses(run.settings_key), shard_tasks(run.inputs), after=(after,)),
        Pass(total, range_tasks(_ROW_BYTES * run.documents), after=(ListLosses.name,)),
    ]


def losses_of(run: StageRun, passes: Sequence[Pass]) -> dict[str, Any]:
    """Return what finished `loss_passes`, the last of these, noted for the manifest."""
    total = passes[-1]
    return losses_joined(r["counts"] for r in records_of(run.folder, total.step, total.tasks))
