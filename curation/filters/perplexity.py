"""How well a small language model foresees a document's characters, as CCNet ranks pages.

CCNet (Wenzek et al. 2020) sorts pages by the perplexity of a 5-gram model of word pieces of
Wikipedia: head below the 30th percentile, middle below the 60th, tail above. The model here is one
of characters, small enough to ship: n-grams of lower-case code points, all digits one, white space
one, with interpolated modified Kneser-Ney probabilities (Chen and Goodman 1999) in back-off form.
A rare n-gram is left out, and its mass stays with the shorter one.

A file holds n-grams as the upper 32 bits of their hashes with two bytes of logarithms, and the
percentiles of the perplexity of texts that it was calibrated on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.archive import read_arrays, read_as, save_arrays
from curation.arrow import Texts
from curation.compiled import borrowing, inlined, kernel
from curation.filters.lexicon import chain
from curation.filters.names import PERPLEXITY
from curation.text import characters as ch
from curation.text.buffers import read_only
from curation.text.words import code_point

#: Steps per nat of the stored logarithms, of probabilities and of back-off weights.
SCALE, WEIGHT_SCALE = 16, 32
_BYTE = 255
PERCENTILES = 101

_SPACE, _IGNORE, _NUMBER = ch.SPACE, ch.IGNORE, ch.NUMBER
_BLANK, _ZERO = 0x20, 0x30
_SEED = np.uint64(0x243F6A8885A308D3)
_HALF = np.uint64(32)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class CharacterModel:
    """Back-off model of one language."""

    language: str
    order: int
    keys: npt.NDArray[np.uint32]  # [k] upper halves of the hashes of n-grams, ascending
    logs: npt.NDArray[np.uint8]  # [k] -log p in steps of 1 / SCALE
    weights: npt.NDArray[np.uint8]  # [k] -log of the back-off weight in steps of 1 / WEIGHT_SCALE
    log_unknown: float  # of a character that the model does not know
    percentiles: npt.NDArray[np.float32]  # [PERCENTILES] of the perplexity, 0 to 100

    def save(self, path: Path) -> None:
        """Write an .npz file; the same model gives the same bytes."""
        header = np.array([self.order, self.log_unknown], np.float64)
        save_arrays(
            path,
            {
                "keys": self.keys,
                "logs": self.logs,
                "weights": self.weights,
                "header": header,
                "percentiles": self.percentiles,
            },
        )


def load_model(path: str | Path, language: str) -> CharacterModel:
    """Read an .npz file; raises ConfigError if it is absent or holds something else."""
    with read_as(path, "a model of characters"):
        held = read_arrays(path)
        header = held["header"]
        return CharacterModel(
            language,
            int(header[0]),
            held["keys"].astype(np.uint32),
            held["logs"].astype(np.uint8),
            held["weights"].astype(np.uint8),
            float(header[1]),
            held["percentiles"].astype(np.float32),
        )


class ModelTable(NamedTuple):
    """All models in the form kernels take: one hash table after the other, each small enough to
    stay in a processor's cache."""

    slots: npt.NDArray[np.uint32]  # n-gram, 0 where a slot is free
    values: npt.NDArray[np.uint32]  # 1 + log + 256 * weight
    bounds: npt.NDArray[np.int64]  # [models + 1] where the tables begin; a power of two apart
    unknown: npt.NDArray[np.float64]  # [models]
    orders: npt.NDArray[np.int64]  # [models]
    percentiles: npt.NDArray[np.float64]  # [models, PERCENTILES]


def model_table(models: Sequence[CharacterModel]) -> ModelTable:
    """The tables of all models."""
    sizes = [1 << int(2 * len(model.keys)).bit_length() for model in models]
    bounds = np.cumsum([0, *sizes]).astype(np.int64)
    slots = np.zeros(bounds[-1], np.uint32)
    values = np.zeros(bounds[-1], np.uint32)
    for number, model in enumerate(models):
        part = slice(bounds[number], bounds[number + 1])
        found = 1 + model.logs.astype(np.uint32) + 256 * model.weights.astype(np.uint32)
        _fill(model.keys, found, slots[part], values[part])
    return ModelTable(
        slots,
        values,
        bounds,
        np.array([m.log_unknown for m in models], np.float64),
        np.array([m.order for m in models], np.int64),
        np.array([m.percentiles for m in models], np.float64).reshape(-1, PERCENTILES),
    )


@inlined
def _slot(key, mask):  # type: ignore[no-untyped-def]
    return np.int64((np.uint64(key) * _SPREAD) >> _HALF) & mask


@borrowing
def _fill(keys, found, slots, values):  # type: ignore[no-untyped-def]
    mask = np.int64(len(slots) - 1)
    for i in range(len(keys)):
        key = max(keys[i], np.uint32(1))
        slot = _slot(key, mask)
        while slots[slot] != 0 and slots[slot] != key:
            slot = (slot + 1) & mask
        slots[slot] = key
        values[slot] = found[i]


@inlined
def _value(h, slots, values, mask):  # type: ignore[no-untyped-def]
    """Value of the n-gram with this hash, 0 if absent."""
    key = max(np.uint32(h >> _HALF), np.uint32(1))
    slot = _slot(key, mask)
    while slots[slot] != 0:
        if slots[slot] == key:
            return np.int64(values[slot])
        slot = (slot + 1) & mask
    return np.int64(0)


