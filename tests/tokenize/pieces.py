"""Pieces of a text, one by one."""

from __future__ import annotations

import numpy as np

from curation.tokenize.pretokenize import pattern, piece_end


def piece_ends(data: bytes, name: str) -> list[int]:
    """Ends of all pieces under the pattern of that name."""
    array, classes = np.frombuffer(data, np.uint8), pattern(name).classes
    ends = [0]
    while ends[-1] < len(data):
        end = int(piece_end(array, ends[-1], len(data), classes))
        assert end > ends[-1]
        ends.append(end)
    return ends[1:]
