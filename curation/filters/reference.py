"""How far a document's words lie from those of a reference corpus.

A reference is the unigram distribution of a language over its most frequent lower-case words, each
held as the upper 32 bits of its hash, and the probability of meeting any other word. That last one
is the Good-Turing estimate (words seen once / words) where the vocabulary is complete, plus the
mass of the words cut off. The Kullback-Leibler divergence (document || reference) is taken over
these words and one class for all others, so it is finite. The Llama 3 report names this measurement
without numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from curation.archive import read_arrays, read_as, save_arrays
from curation.arrow import Texts
from curation.errors import InputError
from curation.filters.names import REFERENCE
from curation.filters.scratch import DIGITS, allocate, classify, load_segments, number_tokens
from curation.filters.tables import Table, build, lookup
from curation.text import characters as ch
from curation.text.buffers import read_only
from curation.text.words import HAS_ALPHA, HAS_NUMBER, IS_WORD, describe, words

_HALF = np.uint64(32)
_SCALE = 1 << 20


@dataclass(frozen=True)
class Reference:
    """Word distribution of one language."""

    language: str
    words: npt.NDArray[np.uint32]  # [k] upper halves of hashes, ascending
    log_probabilities: npt.NDArray[np.float32]  # [k] natural logarithms
    log_unknown: float  # of all other words together
    tokens: int  # words it was trained on

    def save(self, path: Path) -> None:
        """Write an .npz file; the same reference gives the same bytes."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "words": self.words,
            "log_probabilities": self.log_probabilities.astype(np.float16),
            "header": np.array([self.log_unknown, self.tokens], np.float64),
        }
        save_arrays(path, arrays)


def load_reference(path: str | Path, language: str) -> Reference:
    """Read an .npz file; raises ConfigError if it is absent or holds something else."""
    with read_as(path, "a reference distribution"):
        held = read_arrays(path)
        header = held["header"]
        return Reference(
            language,
            held["words"].astype(np.uint32),
            held["log_probabilities"].astype(np.float32),
            float(header[0]),
            int(header[1]),
        )


@numba.njit(cache=True, nogil=True)
def _hash_words(data, starts, ends, properties, lower):  # type: ignore[no-untyped-def]
    out = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        _, flags, _, low = describe(data, starts[i], ends[i], properties, lower)
        out[i] = DIGITS if flags & HAS_NUMBER and not flags & HAS_ALPHA else low
    return out


class WordCounts:
    """Words of a corpus, counted batch by batch."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.uint32)
        self._counts = np.zeros(0, np.int64)

    def add(self, texts: Texts) -> None:
        """Count the words of a batch."""
        spans = words(texts)
        _, data = read_only(texts)
        hashes = _hash_words(data, spans.starts, spans.ends, ch.properties(), ch.lower_case())
        fresh, counts = np.unique((hashes >> _HALF).astype(np.uint32), return_counts=True)
        keys, places = np.unique(np.concatenate([self._keys, fresh]), return_inverse=True)
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, places, np.concatenate([self._counts, counts]))
        self._keys, self._counts = keys, total

    def reference(self, language: str, vocabulary: int, min_count: int) -> Reference:
        """The `vocabulary` most frequent words that occur `min_count` times, as a distribution.

        Raises InputError where there are none.
        """
        keys, counts = self._keys, self._counts
        order = np.lexsort((keys, -counts))
        kept = np.sort(order[: min(vocabulary, int((counts >= min_count).sum()))])
        if not len(kept):
            raise InputError(f"reference for {language}: no word occurs {min_count} times")
        total = int(counts.sum())
        # mass of the words not kept, which holds all those seen once: the Good-Turing estimate
        unknown = max(total - int(counts[kept].sum()), 1)
        known = counts[kept] / (counts[kept].sum() + unknown)
        return Reference(
            language,
            keys[kept],
            np.log(known).astype(np.float32),
            float(np.log(unknown / (counts[kept].sum() + unknown))),
            total,
        )


def reference_table(references: Sequence[Reference]) -> tuple[Table, npt.NDArray[np.float64]]:
    """One table for all references, keyed by word and number of the reference.

    Values are -log p in units of 2^-20, plus one; also the log p of other words, float64 [n].
    """
    keys = [np.zeros(0, np.uint64)]
    values = [np.zeros(0, np.int64)]
    for number, reference in enumerate(references):
        keys.append((reference.words.astype(np.uint64) << _HALF) | np.uint64(number + 1))
        values.append(
            1 + np.round(-reference.log_probabilities.astype(np.float64) * _SCALE).astype(np.int64)
        )
    table = build(np.concatenate(keys), np.concatenate(values))
    return table, np.array([r.log_unknown for r in references], np.float64)


@numba.njit(cache=True, nogil=True)
def measure_reference(kinds, scratch, number, keys, values, unknown, out):  # type: ignore[no-untyped-def]
    """Fill out[0:2]: divergence in nats, share of words outside the reference, of the words in
    `kinds` classes.

    NaN without words or without a reference (negative `number`).
    """
    out[:2] = np.nan
    if number < 0:
        return
    tokens, classes = scratch.tokens, scratch.classes
    total = 0
    for c in range(kinds):
        if tokens.flags[classes.firsts[c]] & IS_WORD:
            total += classes.counts[c]
    if total == 0:
        return
    divergence = 0.0
    outside = 0
    for c in range(kinds):
        if not tokens.flags[classes.firsts[c]] & IS_WORD:
            continue
        key = (classes.hashes[c] >> _HALF << _HALF) | np.uint64(number + 1)
        value = lookup(keys, values, key)
        if value:
            count = classes.counts[c]
            divergence += count * (np.log(count / total) + (value - 1) / _SCALE)
        else:
            outside += classes.counts[c]
    if outside:
        divergence += outside * (np.log(outside / total) - unknown[number])
    out[0] = divergence / total
    out[1] = outside / total


@numba.njit(cache=True, nogil=True)
def _measure_batch(data, offsets, properties, lower, space, number, table, unknown, out):  # type: ignore[no-untyped-def]
    tokens = space.tokens
    for d in range(len(offsets) - 1):
        n = load_segments(data, offsets[d], offsets[d + 1], properties, lower, tokens)
        kinds = number_tokens(n, tokens, space.distinct, space.interner)
        kinds = classify(kinds, tokens, space.distinct, space.classes, space.interner)
        measure_reference(kinds, space, number, table.keys, table.values, unknown, out[d])


def measure_references(
    texts: Texts, references: Sequence[Reference], number: int = 0
) -> npt.NDArray[np.float64]:
    """`names.REFERENCE` of every text against one of the references alone: float64 [n, 2]."""
    offsets, data = read_only(texts)
    out = np.empty((len(offsets) - 1, len(REFERENCE)), np.float64)
    table, unknown = reference_table(references)
    most = int(np.diff(offsets).max(initial=0))
    _measure_batch(
        data, offsets, ch.properties(), ch.lower_case(), allocate(most), number, table, unknown, out
    )
    return out