@borrowing
def normalise(data, begin, end, properties, lower, out):  # type: ignore[no-untyped-def]
    """Write the symbols of data[begin:end] to `out`, a blank first; return how many there are."""
    out[0] = _BLANK
    n = 1
    i = begin
    while i < end:
        c, size = code_point(data, i)
        i += size
        p = properties[c]
        if p & _SPACE:
            symbol = _BLANK
        elif p & _IGNORE:
            continue
        elif p & _NUMBER:
            symbol = _ZERO
        else:
            symbol = lower[c]
        if symbol == _BLANK and out[n - 1] == _BLANK:
            continue
        out[n] = symbol
        n += 1
    return n


@kernel
def score(symbols, n, order, slots, values, unknown):  # type: ignore[no-untyped-def]
    """Sum of log p (nats) of symbols[1:n], given those before them.

    An n-gram can only be known where the one without its last symbol is, so that the longest one
    found at a place bounds the search at the next.
    """
    before = np.zeros(order + 1, np.uint64)  # keys of the n-grams that end at the last symbol
    here = np.zeros(order + 1, np.uint64)
    mask = np.int64(len(slots) - 1)
    known = 0  # length of the longest known n-gram that ends there
    total = 0.0
    for i in range(n):
        h = _SEED
        longest = min(known + 1, order)
        for k in range(longest):
            h = chain(h, np.uint64(symbols[i - k]))
            here[k + 1] = h
        length = longest
        log = 0.0
        while length > 0:
            value = _value(here[length], slots, values, mask)
            if value:
                log -= ((value - 1) & _BYTE) / SCALE
                break
            if length > 1:
                context = _value(before[length - 1], slots, values, mask)
                if context:
                    log -= ((context - 1) >> 8) / WEIGHT_SCALE
            length -= 1
        if length == 0:
            log += unknown
        if i > 0:
            total += log
        known = length
        before, here = here, before
    return total


@kernel
def _percentile(value, bounds):  # type: ignore[no-untyped-def]
    """Where a value is among percentiles, interpolated: 0 to 100."""
    last = len(bounds) - 1
    if value <= bounds[0]:
        return 0.0
    if value >= bounds[last]:
        return 100.0
    k = np.searchsorted(bounds, value)  # bounds[k - 1] < value <= bounds[k]
    share = (value - bounds[k - 1]) / (bounds[k] - bounds[k - 1])
    return 100.0 * (k - 1 + share) / last


@borrowing
def measure(data, doc, kit, space):  # type: ignore[no-untyped-def]
    """(perplexity per character, its percentile among the calibration texts).

    NaN without characters or without a model.
    """
    if doc.model < 0:
        return np.nan, np.nan
    n = normalise(data, doc.begin, doc.end, kit.properties, kit.lower, space.symbols)
    return _perplexity(space.symbols, n, doc.model, kit.models)


@borrowing
def _perplexity(symbols, n, number, models):  # type: ignore[no-untyped-def]
    if n < 2:
        return np.nan, np.nan
    a, b = models.bounds[number], models.bounds[number + 1]
    total = score(
        symbols, n, models.orders[number], models.slots[a:b], models.values[a:b],
        models.unknown[number],
    )  # fmt: skip
    perplexity = np.exp(-total / (n - 1))
    return perplexity, _percentile(perplexity, models.percentiles[number])


@borrowing
def _measure_batch(data, offsets, properties, lower, number, models, symbols, out):  # type: ignore[no-untyped-def]
    for d in range(len(offsets) - 1):
        n = normalise(data, offsets[d], offsets[d + 1], properties, lower, symbols)
        out[d, 0], out[d, 1] = _perplexity(symbols, n, number, models)


def measure_models(texts: Texts, models: ModelTable, number: int = 0) -> npt.NDArray[np.float64]:
    """`names.PERPLEXITY` of every text by one of the models: float64 [n, 2]."""
    offsets, data = read_only(texts)
    out = np.empty((len(offsets) - 1, len(PERPLEXITY)), np.float64)
    symbols = scratch_symbols(int(np.diff(offsets).max(initial=0)))
    _measure_batch(data, offsets, ch.properties(), ch.lower_case(), number, models, symbols, out)
    return out


@borrowing
def _symbol_batch(data, offsets, properties, lower, out):  # type: ignore[no-untyped-def]
    n = 0
    for d in range(len(offsets) - 1):
        n += normalise(data, offsets[d], offsets[d + 1], properties, lower, out[n:])
    return n


def symbols_of(texts: Texts) -> npt.NDArray[np.uint32]:
    """Symbols of all texts, one after the other, a blank before each: uint32 [n]."""
    offsets, data = read_only(texts)
    out = scratch_symbols(int(offsets[-1] - offsets[0]) + len(offsets))
    return out[: _symbol_batch(data, offsets, ch.properties(), ch.lower_case(), out)].copy()


@kernel
def hash_grams(symbols, n):  # type: ignore[no-untyped-def]
    """Upper halves of the hashes of n-grams given as rows of symbols: uint32 [rows]."""
    out = np.empty(len(symbols), np.uint32)
    for row in range(len(symbols)):
        h = _SEED
        for k in range(n):
            h = chain(h, np.uint64(symbols[row, n - 1 - k]))
        out[row] = np.uint32(h >> _HALF)
    return out


def scratch_symbols(most: int) -> npt.NDArray[np.uint32]:
    """Buffer for the symbols of a text of up to `most` bytes."""
    return np.empty(most + 2, np.uint32)
