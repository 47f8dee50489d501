"""Stage `filter`: signals, rules, line edits, block lists and personal data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.filters import load_filter
from curation.filters.hosts import HOSTS, most_personal
from curation.filters.settings import FilterSettings
from curation.schema import with_column
from pipelines.engine.files import Folder
from pipelines.engine.shards import characters, read_batches
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, run_transform

_HOSTS = "personal_hosts"


@dataclass(frozen=True)
class FilterDocuments:
    settings: FilterSettings

    def open(self, shard: str, folder: Folder) -> FilterDocuments:
        return self

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        result = load_filter(self.settings).apply(batch)
        cut = characters(batch.column("text")) - characters(result.texts)
        batch = with_column(batch, "text", result.texts)
        batch = with_column(batch, "signals", result.signals)
        extra = {f"personal_data.{kind}": n for kind, n in result.pii_counts.items()}
        for language, documents in result.languages_without_settings.items():
            extra[f"language_without_own_rules.{language}"] = documents
        paths, kept = result.paths, result.verdicts.kept
        batch = with_column(batch, "path", paths)
        for path, documents in Counter(paths.to_pylist()).items():
            extra[f"path.{path}.documents"] = documents
        for path, documents in Counter(paths.filter(kept).to_pylist()).items():
            extra[f"path.{path}.kept"] = documents
        if result.overruled is not None:
            batch = with_column(batch, "overruled", result.overruled)
            for rule, documents in Counter(result.overruled.filter(kept).to_pylist()).items():
                if rule is not None:
                    extra[f"overruled.{rule}"] = documents
        extra["edits"] = result.edits.num_rows
        extra["characters_cut"] = cut
        return Outcome(batch, result.verdicts, result.edits, extra, {_HOSTS: result.pii_hosts})


def run(run: StageRun) -> dict[str, Any]:
    """Measure and judge every document; the manifest names hosts with much personal data."""

    def notes() -> dict[str, Any]:
        limits = run.settings.pii.hosts
        place = run.folder / _HOSTS
        batches = (b for name in place.names(".parquet") for b in read_batches(place, name))
        return {"hosts with personal data": most_personal(batches, limits.min_items, limits.most)}

    transform = FilterDocuments(run.settings)
    return run_transform(run, transform, writes_edits=True, beside={_HOSTS: HOSTS}, notes=notes)
