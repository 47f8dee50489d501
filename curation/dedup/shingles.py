"""Shingles: the hashed n-grams of words or characters that make a document a set.

The bytes of a word shingle are its normalised tokens, UTF-8, joined by one space; those of a
character shingle are its characters. Each is hashed by XXH64 with seed 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.compiled import Bytes, Int64s, Uint64s, borrowing
from curation.dedup.characters import character_table
from curation.dedup.dedup_settings import MinHashSettings
from curation.dedup.normalize import (
    scratch_bytes,
    write_characters,
    write_normalized,
    write_tokens,
)
from curation.hashing import xxh64

if TYPE_CHECKING:
    from curation.dedup.characters import CharacterTable


class Shingles(NamedTuple):
    """Shingles of document i: `hashes[offsets[i]:offsets[i + 1]]`, in text order, repeats kept."""

    hashes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]  # [documents + 1]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)


class _Rules(NamedTuple):
    """`MinHashSettings` as the kernel takes them."""

    words: bool  # else characters
    collapse: bool  # white space
    ngram: int
    whole: bool  # texts shorter than a shingle are one


def shingles(texts: Texts, settings: MinHashSettings) -> Shingles:
    """Hash every shingle of every text.

    Takes 8 bytes of memory per byte of text; `curation.dedup.minhash` works in slices.
    """
    buffers = text_buffers(texts)
    table = character_table(settings.normalization)
    scratch = np.empty(scratch_bytes(buffers, table.growth), np.uint8)
    starts = np.empty(len(scratch) + 1, np.int64)
    total = int(buffers.offsets[-1] - buffers.offsets[0])
    # A text never has more characters or words than bytes, unless a character decomposes.
    hashes = np.empty(total * (table.growth if settings.unit == "characters" else 1), np.uint64)
    offsets = np.zeros(len(buffers) + 1, np.int64)
    rules = _Rules(
        settings.unit == "words",
        settings.normalization.whitespace == "collapse",
        settings.ngram,
        settings.short_documents == "whole",
    )
    _hash_shingles(buffers.data, buffers.offsets, table, rules, scratch, starts, hashes, offsets)
    return Shingles(hashes[: offsets[-1]], offsets)


@borrowing
def _hash_shingles(
    data: Bytes,
    text_offsets: Int64s,
    table: CharacterTable,
    rules: _Rules,
    scratch: Bytes,
    starts: Int64s,
    hashes: Uint64s,
    offsets: Int64s,
) -> None:
    seed = np.uint64(0)
    gap = 1 if rules.words else 0  # between the end of a unit and the start of the next
    n = 0
    for d in range(len(text_offsets) - 1):
        start, end = text_offsets[d], text_offsets[d + 1]
        if rules.words:
            units = write_tokens(data, start, end, table, scratch, starts)
        else:
            size = write_normalized(data, start, end, table, rules.collapse, scratch)
            units = write_characters(scratch, size, starts)
        for k in range(units - rules.ngram + 1):
            hashes[n] = xxh64(scratch, starts[k], starts[k + rules.ngram] - gap, seed)
            n += 1
        if rules.whole and 0 < units < rules.ngram:
            hashes[n] = xxh64(scratch, 0, starts[units] - gap, seed)
            n += 1
        offsets[d + 1] = n
