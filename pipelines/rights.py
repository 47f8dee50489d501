"""Stage `rights`: remove documents by the rights signals of their page and site."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from curation.rights.policy import FOUND, Policy, found_table, verdicts_of
from curation.rights.rights_settings import RightsSettings
from curation.stages import find
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, run_transform


@dataclass(frozen=True)
class ApplyRights(Transform):
    """The policy as a transform; the signals that removed documents go to a table of their own."""

    settings: RightsSettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        rulings = self._policy.judge(batch)
        found = found_table(batch.column("id"), rulings)
        return Outcome(batch, verdicts_of(rulings), beside={find("rights").beside: found})

    @cached_property
    def _policy(self) -> Policy:
        return Policy(self.settings)


def run(run: StageRun) -> dict[str, Any]:
    """Judge every document."""
    beside = {find("rights").beside: FOUND}
    return run_transform(run, ApplyRights(run.settings), beside=beside)
