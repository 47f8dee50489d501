"""Estimate a run's remaining time from its progress so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

#: Seconds of work, and share of the whole, before which a guess is worth nothing.
_LEAST_SECONDS, _LEAST_SHARE = 5.0, 0.01


class Pace:
    """Work done and left, in documents times what a document costs in each stage.

    What an earlier run completed counts as no work, be it a stage or a part of one. Of stages to
    come, as many documents are expected as those before them keep.
    """

    def __init__(self, costs: Mapping[str, float], clock: Callable[[], float] = time.monotonic):
        self._costs, self._clock = dict(costs), clock
        self._documents: dict[str, int] = {}  # that a stage reads, where known
        self._done: dict[str, float] = {}  # share of a stage
        self._before: dict[str, float] = {}  # the part of it that an earlier run did
        self._resumed: set[str] = set()
        self._seconds, self._since = 0.0, 0.0
        self._current = ""

    def begin(self, stage: str) -> None:
        """A stage begins."""
        self._current, self._since = stage, self._clock()
        self._done[stage] = self._before.get(stage, 0.0)

    def resume(self, stage: str, share: float) -> None:
        """A share of the stage was done when it began."""
        if not self._done.get(stage):
            self._before[stage] = self._done[stage] = share

    def step(self, stage: str, share: float) -> None:
        """A share of the stage is done, as far as is known."""
        self._done[stage] = max(self._done.get(stage, 0.0), min(share, 1.0))

    def end(self, stage: str, documents: int, kept: int, resumed: bool) -> None:
        """A stage ends."""
        if resumed:
            self._resumed.add(stage)
        else:
            self._seconds += self._clock() - self._since
        self._current, self._done[stage] = "", 1.0
        self._documents[stage] = documents
        names = list(self._costs)
        after = names[names.index(stage) + 1 :] if stage in names else []
        for name in after:
            self._documents[name] = kept

    def remaining(self) -> float | None:
        """Return the seconds left for the whole run; None if there is no estimate yet."""
        done = whole = 0.0
        for stage, cost in self._costs.items():
            if stage not in self._resumed:
                work = cost * self._documents.get(stage, 1)
                before = self._before.get(stage, 0.0)
                whole += work * (1 - before)
                done += work * (self._done.get(stage, 0.0) - before)
        spent = self._seconds + (self._clock() - self._since if self._current else 0.0)
        if not whole or done < _LEAST_SHARE * whole or spent < _LEAST_SECONDS:
            return None
        return spent * (whole - done) / done


def duration(seconds: float) -> str:
    """Format seconds as `40 s`, `3 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
