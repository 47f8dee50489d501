"""Boosted trees: their arrays and their sum for every row, compiled.

Gradient boosting after J. Friedman, Greedy Function Approximation (2001); the trees are learned by
scikit-learn's histogram method and kept as flat arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt


class Forest(NamedTuple):
    """Trees laid end to end. A node's children stand side by side: `left` and `left + 1`."""

    roots: npt.NDArray[np.int32]  # [trees]
    feature: npt.NDArray[np.int16]  # [nodes], -1: a leaf
    threshold: npt.NDArray[np.float32]  # [nodes]; a leaf's value
    left: npt.NDArray[np.int32]  # [nodes]
    base: float  # log odds before the first tree


@numba.njit(cache=True, nogil=True)
def _sum_trees(roots, feature, threshold, left, base, rows):  # type: ignore[no-untyped-def]
    n = len(rows)
    out = np.full(n, base, np.float64)
    # Children and feature of a node stand in one number, and four rows walk down a tree side by
    # side: each step waits for memory, and three others go on meanwhile.
    node = np.empty(len(feature), np.int64)
    for k in range(len(feature)):
        node[k] = (np.int64(left[k]) << 16) | np.int64(feature[k]) if feature[k] >= 0 else -1
    fours = n - n % 4
    for root in roots:
        for i in range(0, fours, 4):
            a = b = c = d = np.int64(root)
            na = nb = nc = nd = node[root]
            while na >= 0 or nb >= 0 or nc >= 0 or nd >= 0:
                if na >= 0:
                    a = (na >> 16) + np.int64(rows[i, na & 0xFFFF] > threshold[a])
                    na = node[a]
                if nb >= 0:
                    b = (nb >> 16) + np.int64(rows[i + 1, nb & 0xFFFF] > threshold[b])
                    nb = node[b]
                if nc >= 0:
                    c = (nc >> 16) + np.int64(rows[i + 2, nc & 0xFFFF] > threshold[c])
                    nc = node[c]
                if nd >= 0:
                    d = (nd >> 16) + np.int64(rows[i + 3, nd & 0xFFFF] > threshold[d])
                    nd = node[d]
            out[i] += np.float64(threshold[a])
            out[i + 1] += np.float64(threshold[b])
            out[i + 2] += np.float64(threshold[c])
            out[i + 3] += np.float64(threshold[d])
        for i in range(fours, n):
            a = np.int64(root)
            na = node[a]
            while na >= 0:
                a = (na >> 16) + np.int64(rows[i, na & 0xFFFF] > threshold[a])
                na = node[a]
            out[i] += np.float64(threshold[a])
    return 1.0 / (1.0 + np.exp(-out))


def probabilities(forest: Forest, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Probability of each row [n, features]."""
    return _sum_trees(
        forest.roots, forest.feature, forest.threshold, forest.left, forest.base, rows
    )
