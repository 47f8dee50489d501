"""Stage `filter`: signals, rules, line edits, block lists and personal data."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.filters.apply import load_filter
from curation.filters.filter_settings import FilterSettings
from curation.filters.personal_hosts import FOLDER, HOSTS, most_personal
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import (
    Outcome,
    Transform,
    batches_beside,
    run_transform,
    unanswered,
    with_errors,
)
from pipelines.storage.shards import characters


@dataclass(frozen=True)
class FilterDocuments(Transform):
    settings: FilterSettings

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        result = load_filter(self.settings).apply(batch)
        cut = characters(batch.column("text")) - characters(result.texts)
        batch = result.added_to(batch)
        extra = {f"personal_data.{kind}": n for kind, n in result.pii_counts.items()}
        for language, documents in result.languages_without_settings.items():
            extra[f"language_without_own_rules.{language}"] = documents
        reasons = result.verdicts.reason
        removed = zip(result.paths.to_pylist(), reasons.to_pylist(), strict=True)
        extra |= Counter(f"path.{path}.removed.{why}" for path, why in removed if why is not None)
        if result.overruled is not None:
            rules = batch.column("overruled").drop_null()
            extra |= Counter(f"overruled.{rule}" for rule in rules.to_pylist())
        own = self.settings.custom_signals
        extra |= unanswered({name: result.signals.field(name) for name in own})
        extra["edits"] = result.edits.num_rows
        extra["characters_cut"] = cut
        outcome = Outcome(batch, result.verdicts, result.edits, extra, {FOLDER: result.pii_hosts})
        return with_errors(outcome, batch, result.failures, "filter")


def run(run: StageRun) -> dict[str, Any]:
    """Measure and judge every document; the manifest names hosts with much personal data."""

    def notes() -> dict[str, Any]:
        batches = batches_beside(run, FOLDER)
        return {"hosts with personal data": most_personal(batches)}

    transform = FilterDocuments(run.settings)
    return run_transform(run, transform, beside={FOLDER: HOSTS}, notes=notes)
