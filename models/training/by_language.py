"""Models with one file per language in a folder: their texts, their shared card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from curation.config import Settings
from curation.errors import InputError
from curation.models import ModelCard, read_card, sha256_of
from models.training.inputs import rows
from models.training.report import CARD, About, Report, write


class TextSettings(Settings):
    """Where the texts of a language are found in the rows of a file."""

    text_column: str = Field(min_length=1)
    language_column: str | None = Field(
        description="`a|b`: the first that a row has; rows of another language are passed over, "
        "rows without one count; null: all rows count"
    )
    batch_characters: int = Field(ge=1000, description="text that is counted at a time")


def batches(
    inputs: Sequence[Path | str], language: str, settings: TextSettings
) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    names = settings.language_column.split("|") if settings.language_column else []
    for path in map(Path, inputs):
        for place, row in rows(path):
            text = row.get(settings.text_column)
            if not isinstance(text, str):
                raise InputError(f"{place}: no string {settings.text_column!r}")
            label = next((row[n] for n in names if row.get(n) is not None), language)
            if label != language:
                continue
            batch.append(text)
            size += len(text)
            if size >= settings.batch_characters:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def add_to_card(
    name: str,
    task: str,
    model: Path,
    language: str,
    about: About,
    files: list[dict[str, Any]],
    settings: BaseModel,
    metrics: dict[str, Any],
) -> Report:
    """Create the folder's card, or add the language to it."""
    old = read_card(model.parent) if (model.parent / CARD).exists() else None
    held: dict[str, Any] = {
        "sha256": dict(old.sha256) if old and isinstance(old.sha256, dict) else {},
        "data": dict(old.data) if old and isinstance(old.data, dict) else {},
        "metrics": dict(old.metrics) if old else {},
    }
    sha256 = sha256_of(model)
    held["sha256"][model.name] = sha256
    held["data"][language] = files
    held["metrics"][language] = metrics
    card = ModelCard(
        name=name,
        version=about.version,
        task=task,
        licence=about.licence,
        source=about.source,
        command=about.command,
        sha256=dict(sorted(held["sha256"].items())),
        data=dict(sorted(held["data"].items())),
        metrics=dict(sorted(held["metrics"].items())),
        settings=settings.model_dump(mode="json"),  # type: ignore[call-arg]
    )
    return write(card, model, sha256, metrics)
