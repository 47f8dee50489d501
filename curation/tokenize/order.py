"""A seeded permutation of 0..n-1 that is computed place by place, never held in memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.compiled import kernel
from curation.hashing import mix64
from curation.tokenize.vocabulary import scramble

_ROUNDS = 6


@kernel
def _permute(places, n, half, keys):  # type: ignore[no-untyped-def]
    bits = np.uint64(half)
    low = (np.uint64(1) << bits) - np.uint64(1)
    out = np.empty(len(places), np.int64)
    for k in range(len(places)):
        x = np.uint64(places[k])
        while True:
            left, right = x >> bits, x & low
            for key in keys:
                left, right = right, left ^ (scramble(right ^ key) & low)
            x = left << bits | right
            if x < np.uint64(n):
                break
        out[k] = x
    return out


def permute(places: npt.NDArray[np.int64], n: int, seed: int) -> npt.NDArray[np.int64]:
    """Where each place of 0..n-1 goes: a bijection that depends on n and seed alone.

    A balanced Feistel network over the least even number of bits that holds n; values outside walk
    on along their cycle until they are inside (Black and Rogaway 2002, "Ciphers with arbitrary
    finite domains"), fewer than four steps on average.
    """
    half = max(1, -(-max(n - 1, 1).bit_length() // 2))
    keys = mix64(np.uint64(seed) + mix64(np.arange(1, _ROUNDS + 1, dtype=np.uint64)))
    return _permute(places, n, half, keys)
