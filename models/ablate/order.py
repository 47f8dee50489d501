"""The stream of tokens that a model reads: the same order of pages for every run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.ablate.experiment import Corpus

#: Kept with measurements: another number where the same data and seed give another stream.
ORDER = 2

_STEP = np.uint64(0x9E3779B97F4A7C15)


def _scramble(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the finalizer of splitmix64 (Steele, Lea and Flood 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def order(keys: npt.NDArray[np.uint64], seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Return the order of documents in an epoch.

    Pages that two runs share come in the same order in both, whatever lies between them.
    """
    salt = _scramble(np.array([seed, epoch], np.uint64) + _STEP)
    mixed = _scramble(_scramble(keys ^ salt[0]) + salt[1])
    return np.argsort(mixed, kind="stable")


def stream(
    corpus: Corpus, tokens: int, seed: int, mark: int, piece: int | None = None
) -> npt.NDArray[np.uint16]:
    """Return `tokens` tokens: documents in order, `mark` before each, epoch after epoch.

    With `piece`, documents are cut into pieces of at most so many tokens, which are put in order
    as documents are: the parts of a long document lie anywhere in an epoch, and steps of training,
    which read consecutive tokens, are of many documents.
    """
    bounds, keys = corpus.documents.bounds, corpus.keys
    if piece:
        bounds, keys = _cut(bounds, keys, piece)
    parts = [np.zeros(0, np.uint16)]
    missing, epoch = tokens, 0
    while missing > 0:
        chosen = order(keys, seed, epoch)
        parts.append(_marked(corpus.documents.tokens, bounds, chosen, mark, missing))
        missing -= len(parts[-1])
        epoch += 1
    return np.concatenate(parts)


def length(corpus: Corpus, piece: int) -> int:
    """Return the tokens of an epoch in pieces, the mark before each counted."""
    bounds, keys = _cut(corpus.documents.bounds, corpus.keys, piece)
    return int(bounds[-1]) + len(keys)


def _cut(
    bounds: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64], most: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return bounds and keys of pieces. A document's first piece has the document's key."""
    counts = np.maximum(1, -(-np.diff(bounds) // most))
    owners = np.repeat(np.arange(len(keys)), counts)
    numbers = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = bounds[owners] + numbers * most
    return np.append(begins, bounds[-1]), keys[owners] + numbers.astype(np.uint64) * _STEP


def _marked(
    tokens: npt.NDArray[np.uint16],
    bounds: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.int64],
    mark: int,
    most: int,
) -> npt.NDArray[np.uint16]:
    """Return the chosen pieces end to end, `mark` before each, cut to `most` tokens."""
    ends = np.cumsum(np.diff(bounds)[chosen] + 1)
    chosen = chosen[: int(np.searchsorted(ends, most)) + 1]
    begin = np.array([mark], np.uint16)
    parts = [np.zeros(0, np.uint16)]
    for k in chosen.tolist():
        parts += [begin, tokens[bounds[k] : bounds[k + 1]]]
    return np.concatenate(parts)[:most]
