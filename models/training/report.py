"""Report a training run: the model's card and its held-out metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from curation.models import ModelCard, sha256_of

CARD = "card.yaml"


@dataclass(frozen=True)
class About:
    """What only the user knows of a trained model, for its card."""

    version: str
    licence: str
    source: str
    command: str


@dataclass(frozen=True)
class Report:
    """A trained model and how good it is; `str()` of it is for reading."""

    model: Path
    sha256: str
    metrics: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return _yaml({"model": str(self.model), "sha256": self.sha256, "metrics": self.metrics})


def file_facts(files: Sequence[Path | str]) -> list[dict[str, Any]]:
    """Return the names and checksums of files, for a card."""
    return [{"file": path.name, "sha256": sha256_of(path)} for path in map(Path, files)]


def write_card(
    model: Path,
    task: str,
    about: About,
    files: Sequence[dict[str, Any]],
    settings: BaseModel,
    metrics: dict[str, Any],
) -> Report:
    """Write `card.yaml` next to the model."""
    sha256 = sha256_of(model)
    card = ModelCard(
        name=model.stem,
        version=about.version,
        task=task,
        file=model.name,
        sha256=sha256,
        licence=about.licence,
        source=about.source,
        data=list(files),
        command=about.command,
        metrics=metrics,
        settings=settings.model_dump(mode="json"),  # type: ignore[call-arg]
    )
    return write(card, model, sha256, metrics)


def write(card: ModelCard, model: Path, sha256: str, metrics: dict[str, Any]) -> Report:
    """Write the card next to the model; return the report of what was trained."""
    (model.parent / CARD).write_text(_yaml(card.model_dump(mode="json")), encoding="utf-8")
    return Report(model, sha256, metrics)


def _yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
