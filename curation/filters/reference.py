"""How far a document lies from its language: divergences over tokens, calibrated by length.

A reference gives every word a probability. Its most frequent words have their own; all others share
the mass of unknown words, each with the product of the probabilities of its tokens in the 128K
vocabulary. Tokens that no word of the corpus has share the Good-Turing estimate of unseen mass,
divided by token length. Three Kullback-Leibler divergences (document || reference) follow:

* words: cross entropy minus the entropy of the document's words, where no word costs more than the
  rarest frequent word, or a few names would decide it;
* outliers: the share of words beyond a bound, which 2 % of the running words of other texts exceed.
  A word counts once however often it occurs, since names repeat and gibberish does not;
* pairs: how much less adjacent words fit each other than in the language, by classes of words.

Each falls or rises with length. The reference therefore has, by length, the median of each in texts
that it was not counted on and their spread, the distance from median to 95th percentile. Excesses
are in spreads above the median, at least 0. By the chain rule the divergence of adjacent words is
that of the words plus that of the pairs given the words; `kl_divergence` is this sum of excesses,
of words or outliers, whichever is larger, and of pairs (of documents in two languages: see
`mixed.py`). The Llama 3 report names the measurement
without numbers; reading and calibration are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.archive import read_arrays, read_as
from curation.arrow import TextBuffers, Texts, text_buffers
from curation.bytes.code_points import code_point, put
from curation.bytes.hash_tables import filled
from curation.compiled import (
    Bytes,
    Float,
    Float64s,
    Int,
    Int64s,
    Uint16s,
    Uint32s,
    borrowing,
    inlined,
)
from curation.filters.names import REFERENCE
from curation.filters.scratch import (
    LONGEST_WORD,
    Document,
    allocate,
    classify,
    load_segments,
    number_tokens,
)
from curation.kernels import kept
from curation.resources import resolve
from curation.text import characters as ch
from curation.text.words import HAS_ALPHA, HAS_NUMBER, IS_SINGLE, IS_WORD, PRIME, finish
from curation.tokenize.bpe import merge_piece
from curation.tokenize.tokenizer import Tokenizer, from_file
from curation.tokenize.vocabulary import Tables, find_bytes

if TYPE_CHECKING:
    from curation.filters.scratch import Room, Scratch

#: Fixed, so that a new vocabulary of `tokenize` leaves the references as they are.
VOCABULARY = "builtin:models/reference/vocabulary.tiktoken"
#: Steps per nat of costs (-log p) and of log ratios of pairs.
SCALE, PAIR_SCALE = 10, 16
#: Classes of words; class 0 is for words that neither the list of words nor an ending knows.
CLASSES = 128
#: Lengths in words at which a reference is calibrated, interpolated by their logarithm.
LENGTHS = (50, 100, 200, 400, 800, 1600, 3200)
#: Divergences that the signal is made of.
PARTS = ("words", "outliers", "pairs")
#: Bytes from which tokens count as equally long.
LONGEST_TOKEN = 16

_FEWEST = LENGTHS[0]
_LOG_LENGTHS = np.log(np.array(LENGTHS))
_ENDING_SEED = np.uint64(0x452821E638D01377)
_HALF = np.uint64(32)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_CACHE_BITS = 18
_CACHE_SLOTS = 1 << _CACHE_BITS
_CACHE_MASK = np.uint64(_CACHE_SLOTS - 1)
_TAG, _CLASS_AT = np.uint64(24), np.uint64(16)  # bits of a value, and of its cost
_VALUE, _COST = np.uint64((1 << 24) - 1), np.uint64((1 << 16) - 1)
_RECENT = 1 << 12
_BLANK, _ZERO = 0x20, 0x30


@dataclass(frozen=True)
class Reference:
    """Distribution of one language; costs are -log p in steps of 1 / SCALE nat."""

    language: str
    words: npt.NDArray[np.uint32]  # [w] upper halves of the hashes of frequent words, ascending
    word_costs: npt.NDArray[np.uint8]  # [w]
    word_classes: npt.NDArray[np.uint8]  # [w]
    unknown: int  # cost of any other word, before its tokens
    tokens: npt.NDArray[np.uint32]  # [k] ids that words of the corpus have, ascending
    costs: npt.NDArray[np.uint8]  # [k]
    unseen: npt.NDArray[np.uint8]  # [LONGEST_TOKEN + 1] costs of all other tokens, by bytes
    endings: npt.NDArray[np.uint32]  # [e] upper halves of the hashes of endings, ascending
    ending_classes: npt.NDArray[np.uint8]  # [e]
    pairs: npt.NDArray[np.int8]  # [CLASSES, CLASSES] log ratio to chance in 1 / PAIR_SCALE nat
    bound: int  # cost beyond which a word is an outlier
    curve: npt.NDArray[np.float32]  # [LENGTHS, PARTS, 2] median and spread
    trained: int  # words that it was counted on

    @property
    def limit(self) -> int:
        """Cost that counts for any rarer word: that of the rarest frequent word."""
        return int(self.word_costs.max(initial=1))


def load_reference(path: str | Path, language: str) -> Reference:
    """Read an .npz file; raises ConfigError if it is absent or something else."""
    with read_as(path, "a reference distribution"):
        held = read_arrays(path)
        unknown, bound, trained = held.pop("header").tolist()
        held["pairs"] = held["pairs"].reshape(CLASSES, CLASSES)
        held["curve"] = held["curve"].reshape(len(LENGTHS), len(PARTS), 2)
        held["tokens"] = np.flatnonzero(np.unpackbits(held["tokens"])).astype(np.uint32)
        return Reference(language, unknown=unknown, bound=bound, trained=trained, **held)


class References(NamedTuple):
    """All references in the form kernels take: a hash table of words for each, one after the other,
    and a cache of recent other words.

    A word's value is its class << 16 | its cost, which is at least 1. A slot of the table has 32
    bits of the word's hash above the value, a slot of the cache 40 bits of its key. Each is one
    number, so that threads may share the cache; it only saves work.
    """

    words: npt.NDArray[np.uint64]
    word_bounds: npt.NDArray[np.int64]  # [references + 1] into `words`; a power of two apart
    holders: npt.NDArray[np.uint64]  # [_CACHE_SLOTS] bits of references with a word there
    lower: npt.NDArray[np.uint32]  # of code points
    vocabulary: Tables
    costs: npt.NDArray[np.uint8]  # [tokens, references]
    unknown: npt.NDArray[np.int64]  # [references]
    endings: npt.NDArray[np.uint32]  # of all references end to end
    ending_classes: npt.NDArray[np.uint8]
    ending_bounds: npt.NDArray[np.int64]  # [references + 1] into `endings`
    pairs: npt.NDArray[np.int8]  # [references, CLASSES, CLASSES]
    limits: npt.NDArray[np.int64]  # [references]
    bounds: npt.NDArray[np.int64]  # [references]
    curves: npt.NDArray[np.float64]  # [references, LENGTHS, PARTS, 2]
    cache: npt.NDArray[np.uint64]


def load_vocabulary() -> Tokenizer:
    """Read the tokenizer whose vocabulary the references are over.

    Not kept, as those of `load_tokenizer` are: its tables are all that measuring needs.
    """
    return from_file(Path(resolve(VOCABULARY)))


def token_lengths(tokens: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Return the bytes of every token, at most LONGEST_TOKEN."""
    return np.minimum(np.array([len(token) for token in tokens], np.int64), LONGEST_TOKEN)


