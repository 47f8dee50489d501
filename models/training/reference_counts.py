"""Counts from which a reference distribution is made: words with their tokens, adjacent words."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.compiled import Bytes, Int32s, Int64s, Uint32s, Uint64s, kernel
from curation.filters.reference import load_vocabulary, word_tokens
from curation.filters.scratch import DIGITS, Room, room
from curation.text import characters as ch
from curation.text.words import HAS_ALPHA, HAS_NUMBER, Spans, describe_words, words
from curation.tokenize.vocabulary import Tables

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

#: The tokenizer that words are counted by, kept.
vocabulary = functools.cache(load_vocabulary)


def _hash_words(data: Bytes, spans: Spans) -> tuple[Uint64s, Int64s]:
    flags, lows = describe_words(data, spans, ch.properties(), ch.lower_case())
    return np.where(flags & (HAS_NUMBER | HAS_ALPHA) == HAS_NUMBER, DIGITS, lows), flags


@kernel
def _tokenize(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    flags: Int64s,
    lower: Uint32s,
    vocabulary: Tables,
    room: Room,
) -> tuple[Int32s, Uint64s, Int64s]:
    """Token ids of all words end to end, the hashes of endings, and bounds [words + 1]."""
    endings = np.empty(len(starts), np.uint64)
    bounds = np.empty(len(starts) + 1, np.int64)
    out = np.empty(len(starts) * 4 + len(room.ids), np.int32)
    n = 0
    bounds[0] = 0
    for i in range(len(starts)):
        count, endings[i] = word_tokens(data, starts[i], ends[i], flags[i], lower, vocabulary, room)
        if n + len(room.ids) > len(out):
            more = np.empty(2 * len(out), np.int32)
            more[:n] = out[:n]
            out = more
        for k in range(count):
            out[n + k] = room.ids[k]
        n += count
        bounds[i + 1] = n
    return out[:n].copy(), endings, bounds


@dataclass(frozen=True)
class Words:
    """Distinct words of a corpus with their counts and tokens, by ascending hash."""

    hashes: Hashes  # [n] of lower-case forms
    counts: npt.NDArray[np.float64]  # [n]
    endings: Hashes  # [n] see reference.word_tokens
    ids: npt.NDArray[np.int32]  # tokens of all words end to end
    bounds: Ints  # [n + 1]

    def token_counts(self, size: int) -> npt.NDArray[np.float64]:
        """Return how often every token of a vocabulary of that size occurs."""
        weights = np.repeat(self.counts, np.diff(self.bounds))
        return _sums(self.ids, weights, size)

    def costs(self, by_token: npt.NDArray[np.uint8]) -> Ints:
        """Return the cost of every word, the sum over its tokens."""
        sums = np.concatenate([[0], np.cumsum(by_token[self.ids].astype(np.int64))])
        found: Ints = sums[self.bounds[1:]] - sums[self.bounds[:-1]]
        return found


def _sums(
    places: npt.NDArray[Any], weights: npt.NDArray[np.float64], size: int
) -> npt.NDArray[np.float64]:
    """Sums of weights by place."""
    found: npt.NDArray[np.float64] = np.bincount(places, weights, size).astype(np.float64)
    return found


def no_words() -> Words:
    """Return counts of nothing."""
    none = np.zeros(0, np.uint64)
    return Words(none, np.zeros(0), none, np.zeros(0, np.int32), np.zeros(1, np.int64))


def count_words(texts: Texts, weights: Sequence[float] | None = None) -> Words:
    """Count the words of a batch; `weights` counts every text that often."""
    spans = words(texts)
    _, data = text_buffers(texts)
    hashes, flags = _hash_words(data, spans)
    kept, firsts, places = np.unique(hashes, return_index=True, return_inverse=True)
    repeated = (
        np.repeat(np.asarray(weights, np.float64), np.diff(spans.doc_offsets))
        if weights is not None
        else np.ones(len(hashes))
    )
    tables: Tables = vocabulary().token_tables
    space: Room = room()
    starts, ends = spans.starts[firsts], spans.ends[firsts]
    ids, endings, bounds = _tokenize(
        data, starts, ends, flags[firsts], ch.lower_case(), tables, space
    )
    return Words(kept, _sums(places, repeated, len(kept)), endings, ids, bounds)


def merge_words(parts: Sequence[Words]) -> Words:
    """Add the counts of several batches."""
    hashes, firsts, places = np.unique(
        np.concatenate([p.hashes for p in parts]), return_index=True, return_inverse=True
    )
    counts = _sums(places, np.concatenate([p.counts for p in parts]), len(hashes))
    lengths = np.concatenate([np.diff(p.bounds) for p in parts])
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1][firsts]
    bounds = np.concatenate([[0], np.cumsum(lengths[firsts])]).astype(np.int64)
    places = np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], lengths[firsts])
    ids = np.concatenate([p.ids for p in parts])[places]
    return Words(hashes, counts, np.concatenate([p.endings for p in parts])[firsts], ids, bounds)


class WordCounts:
    """Words of a corpus, counted batch by batch."""

    def __init__(self) -> None:
        self._parts = [no_words()]
        self._size = 0

    def add(self, texts: Texts, weights: Sequence[float] | None = None) -> None:
        """Count the words of a batch."""
        self._parts.append(count_words(texts, weights))
        self._size += len(self._parts[-1].hashes)
        if self._size > 2 * len(self._parts[0].hashes) + (1 << 20):
            self.words()

    def words(self) -> Words:
        """Return all counts so far."""
        self._parts = [merge_words(self._parts)]
        self._size = len(self._parts[0].hashes)
        return self._parts[0]


@dataclass(frozen=True)
class Units:
    """What classes are made of: 0 for unknown words, frequent words, endings of other words."""

    words: Hashes
    endings: Hashes
    of_words: Ints  # [n] unit of every counted word

    @property
    def count(self) -> int:
        return 1 + len(self.words) + len(self.endings)


def choose_units(held: Words, most_words: int, most_endings: int, min_count: int) -> Units:
    """Take the most frequent words that occur `min_count` times, and endings of all other words."""
    common = _most_frequent(held.counts, held.hashes, most_words, min_count)
    rest = np.ones(len(held.hashes), bool)
    rest[common] = False
    rest &= held.endings > 0
    endings, places = np.unique(held.endings[rest], return_inverse=True)
    weights = _sums(places, held.counts[rest], len(endings))
    kept = _most_frequent(weights, endings, most_endings, min_count)
    numbers = np.zeros(len(endings), np.int64)
    numbers[kept] = 1 + len(common) + np.arange(len(kept))
    of_words = np.zeros(len(held.hashes), np.int64)
    of_words[rest] = numbers[places]
    of_words[common] = 1 + np.arange(len(common))
    return Units(held.hashes[common], endings[kept], of_words)


def _most_frequent(
    counts: npt.NDArray[np.float64], keys: Hashes, most: int, min_count: int
) -> Ints:
    order = np.lexsort((keys, -counts))[:most]
    return order[counts[order] >= min_count]


class PairCounts:
    """Pairs of adjacent units of a corpus, counted batch by batch."""

    def __init__(self, held: Words, units: Units) -> None:
        self._held, self._units = held, units
        self._keys = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, texts: Texts) -> None:
        """Count the pairs of a batch of the corpus that the words were counted in."""
        spans = words(texts)
        _, data = text_buffers(texts)
        hashes, _ = _hash_words(data, spans)
        units = self._units.of_words[np.searchsorted(self._held.hashes, hashes)]
        adjacent = np.ones(max(len(units) - 1, 0), bool)
        ends = spans.doc_offsets[1:-1]
        adjacent[ends[(ends > 0) & (ends < len(units))] - 1] = False
        keys = units[:-1][adjacent] * self._units.count + units[1:][adjacent]
        fresh, counts = np.unique(keys, return_counts=True)
        self._keys, places = np.unique(np.concatenate([self._keys, fresh]), return_inverse=True)
        weights = np.concatenate([self._counts, counts])
        self._counts = np.bincount(places, weights, len(self._keys)).astype(np.int64)

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the distinct pairs [m, 2] and their counts [m]."""
        return np.stack(np.divmod(self._keys, self._units.count), 1), self._counts
