"""Divide words into classes by their neighbours: the exchange algorithm (Kneser and Ney 1993).

The classes maximise the likelihood of adjacent classes: every word in turn moves to the class that
raises it most, until none moves or the rounds are over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import Float, Float64s, Int, Int64s, inlined, kernel

Counts = npt.NDArray[np.int64]


def exchange(pairs: Counts, counts: Counts, words: int, classes: int, rounds: int) -> Counts:
    """Return the class of every word, int64 [words]; word 0 stays in class 0.

    `pairs` int64 [m, 2] are the distinct pairs of adjacent words (left, right), `counts` [m] how
    often each occurs.
    """
    same = pairs[:, 0] == pairs[:, 1]
    own = np.zeros(words)
    own[pairs[same, 0]] = counts[same]
    left, right = pairs[~same].T
    weights = counts[~same].astype(np.float64)
    frequency = np.bincount(pairs[:, 0], counts, words)
    frequency[0] = np.inf
    rank = np.empty(words, np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(words)
    found: Counts = rank % classes
    after = _neighbours(words, left, right, weights)
    before = _neighbours(words, right, left, weights)
    _exchange(after, before, own, found, classes, rounds)
    return found


class _Neighbours(NamedTuple):
    """How often each word has which neighbours on one side: the rows of a sparse matrix."""

    bounds: Counts  # [words + 1]
    words: Counts  # [entries]
    counts: npt.NDArray[np.float64]  # [entries]


def _neighbours(
    words: int, of: Counts, neighbours: Counts, weights: npt.NDArray[np.float64]
) -> _Neighbours:
    order = np.lexsort((neighbours, of))
    bounds = np.zeros(words + 1, np.int64)
    np.cumsum(np.bincount(of, minlength=words), out=bounds[1:])
    return _Neighbours(bounds, neighbours[order], weights[order])


@inlined
def _xlogx(x: Float) -> Float:
    return x * np.log(x) if x > 0 else 0.0


@kernel
def _exchange(
    after: Any, before: Any, own: Float64s, found: Int64s, classes: Int, rounds: Int
) -> None:
    table = np.zeros((classes, classes))
    for w in range(len(found)):
        for k in range(after.bounds[w], after.bounds[w + 1]):
            table[found[w], found[after.words[k]]] += after.counts[k]
        table[found[w], found[w]] += own[w]
    rows, columns = table.sum(1), table.sum(0)
    nexts, lasts = np.zeros(classes), np.zeros(classes)
    for _ in range(rounds):
        moved = False
        for w in range(1, len(found)):
            nexts[:] = 0
            lasts[:] = 0
            for k in range(after.bounds[w], after.bounds[w + 1]):
                nexts[found[after.words[k]]] += after.counts[k]
            for k in range(before.bounds[w], before.bounds[w + 1]):
                lasts[found[before.words[k]]] += before.counts[k]
            leaving, arriving = nexts.sum() + own[w], lasts.sum() + own[w]
            old = found[w]
            table[old, :] -= nexts
            table[:, old] -= lasts
            table[old, old] -= own[w]
            rows[old] -= leaving
            columns[old] -= arriving
            best, gain = old, -np.inf
            for c in range(classes):
                g = _xlogx(rows[c]) - _xlogx(rows[c] + leaving)
                g += _xlogx(columns[c]) - _xlogx(columns[c] + arriving)
                for d in range(classes):
                    if d == c:
                        continue
                    if nexts[d] > 0:
                        g += _xlogx(table[c, d] + nexts[d]) - _xlogx(table[c, d])
                    if lasts[d] > 0:
                        g += _xlogx(table[d, c] + lasts[d]) - _xlogx(table[d, c])
                inside = nexts[c] + lasts[c] + own[w]
                g += _xlogx(table[c, c] + inside) - _xlogx(table[c, c])
                if g > gain + 1e-9:
                    best, gain = c, g
            table[best, :] += nexts
            table[:, best] += lasts
            table[best, best] += own[w]
            rows[best] += leaving
            columns[best] += arriving
            found[w] = best
            moved = moved or best != old
        if not moved:
            break
