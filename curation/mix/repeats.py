"""Expected copies of a document by quality, date or length; the distinct part of its tokens."""

import math
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.bytes.hash_tables import slot_of
from curation.compiled import Float32s, Int, Int64s, Uint32s, kernel
from curation.hashing import scramble
from curation.mix.mix_settings import Mixture, Place, Repeats
from curation.mix.ranks import Batch, Ranks, groups, rank

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

#: Copies are whole multiples of 1 / UNIT, so that sums don't depend on their order.
UNIT = 1 << 16
_DAY = 86_400_000_000  # microseconds

#: Buckets of quality among which a budget chooses, as in Nemotron-CC (arXiv 2412.02595).
BUCKETS = 20
#: The n-th repeat of a token is worth exp(-n / _DECAY) of a fresh one: R*_D of Muennighoff et al.
#: 2023 (arXiv 2305.16264, appendix A).
_DECAY = 15.39
#: Documents from this rank on are worth the same: FineWeb-Edu (arXiv 2406.17557) and DCLM (arXiv
#: 2406.11794) keep about the best tenth at any budget that they tried.
_BEST = 0.9
#: Below it, worth falls as exp(_FALL * rank), so that tokens of the best tenth are worth 1.5 times
#: the average: choosing them saves DCLM 4.7 / 2.1 of the compute (BETR, arXiv 2507.12466), which
#: grows with the square of the tokens (Hoffmann et al. 2022, arXiv 2203.15556).
_FALL = 1.12
#: The same where there is no budget to fill: nothing is repeated before everything is drawn.
_ORDER_ONLY = 1e-18

_LN2 = 0.6931471805599453
_POWERS = 20  # of the series of the exponential: its error is under 1e-18 for 0 <= x <= ln 2


class Group(NamedTuple):
    """Documents of one group that repeat by one curve."""

    rows: npt.NDArray[np.bool_]  # [documents of the batch]: those of the group
    places: F64  # [documents of the group] rank, days since 1970 (NaN: none), tokens, documents
    units: I64  # copies expected, in 1 / UNIT


def repeating(batch: Batch, settings: Mixture, ranks: Ranks) -> Iterator[Group]:
    """Yield every group of the batch whose documents repeat by a curve."""
    for domain in settings.domains:
        repeats = settings.repeats_of(domain)
        if repeats is None:
            continue
        for label, rows in groups(batch, domain, repeats.within):
            if rows.any():
                ours = batch.filter(pa.array(rows))
                if repeats.by == "quality":
                    places = rank(ours, ranks[domain][label])
                else:
                    places = _PLACES[repeats.by](ours)
                units = np.rint(copies(places, repeats) * UNIT).astype(np.int64)
                yield Group(rows, places, units)


def copies(places: F64, repeats: Repeats) -> F64:
    """Return the copies expected at each place."""
    if repeats.fitted:
        return np.ones_like(places)
    if repeats.half_life is not None:
        assert repeats.as_of is not None
        age = np.maximum(position(repeats.as_of) - places, 0) / repeats.half_life
        found = halved(np.nan_to_num(age))
    else:
        ends = np.array([position(place) for place, _ in repeats.points])
        heights = np.array([height for _, height in repeats.points])
        if repeats.curve:
            found = np.interp(places, ends, heights)
        else:
            found = np.append(0.0, heights)[np.searchsorted(ends, places, "right")]
    return np.where(np.isnan(places), repeats.undated, found)


def halved(times: F64) -> F64:
    """2^-times for times >= 0, from additions and products only, so the same on all processors."""
    whole = np.floor(times)
    x = -(times - whole) * _LN2
    total = np.ones_like(x)
    for k in range(_POWERS, 0, -1):
        total = 1 + total * x / k
    return np.ldexp(total, -np.minimum(whole, 1100).astype(np.int32))


def bucket_of(ranks: F64) -> I64:
    """Return the bucket of quality of each rank, 0 to BUCKETS - 1; 0 where there is none."""
    return np.clip(np.nan_to_num(ranks) * BUCKETS, 0, BUCKETS - 1).astype(np.int64)


