"""Rank of a document's quality among the documents of its language.

Scores of languages with few training pages are low throughout, so that one threshold would remove
whole languages; the report ranks multilingual documents within their language instead. The
distribution of scores is learnt once, from a sample that was classified (`curate train ranking`),
as a histogram per language: ranking needs no pass over the data.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.archive import read_as, read_headed
from curation.errors import ConfigError
from curation.models import ModelFile, locate

VERSION = 1

#: Scores are counted in bins of this width; they are stored with four decimals.
BINS = 1000

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Histograms of quality by language; the last row is that of all documents together."""

    languages: tuple[str, ...]  # [l]
    counts: Counts  # [l + 1, BINS + 1]

    def rank(self, quality: pa.Array, languages: pa.Array) -> pa.Array:
        """Share (float32, 0 to 1) of the language's documents below each, half of its bin included.

        `languages` (string) may be null; a language without a histogram is ranked among all.
        """
        below = np.cumsum(self.counts, 1) - self.counts
        shares = (below + self.counts / 2) / np.maximum(self.counts.sum(1, keepdims=True), 1)
        index = {name: i for i, name in enumerate(self.languages)}
        encoded = languages.cast(pa.string()).dictionary_encode()
        rows = [index.get(name, len(index)) for name in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(rows)).to_numpy(zero_copy_only=False)
        row = np.array([*rows, len(index)])[codes]
        found = shares[row, bins(quality.to_numpy(zero_copy_only=False))]
        return pa.array(found.round(4), pa.float32())


def bins(quality: npt.NDArray[np.floating]) -> Counts:
    """Bin of every score; NaN counts as 0."""
    clean = np.clip(np.nan_to_num(quality.astype(np.float64)), 0.0, 1.0)
    return np.rint(clean * BINS).astype(np.int64)


@functools.cache
def load(file: ModelFile) -> Ranking:
    """Read a ranking, once per process. Raises ConfigError, in one line, when it is none."""
    path, _ = locate(file)
    with read_as(file.path, "a quality ranking"):
        head, arrays = read_headed(path)
        counts = arrays["counts"].astype(np.int64)
        languages, version = tuple(head["languages"]), head["version"]
    if version != VERSION or counts.shape != (len(languages) + 1, BINS + 1):
        raise ConfigError(f"{file.path}: a quality ranking of another version")
    return Ranking(languages, counts)