def read_references(paths: Mapping[str, Path]) -> References:
    """Return the references in these files, by language, for kernels; see `load_reference`."""
    return _read_references(tuple(paths), Path(resolve(VOCABULARY)), *paths.values())


@kept
def _read_references(languages: tuple[str, ...], _vocabulary: Path, *paths: Path) -> References:
    return reference_tables(list(map(load_reference, paths, languages)))


def reference_tables(references: Sequence[Reference]) -> References:
    """Lay the references out for kernels."""
    n, vocabulary = len(references), load_vocabulary()
    lengths = token_lengths(vocabulary.tokens)
    costs = np.empty((n, len(lengths)), np.uint8)
    sizes = [1 << (2 * len(each.words)).bit_length() for each in references]
    bounds = np.cumsum([0, *sizes]).astype(np.int64)
    words, holders = np.zeros(bounds[-1], np.uint64), np.zeros(_CACHE_SLOTS, np.uint64)
    for number, held in enumerate(references):
        costs[number] = held.unseen[lengths]
        costs[number, held.tokens] = held.costs
        keys = held.words.astype(np.uint64)
        places = keys * _SPREAD >> _HALF
        holders[places & _CACHE_MASK] |= np.uint64(1 << number % 64)
        values = keys << _TAG | held.word_classes.astype(np.uint64) << _CLASS_AT
        values |= np.maximum(held.word_costs, 1).astype(np.uint64)
        slots = filled(sizes[number], places)
        words[bounds[number] : bounds[number + 1]] = np.append(values, np.uint64(0))[slots]
    return References(
        words,
        bounds,
        holders,
        ch.lower_case(),
        vocabulary.token_tables,
        np.ascontiguousarray(costs.T),
        np.array([r.unknown for r in references], np.int64),
        np.concatenate([np.zeros(0, np.uint32), *(r.endings for r in references)]),
        np.concatenate([np.zeros(0, np.uint8), *(r.ending_classes for r in references)]),
        np.cumsum([0, *(len(r.endings) for r in references)]).astype(np.int64),
        np.array([r.pairs for r in references], np.int8).reshape(n, CLASSES, CLASSES),
        np.array([r.limit for r in references], np.int64),
        np.array([r.bound for r in references], np.int64),
        np.array([r.curve for r in references], np.float64).reshape(n, len(LENGTHS), len(PARTS), 2),
        np.zeros(_CACHE_SLOTS, np.uint64),
    )


