"""Plain versions of the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache


def aligned(
    pattern: Sequence[int], weights: Sequence[int], text: Sequence[int], insertion: int
) -> int:
    """Best score of a pattern against a text: weights of matches, less `insertion` for each run of
    text tokens that is inserted right behind a match."""

    @cache
    def best(i: int, j: int, matched: bool) -> int:
        """Score of pattern[i:] against text[j:]; `matched`: the tokens before are a match."""
        if i == len(pattern):
            return 0
        scores = [best(i + 1, j, False)]
        if j < len(text):
            scores.append(best(i, j + 1, False) - (insertion if matched else 0))
            if pattern[i] == text[j]:
                scores.append(weights[i] + best(i + 1, j + 1, True))
        return max(scores)

    return best(0, 0, False)
