"""Stage `decontaminate`: marks, cuts or removes what documents hold of evaluation items."""

from __future__ import annotations

import functools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.decontaminate.catalog import prepare
from curation.decontaminate.decontaminate_settings import DecontaminationSettings
from curation.decontaminate.judge import FOUND, REASON, Decontaminator
from curation.decontaminate.overlap import overlap, summary
from curation.stages import find
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, batches_beside, run_transform
from pipelines.facts import stage_facts
from pipelines.named_files import check_named_files
from pipelines.storage.files import fingerprint


@dataclass(frozen=True)
class Decontaminate(Transform):
    settings: DecontaminationSettings
    key: str  # fingerprint of settings and evaluation sets

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        done = load(self.key, self.settings).apply(batch)
        beside = {REASON: done.found}
        return Outcome(done.batch, done.verdicts, done.edits, done.counts, beside)


def load(key: str, settings: DecontaminationSettings) -> Decontaminator:
    """Return what judges documents, loaded once per process.

    The index is a folder of mapped files in the temporary folder, which the processes of a machine
    share: the first one builds it. Raises InputError where an evaluation set can't be read.
    """
    return _load(key, settings.model_dump_json())


def evals_key(settings: DecontaminationSettings) -> str:
    """Return the fingerprint of settings, evaluation sets and software outside a run.

    Raises ConfigError where a set is absent.
    """
    stage = find("decontaminate")
    check_named_files(stage, settings)
    return fingerprint([settings.model_dump_json(), stage_facts(stage, settings, {})])


@functools.lru_cache(maxsize=2)
def _load(key: str, settings: str) -> Decontaminator:
    read = DecontaminationSettings.model_validate_json(settings)
    folder = Path(tempfile.gettempdir()) / f"curation-evals-{os.getuid()}-{key}"
    return Decontaminator(read, prepare(read, folder))


def run(run: StageRun) -> dict[str, Any]:
    """Judge every document; the index is built before the workers need it.

    The manifest's notes have the shares of each set's items before this stage and after it.
    """
    load(run.settings_key, run.settings)

    def notes() -> dict[str, Any]:
        return {"contamination": _shares(run)}

    transform = Decontaminate(run.settings, run.settings_key)
    return run_transform(run, transform, writes_edits=True, beside={REASON: FOUND}, notes=notes)


def _shares(run: StageRun) -> list[dict[str, Any]]:
    """Clean, touched and dirty items before the stage, and in what it leaves."""
    found = pa.Table.from_batches(list(batches_beside(run, REASON)), FOUND)
    removed = found.filter(pc.equal(found["action"], "remove"))["id"]
    kept = pc.invert(pc.is_in(found["id"], removed.combine_chunks().unique()))
    left = found.filter(pc.and_(kept, pc.not_equal(found["action"], "cut")))
    items = load(run.settings_key, run.settings).items
    rows = [
        overlap(name, items, some.to_batches(), FOUND, run.settings.parts)
        for name, some in (("before", found), ("after", left))
    ]
    return summary(pa.concat_tables(rows))
