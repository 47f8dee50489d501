"""Train the reference distribution of a language's words from files, for KL divergence."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from curation.config import built_in_settings
from curation.errors import InputError
from curation.filters.names import REFERENCE
from curation.filters.reference import Reference, WordCounts, measure_references
from curation.train.by_language import TextSettings, add_to_card, batches, file_facts, pieces
from curation.train.report import About, Report

_REMOVED = (0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.001)


class ReferenceTraining(TextSettings):
    """How a reference distribution is counted; defaults in configs/train/reference.yaml."""

    vocabulary: int = Field(ge=100, description="most frequent words that are kept")
    min_count: int = Field(ge=1, description="rarer words are not kept")
    calibration_lengths: tuple[Annotated[int, Field(ge=100)], ...] = Field(
        min_length=1, description="characters to which texts are joined for the calibration"
    )


@functools.cache
def default_reference() -> ReferenceTraining:
    """The settings of configs/train/reference.yaml."""
    return built_in_settings(ReferenceTraining, "train/reference")


def train_reference_files(
    inputs: Sequence[Path | str],
    language: str,
    output: Path | str,
    about: About,
    settings: ReferenceTraining | None = None,
) -> Report:
    """Count the words of JSONL or Parquet files and write `<language>.npz` into `output`.

    The folder's `card.yaml` is created or gets the language added. The metrics' `calibration` helps
    to choose thresholds: values of the divergence (nats) and of the share of words outside the
    vocabulary that shares of the training texts exceed, by length, because both fall with it.
    Raises InputError where a row has no text or where no row is of the language.
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
        "calibration": _calibration(trained, inputs, language, settings),
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


def _calibration(
    trained: Reference, inputs: Sequence[Path | str], language: str, settings: ReferenceTraining
) -> list[dict[str, Any]]:
    """For texts of each length: how many there are, and the values that shares of them exceed.

    `removed_1%` of `kl_divergence` is the threshold that would remove one in a hundred.
    """
    found: dict[int, list[npt.NDArray[np.float64]]] = {n: [] for n in settings.calibration_lengths}
    for batch in batches(inputs, language, settings):
        for length, parts in found.items():
            parts.append(measure_references(pieces(batch, length), [trained]))
    rows = []
    for length, parts in found.items():
        table = np.concatenate(parts)
        table = table[~np.isnan(table[:, 0])]
        row: dict[str, Any] = {"characters": length, "texts": len(table)}
        for k, name in enumerate(REFERENCE):
            values = np.quantile(table[:, k], [1 - share for share in _REMOVED]).round(3)
            row[name] = {
                f"removed_{share:.1%}": float(v) for share, v in zip(_REMOVED, values, strict=True)
            }
        rows.append(row)
    return rows


def calibration_table(rows: Sequence[dict[str, Any]]) -> str:
    """The calibration of a trained reference as a table for reading."""
    heads = [f"removes {share:.1%}" for share in _REMOVED]
    lines = [f"{'threshold of':20} {'characters':>10} " + " ".join(f"{h:>14}" for h in heads)]
    for name in REFERENCE:
        for row in rows:
            values = " ".join(f"{v:14.3f}" for v in row[name].values())
            lines.append(f"{name:20} {row['characters']:10,} {values}")
    return "\n".join(lines)
