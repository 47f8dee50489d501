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
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from curation.compiled import Int, Uint32s, Uint64s, kernel
from curation.dedup.components import unique_edges
from curation.dedup.keys import Ids, run_starts, sort_with

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
