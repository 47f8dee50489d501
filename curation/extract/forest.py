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
    out = np.empty(n, np.float64)
    for i in range(n):
        total = base
        row = rows[i]
        for root in roots:
            node = np.int64(root)
            column = np.int64(feature[node])
            while column >= 0:
                node = np.int64(left[node]) + np.int64(row[column] > threshold[node])
                column = np.int64(feature[node])
            total += np.float64(threshold[node])
        out[i] = 1.0 / (1.0 + np.exp(-total))
    return out


def probabilities(forest: Forest, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Probability of each row [n, features]."""
    return _sum_trees(
        forest.roots, forest.feature, forest.threshold, forest.left, forest.base, rows
    )
