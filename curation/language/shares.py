"""Columns of shares: of languages, of scripts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: Scores and shares are rounded, so that bytes of outputs do not depend on the last bits of a sum.
DECIMALS = 4


def listed(
    field: str,
    owner: npt.NDArray[np.int64],
    names: npt.NDArray[np.object_],
    shares: npt.NDArray[np.floating[Any]],
    texts: int,
) -> pa.Array:
    """Shares of every text, highest first: list of struct<FIELD: string, share: float>.

    Share i is that of `names[i]` in text `owner[i]`; owners ascend.
    """
    rounded = shares.round(DECIMALS)
    order = np.lexsort((names.astype(str), -rounded, owner))
    entries = pa.StructArray.from_arrays(
        [pa.array(names[order], pa.string()), pa.array(rounded[order], pa.float32())],
        names=[field, "share"],
    )
    offsets = np.searchsorted(owner, np.arange(texts + 1))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), entries)
