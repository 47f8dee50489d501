"""Stage `classify`: add `quality`, `domain`, `topic` and `format`; remove what scores too low."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings
from curation.classify.decide import classify_further, decide
from curation.schema import with_column
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, run_transform, unanswered, with_errors


@dataclass(frozen=True)
class ClassifyDocuments(Transform):
    settings: ClassifySettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        found = Classifier(self.settings).apply_to(batch)
        judged = with_column(batch, "quality", found.quality)
        for name in ("domain", "topic", "format"):
            judged = with_column(judged, name, getattr(found, name))
        judged, own, failures = classify_further(judged, found, self.settings)
        verdicts = decide(found, self.settings).otherwise(own)
        code = (name for name, c in self.settings.classifiers.items() if c.python is not None)
        extra = unanswered({name: judged[name] for name in code})
        outcome = Outcome(judged, verdicts, extra=extra)
        return with_errors(outcome, batch, failures, "classify")


def run(run: StageRun) -> dict[str, Any]:
    """Score every document."""
    return run_transform(run, ClassifyDocuments(run.settings))
