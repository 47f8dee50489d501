"""Stage `withdraw`: leave out documents that a table names, and pass on what the mix planned."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import InputError
from curation.mix.schedule import place_key
from curation.resources import resolve
from curation.schema import PLACES, Verdicts
from curation.stages.withdraw import WithdrawSettings
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, batches_beside, run_transform
from pipelines.mix import phases_of
from pipelines.storage.files import Folder
from pipelines.storage.shards import open_parquet

_COLUMNS = ("id", "reason", "value")


@dataclass(frozen=True)
class LeaveOut(Transform):
    """Removes the documents of a table, for the reason that it gives."""

    settings: WithdrawSettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        names, reasons, values = self._columns
        rows = pc.index_in(batch.column("id"), names)
        return Outcome(batch, Verdicts.of_texts(reasons.take(rows), values.take(rows)))

    @cached_property
    def _columns(self) -> list[pa.Array]:
        table = self.settings.documents
        place, _, name = resolve(table or "").rpartition("/")
        with open_parquet(Folder(place or "."), name) as file:
            rows = file.read(list(_COLUMNS))
        if absent := [name for name in _COLUMNS if name not in rows.column_names]:
            raise InputError(f"{table}: no column {absent[0]!r}")
        return [rows[name].cast(pa.string()).combine_chunks() for name in _COLUMNS]


def run(run: StageRun) -> dict[str, Any]:
    """Leave out documents; return the manifest, with the phases of the mix that is left."""
    phases = phases_of(run)
    notes = (lambda: {"phases": _left(run, phases)}) if phases else None
    return run_transform(run, LeaveOut(run.settings), notes=notes)


def _left(run: StageRun, phases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the phases without the tokens of the documents left out.

    What each domain has of a phase is what was drawn, so it is not passed on.
    """
    starts = np.array([place_key(phase["start"]) for phase in phases], np.uint64)
    lost = np.zeros(len(phases), np.int64)
    for batch in batches_beside(run, "removed"):
        places = batch.column(PLACES)
        phase = np.searchsorted(starts, places.flatten().to_numpy(), side="right") - 1
        tokens = batch.column("tokens").take(pc.list_parent_indices(places))
        np.add.at(lost, phase, tokens.to_numpy())
    return [
        {key: phase[key] for key in ("phase", "start", "end")} | {"kept": phase["kept"] - less}
        for phase, less in zip(phases, lost.tolist(), strict=True)
    ]
