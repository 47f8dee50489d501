"""Two runs side by side: documents that ended differently."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.reading.ledger import Groups, Ledger
from pipelines.reading.search import KEPT
from pipelines.reading.sums import spans

_SHOWN = 200


class Comparison:
    """How documents of two runs ended, matched by id; of several with one id, the first.

    Both runs' keys are in order, so that they are matched part by part, in little memory.
    """

    def __init__(self, ours: Ledger, theirs: Ledger) -> None:
        self.ours, self.theirs = ours, theirs
        a, b = _fates(ours), _fates(theirs)
        self.names = sorted({*a, *b})
        number = {name: i for i, name in enumerate(self.names)}
        size = len(self.names)
        left = np.array([number[n] * size for n in a], np.int64)
        right = np.array([number[n] for n in b], np.int64)
        differs = ~np.eye(size, dtype=bool).ravel()
        self._counts = np.zeros(size * size, np.int64)
        self._characters = np.zeros(size * size)
        self._examples: dict[int, list[int]] = {}
        for here, there in _matched(ours.by_key, theirs.by_key):
            pairs = left[ours.fates_by_key[here]] + right[theirs.fates_by_key[there]]
            self._counts += np.bincount(pairs, minlength=size * size)
            differ = np.flatnonzero(differs[pairs])
            if len(differ):
                self._show(ours.by_key.rows[here][differ], pairs[differ])
        matched = int(self._counts.sum())
        self.only_ours, self.only_theirs = (
            _distinct(run.by_key.keys) - matched for run in (ours, theirs)
        )

    def _show(self, rows: npt.NDArray[Any], pairs: npt.NDArray[np.int64]) -> None:
        """Add up pairs of outcomes that differ, and remember some rows of each."""
        characters = self.ours.numbers["characters"][rows]
        self._characters += np.bincount(pairs, characters, len(self._characters))
        for pair in np.unique(pairs).tolist():
            shown = self._examples.setdefault(pair, [])
            if len(shown) < _SHOWN:
                shown += rows[pairs == pair][: _SHOWN - len(shown)].tolist()

    def flips(self) -> list[dict[str, Any]]:
        """Return differing pairs of outcomes with documents and characters, largest first."""
        size = len(self.names)
        found = [
            {
                "was": self.names[pair // size],
                "now": self.names[pair % size],
                "documents": int(self._counts[pair]),
                "characters": int(self._characters[pair]),
            }
            for pair in self._examples
        ]
        return sorted(found, key=lambda f: (-f["documents"], f["was"], f["now"]))

    @property
    def same(self) -> int:
        """Documents that ended alike."""
        return int(np.trace(self._counts.reshape(len(self.names), -1)))

    def rows(self, was: str, now: str) -> list[int]:
        """Return rows of our ledger of some documents that ended so in our run, and so in the
        other."""
        if was not in self.names or now not in self.names:
            return []
        pair = self.names.index(was) * len(self.names) + self.names.index(now)
        return self._examples.get(pair, [])


def _fates(ledger: Ledger) -> list[str]:
    return [
        KEPT if fate.reason is None else f"{fate.stage}: {fate.reason}" for fate in ledger.fates
    ]


_Places = slice | npt.NDArray[np.int64]


def _matched(ours: Groups, theirs: Groups) -> Iterator[tuple[_Places, _Places]]:
    """Yield places of ours and theirs that have the same key, each key once, part by part."""
    same = np.array_equal(ours.keys, theirs.keys)  # two runs of one input
    if same and _distinct(ours.keys) == len(ours.keys):
        yield from ((part, part) for part in spans(len(ours.keys)))
        return
    for part in spans(len(ours.keys)):
        keys = ours.keys[part]
        first = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        first[0] = part.start == 0 or ours.keys[part.start - 1] != keys[0]
        low, high = (
            np.searchsorted(theirs.keys, keys[0]),
            np.searchsorted(theirs.keys, keys[-1], "right"),
        )
        others = theirs.keys[low:high]
        if not len(others):
            continue
        places = np.flatnonzero(first)
        at = np.searchsorted(others, keys[places])
        at[at == len(others)] = 0  # which is another key
        shared = others[at] == keys[places]
        yield part.start + places[shared], low + at[shared]


def _distinct(keys: npt.NDArray[np.uint64]) -> int:
    return int((keys[1:] != keys[:-1]).sum()) + bool(len(keys))
