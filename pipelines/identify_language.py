"""Stage `identify-language`: add `language` and `language_score`; remove unwanted languages.

With `by_line`, also add `languages`, the languages of the lines; with `by_script`, `scripts`."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.language.decide import decide
from curation.language.identifier import LanguageIdentifier
from curation.language.language_settings import LanguageSettings
from curation.language.scripts import by_script
from curation.schema import with_column
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, run_transform


@dataclass(frozen=True)
class IdentifyLanguage(Transform):
    settings: LanguageSettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        identifier, texts = LanguageIdentifier(self.settings), batch.column("text")
        labels, scores = identifier.apply(texts)
        batch = with_column(batch, "language", labels)
        batch = with_column(batch, "language_score", scores)
        if self.settings.by_line:
            batch = with_column(batch, "languages", identifier.by_line(texts))
        if self.settings.by_script:
            batch = with_column(batch, "scripts", by_script(texts))
        return Outcome(batch, decide(labels, scores, self.settings, texts))


def run(run: StageRun) -> dict[str, Any]:
    """Identify the language of every document."""
    return run_transform(run, IdentifyLanguage(run.settings))
