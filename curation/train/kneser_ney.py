"""Interpolated modified Kneser-Ney estimates of character n-grams, without the rare ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.errors import InputError
from curation.filters.perplexity import SCALE, WEIGHT_SCALE, CharacterModel, hash_grams

_BITS = np.uint64(12)  # of a symbol in a packed n-gram: up to 4,095 symbols and order 5
MAX_SYMBOLS = (1 << 12) - 1
MAX_ORDER = 64 // 12
_UNKNOWN = np.uint64(0)

Packed = npt.NDArray[np.uint64]


class Estimates(NamedTuple):
    """n-grams of one length, packed, ascending."""

    grams: Packed  # [k]
    probabilities: npt.NDArray[np.float64]  # [k]
    weights: npt.NDArray[np.float64]  # [k] back-off weight as a context, 1 where it is none


class Counted(NamedTuple):
    """n-grams of one length with their counts in the text and the counts that estimates use."""

    grams: Packed
    raw: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]


def train_characters(
    symbols: npt.NDArray[np.uint32], language: str, order: int, vocabulary: int, entries: int
) -> CharacterModel:
    """A model of about `entries` n-grams up to `order`, without percentiles.

    `symbols` are those of `perplexity.symbols_of`; the `vocabulary` most frequent are kept apart.
    Raises InputError where there are too few to estimate anything.
    """
    if len(symbols) < 2 * order:
        raise InputError(f"{language}: {len(symbols)} characters are too few for a model")
    known, ids = _number(symbols, min(vocabulary, MAX_SYMBOLS))
    counted = _count(ids, order)
    least = _least(counted, entries)
    levels = _estimate(counted, least, len(known))
    keys, logs, weights = [], [], []
    for n, level in enumerate(levels, 1):
        keys.append(hash_grams(known[_unpack(level.grams, n) - 1], n))
        logs.append(np.clip(np.round(-np.log(level.probabilities) * SCALE), 0, 255))
        weights.append(np.clip(np.round(-np.log(level.weights) * WEIGHT_SCALE), 0, 255))
    every = np.concatenate(keys)
    order_of = np.argsort(every, kind="stable")
    unknown = 1.0 - float(levels[0].probabilities.sum())
    return CharacterModel(
        language,
        order,
        every[order_of],
        np.concatenate(logs)[order_of].astype(np.uint8),
        np.concatenate(weights)[order_of].astype(np.uint8),
        float(np.log(unknown)),
        np.zeros(0, np.float32),
    )


def _number(
    symbols: npt.NDArray[np.uint32], vocabulary: int
) -> tuple[npt.NDArray[np.uint32], Packed]:
    """The most frequent symbols, ascending, and every symbol's number among them (from 1; 0)."""
    found, places, counts = np.unique(symbols, return_inverse=True, return_counts=True)
    ranked = np.lexsort((found, -counts))[:vocabulary]
    kept = np.sort(ranked)
    numbers = np.zeros(len(found), np.uint64)
    numbers[kept] = np.arange(1, len(kept) + 1, dtype=np.uint64)
    return found[kept], numbers[places]


def _count(ids: Packed, order: int) -> list[Counted]:
    """n-grams of each length; those shorter than `order` are used by their distinct left
    neighbours, as Kneser and Ney count them. n-grams with unknown symbols are left out."""
    raws: list[tuple[Packed, npt.NDArray[np.int64]]] = []
    packed = ids.copy()
    whole = ids != _UNKNOWN
    for n in range(1, order + 1):
        if n > 1:
            packed = (packed[:-1] << _BITS) | ids[n - 1 :]
            whole = whole[:-1] & (ids[n - 1 :] != _UNKNOWN)
        grams, counts = np.unique(packed[whole], return_counts=True)
        raws.append((grams, counts.astype(np.int64)))
    counted = []
    for n, (grams, raw) in enumerate(raws, 1):
        if n == order:
            counted.append(Counted(grams, raw, raw))
            continue
        suffixes = raws[n][0] & _mask(n)
        used = np.zeros(len(grams), np.int64)
        found, lefts = np.unique(suffixes, return_counts=True)
        used[np.searchsorted(grams, found)] = lefts
        counted.append(Counted(grams, raw, np.maximum(used, 1)))  # 1: only at the very beginning
    return counted


def _mask(n: int) -> np.uint64:
    return np.uint64((1 << (int(_BITS) * n)) - 1)


def _least(counted: list[Counted], entries: int) -> int:
    """The count from which n-grams are kept so that there are at most `entries` of them.

    One bound for all lengths, so that a kept n-gram's beginning and end are kept too.
    """
    most = np.concatenate([level.raw for level in counted[1:]])
    room = max(entries - len(counted[0].grams), 0)
    if len(most) <= room:
        return 1
    return int(np.sort(most)[len(most) - room - 1]) + 1 if room else int(most.max()) + 1


def _discounts(used: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Discounts of n-grams counted once, twice, and more often: float64 [4], index the count."""
    n1, n2, n3, n4 = (int((used == k).sum()) for k in (1, 2, 3, 4))
    if not (n1 and n2):
        return np.array([0.0, 0.5, 0.5, 0.5])
    y = n1 / (n1 + 2 * n2)
    three = 3 - 4 * y * n4 / n3 if n3 else 1.5
    found = np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, three])
    return np.clip(found, [0.0, 0.05, 0.05, 0.05], [0.0, 0.95, 1.95, 2.95])


def _estimate(counted: list[Counted], least: int, symbols: int) -> list[Estimates]:
    """Probabilities and back-off weights of the n-grams with `least` occurrences or more."""
    levels: list[Estimates] = []
    lower: Estimates | None = None
    for n, level in enumerate(counted, 1):
        keep = np.ones(len(level.grams), bool) if n == 1 else level.raw >= least
        discounted = level.used - _discounts(level.used)[np.minimum(level.used, 3)]
        contexts, places = np.unique(level.grams >> _BITS, return_inverse=True)
        totals = np.bincount(places, weights=level.used)
        grams, places = level.grams[keep], places[keep]
        shares = discounted[keep] / totals[places]
        left = 1.0 - np.bincount(places, weights=shares, minlength=len(contexts))
        left = np.maximum(left, 1e-9)
        if lower is None:
            below = np.full(len(grams), 1.0 / (symbols + 1))
        else:
            below = lower.probabilities[np.searchsorted(lower.grams, grams & _mask(n - 1))]
            mine = np.isin(lower.grams, contexts)
            lower.weights[mine] = left[np.searchsorted(contexts, lower.grams[mine])]
        lower = Estimates(grams, shares + left[places] * below, np.ones(len(grams)))
        levels.append(lower)
    return levels


def _unpack(grams: Packed, n: int) -> npt.NDArray[np.int64]:
    """Numbers of the symbols of packed n-grams: int64 [k, n]."""
    shifts = _BITS * np.arange(n - 1, -1, -1, dtype=np.uint64)
    return ((grams[:, None] >> shifts) & _mask(1)).astype(np.int64)
