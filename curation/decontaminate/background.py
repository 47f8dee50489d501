"""Frequencies of tokens and n-grams in texts that are not from evaluation sets.

Counted once over a corpus in 57 languages (`models/ngrams/train.py`): the probability of frequent
tokens, and the n-grams that several texts share (licences, stock phrases, templates).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curation.archive import read_arrays, read_as
from curation.models import ModelFile, locate

#: Bits of a token: the least, and those of one that the corpus does not know.
LEAST_BITS, MOST_BITS = 2, 16
#: The half of a hash that stands for a token.
LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Background:
    """Counts, as sorted hashes."""

    tokens: npt.NDArray[np.uint32]  # [types] low halves of the hashes of tokens, sorted
    bits: npt.NDArray[np.uint8]  # [types] -log2 of the probability
    ngrams: npt.NDArray[np.uint32]  # high halves of the hashes of shared n-grams, sorted

    def token_bits(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        """Return the bits of every token: [tokens]."""
        low = (hashes & LOW).astype(np.uint32)
        at = np.minimum(np.searchsorted(self.tokens, low), len(self.tokens) - 1)
        known = self.tokens[at] == low
        return np.where(known, self.bits[at], MOST_BITS).astype(np.uint8)

    def is_shared(self, grams: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return whether each n-gram occurs in several texts of the corpus."""
        high = (grams >> np.uint64(32)).astype(np.uint32)
        at = np.minimum(np.searchsorted(self.ngrams, high), len(self.ngrams) - 1)
        return self.ngrams[at] == high


@functools.lru_cache(maxsize=2)
def load_background(model: ModelFile) -> Background:
    """Load the counts. Raises ConfigError."""
    path, _ = locate(model)
    with read_as(model.path, "counts of n-grams"):
        arrays = read_arrays(path)
        return Background(arrays["tokens"], arrays["bits"], arrays["ngrams"])
