"""Work space for measuring one document after another, allocated once per batch.

Arrays are as long as the longest document needs; pages that no document touches stay unused.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from curation.filters.tables import intern
from curation.text.words import describe

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Tokens(NamedTuple):
    """Words and symbols of one document, in order."""

    starts: Ints
    ends: Ints
    chars: Ints
    flags: Ints  # bits of curation.text.words
    hashes: Hashes
    lows: Hashes  # hashes of the lower-case forms
    ids: Ints  # number of the distinct token, in order of first appearance
    before: Ints  # [tokens + 1] characters in the tokens before this one


class Distinct(NamedTuple):
    """Distinct tokens of one document."""

    counts: Ints
    firsts: Ints  # index of the first token


class Lines(NamedTuple):
    starts: Ints
    ends: Ints


class Interner(NamedTuple):
    """Reusable hash table, see tables.intern."""

    keys: Hashes
    ids: Ints
    stamps: Ints
    stamp: Ints  # [1] stamp of the use before


class Grams(NamedTuple):
    """n-grams of one document while n grows."""

    at: Ints  # id of the n-gram at a token
    counts: Ints  # by id
    firsts: Ints  # by id
    active: Ints  # tokens whose n-gram occurs more than once
    marks: Ints


class Scratch(NamedTuple):
    tokens: Tokens
    distinct: Distinct
    lines: Lines
    interner: Interner
    grams: Grams


def allocate(most: int) -> Scratch:
    """Work space for documents of up to `most` bytes (or supplied words)."""
    n = most + 2
    size = 4
    while size < 2 * n:
        size *= 2

    def ints() -> Ints:
        return np.empty(n, np.int64)

    return Scratch(
        Tokens(
            ints(),
            ints(),
            ints(),
            ints(),
            np.empty(n, np.uint64),
            np.empty(n, np.uint64),
            ints(),
            ints(),
        ),
        Distinct(ints(), ints()),
        Lines(ints(), ints()),
        Interner(
            np.empty(size, np.uint64),
            np.empty(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(1, np.int64),
        ),
        Grams(ints(), ints(), ints(), ints(), ints()),
    )


@numba.njit(cache=True, nogil=True)
def begin(interner, most):  # type: ignore[no-untyped-def]
    """Empty the table for up to `most` keys; return (stamp, mask)."""
    size = 4
    while size < 2 * most:
        size *= 2
    interner.stamp[0] += 1
    return interner.stamp[0], np.uint64(size - 1)


@numba.njit(cache=True, nogil=True)
def fill_tokens(data, n, properties, lower, tokens):  # type: ignore[no-untyped-def]
    """Describe the first n tokens, whose spans are set."""
    total = 0
    for i in range(n):
        chars, flags, h, low = describe(data, tokens.starts[i], tokens.ends[i], properties, lower)
        tokens.chars[i] = chars
        tokens.flags[i] = flags
        tokens.hashes[i] = h
        tokens.lows[i] = low
        tokens.before[i] = total
        total += chars
    tokens.before[n] = total


@numba.njit(cache=True, nogil=True)
def number_tokens(n, tokens, distinct, interner):  # type: ignore[no-untyped-def]
    """Number the distinct tokens, count them, and return how many there are."""
    stamp, mask = begin(interner, n)
    fresh = 0
    for i in range(n):
        k = intern(
            tokens.hashes[i], interner.keys, interner.ids, interner.stamps, stamp, mask, fresh
        )
        if k == fresh:
            distinct.counts[k] = 0
            distinct.firsts[k] = i
            fresh += 1
        distinct.counts[k] += 1
        tokens.ids[i] = k
    return fresh
