"""Stage `classify`: adds `quality`, `domain`, `topic` and `format`, removes what scores too low."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.classify import Classifier, custom, decide
from curation.classify.settings import ClassifySettings
from curation.schema import with_column
from pipelines.engine.files import Folder
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, run_transform, with_errors


@dataclass(frozen=True)
class ClassifyDocuments:
    settings: ClassifySettings

    def open(self, shard: str, folder: Folder) -> ClassifyDocuments:
        return self

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        languages = batch.column("language") if "language" in batch.schema.names else None
        result = Classifier(self.settings).apply(batch.column("text"), languages)
        batch = with_column(batch, "quality", result.quality)
        if result.rank is not None:
            batch = with_column(batch, "quality_rank", result.rank)
        batch = with_column(batch, "domain", result.domain)
        batch = with_column(batch, "topic", result.topic)
        batch = with_column(batch, "format", result.format)
        given = batch
        batch, custom_verdicts, failures = custom.classify(batch, self.settings)
        outcome = Outcome(batch, decide(result, self.settings).otherwise(custom_verdicts))
        return with_errors(outcome, given, failures, "classify")


def run(run: StageRun) -> dict[str, Any]:
    """Score every document."""
    return run_transform(run, ClassifyDocuments(run.settings))
