"""Train the reference distribution of a language's words from files, for KL divergence."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import Field

from curation import resources
from curation.errors import InputError
from curation.filters.reference import Reference, WordCounts, measure_references
from curation.train.by_language import TextSettings, add_to_card, batches, file_facts, pieces
from curation.train.report import About, Report


class ReferenceTraining(TextSettings):
    """How a reference distribution is counted; defaults in configs/train/reference.yaml."""

    vocabulary: int = Field(ge=100, description="most frequent words that are kept")
    min_count: int = Field(ge=1, description="rarer words are not kept")
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
    for batch in batches(inputs, language, settings):
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
    return add_to_card(
        "reference",
        "reference distributions of words by language, for KL divergence",
        path,
        language,
        about,
        file_facts(inputs),
        settings,
        metrics,
    )


def _quantiles(
    trained: Reference, inputs: Sequence[Path | str], language: str, settings: ReferenceTraining
) -> dict[str, Any]:
    parts = [
        measure_references(pieces(batch, settings.calibration_characters), [trained])
        for batch in batches(inputs, language, settings)
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
