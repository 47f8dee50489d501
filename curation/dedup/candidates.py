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
from curation.compiled import Float64s, Int64s, Uint32s, kernel
from curation.dedup.components import unique_edges
from curation.dedup.dedup_settings import MinHashSettings, TextNormalization
from curation.dedup.keys import Ids, run_starts, sort_rows
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
    values = signatures[:, : bands * rows : rows].astype(np.uint64)
    values &= np.uint64((1 << _SKETCH_BITS) - 1)
    places = np.zeros_like(values)
    for k in range(_SKETCH_VALUES):
        places = places << np.uint64(_SKETCH_BITS) | np.roll(values, -1 - k, axis=1)
    return places << np.uint64(32) | (text_hashes & np.uint64(0xFFFFFFFF))[:, None]


def bucket_pairs(buckets: Ids, order: Ids, doc64: Ids, window: int) -> Ids:
    """Candidate pairs (smaller doc64, greater) of all buckets -> uint64 [pairs, 2], sorted, unique.

    Args:
        buckets, order, doc64: [records], in any order, but with equal (bucket, order) by ascending
            doc64: of these only the first document takes part.
        window: each document is paired with so many after it.
    """
    keys, places, rows = sort_rows(buckets, order)
    first = run_starts(keys, places)
    keys, documents = keys[first], doc64[rows[first]]
    # Similar documents meet in many buckets: blocks keep the repeated pairs in memory few.
    step = max(1, _BLOCK_PAIRS // window)
    blocks = [
        unique_edges(_window_pairs(keys, documents, window, start, min(start + step, len(keys))))
        for start in range(0, len(keys), step)
    ]
    if len(blocks) == 1:
        return blocks[0]
    return unique_edges(np.concatenate([np.zeros((0, 2), np.uint64), *blocks]))


def _window_pairs(keys: Ids, documents: Ids, window: int, start: int, end: int) -> Ids:
    """Pairs of the records start:end with those after them."""
    pairs = [np.zeros((0, 2), np.uint64)]
    first = np.arange(start, end)
    for step in range(1, window + 1):
        first = first[: np.searchsorted(first, len(keys) - step)]
        first = first[keys[first + step] == keys[first]]
        if not len(first):
            break
        pairs.append(np.stack([documents[first], documents[first + step]], axis=1))
    return np.sort(np.concatenate(pairs), axis=1)


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
    owners = np.repeat(np.arange(len(found.offsets) - 1, dtype=np.uint64), found.counts)
    own = np.sort(owners << np.uint64(32) | found.hashes.astype(np.uint32))
    own = own[run_starts(own)]  # np.unique takes ten times as long on hashes
    edges = np.arange(len(found.offsets), dtype=np.uint64) << np.uint64(32)
    return ShingleSets(own.astype(np.uint32), np.searchsorted(own, edges))


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
    equal: npt.NDArray[np.bool_] = signatures[first] == signatures[second]
    return equal.mean(axis=1)


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
