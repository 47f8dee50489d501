"""Hashes of n-grams whose length counts text, not tokens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.compiled import kernel
from curation.decontaminate.normalize import WORD, Tokens
from curation.text.words import finish

#: Size of an n-gram in quarters of a word: 4 words, 8 Han or kana letters, 16 Thai letters.
SIZE = 4 * WORD
_BASE = np.uint64(0x9E3779B97F4A7C15)


@kernel
def ngram_at(hashes, sizes, i, n, size):  # type: ignore[no-untyped-def]
    """(hash, token after the n-gram) of the shortest n-gram of `size` at token i; end -1: none."""
    g = np.uint64(0)
    got = 0
    j = i
    while j < n and got < size:
        g = g * _BASE + hashes[j]
        got += sizes[j]
        j += 1
    return (finish(g), j) if got >= size else (g, -1)


@kernel
def _all_ngrams(hashes, sizes, offsets, size, grams, ends):  # type: ignore[no-untyped-def]
    for d in range(len(offsets) - 1):
        first, n = offsets[d], offsets[d + 1]
        for i in range(first, n):
            g, j = ngram_at(hashes, sizes, i, n, size)
            grams[i] = g
            ends[i] = j


def ngrams(
    tokens: Tokens, size: int = SIZE
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return hash and end of the n-gram at every token; the end is -1 where the text is too short.

    Both [tokens].
    """
    grams = np.empty(len(tokens.hashes), np.uint64)
    ends = np.empty(len(tokens.hashes), np.int64)
    _all_ngrams(tokens.hashes, tokens.sizes, tokens.offsets, size, grams, ends)
    return grams, ends
