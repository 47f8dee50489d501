"""Stage `decontaminate`: mark, cut or remove evaluation items found in documents."""

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
from pipelines.named_files import check_named_files, stage_facts
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
    """Return the decontaminator, loaded once per process.

    Its index is a folder of memory-mapped files in the temporary folder, shared by the processes of
    a machine: the first one builds it. Raises InputError if an evaluation set can't be read.
    """
    return _load(key, settings.model_dump_json(round_trip=True))


def evals_key(settings: DecontaminationSettings) -> str:
    """Return the fingerprint of settings, evaluation sets and software outside a run.

    Raises ConfigError if a set is missing.
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
    """Judge every document, after building the index for the workers.

    The manifest's notes give the shares of each set's items before and after this stage.
    """
    run.executor.compile()  # the index is built here, before any task
    load(run.settings_key, run.settings)

    def notes() -> dict[str, Any]:
        return {"contamination": _shares(run)}

    transform = Decontaminate(run.settings, run.settings_key)
    return run_transform(run, transform, beside={REASON: FOUND}, notes=notes)


def _shares(run: StageRun) -> list[dict[str, Any]]:
    """Return shares of items by state before and after the stage."""
    found = pa.Table.from_batches(list(batches_beside(run, REASON)), FOUND)
    removed = found.filter(pc.equal(found["action"], "remove"))["id"]
    kept = pc.invert(pc.is_in(found["id"], removed.combine_chunks().unique()))
    left = found.filter(pc.and_(kept, pc.not_equal(found["action"], "cut")))
    judge = load(run.settings_key, run.settings)
    detectable = judge.detectable()
    parts = {name: run.settings.parts_of(name) for name in run.settings.evals}
    rows = [
        overlap(name, judge.items, detectable, some.to_batches(), FOUND, parts)
        for name, some in (("before", found), ("after", left))
    ]
    return summary(pa.concat_tables(rows))
