"""Locality-sensitive hashing of MinHash signatures by bands (Leskovec et al., MMDS, chapter 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from curation.compiled import kernel
from curation.errors import ConfigError
from curation.hashing import xxh64
from curation.kernels import kept


def band_hashes(signatures: npt.NDArray[Any], bands: int, rows: int) -> npt.NDArray[np.uint64]:
    """64-bit hash of each band of each signature -> uint64 [documents, bands].

    The band's number is mixed in, so that hashes of different bands may share one table. Values
    beyond bands x rows are not used. Two different bands get the same hash with chance 2^-64.

    Raises ConfigError when the signatures are shorter than bands x rows.
    """
    if bands < 1 or rows < 1 or bands * rows > signatures.shape[1]:
        raise ConfigError(
            f"bands x rows = {bands} x {rows} does not fit signatures of {signatures.shape[1]}"
        )
    values = np.ascontiguousarray(signatures)
    size = values.dtype.itemsize
    row_bytes = values.shape[1] * size
    return _hash_bands(
        values.reshape(-1).view(np.uint8), len(values), row_bytes, bands, rows * size
    )


@kernel
def _hash_bands(data, documents, row_bytes, bands, band_bytes):  # type: ignore[no-untyped-def]
    out = np.empty((documents, bands), np.uint64)
    for d in range(documents):
        for band in range(bands):
            start = d * row_bytes + band * band_bytes
            out[d, band] = xxh64(data, start, start + band_bytes, np.uint64(band))
    return out


def band_threshold(bands: int, rows: int) -> float:
    """Similarity about which the candidate probability rises: (1 / bands)^(1 / rows)."""
    return float((1.0 / bands) ** (1.0 / rows))


@kept
def optimal_bands(
    threshold: float, num_perm: int, false_positive_weight: float, false_negative_weight: float
) -> tuple[int, int]:
    """Bands and rows that make the fewest errors about a threshold, by datasketch's search.

    The weights must sum to 1. Raises ConfigError for a threshold or weights out of [0, 1].
    """
    from datasketch import MinHashLSH  # imports scipy, which only this function needs

    weights = (false_positive_weight, false_negative_weight)
    try:
        lsh = MinHashLSH(threshold=threshold, num_perm=num_perm, weights=weights)
    except ValueError as error:
        raise ConfigError(
            f"no bands for threshold {threshold}, num_perm {num_perm}: {error}"
        ) from error
    return int(lsh.b), int(lsh.r)
