"""Exact duplicates: keys of normalised texts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.compiled import kernel
from curation.dedup.characters import character_table
from curation.dedup.dedup_settings import TextNormalization
from curation.dedup.keys import SEEDS
from curation.dedup.normalize import scratch_bytes, write_normalized
from curation.hashing import xxh64


class ExactKeys(NamedTuple):
    keys: npt.NDArray[np.uint64]  # [documents, 2]
    lengths: npt.NDArray[np.int64]  # [documents], bytes of the normalised text; 0: nothing left


def exact_keys(texts: Texts, rules: TextNormalization) -> ExactKeys:
    """128-bit key of each text once normalised.

    Texts of which nothing is left have equal keys and length 0; whether they count as copies of
    one another is the caller's choice.
    """
    buffers = text_buffers(texts)
    table = character_table(rules)
    scratch = np.empty(scratch_bytes(buffers, table.growth), np.uint8)
    collapse = rules.whitespace == "collapse"
    found = _normalized_keys(buffers.data, buffers.offsets, table, collapse, SEEDS, scratch)
    return ExactKeys(*found)


@kernel
def _normalized_keys(data, text_offsets, table, collapse, seeds, scratch):  # type: ignore[no-untyped-def]
    documents = len(text_offsets) - 1
    keys = np.empty((documents, 2), np.uint64)
    lengths = np.empty(documents, np.int64)
    for d in range(documents):
        start, end = text_offsets[d], text_offsets[d + 1]
        size = write_normalized(data, start, end, table, collapse, scratch)
        lengths[d] = size
        keys[d, 0] = xxh64(scratch, 0, size, seeds[0])
        keys[d, 1] = xxh64(scratch, 0, size, seeds[1])
    return keys, lengths