@borrowing
def word_tokens(
    data: Bytes, start: Int, end: Int, flags: Int, lower: Uint32s, vocabulary: Tables, room: Room
) -> tuple[Int, Int]:
    """Write the token ids of a word to `room.ids` and return (how many, hash of its ending).

    The word is in lower case after a space, as in running text; one of a script without spaces has
    no space, and all numbers are "0". The ending is the last three characters of a longer word,
    0 where there is none.
    """
    letters = room.letters
    n = 0
    ending = np.uint64(0)
    if flags & HAS_NUMBER and not flags & HAS_ALPHA:
        letters[0] = _ZERO
        n = 1
    else:
        if not flags & IS_SINGLE:
            letters[0] = _BLANK
            n = 1
        first = second = third = fourth = np.int64(0)
        i = start
        while i < end and n < LONGEST_WORD:
            c, size = code_point(data, i)
            c = np.int64(lower[c])
            n = put(letters, n, c)
            first, second, third, fourth = second, third, fourth, c
            i += size
        if first and not flags & IS_SINGLE:
            ending = _ENDING_SEED
            ending = (ending ^ np.uint64(second)) * PRIME
            ending = (ending ^ np.uint64(third)) * PRIME
            ending = finish((ending ^ np.uint64(fourth)) * PRIME)
    v = vocabulary
    whole = find_bytes(letters, 0, n, v.blob, v.offsets, v.slots)
    if whole >= 0:
        room.ids[0] = whole
        return 1, ending
    return merge_piece(letters, 0, n, v, room.work, room.ids, 0), ending


@borrowing
def _measure_word(data: Bytes, c: Int, number: Int, references: References, space: Scratch) -> Int:
    """Return cost and class of a word, as the cache has them."""
    i, tokens, ids = space.classes.firsts[c], space.tokens, space.room.ids
    count, ending = word_tokens(
        data, tokens.starts[i], tokens.ends[i], tokens.flags[i], references.lower,
        references.vocabulary, space.room,
    )  # fmt: skip
    cost = references.unknown[number]
    for k in range(count):
        cost += references.costs[ids[k], number]
    cost = min(max(cost, 1), 0xFFFF)
    kind = np.int64(0)
    low, high = references.ending_bounds[number], references.ending_bounds[number + 1]
    key, endings = np.uint32(ending >> _HALF), references.endings[low:high]
    at = np.searchsorted(endings, key)
    if ending and at < len(endings) and endings[at] == key:
        kind = np.int64(references.ending_classes[low + at])
    return np.uint64(kind) << _CLASS_AT | np.uint64(cost)


@inlined
def _known(half: Int, number: Int, references: References) -> Int:
    """Value of a frequent word with this upper half of its hash, 0 where the reference has none."""
    begin = references.word_bounds[number]
    mask = np.uint64(references.word_bounds[number + 1] - begin - 1)
    slot = half * _SPREAD >> _HALF & mask
    value = references.words[np.uint64(begin) + slot]
    while value and value >> _TAG != half:
        slot = (slot + np.uint64(1)) & mask
        value = references.words[np.uint64(begin) + slot]
    return value & _VALUE


