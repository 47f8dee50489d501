"""Measurements of models as they are made: a line each in `measured.jsonl`.

A command that was stopped goes on with the models that are missing, on whatever machine, and
files of several machines can be put together with `cat`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from models.ablate.experiment import Documents, Experiment
from models.ablate.order import ORDER
from models.ablate.training import Training
from models.ablate.windows import Measured

FILE = "measured.jsonl"


class Store:
    """What has been measured, by what decides it: data, seed and training."""

    def __init__(self, experiment: Experiment, path: Path | None = None) -> None:
        """Read `path`, which need not exist; None keeps everything in memory."""
        self.path = path
        self.machines: list[dict[str, str]] = []  # that the found models were trained on
        self._runs = [
            {"run": corpus.name, "data": digest}
            for corpus, digest in zip(experiment.corpora, _digests(experiment), strict=True)
        ]
        self._lines: dict[str, dict[str, Any]] = {}
        text = path.read_text(encoding="utf-8") if path and path.exists() else ""
        for line in text.splitlines():
            try:
                row = json.loads(line)
                self._lines[_key(row["model"])] = row
            except (ValueError, KeyError, TypeError):
                continue  # cut off when the command was stopped
        self._cut_off = bool(text) and not text.endswith("\n")

    def find(self, run: int, seed: int, training: Training) -> Measured | None:
        """Return what a model measured, if it is there."""
        row = self._lines.get(_key(self._model(run, seed, training)))
        if row is None:
            return None
        if row["machine"] not in self.machines:
            self.machines.append(row["machine"])
        return Measured(
            {label: np.array(bits) for label, bits in row["texts"].items()},
            {label: np.array(bits) for label, bits in row["tasks"].items()},
            [(tokens, bits) for tokens, bits in row["curve"]],
        )

    def add(
        self,
        run: int,
        seed: int,
        training: Training,
        found: Measured,
        machine: Mapping[str, str],
    ) -> None:
        """Keep what a model measured."""
        row = {
            "model": self._model(run, seed, training),
            "machine": dict(machine),
            "curve": found.curve,
            "texts": {label: bits.tolist() for label, bits in found.texts.items()},
            "tasks": {label: bits.tolist() for label, bits in found.tasks.items()},
        }
        line = "\n" * self._cut_off + json.dumps(row)
        self._cut_off = False
        self._lines[_key(self._model(run, seed, training))] = row
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    def _model(self, run: int, seed: int, training: Training) -> dict[str, Any]:
        return {**self._runs[run], "seed": seed, "training": asdict(training), "order": ORDER}


def _key(model: dict[str, Any]) -> str:
    return json.dumps(model, sort_keys=True)


def _digests(experiment: Experiment) -> list[str]:
    """Return a digest for each run of all that its models read and are measured with."""
    measures = hashlib.blake2b(digest_size=16)
    measures.update(str(experiment.vocabulary_size).encode())
    for texts in experiment.texts:
        _hash(measures, texts.label, texts.documents)
    for task in experiment.tasks:
        _hash(measures, task.label, task.prompts, task.continuations)
        measures.update(task.items.tobytes())
    found = []
    for corpus in experiment.corpora:
        digest = measures.copy()
        _hash(digest, "", corpus.documents)
        digest.update(corpus.keys.tobytes())
        found.append(digest.hexdigest())
    return found


def _hash(digest: Any, label: str, *parts: Documents) -> None:
    digest.update(f"{label}\0".encode())
    for documents in parts:
        for array in (documents.bounds, documents.tokens):
            digest.update(array.tobytes())
