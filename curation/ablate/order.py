"""The stream of tokens that a model reads: the same order of pages for every run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.ablate.experiment import Corpus, Documents

_STEP = np.uint64(0x9E3779B97F4A7C15)


def _scramble(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of splitmix64 (Steele, Lea and Flood 2014)."""
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


def stream(corpus: Corpus, tokens: int, seed: int, mark: int) -> npt.NDArray[np.uint16]:
    """Return `tokens` tokens: documents in order, `mark` before each, epoch after epoch."""
    parts: list[npt.NDArray[np.uint16]] = []
    missing, epoch = tokens, 0
    while missing > 0:
        ids = marked(corpus.documents, order(corpus.keys, seed, epoch), mark, missing)
        parts.append(ids)
        missing -= len(ids)
        epoch += 1
    return np.concatenate([np.zeros(0, np.uint16), *parts])


def marked(
    documents: Documents, chosen: npt.NDArray[np.int64], mark: int, most: int
) -> npt.NDArray[np.uint16]:
    """Return the chosen documents end to end, `mark` before each, cut to `most` tokens."""
    ends = np.cumsum(np.diff(documents.bounds)[chosen] + 1)
    chosen = chosen[: int(np.searchsorted(ends, most)) + 1]
    begin = np.array([mark], np.uint16)
    parts = [part for k in chosen.tolist() for part in (begin, documents.ids(k))]
    return np.concatenate([np.zeros(0, np.uint16), *parts])[:most]
