"""An interpolated trigram model over token ids: what `curate ablate --instant` trains.

Absolute discounting (Ney, Essen and Kneser 1994): each order keeps its counts less a discount, and
what that frees goes to the next lower order, down to the uniform distribution.
"""

from __future__ import annotations

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

    unigrams: npt.NDArray[np.int64]  # [vocabulary] occurrences
    contexts: npt.NDArray[np.int64]  # [vocabulary + 1, 2] after one token: occurrences, kinds
    pair_keys: npt.NDArray[np.uint64]
    pairs: npt.NDArray[np.int32]  # [.., 3] occurrences; after it: occurrences, kinds
    triple_keys: npt.NDArray[np.uint64]
    triples: npt.NDArray[np.int32]  # [..] occurrences


@borrowing
def _row(keys: Uint64s, key: Int) -> Int:
    """Return the row of a key, or the empty row where it belongs."""
    return slot_of(keys, key, scrambled(key), np.uint64(0))


@borrowing
def _count(stream: Uint32s, boundary: Int, step: Int, tables: _Tables) -> None:
    """Add `step` to the count of every n-gram of a stream: 1, or -1 of what was counted."""
    unigrams, contexts, pair_keys, pairs, triple_keys, triples = tables
    older = newer = np.uint64(boundary)
    turn = max(step, 0)  # a kind is new at a count of 1, and gone at 0
    for place in range(len(stream)):
        token = np.uint64(stream[place])
        if token == boundary:
            older = newer = token
            continue
        unigrams[token] += step
        contexts[newer, 0] += step
        context = _row(pair_keys, (older << np.uint64(21) | newer) + np.uint64(1))
        pair_keys[context] = (older << np.uint64(21) | newer) + np.uint64(1)
        pairs[context, 1] += step
        key = (newer << np.uint64(21) | token) + np.uint64(1)
        row = _row(pair_keys, key)
        pair_keys[row] = key
        pairs[row, 0] += step
        contexts[newer, 1] += step * (pairs[row, 0] == turn)
        key = (older << np.uint64(42) | newer << np.uint64(21) | token) + np.uint64(1)
        row = _row(triple_keys, key)
        triple_keys[row] = key
        triples[row] += step
        pairs[context, 2] += step * (triples[row] == turn)
        older, newer = newer, token


@kernel
def _loss(stream: Uint32s, boundary: Int, discount: Float, tables: _Tables) -> Float:
    """Return the mean negative log-probability (nats) of the stream's tokens."""
    unigrams, contexts, pair_keys, pairs, triple_keys, triples = tables
    total, kinds = unigrams.sum(), (unigrams > 0).sum()
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
            kept = max(unigrams[token] - discount, 0.0)
            chance = (kept + discount * kinds * uniform) / total
        if contexts[newer, 0] > 0:
            row = _row(pair_keys, (newer << np.uint64(21) | token) + np.uint64(1))
            kept = max(pairs[row, 0] - discount, 0.0)
            chance = (kept + discount * contexts[newer, 1] * chance) / contexts[newer, 0]
        context = _row(pair_keys, (older << np.uint64(21) | newer) + np.uint64(1))
        if pairs[context, 1] > 0:
            key = (older << np.uint64(42) | newer << np.uint64(21) | token) + np.uint64(1)
            kept = max(triples[_row(triple_keys, key)] - discount, 0.0)
            chance = (kept + discount * pairs[context, 2] * chance) / pairs[context, 1]
        loss -= np.log(chance)
        count += 1
        older, newer = newer, token
    return loss / max(count, 1)


class Trigrams:
    """A trigram model.

    Streams are uint32 ids below `vocabulary`, with the id `vocabulary` before each document.
    """

    def __init__(self, vocabulary: int, capacity: int, discount: float) -> None:
        """Make room for `capacity` tokens, which is all that `train` will see.

        Raises ValueError on more than `MOST_IDS` ids.
        """
        if vocabulary >= MOST_IDS:
            raise ValueError(f"{vocabulary} ids: keys have room for {MOST_IDS}")
        rows = 1 << (2 * capacity + 2).bit_length()  # less than half of them filled
        self._boundary, self._discount = np.uint64(vocabulary), discount
        self._tables = _Tables(
            np.zeros(vocabulary, np.int64),
            np.zeros((vocabulary + 1, 2), np.int64),
            np.zeros(rows, np.uint64),
            np.zeros((rows, 3), np.int32),
            np.zeros(rows, np.uint64),
            np.zeros(rows, np.int32),
        )

    def train(self, stream: U32) -> None:
        """Count a stream."""
        _count(stream, self._boundary, np.int64(1), self._tables)

    def forget(self, stream: U32) -> None:
        """Take a stream's n-grams away, all of which have been counted."""
        _count(stream, self._boundary, np.int64(-1), self._tables)

    def loss(self, stream: U32) -> float:
        """Return the mean loss of a held-out stream, in nats per token."""
        return float(_loss(stream, self._boundary, self._discount, self._tables))
