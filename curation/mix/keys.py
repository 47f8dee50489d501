"""Seeded draws that depend on a document's id alone, never on order or partition."""

import numpy as np
import numpy.typing as npt

from curation.hashing import mix64

U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]

# Independent streams of one seed.
_DRAW, _TOPIC, _COPY = 1, 2, 4

_LN2 = 0.6931471805599453
_TERMS = 12  # of the series of the logarithm: its error is under 1e-17 for |s| <= 0.1716
_POWERS = 20  # of the series of the exponential: its error is under 1e-18 for 0 <= x <= ln 2
_BELOW_ONE = 1 - 2.0**-53


def _uniform_bits(id_hashes: U64, seed: int, stream: int) -> U64:
    """64 uniform bits per document."""
    salt = mix64(np.array([seed], np.uint64) + mix64(np.array([stream], np.uint64)))
    return mix64(id_hashes ^ salt)


def open_unit(bits: U64) -> F64:
    """Uniform values in (0, 1), multiples of 2^-52 shifted by half a step."""
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def negative_log(u: F64) -> F64:
    """-ln(u) for u in (0, 1), from additions, products and quotients only.

    A library's logarithm may differ in the last bit between processors, and with it which document
    is drawn; IEEE arithmetic doesn't. With u = m * 2^e, m in [sqrt(1/2), sqrt(2)) and
    s = (m - 1) / (m + 1), ln(m) = 2 (s + s^3 / 3 + s^5 / 5 + ...).
    """
    m, e = np.frexp(u)
    low = m < 0.7071067811865476
    m = np.where(low, m * 2, m)
    e = e - low
    s = (m - 1) / (m + 1)
    square = s * s
    total = np.zeros_like(s)
    for k in range(2 * _TERMS - 1, 0, -2):
        total = total * square + 1.0 / k
    return -(2 * s * total + e * _LN2)


def halved(times: F64) -> F64:
    """2^-times for times >= 0, exact in the same sense as `negative_log`."""
    whole = np.floor(times)
    x = -(times - whole) * _LN2
    total = np.ones_like(x)
    for k in range(_POWERS, 0, -1):
        total = 1 + total * x / k
    return np.ldexp(total, -np.minimum(whole, 1100).astype(np.int32))


def draw_phases(id_hashes: U64, weights: F64, seed: int) -> F64:
    """Phase of each document in [0, 1): the higher, the earlier it is drawn.

    Where the weight is NaN phases are uniform. With weights (> 0) they order documents as sampling
    without replacement, proportional to weight, would draw them (Efraimidis and Spirakis 2006): by
    the key -ln(u) / weight, brought to (0, 1) by x / (1 + x). Phases of the two kinds are not to be
    compared.
    """
    u = open_unit(_uniform_bits(id_hashes, seed, _DRAW))
    weighted = ~np.isnan(weights)
    keys = negative_log(u[weighted]) / weights[weighted]
    u[weighted] = keys / (1 + keys)
    return np.minimum(1 - u, _BELOW_ONE)


def copy_bits(id_hashes: U64, seed: int) -> U64:
    """64 uniform bits per document, which say where its copies are."""
    return _uniform_bits(id_hashes, seed, _COPY)


def topic_values(id_hashes: U64, seed: int) -> F64:
    """Uniform value of each document in (0, 1), independent of `draw_phases`."""
    return open_unit(_uniform_bits(id_hashes, seed, _TOPIC))
