"""Shares estimated from labelled samples, with their intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

_Z = 1.959963984540054  # two-sided 95 %


class Share(NamedTuple):
    """An estimated share and the ends of its 95 % interval; NaN where nothing was counted."""

    value: float
    low: float
    high: float


def wilson(hits: int, of: int) -> Share:
    """Return a share with Wilson's score interval (JASA 22, 1927), sound for small counts."""
    if of == 0:
        return Share(math.nan, 0.0, 1.0)
    share, z2 = hits / of, _Z * _Z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return Share(share, max(0.0, middle - half), min(1.0, middle + half))
