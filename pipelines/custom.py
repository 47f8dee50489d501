"""Custom stages: a user's function of batches, named in a recipe."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.judging import judge_all, opened
from curation.schema import conformed
from curation.stages.custom import CustomSettings
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, run_transform, with_errors


@dataclass(frozen=True)
class JudgeDocuments(Transform):
    """Call the function on every batch."""

    stage: str
    settings: CustomSettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        code = self.settings.python
        function = opened(code, self.settings.settings)
        judged, verdicts, failures = judge_all(function, batch, self.stage, code.found.name)
        return with_errors(Outcome(conformed(judged), verdicts), batch, failures, self.stage)


def run(run: StageRun) -> dict[str, Any]:
    """Judge every document."""
    return run_transform(run, JudgeDocuments(run.stage, run.settings))
