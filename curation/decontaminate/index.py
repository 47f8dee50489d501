"""The index of evaluation items: patterns of tokens, found by their n-grams.

A pattern is the token sequence of one part of an item (question, choices, answer, passage); equal
sequences are one pattern. Each token weighs what it says: its bits in ordinary text, less where all
n-grams around it are common to many patterns (a template) or to ordinary texts (a stock phrase).

The arrays lie in files of a folder and are mapped into memory, so that all processes of a machine
share them.

Frequencies of tokens and n-grams in texts that are not from evaluation sets.

Counted once over a corpus in 57 languages (`models/ngrams/train.py`): the probability of frequent
tokens, and the n-grams that several texts share (licences, stock phrases, templates).
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.archive import read_arrays, read_as
from curation.arrow import read_only
from curation.decontaminate.normalize import WORD, Tokens, ngrams, sums, tokenize
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


#: Patterns that may share an n-gram for it to point at them.
MOST_PATTERNS = 32
#: What is left of a token's weight where ordinary texts share all n-grams around it.
SHARED = 0.15
#: Bits added to every token: a common word that is missing is an edit, too.
_BASE_BITS = 2
#: Bits of a number: of its digits, and of its being there.
_DIGIT_BITS, _MOST_DIGITS = 3, 5
#: Steps of a weight per bit, and the flag of numbers in it.
STEPS = 4
NUMBER = 0x80
#: Bit of an n-gram's hash from which on the filter knows it.
FILTERED = np.uint64(20)


class Index(NamedTuple):
    """Patterns and the table of their n-grams."""

    tokens: npt.NDArray[np.uint32]  # [tokens] of all patterns, one after the other
    weights: npt.NDArray[np.uint8]  # [tokens] in steps, with the flag NUMBER
    offsets: npt.NDArray[np.int64]  # [patterns + 1]
    totals: npt.NDArray[np.int32]  # [patterns] sum of the weights
    sizes: npt.NDArray[np.int32]  # [patterns] in quarters of a word
    filter: npt.NDArray[np.uint64]  # bits of the n-grams that are there, by those from FILTERED on
    keys: npt.NDArray[np.uint64]  # [n-grams] ascending
    starts: npt.NDArray[np.int32]  # [n-grams + 1] postings of each
    patterns: npt.NDArray[np.int32]  # [postings] sorted by n-gram, pattern, position
    positions: npt.NDArray[np.int32]  # [postings] token of the pattern at which the n-gram begins

    def pattern(self, number: int) -> npt.NDArray[np.uint32]:
        """Return the tokens of a pattern."""
        return self.tokens[self.offsets[number] : self.offsets[number + 1]]

    def weights_of(self, number: int) -> npt.NDArray[np.uint8]:
        """Return the weights of a pattern's tokens, with the flag NUMBER."""
        return self.weights[self.offsets[number] : self.offsets[number + 1]]


def build_index(texts: Sequence[str], background: Background) -> Index:
    """Index patterns, which must differ in their tokens; their numbers follow their order."""
    tokens = tokenize(texts)
    grams, ends = ngrams(tokens)
    pattern_of = np.repeat(np.arange(len(texts), dtype=np.int32), np.diff(tokens.offsets))
    held = np.flatnonzero(ends >= 0)
    order = held[np.argsort(grams[held], kind="stable")]
    sorted_grams, owners = grams[order], pattern_of[order]
    first = np.ones(len(order), bool)
    first[1:] = sorted_grams[1:] != sorted_grams[:-1]
    number = np.cumsum(first) - 1
    fresh = first.copy()
    fresh[1:] |= owners[1:] != owners[:-1]
    patterns_with = np.bincount(number, fresh).astype(np.int64)
    kinds = sorted_grams[first]
    shared = background.is_shared(kinds)
    rarity = 1 / (1 + np.log2(np.maximum(patterns_with, 1)))
    rarity[shared] *= SHARED
    at_token = np.zeros(len(grams), np.float32)
    at_token[order] = rarity[number]
    weights = _weights(tokens, ends, at_token, background)
    seeds = (patterns_with <= MOST_PATTERNS) & ~shared
    chosen = seeds[number]
    kept = order[chosen]
    counts = np.bincount((np.cumsum(seeds) - 1)[number[chosen]], minlength=int(seeds.sum()))
    keys = kinds[seeds]
    arrays = (
        (tokens.hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        weights | np.where(tokens.numbers, NUMBER, 0).astype(np.uint8),
        tokens.offsets,
        np.diff(sums(weights)[tokens.offsets]).astype(np.int32),
        np.diff(sums(tokens.sizes)[tokens.offsets]).astype(np.int32),
        _filter(keys),
        keys,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        pattern_of[kept],
        (kept - tokens.offsets[pattern_of[kept]]).astype(np.int32),
    )
    # As they are mapped: kernels would be compiled once more for arrays that can be written to.
    return Index._make(map(read_only, arrays))


def _weights(
    tokens: Tokens,
    ends: npt.NDArray[np.int64],
    rarity: npt.NDArray[np.float32],
    background: Background,
) -> npt.NDArray[np.uint8]:
    bits = background.token_bits(tokens.hashes).astype(np.float32) + _BASE_BITS
    digits = np.minimum(tokens.ends - tokens.starts, _MOST_DIGITS)
    bits[tokens.numbers] = _BASE_BITS + _DIGIT_BITS * digits[tokens.numbers]
    factors = np.full(len(bits), -1, np.float32)  # of each token, the greatest of its n-grams
    lengths = ends - np.arange(len(ends))
    for k in range(int(lengths.max(initial=0))):
        at = np.flatnonzero(k < lengths)
        factors[at + k] = np.maximum(factors[at + k], rarity[at])
    factors[factors < 0] = 1  # of patterns shorter than an n-gram
    weights = np.round(bits * factors * tokens.sizes / WORD * STEPS)
    return np.clip(weights, 1, NUMBER - 1).astype(np.uint8)


def _filter(grams: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return 16 bits for each n-gram, of which its own is set."""
    bits = np.zeros(1 << max(4, int(np.ceil(np.log2(max(1, len(grams)) * 16 / 64)))), np.uint64)
    at = grams >> FILTERED & np.uint64(len(bits) * 64 - 1)
    np.bitwise_or.at(bits, at >> np.uint64(6), np.uint64(1) << (at & np.uint64(63)))
    return bits


def save_index(index: Index, folder: Path) -> None:
    """Write the arrays into a folder."""
    folder.mkdir(parents=True)
    for name, array in index._asdict().items():
        np.save(folder / f"{name}.npy", array)


def map_index(folder: Path) -> Index:
    """Map the arrays of a folder into memory, read-only."""
    return Index._make(np.asarray(np.load(folder / f"{name}.npy", "r")) for name in Index._fields)
