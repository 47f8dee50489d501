"""Align two sequences of tokens: which token of one is which of the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.compiled import kernel

Tokens = npt.NDArray[np.uint32]
#: Tokens that are aligned at once, with twice as many of the other sequence.
PIECE = 1024
_UP, _LEFT, _MATCH = 0, 1, 2


def places(own: Tokens, other: Tokens) -> npt.NDArray[np.int64]:
    """Return where in the other sequence each token is, -1 where it is not.

    Matches are as many as can be; those that go on count a little more. Longer sequences are
    aligned piece by piece, so that time is linear: the next piece begins in the middle of one.
    """
    found = np.full(len(own), -1, np.int64)
    i = j = 0
    while i < len(own):
        some = found[i : i + PIECE]
        _align(own[i : i + PIECE], other[j : j + 2 * PIECE], some)
        if i + PIECE < len(own):
            some[PIECE // 2 :] = -1
            some = some[: PIECE // 2]
        matched = some >= 0
        some[matched] += j
        i += len(some)
        j = int(some.max(initial=j - 1)) + 1
    return found


@kernel
def _align(own, other, found):  # type: ignore[no-untyped-def]
    n, m = len(own), len(other)
    best = np.zeros((n + 1, m + 1), np.int32)
    step = np.zeros((n + 1, m + 1), np.uint8)
    step[0] = _LEFT
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            up, left = best[i - 1, j], best[i, j - 1]
            if up >= left:
                best[i, j], step[i, j] = up, _UP
            else:
                best[i, j], step[i, j] = left, _LEFT
            if own[i - 1] == other[j - 1]:
                goes_on = i > 1 and j > 1 and step[i - 1, j - 1] == _MATCH
                score = best[i - 1, j - 1] + (3 if goes_on else 2)
                if score >= best[i, j]:
                    best[i, j], step[i, j] = score, _MATCH
    i, j = n, m
    found[:] = -1
    while i > 0:
        if step[i, j] == _MATCH:
            i -= 1
            j -= 1
            found[i] = j
        elif step[i, j] == _LEFT:
            j -= 1
        else:
            i -= 1
