"""Stage `filter`: signals, rules, line edits, block lists and personal data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.filters import load_filter
from curation.filters.settings import FilterSettings
from curation.schema import with_column
from pipelines.engine.files import Folder
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, run_transform


@dataclass(frozen=True)
class FilterDocuments:
    settings: FilterSettings

    def open(self, shard: str, folder: Folder) -> FilterDocuments:
        return self

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        result = load_filter(self.settings).apply(batch)
        batch = with_column(batch, "text", result.texts)
        batch = with_column(batch, "signals", result.signals)
        extra = {f"personal_data.{kind}": n for kind, n in result.pii_counts.items()}
        for language, documents in result.languages_without_settings.items():
            extra[f"language_without_own_rules.{language}"] = documents
        return Outcome(batch, result.verdicts, result.edits, extra)


def run(run: StageRun) -> dict[str, Any]:
    """Measure and judge every document."""
    return run_transform(run, FilterDocuments(run.settings), writes_edits=True)