def fitted(tokens: F64, target: int, most: float, limited: bool) -> list[float]:
    """Return how often each bucket of quality is drawn, so that a further token is worth the same.

    A bucket begins when the next epoch of the best is worth no more than its first one, and is
    drawn whole before anything else is repeated.

    Args:
        tokens: float64 [BUCKETS], whole, the worst first.
        target: tokens to draw of them.
        most: copies of a document at most.
        limited: whether the target is a budget; otherwise repeats come last.
    """
    ranks = (np.arange(BUCKETS) + 0.5) / BUCKETS
    waits = np.maximum(_BEST - ranks, 0) * (_FALL * _DECAY if limited else _ORDER_ONLY)
    states = []  # of all buckets, each as one begins, is drawn once, or has `most`
    for now in sorted({*waits, *(waits + max(most - 1, 0))}):
        copies = np.minimum(1 + (now - waits), most)
        states += [np.where(waits < now, copies, 0), np.where(waits <= now, copies, 0)]
    drawn = [math.fsum(state * tokens) for state in states]
    found = [np.interp(target, drawn, column) for column in zip(*states, strict=True)]
    return [min(math.ceil(copies * UNIT) / UNIT, most) for copies in found]  # not below the target


def first_place(repeats: Repeats, fitted: Sequence[float] = ()) -> float:
    """Return the place up to which no copies are expected, by a curve or the fitted copies."""
    if any(fitted):
        return next(k for k, copies in enumerate(fitted) if copies) / BUCKETS
    if not repeats.points:
        return -np.inf
    k = next(k for k, (_, height) in enumerate(repeats.points) if height > 0)
    # A line rises from the point before; a step begins at its own.
    return position(repeats.points[max(k - 1, 0) if repeats.curve else k][0])


def position(place: Place) -> float:
    """Return a place on a curve as a number: a date as days since 1970."""
    return float((place - date(1970, 1, 1)).days) if isinstance(place, date) else float(place)


def _tokens(batch: Batch) -> F64:
    return batch.column("tokens").to_numpy().astype(np.float64)


def _days(batch: Batch) -> F64:
    """Days since 1970 of every document's date; NaN where it has none."""
    micros = batch.column("date").cast(pa.int64())
    found = pc.fill_null(micros, 0).to_numpy() / _DAY
    return np.where(pc.is_null(micros).to_numpy(zero_copy_only=False), np.nan, found)


def _duplicates(batch: Batch) -> F64:
    """Documents of each one's cluster; 1 where it is not known."""
    return pc.fill_null(batch.column("cluster_size"), 1).to_numpy().astype(np.float64)


_PLACES = {"date": _days, "length": _tokens, "duplicates": _duplicates}


RUN = 13


@kernel
def _varieties(tokens: Uint32s, offsets: Int64s, run: Int) -> Float32s:
    """Distinct part of the runs of each document, by a hash table as large as it needs."""
    out = np.ones(len(offsets) - 1, np.float32)
    power = np.uint64(1)
    for _ in range(run - 1):
        power *= np.uint64(0x9E3779B97F4A7C15)
    for k in range(len(out)):
        first, last = offsets[k], offsets[k + 1]
        runs = last - first - run + 1
        if runs <= 0:
            continue
        rows = np.int64(4)
        while rows < 2 * runs:
            rows *= 2
        table = np.zeros(rows, np.uint64)
        distinct = 0
        rolling = np.uint64(0)
        for place in range(first, last):
            if place - first >= run:
                rolling -= (np.uint64(tokens[place - run]) + np.uint64(1)) * power
            rolling = rolling * np.uint64(0x9E3779B97F4A7C15)
            rolling += np.uint64(tokens[place]) + np.uint64(1)
            if place - first < run - 1:
                continue
            key = scramble(rolling) | np.uint64(1)
            row = slot_of(table, key, scramble(key), np.uint64(0))
            if table[row] == 0:
                table[row] = key
                distinct += 1
        out[k] = distinct / runs
    return out


def varieties(tokens: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """Return the distinct part of every document's runs of tokens: float32 [documents], 0 to 1.

    Tokens of document i are `tokens[offsets[i]:offsets[i + 1]]`. A document without a run has 1.
    """
    return pa.array(_varieties(tokens, offsets, RUN).round(4))
