"""Hashes of byte spans inside Arrow buffers, and mixing of 64-bit integers, compiled.

XXH64 follows the public specification of xxHash; tests hold it against the xxhash package.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from curation.bytes.search import eight_at
from curation.compiled import Bytes, Int, Int64s, Uint64s, borrowing, inlined, kernel

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@inlined
def _rotl(x: Int, r: Int) -> Int:
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@inlined
def _round(acc: Int, lane: Int) -> Int:
    return _rotl(acc + lane * _P2, 31) * _P1


@inlined
def _merge(acc: Int, lane: Int) -> Int:
    return (acc ^ _round(np.uint64(0), lane)) * _P1 + _P4


@borrowing
def xxh64(data: Bytes, start: Int, end: Int, seed: Int) -> Int:
    """XXH64 of data[start:end] (uint8 array); `seed` is a uint64. Callable from other kernels."""
    i = start
    if end - start >= 32:
        a = seed + _P1 + _P2
        b = seed + _P2
        c = seed
        d = seed - _P1
        while i + 32 <= end:
            a = _round(a, eight_at(data, i))
            b = _round(b, eight_at(data, i + 8))
            c = _round(c, eight_at(data, i + 16))
            d = _round(d, eight_at(data, i + 24))
            i += 32
        h = _rotl(a, 1) + _rotl(b, 7) + _rotl(c, 12) + _rotl(d, 18)
        h = _merge(_merge(_merge(_merge(h, a), b), c), d)
    else:
        h = seed + _P5
    h += np.uint64(end - start)
    while i + 8 <= end:
        h = _rotl(h ^ _round(np.uint64(0), eight_at(data, i)), 27) * _P1 + _P4
        i += 8
    if i + 4 <= end:
        low = np.uint64(0)
        for k in range(4):
            low |= np.uint64(data[np.uint64(i) + np.uint64(k)]) << np.uint64(8 * k)
        h = _rotl(h ^ (low * _P1), 23) * _P2 + _P3
        i += 4
    while i < end:
        h = _rotl(h ^ (np.uint64(data[i]) * _P5), 11) * _P1
        i += 1
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@kernel
def hash_spans(data: Bytes, starts: Int64s, ends: Int64s, seed: Int) -> Uint64s:
    """XXH64 of every span data[starts[i]:ends[i]] -> uint64 [n]."""
    out = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        out[i] = xxh64(data, starts[i], ends[i], seed)
    return out


@inlined
def scramble(x: Int) -> Int:
    """Return a 64-bit integer as `mix64` scrambles it, inside kernels."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def mix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Bijective scrambling of 64-bit integers (the finaliser of SplitMix64)."""
    scramble_all: Any = scramble.py_func  # of arrays as of numbers
    scrambled: npt.NDArray[np.uint64] = scramble_all(values.astype(np.uint64, copy=True))
    return scrambled


def unmix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The values that `mix64` scrambled."""
    x = values ^ (values >> np.uint64(31)) ^ (values >> np.uint64(62))
    x *= np.uint64(0x319642B2D24D8EC3)
    x ^= (x >> np.uint64(27)) ^ (x >> np.uint64(54))
    x *= np.uint64(0x96DE1B173F119089)
    return x ^ (x >> np.uint64(30)) ^ (x >> np.uint64(60))
