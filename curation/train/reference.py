"""Train the reference distribution of a language's words from files, for KL divergence."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field

from curation import resources
from curation.errors import InputError
from curation.filters.reference import Reference, WordCounts, measure_references
from curation.models import ModelCard, read_card
from curation.train.inputs import rows
from curation.train.report import About, Report

CARD = "card.yaml"


class ReferenceTraining(BaseModel):
    """How a reference distribution is counted; defaults in configs/train/reference.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text_column: str = Field(min_length=1)
    language_column: str | None = Field(
        description="`a|b`: the first that a row has; rows of another language are passed over, "
        "rows without one count; null: all rows count"
    )
    vocabulary: int = Field(ge=100, description="most frequent words that are kept")
    min_count: int = Field(ge=1, description="rarer words are not kept")
    batch_characters: int = Field(ge=1000, description="text that is counted at a time")
    calibration_characters: int = Field(
        ge=100, description="to which texts are joined for the quantiles on the card"
    )


@functools.cache
def default_reference() -> ReferenceTraining:
    """The settings of configs/train/reference.yaml."""
    path = resources.root() / "configs" / "train" / "reference.yaml"
    return ReferenceTraining.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def train_reference_files(
    inputs: Sequence[Path | str],
    language: str,
    output: Path | str,
    about: About,
    settings: ReferenceTraining | None = None,
) -> Report:
    """Count the words of JSONL or Parquet files and write `<language>.npz` into `output`.

    The folder's `card.yaml` is created or gets the language added. Metrics are those of the
    training texts themselves, by which to choose thresholds: quantiles of the divergence (nats) and
    of the share of words outside the vocabulary, over pieces of `calibration_characters`, because
    the divergence falls with length. Raises InputError where a
    row has no text or where no row is of the language.
    """
    settings = settings or default_reference()
    counts = WordCounts()
    documents = 0
    for batch in _batches(inputs, language, settings):
        counts.add(batch)
        documents += len(batch)
    if not documents:
        raise InputError(f"no texts of language {language!r} in " + ", ".join(map(str, inputs)))
    trained = counts.reference(language, settings.vocabulary, settings.min_count)
    path = Path(output) / f"{language}.npz"
    trained.save(path)
    metrics = {
        "documents": documents,
        "words": trained.tokens,
        "vocabulary": len(trained.words),
        "outside_vocabulary": round(float(np.exp(trained.log_unknown)), 4),
        **_quantiles(trained, inputs, language, settings),
    }
    files = [
        {"file": Path(p).name, "sha256": hashlib.sha256(Path(p).read_bytes()).hexdigest()}
        for p in inputs
    ]
    return _add_to_card(path, language, about, files, settings, metrics)


def _batches(
    inputs: Sequence[Path | str], language: str, settings: ReferenceTraining
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


def _quantiles(
    trained: Reference, inputs: Sequence[Path | str], language: str, settings: ReferenceTraining
) -> dict[str, Any]:
    parts = [
        measure_references(_pieces(batch, settings.calibration_characters), [trained])
        for batch in _batches(inputs, language, settings)
    ]
    table = np.concatenate(parts)
    table = table[~np.isnan(table[:, 0])]
    shares = (0.5, 0.9, 0.99)
    found = np.quantile(table, shares, axis=0).round(3)
    return {
        name: {
            f"q{round(100 * share)}": float(v) for share, v in zip(shares, found[:, k], strict=True)
        }
        for k, name in enumerate(("kl_divergence", "outlier_token_ratio"))
    }


def _pieces(texts: list[str], characters: int) -> list[str]:
    """Texts joined until they have so many characters; the last piece may be shorter."""
    pieces: list[str] = []
    held: list[str] = []
    size = 0
    for text in texts:
        held.append(text[: max(characters - size, 0)])
        size += len(text)
        if size >= characters:
            pieces.append("\n".join(held))
            held, size = [], 0
    return pieces or ["\n".join(held)]


def _add_to_card(
    model: Path,
    language: str,
    about: About,
    files: list[dict[str, Any]],
    settings: ReferenceTraining,
    metrics: dict[str, Any],
) -> Report:
    folder = model.parent
    old = read_card(folder) if (folder / CARD).exists() else None
    held: dict[str, Any] = {
        "sha256": dict(old.sha256) if old and isinstance(old.sha256, dict) else {},
        "data": dict(old.data) if old and isinstance(old.data, dict) else {},
        "metrics": dict(old.metrics) if old else {},
    }
    sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    held["sha256"][model.name] = sha256
    held["data"][language] = files
    held["metrics"][language] = metrics
    card = ModelCard(
        name="reference",
        version=about.version,
        task="reference distributions of words by language, for KL divergence",
        licence=about.licence,
        source=about.source,
        command=about.command,
        sha256=dict(sorted(held["sha256"].items())),
        data=dict(sorted(held["data"].items())),
        metrics=dict(sorted(held["metrics"].items())),
        settings=settings.model_dump(mode="json"),  # type: ignore[call-arg]
    )
    text = yaml.safe_dump(
        card.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100
    )
    (folder / CARD).write_text(text, encoding="utf-8")
    return Report(model, sha256, metrics)
