"""Train the model of characters of a language from files, for perplexity."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import xxhash
from pydantic import Field

from curation.config import built_in_settings
from curation.errors import InputError
from curation.filters.perplexity import PERCENTILES, measure_models, model_table, symbols_of
from curation.models import About, file_facts
from curation.train.by_language import TextSettings, add_to_card, batches, pieces
from curation.train.kneser_ney import MAX_ORDER, MAX_SYMBOLS, train_characters
from curation.train.report import Report

_SHOWN = (10, 30, 50, 60, 90)  # percentiles on the card; 30 and 60 are CCNet's bounds


class PerplexityTraining(TextSettings):
    """How a model of characters is trained; defaults in configs/train/perplexity.yaml."""

    order: int = Field(ge=2, le=MAX_ORDER, description="characters of the longest n-gram")
    symbols: int = Field(
        ge=10, le=MAX_SYMBOLS, description="most frequent characters that are distinguished"
    )
    entries: int = Field(ge=1000, description="n-grams that are kept")
    training_characters: int = Field(ge=1000, description="text that is counted; the rest is not")
    held_out: float = Field(gt=0, lt=1, description="share of the texts kept for the percentiles")
    calibration_characters: int = Field(
        ge=100, description="to which held-out texts are joined for the percentiles"
    )


@functools.cache
def default_perplexity() -> PerplexityTraining:
    """The settings of configs/train/perplexity.yaml."""
    return built_in_settings(PerplexityTraining, "train/perplexity")


def train_perplexity_files(
    inputs: Sequence[Path | str],
    language: str,
    output: Path | str,
    about: About,
    settings: PerplexityTraining | None = None,
    calibrate: Sequence[Path | str] = (),
) -> Report:
    """Train on JSONL or Parquet files and write `<language>.npz` and the folder's card.

    Percentiles are those of the documents in `calibrate`, as they are (CCNet ranks a crawl among
    itself); without them, of held-out texts joined to pieces. Raises InputError where a row has no
    text, or the texts are too few.
    """
    settings = settings or default_perplexity()
    taken: list[str] = []
    held: list[str] = []
    size = 0
    for text in _texts(inputs, language, settings):
        if xxhash.xxh64_intdigest(text.encode()) < settings.held_out * 2**64:
            held.append(text)
        elif size < settings.training_characters:
            taken.append(text)
            size += len(text)
    model = train_characters(
        symbols_of(taken), language, settings.order, settings.symbols, settings.entries
    )
    documents = list(_texts(calibrate, language, settings))
    documents = documents or pieces(held, settings.calibration_characters)
    bare = model_table([replace(model, percentiles=np.zeros(PERCENTILES, np.float32))])
    found = measure_models(documents, bare)[:, 0]
    found = found[~np.isnan(found)]
    if not len(found):
        raise InputError(f"{language}: no texts are left for the percentiles")
    bounds = np.percentile(found, np.linspace(0, 100, PERCENTILES)).astype(np.float32)
    path = Path(output) / f"{language}.npz"
    replace(model, percentiles=bounds).save(path)
    metrics = {
        "training_characters": size,
        "ngrams": len(model.keys),
        "bytes": path.stat().st_size,
        "calibration_documents": len(found),
        "perplexity": {f"q{k}": round(float(bounds[k]), 3) for k in _SHOWN},
    }
    return add_to_card(
        "perplexity",
        "models of characters by language, for perplexity",
        path,
        language,
        about,
        file_facts([*inputs, *calibrate]),
        settings,
        metrics,
    )


def _texts(
    inputs: Sequence[Path | str], language: str, settings: PerplexityTraining
) -> Iterator[str]:
    for batch in batches(inputs, language, settings):
        yield from batch
