"""Alignment of two sequences of tokens."""

from __future__ import annotations

import numpy as np
import pytest

from curation.decontaminate.align import PIECE, places


def at(own: list[int], other: list[int]) -> list[int]:
    found: list[int] = places(np.array(own, np.uint32), np.array(other, np.uint32)).tolist()
    return found


def test_edits_are_told_from_what_stays() -> None:
    assert at([1, 2, 3, 4], [1, 9, 3, 4]) == [0, -1, 2, 3]
    assert at([1, 2, 3, 4], [1, 2, 9, 9, 3, 4]) == [0, 1, 4, 5]
    assert at([1, 2, 3, 4], [1, 4]) == [0, -1, -1, 1]
    assert at([], [1]) == [] and at([1], []) == [-1]


@pytest.mark.parametrize("length", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7])
def test_pieces_do_not_show(length: int) -> None:
    rng = np.random.default_rng(length)
    own = rng.integers(0, 1 << 30, length, dtype=np.uint32)
    chosen = np.sort(rng.choice(length, length // 50, replace=False))
    deleted, inserted = chosen[::2], chosen[1::2]
    other = np.delete(
        np.insert(own, inserted, 1 << 31), deleted + np.searchsorted(inserted, deleted, "right")
    )
    found = places(own, other)
    assert (np.flatnonzero(found < 0) == deleted).all()
    kept = found >= 0
    assert (other[found[kept]] == own[kept]).all()