@inlined
def _excess(value: Float, total: Int, curve: Float64s, part: Int) -> Float:
    """Spreads by which a value exceeds the median of texts of so many words, at least 0."""
    at, length = 0, np.log(total)
    while at < len(_LOG_LENGTHS) - 2 and length >= _LOG_LENGTHS[at + 1]:
        at += 1
    width = _LOG_LENGTHS[at + 1] - _LOG_LENGTHS[at]
    share = min((length - _LOG_LENGTHS[at]) / width, 1.0)
    low, high = curve[at, part], curve[at + 1, part]
    median, spread = low[0] + share * (high[0] - low[0]), low[1] + share * (high[1] - low[1])
    return max((value - median) / spread, 0.0)


@borrowing
def _count_words(doc: Document, space: Scratch) -> tuple[Int, Float]:
    """Return how many words a document has, and the sum of `n * log(n)` over those it repeats."""
    total, own = 0, 0.0
    for c in range(doc.classes):
        if space.tokens.flags[space.classes.firsts[c]] & IS_WORD:
            count = space.classes.counts[c]
            total += count
            if count > 1:
                own += count * np.log(count)
    return total, own


class _Recent(NamedTuple):
    """Words that were last looked up in all references, by their hash."""

    hashes: npt.NDArray[np.uint64]  # [_RECENT]
    costs: npt.NDArray[np.uint8]  # [_RECENT, references] as they count
    sums: npt.NDArray[np.int64]  # [references] of the words of a text


@borrowing
def _add_costs(
    data: Bytes, kinds: Int, references: References, space: Scratch, recent: _Recent
) -> None:
    """Fill `recent.sums` with what the words of a text cost in each reference.

    Their tokens are the same in all, and few have a word among their own.
    """
    tokens, ids, sums = space.tokens, space.room.ids, recent.sums
    sums[:] = 0
    for c in range(kinds):
        i, h = space.classes.firsts[c], space.classes.hashes[c]
        if not tokens.flags[i] & IS_WORD:
            continue
        slot = h & np.uint64(_RECENT - 1)
        if recent.hashes[slot] != h:
            recent.hashes[slot] = h
            count = word_tokens(
                data, tokens.starts[i], tokens.ends[i], tokens.flags[i], references.lower,
                references.vocabulary, space.room,
            )[0]  # fmt: skip
            holders = references.holders[(h >> _HALF) * _SPREAD >> _HALF & _CACHE_MASK]
            for r in range(len(sums)):
                held = holders >> np.uint64(r % 64) & np.uint64(1)
                cost = np.int64(_known(h >> _HALF, r, references) & _COST if held else 0)
                if not cost:
                    cost = references.unknown[r]
                    for k in range(count):
                        cost += references.costs[ids[k], r]
                recent.costs[slot, r] = min(cost, references.limits[r])
        for r in range(len(sums)):
            sums[r] += space.classes.counts[c] * np.int64(recent.costs[slot, r])


@borrowing
def _measure_parts(
    data: Bytes, doc: Document, references: References, space: Scratch, words: tuple[Int, Float]
) -> tuple[Float, Float, Float]:
    """The uncalibrated PARTS of a document with these words (`_count_words`).

    Divergences are in nats, outliers a share of the words.
    """
    total, own = words
    if total == 0:
        return np.nan, np.nan, np.nan
    tokens, distinct, classes = space.tokens, space.distinct, space.classes
    number = doc.reference
    limit, bound = references.limits[number], references.bounds[number]
    cache = references.cache
    outliers = 0
    cross = np.int64(0)
    for c in range(doc.classes):
        i = classes.firsts[c]
        if not tokens.flags[i] & IS_WORD:
            classes.marks[c] = -1
            continue
        h = classes.hashes[c]
        value = _known(h >> _HALF, number, references)
        if not value:
            key = (h ^ np.uint64(number + 1)) * _SPREAD
            key ^= key >> _HALF
            slot = key & _CACHE_MASK
            value = cache[slot]
            if not value or value >> _TAG != key >> _TAG:
                value = _measure_word(data, c, number, references, space)
                cache[slot] = key >> _TAG << _TAG | value
            value &= _VALUE
        count = classes.counts[c]
        cost = np.int64(value & _COST)
        classes.marks[c] = np.int64(value >> _CLASS_AT)
        cross += count * min(cost, limit)
        outliers += cost > bound
    divergence = cross / (SCALE * total) + own / total - np.log(total)
    pairs = references.pairs[number]
    fit = np.int64(0)
    before = -1
    for i in range(doc.tokens):
        here = classes.marks[distinct.classes[tokens.ids[i]]]
        if here < 0:
            continue
        if before >= 0:
            fit += pairs[before, here]
        before = here
    misfit = -fit / (PAIR_SCALE * max(total - 1, 1))
    return divergence, outliers / total, misfit


