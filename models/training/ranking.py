"""Learn how quality is distributed in each language, from documents that were classified."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from curation.classify.ranking import BINS, Ranking, bins
from curation.config import Positive, Settings
from curation.errors import InputError, first_line
from curation.models import sha256_of
from models.training.report import About, Report, write_card
from models.training.saving import save_ranking

FILE = "ranking.npz"

#: Of these shares of a language's documents the card tells the score.
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


class RankingTraining(Settings):
    """Which columns are read; defaults in configs/train/ranking.yaml."""

    quality_column: str = Field(min_length=1)
    language_column: str = Field(min_length=1)
    min_documents: Positive = Field(
        description="languages with fewer are ranked among all documents"
    )


def train_ranking(
    inputs: Sequence[Path | str], output: Path | str, about: About, settings: RankingTraining
) -> Report:
    """Count scores by language in Parquet files and write `ranking.npz` and `card.yaml`.

    Only the two columns are read. Raises InputError naming a file that lacks them.
    """
    total: dict[str, np.ndarray] = {}
    every = np.zeros(BINS + 1, np.int64)
    files = []
    for path in map(Path, inputs):
        documents = 0
        try:
            columns = [settings.language_column, settings.quality_column]
            file = pq.ParquetFile(path)
            for name in columns:
                if name not in file.schema_arrow.names:
                    raise InputError(f"{path}: no column {name!r}")
            for batch in file.iter_batches(columns=columns):
                _count(batch.column(0), batch.column(1), total, every)
                documents += batch.num_rows
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path}: {first_line(error)}") from None
        files.append({"file": path.name, "sha256": sha256_of(path), "examples": documents})
    kept = sorted(n for n, counts in total.items() if counts.sum() >= settings.min_documents)
    if not every.any():
        raise InputError("no classified documents in " + ", ".join(map(str, inputs)))
    ranking = Ranking(tuple(kept), np.stack([*(total[n] for n in kept), every]))
    target = Path(output) / FILE
    save_ranking(ranking, target)
    metrics = {
        "documents": int(every.sum()),
        "quality_by_share_below": {
            name: _quantiles(counts)
            for name, counts in zip([*kept, "all"], ranking.counts, strict=True)
        },
    }
    return write_card(target, "ranking", about, files, settings, metrics)


def _count(
    languages: pa.Array, quality: pa.Array, total: dict[str, np.ndarray], every: np.ndarray
) -> None:
    encoded = languages.cast(pa.string()).fill_null("").dictionary_encode()
    where = bins(quality.cast(pa.float64()).to_numpy(zero_copy_only=False))
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        counts = total.setdefault(name, np.zeros(BINS + 1, np.int64))
        counts += np.bincount(where[codes == code], minlength=BINS + 1)
    every += np.bincount(where, minlength=BINS + 1)


def _quantiles(counts: np.ndarray) -> dict[str, float]:
    shares = np.cumsum(counts) / counts.sum()
    return {f"{q:g}": round(int(np.searchsorted(shares, q)) / BINS, 3) for q in _QUANTILES}
