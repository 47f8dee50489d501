"""Stage `rights`: remove documents by the rights signals of their page and site."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from curation.errors import InputError
from curation.rights.policy import FOUND, Policy, found_table
from curation.rights.rights_settings import RightsSettings
from curation.schema import Verdicts
from curation.stages import find
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, run_transform


@dataclass(frozen=True)
class ApplyRights(Transform):
    """The policy as a transform; the signals that removed documents go to a table of their own."""

    settings: RightsSettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        if batch.schema.get_field_index("rights") < 0:
            raise InputError("rights: the documents have no column 'rights', which extract makes")
        rulings = self._policy.rulings(batch.column("rights"))
        rows = batch.num_rows
        verdicts = Verdicts(
            pa.array([ruling and ruling.reason for ruling in rulings], pa.string()),
            pa.nulls(rows, pa.float64()),
            pa.nulls(rows, pa.float64()),
            pa.nulls(rows, pa.string()),
        )
        found = found_table(batch.column("id"), rulings)
        return Outcome(batch, verdicts, beside={find("rights").beside: found})

    @cached_property
    def _policy(self) -> Policy:
        return Policy(self.settings)


def run(run: StageRun) -> dict[str, Any]:
    """Judge every document."""
    beside = {find("rights").beside: FOUND}
    return run_transform(run, ApplyRights(run.settings), beside=beside)
