"""Which documents of a bucket are compared with one another, when pairs are to be verified.

A bucket stands for all pairs of its documents. Tying each document to one hub, as
`curation.dedup.components` does where buckets alone decide, would lose pairs here: two documents
may be alike though neither is like the hub. All pairs are n (n - 1) / 2. So the documents of a
bucket are laid in an order that brings similar ones together, and each is a candidate with the
`window` documents that follow. A bucket of up to window + 1 documents thus gives all its pairs; a
larger one a chain of overlapping groups. The order differs from band to band, so that a pair that
one bucket's order keeps apart may be neighbours in the next.

The order follows from contents alone (a sketch of the signature, then a hash of the text), never
from the numbers of the documents, so that candidates do not depend on how the data is sharded.

Verification of candidate pairs: true Jaccard similarity of shingle sets, or its estimate.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts
from curation.compiled import Float64s, Int, Int64s, Uint32s, Uint64s, kernel
from curation.dedup.components import unique_edges
from curation.dedup.dedup_settings import MinHashSettings, TextNormalization
from curation.dedup.keys import Ids, run_starts, sort_with
from curation.dedup.minhash import shingles

#: Signature values that make the sketch, and bits of each.
_SKETCH_VALUES = 8
_SKETCH_BITS = 4

_BLOCK_PAIRS = 1 << 22


def bucket_order(signatures: npt.NDArray[Any], bands: int, rows: int, text_hashes: Ids) -> Ids:
    """Place of each document in the order of each of its buckets -> uint64 [documents, bands].

    The high half is a sketch: a few bits of one value of each following band. The low half is that
    of `text_hashes` [documents], a hash that documents with the same text share: equal places mean
    documents that need no comparison.
    """
    return _order(np.ascontiguousarray(signatures), bands, rows, text_hashes)


def bucket_pairs(buckets: Ids, order: Ids, doc64: Ids, window: int) -> Ids:
    """Candidate pairs (smaller doc64, greater) of all buckets -> uint64 [pairs, 2], sorted, unique.

    Args:
        buckets, order, doc64: [records], in any order, but with equal (bucket, order) by ascending
            doc64: of these only the first document takes part.
        window: each document is paired with so many after it.
    """
    keys, places, documents = sort_with(buckets, order, doc64)
    first = run_starts(keys, places)
    keys, documents = keys[first], documents[first]
    # Similar documents meet in many buckets: blocks keep the repeated pairs in memory few.
    step = max(1, _BLOCK_PAIRS // window)
    blocks = [
        unique_edges(_window_pairs(keys, documents, window, start, min(start + step, len(keys))))
        for start in range(0, len(keys), step)
    ]
    if len(blocks) == 1:
        return blocks[0]
    return unique_edges(np.concatenate([np.zeros((0, 2), np.uint64), *blocks]))


@kernel
def _order(signatures: Uint32s, bands: Int, rows: Int, text_hashes: Uint64s) -> Uint64s:
    low = np.uint64(0xFFFFFFFF)
    mask = np.uint64((1 << _SKETCH_BITS) - 1)
    out = np.empty((len(signatures), bands), np.uint64)
    for d in range(len(signatures)):
        for band in range(bands):
            sketch = np.uint64(0)
            for k in range(_SKETCH_VALUES):
                value = np.uint64(signatures[d, (band + 1 + k) % bands * rows])
                sketch = sketch << np.uint64(_SKETCH_BITS) | (value & mask)
            out[d, band] = sketch << np.uint64(32) | (text_hashes[d] & low)
    return out


@kernel
def _window_pairs(keys: Uint64s, documents: Uint64s, window: Int, start: Int, end: Int) -> Uint64s:
    """Pairs of the records start:end with those after them."""
    count = 0
    for i in range(start, end):
        j = i + 1
        while j < len(keys) and j <= i + window and keys[j] == keys[i]:
            j += 1
        count += j - i - 1
    pairs = np.empty((count, 2), np.uint64)
    n = 0
    for i in range(start, end):
        j = i + 1
        while j < len(keys) and j <= i + window and keys[j] == keys[i]:
            pairs[n, 0] = min(documents[i], documents[j])
            pairs[n, 1] = max(documents[i], documents[j])
            n += 1
            j += 1
    return pairs


class ShingleSets(NamedTuple):
    """Set of document i: `hashes[offsets[i]:offsets[i + 1]]`, ascending, without repeats."""

    hashes: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]  # [documents + 1]


def shingle_sets(
    texts: Texts, settings: MinHashSettings, normalization: TextNormalization | None = None
) -> ShingleSets:
    """The set of shingles of each text, as 32-bit hashes.

    Two sets of a thousand shingles share one by chance of their hashes with probability 2e-4, an
    error of 1e-7 in their similarity.

    Args:
        normalization: takes the place of that of `settings`.
    """
    if normalization is not None:
        settings = settings.model_copy(update={"normalization": normalization})
    found = shingles(texts, settings)
    return ShingleSets(*_unique(found.hashes, found.offsets))


def jaccard(
    sets: ShingleSets, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Jaccard similarity of pairs of sets -> float64 [pairs]; two empty sets have 0.

    Args:
        first, second: [pairs], documents of `sets`.
    """
    pairs = np.ascontiguousarray(first), np.ascontiguousarray(second)
    return _jaccard(sets.hashes, sets.offsets, *pairs)


def estimated_jaccard(
    signatures: npt.NDArray[Any], first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Share of equal values of two signatures, the MinHash estimate (Broder 1997).

    Its standard error is sqrt(s (1 - s) / values): 0.043 at s = 0.7 with 112 values.
    """
    return _equal_share(np.ascontiguousarray(signatures), first, second)


@kernel
def _unique(hashes: Uint64s, offsets: Int64s) -> tuple[Uint32s, Int64s]:
    out = np.empty(len(hashes), np.uint32)
    ends = np.zeros(len(offsets), np.int64)
    n = 0
    for d in range(len(offsets) - 1):
        part = np.empty(offsets[d + 1] - offsets[d], np.uint32)
        for i in range(len(part)):
            part[i] = np.uint32(hashes[offsets[d] + i])
        part.sort()
        for i in range(len(part)):
            if i == 0 or part[i] != part[i - 1]:
                out[n] = part[i]
                n += 1
        ends[d + 1] = n
    return out[:n].copy(), ends


@kernel
def _jaccard(hashes: Uint32s, offsets: Int64s, first: Int64s, second: Int64s) -> Float64s:
    out = np.zeros(len(first), np.float64)
    for p in range(len(first)):
        i, i_end = offsets[first[p]], offsets[first[p] + 1]
        j, j_end = offsets[second[p]], offsets[second[p] + 1]
        total = i_end - i + j_end - j
        common = 0
        while i < i_end and j < j_end:
            x, y = hashes[i], hashes[j]
            common += x == y
            i += x <= y
            j += y <= x
        if total:
            out[p] = common / (total - common)
    return out


@kernel
def _equal_share(signatures: Uint32s, first: Int64s, second: Int64s) -> Float64s:
    out = np.zeros(len(first), np.float64)
    for p in range(len(first)):
        equal = 0
        for k in range(signatures.shape[1]):
            equal += signatures[first[p], k] == signatures[second[p], k]
        out[p] = equal / signatures.shape[1]
    return out
