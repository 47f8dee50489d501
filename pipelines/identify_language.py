"""Stage `identify-language`: add `language` and `language_score`; remove unwanted languages.

With `by_line`, also add `languages`, the languages of the lines; with `by_script`, `scripts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.language.language_settings import LanguageSettings
from curation.language.verdicts import identify_documents
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, run_transform


@dataclass(frozen=True)
class IdentifyLanguage(Transform):
    settings: LanguageSettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        return Outcome(*identify_documents(batch, self.settings))


def run(run: StageRun) -> dict[str, Any]:
    """Identify the language of every document."""
    return run_transform(run, IdentifyLanguage(run.settings))
