"""Trees walked by the kernel and node by node give the same."""

from __future__ import annotations

import numpy as np
import pytest

from curation.extract.model import Forest, probabilities


def grown(seed: int, columns: int, bags: int) -> Forest:
    """Trees of random shape over so many columns."""
    chance = np.random.default_rng(seed)
    roots: list[int] = []
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    for _ in range(12):
        roots.append(len(feature))
        waiting = [len(feature)]
        feature.append(-1)
        threshold.append(float(chance.normal()))
        left.append(0)
        for _ in range(int(chance.integers(0, 9))):
            node = waiting.pop(int(chance.integers(len(waiting))))
            feature[node], left[node] = int(chance.integers(columns)), len(feature)
            for _ in range(2):
                waiting.append(len(feature))
                feature.append(-1)
                threshold.append(float(chance.normal()))
                left.append(0)
    return Forest(
        np.array(roots, np.int32),
        np.array(feature, np.int16),
        np.array(threshold, np.float32),
        np.array(left, np.int32),
        chance.normal(size=bags) / 4,
        2.0,
    )


def one(forest: Forest, row: np.ndarray) -> float:
    odds = []
    for base, roots in zip(forest.bases, np.split(forest.roots, len(forest.bases)), strict=True):
        odds.append(float(base))
        for root in roots:
            node = int(root)
            while forest.feature[node] >= 0:
                right = row[forest.feature[node]] > forest.threshold[node]
                node = int(forest.left[node]) + int(right)
            odds[-1] += float(forest.threshold[node])
    mean = odds[0] if abs(odds[0]) >= forest.sure else float(np.mean(odds))
    return float(1 / (1 + np.exp(-mean)))


@pytest.mark.parametrize("bags", [1, 3])
@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 170])
def test_kernel_equals_the_walk_of_each_row(rows: int, bags: int) -> None:
    forest = grown(rows, 30, bags)
    measured = np.random.default_rng(rows).normal(size=(rows, 30)).astype(np.float32)
    expected = [one(forest, row) for row in measured]
    np.testing.assert_allclose(probabilities(forest, measured), expected, rtol=1e-12)


def test_a_tree_has_a_bit_for_each_leaf() -> None:
    chain = Forest(
        np.zeros(1, np.int32),
        np.array([0, -1] * 32 + [-1], np.int16),
        np.arange(65, dtype=np.float32),
        np.arange(1, 66, dtype=np.int32),
        np.zeros(1),
        0.0,
    )
    with pytest.raises(ValueError, match="32 leaves"):
        _ = chain.branches
