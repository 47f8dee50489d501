"""Stage `identify-language`: adds `language` and `language_score`, removes what is not wanted.

With `by_line` also `languages`, those of the lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.language import LanguageIdentifier, decide
from curation.language.settings import LanguageSettings
from curation.schema import with_column
from pipelines.engine.files import Folder
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, run_transform


@dataclass(frozen=True)
class IdentifyLanguage:
    settings: LanguageSettings

    def open(self, shard: str, folder: Folder) -> IdentifyLanguage:
        return self

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        identifier = LanguageIdentifier(self.settings)
        labels, scores = identifier.apply(batch.column("text"))
        batch = with_column(batch, "language", labels)
        batch = with_column(batch, "language_score", scores)
        if self.settings.by_line:
            batch = with_column(batch, "languages", identifier.by_line(batch.column("text")))
        return Outcome(batch, decide(labels, scores, self.settings, batch.column("text")))


def run(run: StageRun) -> dict[str, Any]:
    """Identify the language of every document."""
    return run_transform(run, IdentifyLanguage(run.settings))
