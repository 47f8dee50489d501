"""Phases of training: which shares a mix has when, and where a copy's place in training is.

Training goes from 0 to 1 in tokens. Phases of one seed and one curve go on where those before them
ended: no document comes again before all others of its rate were there.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.mix.mix_settings import Mixture

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]
_STEPS = 53  # bits of a place in training that a float64 can tell


class Span(NamedTuple):
    """A phase with all that it leaves out filled in."""

    name: str
    start: float  # part of training
    end: float
    first: dict[str, float]  # shares by domain at its start
    last: dict[str, float]  # shares at its end, reached along a straight line
    stream: int  # place of its draws in `streams`

    def share(self, domain: str) -> float:
        """Return the domain's share of the whole phase."""
        return (self.first[domain] + self.last[domain]) / 2

    @property
    def low(self) -> int:
        """The first uint64 place of the phase."""
        return place_key(self.start)

    @property
    def high(self) -> int:
        """The last uint64 place of the phase."""
        return place_key(self.end) - 1


def place_key(part: float) -> int:
    """Return the uint64 key of a part of training; 2^64 for its end."""
    return int(part * (1 << _STEPS)) << (64 - _STEPS)


def streams(settings: Mixture) -> list[Mixture]:
    """Return mixtures by whose seed and curves documents are drawn: the mix's own, then others."""
    found = [settings.model_copy(update={"phases": []})]
    for phase in settings.phases:
        changes: dict[str, Any] = {} if phase.seed is None else {"seed": phase.seed}
        if phase.repeats is not None:
            plain = {"repeats": None}
            domains = {d: m.model_copy(update=plain) for d, m in settings.domains.items()}
            changes |= {"repeats": phase.repeats, "domains": domains}
        stream = found[0].model_copy(update=changes)
        if stream not in found:
            found.append(stream)
    return found


def spans(settings: Mixture) -> list[Span]:
    """Return all phases in order; a mix without any is a single one."""
    before = {domain: mix.share for domain, mix in settings.domains.items()}
    if not settings.phases:
        return [Span("", 0.0, 1.0, before, before, 0)]
    drawn, found = streams(settings), []
    whole = settings.phases[-1].end
    start, own = 0.0, before
    for k, phase in enumerate(settings.phases):
        shares = {domain: phase.shares.get(domain, 0.0) for domain in own} if phase.shares else own
        only = settings.model_copy(update={"phases": [phase]})
        stream = drawn.index(streams(only)[-1])
        end, first = phase.end / whole, before if phase.change == "linear" else shares
        found.append(Span(phase.name or f"phase {k + 1}", start, end, first, shares, stream))
        start, before = end, shares
    return found


def shares(settings: Mixture) -> dict[str, float]:
    """Return every domain's share of the whole budget."""
    every = spans(settings)
    return {d: sum((s.end - s.start) * s.share(d) for s in every) for d in settings.domains}


def places(u: F64, low_bits: U64, first: F64, last: F64, span: Span) -> U64:
    """Return the place in training of copies, as uint64 keys.

    Args:
        u: uniform in (0, 1), one per copy.
        low_bits: further random bits, for places that a float64 can't tell apart.
        first: share of the copy's domain at the start of the phase.
        last: the same at its end.
        span: the phase.
    """
    # Copies of a domain are as dense as its share: the integral of a straight line, solved for u.
    slope = last - first
    even = slope == 0
    root = np.sqrt(first * first + (last * last - first * first) * u)
    part = np.where(even, u, (root - first) / np.where(even, 1, slope))
    steps = (span.start + (span.end - span.start) * part) * (1 << _STEPS)
    inside = np.clip(steps, span.low >> 11, span.high >> 11).astype(np.uint64)
    return inside << np.uint64(64 - _STEPS) | low_bits >> np.uint64(_STEPS)
