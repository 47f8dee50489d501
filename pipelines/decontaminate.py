"""Stage `decontaminate`: marks, cuts or removes what documents hold of evaluation items."""

from __future__ import annotations

import functools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.decontaminate.catalog import prepare
from curation.decontaminate.decontaminate_settings import DecontaminationSettings
from curation.decontaminate.judge import FOUND, REASON, Decontaminator
from pipelines.engine.files import Folder
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, run_transform


@dataclass(frozen=True)
class Decontaminate:
    settings: DecontaminationSettings
    key: str  # fingerprint of settings and evaluation sets

    def open(self, shard: str, folder: Folder) -> Decontaminate:
        return self

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


@functools.lru_cache(maxsize=2)
def _load(key: str, settings: str) -> Decontaminator:
    read = DecontaminationSettings.model_validate_json(settings)
    folder = Path(tempfile.gettempdir()) / f"curation-evals-{os.getuid()}-{key}"
    return Decontaminator(read, prepare(read, folder))


def run(run: StageRun) -> dict[str, Any]:
    """Judge every document; the index is built before the workers need it."""
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if not run.complete(inputs):
        load(run.settings_key, run.settings)
    transform = Decontaminate(run.settings, run.settings_key)
    return run_transform(run, transform, writes_edits=True, beside={REASON: FOUND})
