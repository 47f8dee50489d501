"""Fingerprints of texts: hashes of n-grams, sampled so that texts with words in common share one.

Winnowing (Schleimer, Wilkerson, Aiken 2003): of all n-grams inside each stretch of GUARANTEED words
the one with the least hash is kept. Equal stretches keep the same one, wherever they are. Lengths
count `Tokens.sizes`, so the guarantee is about as much text in every script.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts
from curation.compiled import kernel
from curation.decontaminate.ngrams import ngrams
from curation.decontaminate.normalize import WORD, tokenize

#: Words of an n-gram: 6 words, 12 Han or kana letters, 24 Thai letters.
GRAM = 6
#: Any run of so many words that two texts share has a fingerprint in common.
GUARANTEED = 13


@kernel
def _winnow(grams, ends, sizes, offsets, least, out, rows):  # type: ignore[no-untyped-def]
    """Write the n-grams with the least hash of all stretches, and their texts; return how many."""
    count = 0
    queue = np.empty(len(grams) + 1, np.int64)  # places of increasing hashes
    for d in range(len(offsets) - 1):
        first, n = offsets[d], offsets[d + 1]
        head = tail = 0
        stop = first  # the stretch is first:stop, of `size`
        size = 0
        added = first
        last = -1
        for i in range(first, n):
            while stop < n and size < least:
                size += sizes[stop]
                stop += 1
            if size < least:
                break
            while added < n and 0 <= ends[added] <= stop:
                while tail > head and grams[queue[tail - 1]] >= grams[added]:
                    tail -= 1
                queue[tail] = added
                tail += 1
                added += 1
            while queue[head] < i:
                head += 1
            if queue[head] != last:
                last = queue[head]
                out[count] = grams[last]
                rows[count] = d
                count += 1
            size -= sizes[i]
    return count


def fingerprints(texts: Texts) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the sampled hashes of all texts, and the text that each is from: both [hashes]."""
    tokens = tokenize(texts)
    grams, ends = ngrams(tokens, GRAM * WORD)
    out = np.empty(len(grams), np.uint64)
    rows = np.empty(len(grams), np.int64)
    count = _winnow(grams, ends, tokens.sizes, tokens.offsets, GUARANTEED * WORD, out, rows)
    return out[:count], rows[:count]


def all_fingerprints(text: str) -> npt.NDArray[np.uint64]:
    """Return the hashes of all n-grams of a text, sorted, each once."""
    grams, ends = ngrams(tokenize([text]), GRAM * WORD)
    return np.unique(grams[ends >= 0])
