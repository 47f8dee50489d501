"""The proxy model of mixture search: an interpolated trigram model over token ids.

Absolute discounting (Ney, Essen and Kneser 1994): each order keeps its counts less a discount, and
what that frees goes to the next lower order, down to the uniform distribution.

A stream that is shorter than its part of the mixture repeats. An n-gram is discounted by the weight
of its first occurrence, so that a repeat makes a stream weigh more but teaches nothing new: a model
of one stream is the same however often that stream repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.hash_tables import scrambled, slot_of
from curation.compiled import Float, Int, Uint32s, Uint64s, borrowing, kernel

U32 = npt.NDArray[np.uint32]

#: Ids must be below this, so that three of them are one 63-bit key.
MOST_IDS = (1 << 21) - 1


class _Tables(NamedTuple):
    """Counts of a model. Rows of hash tables are found by key, 0 means an empty row."""

    unigrams: npt.NDArray[np.int64]  # [vocabulary, 2] occurrences, weight of the first
    contexts: npt.NDArray[np.int64]  # [vocabulary + 1, 2] after one token: occurrences, firsts
    pair_keys: npt.NDArray[np.uint64]
    pairs: npt.NDArray[np.int32]  # [.., 4] occurrences, first; after it: occurrences, firsts
    triple_keys: npt.NDArray[np.uint64]
    triples: npt.NDArray[np.int32]  # [.., 2] occurrences, first


@borrowing
def _row(keys: Uint64s, key: Int) -> Int:
    """Return the row of a key, or the empty row where it belongs."""
    return slot_of(keys, key, scrambled(key), np.uint64(0))


@borrowing
def _count(
    stream: Uint32s, first: Int, last: Int, times: Int, boundary: Int, tables: _Tables
) -> None:
    """Add `times` occurrences of every n-gram that ends in stream[first:last]."""
    unigrams, contexts, pair_keys, pairs, triple_keys, triples = tables
    older = newer = np.uint64(boundary)
    for place in range(first, last):
        token = np.uint64(stream[place])
        if token == boundary:
            older = newer = token
            continue
        if unigrams[token, 0] == 0:
            unigrams[token, 1] = times
        unigrams[token, 0] += times
        contexts[newer, 0] += times
        context = _row(pair_keys, (older << np.uint64(21) | newer) + np.uint64(1))
        pair_keys[context] = (older << np.uint64(21) | newer) + np.uint64(1)
        pairs[context, 2] += times
        key = (newer << np.uint64(21) | token) + np.uint64(1)
        row = _row(pair_keys, key)
        pair_keys[row] = key
        if pairs[row, 0] == 0:
            pairs[row, 1] = times
            contexts[newer, 1] += times
        pairs[row, 0] += times
        key = (older << np.uint64(42) | newer << np.uint64(21) | token) + np.uint64(1)
        row = _row(triple_keys, key)
        if triple_keys[row] == 0:
            triple_keys[row] = key
            triples[row, 1] = times
            pairs[context, 3] += times
        triples[row, 0] += times
        older, newer = newer, token


@kernel
def _loss(stream: Uint32s, boundary: Int, discount: Float, tables: _Tables) -> Float:
    """Mean negative log-probability (nats) of the stream's tokens."""
    unigrams, contexts, pair_keys, pairs, triple_keys, triples = tables
    total, firsts = unigrams[:, 0].sum(), unigrams[:, 1].sum()
    uniform = 1.0 / len(unigrams)
    older = newer = np.uint64(boundary)
    loss, count = 0.0, 0
    for place in range(len(stream)):
        token = np.uint64(stream[place])
        if token == boundary:
            older = newer = token
            continue
        chance = uniform
        if total > 0:
            kept = unigrams[token, 0] - discount * unigrams[token, 1]
            chance = (kept + discount * firsts * uniform) / total
        if contexts[newer, 0] > 0:
            row = _row(pair_keys, (newer << np.uint64(21) | token) + np.uint64(1))
            kept = pairs[row, 0] - discount * pairs[row, 1]
            chance = (kept + discount * contexts[newer, 1] * chance) / contexts[newer, 0]
        context = _row(pair_keys, (older << np.uint64(21) | newer) + np.uint64(1))
        if pairs[context, 2] > 0:
            row = _row(
                triple_keys,
                (older << np.uint64(42) | newer << np.uint64(21) | token) + np.uint64(1),
            )
            kept = triples[row, 0] - discount * triples[row, 1]
            chance = (kept + discount * pairs[context, 3] * chance) / pairs[context, 2]
        loss -= np.log(chance)
        count += 1
        older, newer = newer, token
    return loss / max(count, 1)


class Proxy:
    """A trigram model of one mixture.

    Streams are uint32 ids below `vocabulary`, with the id `vocabulary` before each document.
    """

    def __init__(self, vocabulary: int, capacity: int, discount: float) -> None:
        """`capacity`: distinct places of all streams that `train` will see.

        Raises ValueError on more than `MOST_IDS` ids.
        """
        if vocabulary >= MOST_IDS:
            raise ValueError(f"{vocabulary} ids: keys have room for {MOST_IDS}")
        rows = 1 << (2 * capacity + 2).bit_length()  # less than half of them filled
        self._boundary, self._discount = np.uint64(vocabulary), discount
        self._tables = _Tables(
            np.zeros((vocabulary, 2), np.int64),
            np.zeros((vocabulary + 1, 2), np.int64),
            np.zeros(rows, np.uint64),
            np.zeros((rows, 4), np.int32),
            np.zeros(rows, np.uint64),
            np.zeros((rows, 2), np.int32),
        )

    def train(self, stream: U32, tokens: int) -> None:
        """Count `tokens` of a stream from its start, over and over where it has fewer."""
        if not len(stream) or tokens <= 0:
            return
        epochs, rest = divmod(tokens, len(stream))
        if rest:
            _count(stream, 0, rest, epochs + 1, self._boundary, self._tables)
        if epochs:
            _count(stream, rest, len(stream), epochs, self._boundary, self._tables)

    def loss(self, stream: U32) -> float:
        """Mean loss of a held-out stream, in nats per token."""
        return float(_loss(stream, self._boundary, self._discount, self._tables))


def run_proxy(
    pools: Sequence[U32],
    held_out: Sequence[U32],
    shares: Sequence[float],
    tokens: int,
    vocabulary: int,
    discount: float,
) -> list[float]:
    """Train on a mixture of streams and return the loss on each held-out stream."""
    parts = [round(share * tokens) for share in shares]
    distinct = sum(min(len(p), part) for p, part in zip(pools, parts, strict=True))
    model = Proxy(vocabulary, distinct, discount)
    for pool, part in zip(pools, parts, strict=True):
        model.train(pool, part)
    return [model.loss(stream) for stream in held_out]
