"""Frequencies of tokens and n-grams in texts that are not from evaluation sets.

Counted once over a corpus in 57 languages (`models/ngrams/train.py`): the probability of frequent
tokens, and the n-grams that several texts share (licences, stock phrases, templates).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.archive import read_arrays, read_as
from curation.decontaminate.normalize import ngrams, tokenize
from curation.models import ModelFile, locate

#: Bits of a token: the least, and those of one that the corpus does not know.
LEAST_BITS, MOST_BITS = 2, 16
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Background:
    """Counts, as sorted hashes."""

    tokens: npt.NDArray[np.uint32]  # [types] low halves of the hashes of tokens, sorted
    bits: npt.NDArray[np.uint8]  # [types] -log2 of the probability
    ngrams: npt.NDArray[np.uint32]  # high halves of the hashes of shared n-grams, sorted

    def token_bits(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        """Return the bits of every token: [tokens]."""
        low = (hashes & _LOW).astype(np.uint32)
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


def count_background(
    texts: Mapping[str, Sequence[str]],
    words: Mapping[str, Mapping[str, int]],
    common: Sequence[str],
    least_tokens: int,
    least_texts: int,
) -> Background:
    """Count texts by language, word frequencies by language, and texts that are common as a whole.

    A token has the bits of the language in which it is most frequent. Tokens count that occur
    `least_tokens` times in a language's texts, n-grams of `least_texts` texts or of a common one.
    """
    bits: dict[int, int] = {}
    grams: list[npt.NDArray[np.uint32]] = []
    for _, own in sorted(texts.items()):
        hashes = []
        for text in own:
            found = tokenize([text])
            hashes.append((found.hashes & _LOW).astype(np.uint32))
            grams.append(_ngrams_of(text))
        kinds, counts = np.unique(np.concatenate(hashes), return_counts=True)
        _note(bits, kinds, counts, least_tokens)
    for _, frequencies in sorted(words.items()):
        found = tokenize(list(frequencies))
        per_word = np.repeat(np.array(list(frequencies.values())), np.diff(found.offsets))
        kinds, inverse = np.unique((found.hashes & _LOW).astype(np.uint32), return_inverse=True)
        _note(bits, kinds, np.bincount(inverse, per_word), least_tokens)
    keys, documents = np.unique(np.concatenate(grams), return_counts=True)
    shared = np.concatenate([keys[documents >= least_texts], *map(_ngrams_of, common)])
    tokens = np.array(sorted(bits), np.uint32)
    costs = np.array([bits[t] for t in tokens.tolist()], np.uint8)
    return Background(tokens, costs, np.unique(shared))


def _ngrams_of(text: str) -> npt.NDArray[np.uint32]:
    grams, ends = ngrams(tokenize([text]))
    return np.unique((grams[ends >= 0] >> np.uint64(32)).astype(np.uint32))


def _note(bits: dict[int, int], kinds: Any, counts: Any, least: int) -> None:
    costs = np.clip(np.round(-np.log2(counts / counts.sum())), LEAST_BITS, MOST_BITS)
    for kind, cost, count in zip(kinds.tolist(), costs.tolist(), counts.tolist(), strict=True):
        if count >= least and cost < MOST_BITS:
            bits[kind] = min(bits.get(kind, MOST_BITS), int(cost))
