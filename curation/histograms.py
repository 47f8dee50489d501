"""Histograms of signals whose values may span many orders of magnitude."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Scale = Literal["linear", "log"]
#: Quantiles at which the open first and last bin begin.
_TAILS = (0.001, 0.999)
#: Ratio of maximum to median above which bins are logarithmic.
_SPREAD = 20
_SAMPLED = 1 << 18
#: Values that are counted at once.
_PART = 1 << 16


class Bins(NamedTuple):
    """Edges [bins + 1], ascending; the first and the last bin are open-ended."""

    edges: npt.NDArray[np.float64]
    scale: Scale


def bins_for(values: npt.NDArray[np.float64], count: int, also: tuple[float, ...] = ()) -> Bins:
    """Return bins that show the distribution of the values; they cover the values `also`.

    NaN and infinite values are ignored. For many values, an evenly spaced sample is used.
    """
    step = max(1, len(values) // _SAMPLED)
    held = values[::step]
    held = held[np.isfinite(held)]
    if not len(held):
        return Bins(np.linspace(0, 1, count + 1), "linear")
    low, middle, high = np.quantile(held, (_TAILS[0], 0.5, _TAILS[1]))
    low, high = min(low, *also, high), max(high, *also, low)
    if high <= low:
        high = low + (abs(low) or 1)
    if low >= 0 and high > _SPREAD * max(middle, 1):
        edges = np.expm1(np.linspace(np.log1p(low), np.log1p(high), count + 1))
        return Bins(edges, "log")
    return Bins(np.linspace(low, high, count + 1), "linear")


def histogram(
    values: npt.NDArray[np.float64], groups: npt.NDArray[np.integer], kinds: int, bins: Bins
) -> npt.NDArray[np.int64]:
    """Count values by group and bin -> int64 [kinds, bins]. NaN is not counted.

    Args:
        values: [n].
        groups: [n], from 0 to before `kinds`.
    """
    count = len(bins.edges) - 1
    found = np.zeros(kinds * count, np.int64)
    for first in range(0, len(values), _PART):  # what is made on the way stays in the cache
        part, group = values[first : first + _PART], groups[first : first + _PART]
        known = ~np.isnan(part)
        if not known.all():
            part, group = part[known], group[known]
        places = group.astype(np.int64) * count + _place(part, bins, count)
        found += np.bincount(places, minlength=kinds * count)
    return found.reshape(kinds, count)


def _place(values: npt.NDArray[np.float64], bins: Bins, count: int) -> npt.NDArray[np.int32]:
    edges = bins.edges
    if bins.scale == "log":
        values = np.log1p(np.maximum(values, 0))
        edges = np.log1p(edges)
    with np.errstate(invalid="ignore", over="ignore"):
        found = (values - edges[0]) * (count / (edges[-1] - edges[0]))
    return np.clip(found, 0, count - 1).astype(np.int32)
