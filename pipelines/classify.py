"""Stage `classify`: add `quality`, `domain`, `topic` and `format`; remove what scores too low."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.classify.classify_settings import ClassifySettings
from curation.classify.verdicts import classify_documents
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, run_transform, with_errors


@dataclass(frozen=True)
class ClassifyDocuments(Transform):
    settings: ClassifySettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        judged, verdicts, failures = classify_documents(batch, self.settings)
        return with_errors(Outcome(judged, verdicts), batch, failures, "classify")


def run(run: StageRun) -> dict[str, Any]:
    """Score every document."""
    return run_transform(run, ClassifyDocuments(run.settings))
