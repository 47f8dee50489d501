"""Stage `identify-language`: add `language` and `language_score`; remove unwanted languages."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.language.decide import decide
from curation.language.identifier import LanguageIdentifier
from curation.language.language_settings import LanguageSettings
from curation.schema import with_column
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, run_transform


@dataclass(frozen=True)
class IdentifyLanguage(Transform):
    settings: LanguageSettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        texts = batch.column("text")
        labels, scores = LanguageIdentifier(self.settings).apply(texts)
        batch = with_column(batch, "language", labels)
        batch = with_column(batch, "language_score", scores)
        return Outcome(batch, decide(labels, scores, self.settings, texts))


def run(run: StageRun) -> dict[str, Any]:
    """Identify the language of every document."""
    return run_transform(run, IdentifyLanguage(run.settings))