@borrowing
def measure(
    data: Bytes, doc: Document, references: References, space: Scratch
) -> tuple[Float, Float]:
    """(calibrated divergence, share of words far outside the reference).

    NaN with fewer than LENGTHS[0] words, or without a reference.
    """
    words = _count_words(doc, space)
    total = words[0]
    if doc.reference < 0 or total < _FEWEST:
        return np.nan, np.nan
    curve = references.curves[doc.reference]
    divergence, outliers, misfit = _measure_parts(data, doc, references, space, words)
    strange = max(_excess(divergence, total, curve, 0), _excess(outliers, total, curve, 1))
    return strange + _excess(misfit, total, curve, 2), outliers


@borrowing
def _measure_batch(
    texts: TextBuffers,
    properties: Uint16s,
    references: References,
    space: Scratch,
    numbers: Int64s,
    limits: Float64s,
    recent: _Recent,
    out: Float64s,
) -> None:
    """Fill out[references, texts] for the references of these numbers: PARTS, or as `measure`.

    What is surely beyond the limit of its text stays as it is.
    """
    (offsets, data), tokens = texts, space.tokens
    for d in range(len(offsets) - 1):
        begin, end = offsets[d], offsets[d + 1]
        n = load_segments(data, begin, end, properties, references.lower, tokens)
        kinds = number_tokens(n, tokens, space.distinct, space.interner)
        found = classify(kinds, tokens, space.distinct, space.classes, space.interner)
        words = _count_words(Document(begin, end, 0, n, kinds, found, 0, 0, -1, -1, 0), space)
        total, own = words
        if limits[d] < np.inf:
            _add_costs(data, found, references, space, recent)
        for k in range(len(numbers)):
            doc = Document(begin, end, 0, n, kinds, found, 0, 0, -1, -1, numbers[k])
            if out.shape[2] == len(PARTS):
                parts = _measure_parts(data, doc, references, space, words)
                out[k, d, 0], out[k, d, 1], out[k, d, 2] = parts
                continue
            curve, few = references.curves[numbers[k]], total < _FEWEST
            strange = recent.sums[numbers[k]] / SCALE + own - total * np.log(total)
            if few or _excess(strange / total, total, curve, 0) <= limits[d]:
                out[k, d, 0], out[k, d, 1] = measure(data, doc, references, space)


def measure_references(
    texts: Texts, references: References, number: int = 0, parts: bool = False
) -> npt.NDArray[np.float64]:
    """Return `names.REFERENCE` of every text against one of the references: float64 [n, 2].

    With `parts`, the three divergences before the calibration (PARTS): float64 [n, 3].
    """
    return measure_all(texts, references, np.array([number]), np.full(len(texts), np.inf), parts)[0]


def measure_all(
    texts: Texts, references: References, numbers: Int64s, limits: Float64s, parts: bool = False
) -> npt.NDArray[np.float64]:
    """Return the same of every text against references of these numbers: float64 [numbers, n, 2].

    Those beyond the limit of a text [n] may be infinite, which is soon known of most languages.
    """
    buffers, width = text_buffers(texts), len(PARTS) if parts else len(REFERENCE)
    out = np.full((len(numbers), len(buffers), width), np.inf)
    space, n = allocate(buffers.offsets), len(references.limits)
    hashes, costs = np.zeros(_RECENT, np.uint64), np.empty((_RECENT, n), np.uint8)
    recent = _Recent(hashes, costs, np.empty(n, np.int64))
    _measure_batch(buffers, ch.properties(), references, space, numbers, limits, recent, out)
    return out
