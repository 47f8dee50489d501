"""Two runs side by side: documents that ended differently."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.view.ledger import Groups, Ledger
from pipelines.view.masks import KEPT

_SHOWN = 200


class Comparison:
    """Documents of two runs, matched by id; of several with one id, the first."""

    def __init__(self, ours: Ledger, theirs: Ledger) -> None:
        self.ours, self.theirs = ours, theirs
        (keys, rows), (others, places) = _firsts(ours.by_key), _firsts(theirs.by_key)
        at = np.searchsorted(others, keys)
        shared = at < len(others)
        shared[shared] = others[at[shared]] == keys[shared]
        self._rows, self._other = rows[shared], places[at[shared]]
        self.only_ours = len(keys) - len(self._rows)
        self.only_theirs = len(others) - len(self._rows)
        a, b = _fates(ours), _fates(theirs)
        self.names = sorted({*a, *b})
        number = {name: i for i, name in enumerate(self.names)}
        size = len(self.names)
        kind = np.min_scalar_type(size * size)  # ten million pairs fit in 20 MB
        left = np.array([number[n] * size for n in a], kind)[ours.numbers["fate"][self._rows]]
        right = np.array([number[n] for n in b], kind)[theirs.numbers["fate"][self._other]]
        self._pairs = left + right

    def flips(self) -> list[dict[str, Any]]:
        """Return differing pairs of outcomes with documents and characters, largest first."""
        size = len(self.names)
        counts = np.bincount(self._pairs, minlength=size * size)
        characters = np.bincount(
            self._pairs, self.ours.numbers["characters"][self._rows], minlength=size * size
        )
        found = [
            {
                "was": self.names[pair // size],
                "now": self.names[pair % size],
                "documents": int(counts[pair]),
                "characters": int(characters[pair]),
            }
            for pair in np.flatnonzero(counts)
            if pair // size != pair % size
        ]
        return sorted(found, key=lambda f: (-f["documents"], f["was"], f["now"]))

    @property
    def same(self) -> int:
        """Documents that ended alike."""
        size = len(self.names)
        return int((self._pairs // size == self._pairs % size).sum())

    def rows(self, was: str, now: str) -> list[int]:
        """Rows of our ledger of some documents that ended so in our run, and so in the other."""
        if was not in self.names or now not in self.names:
            return []
        pair = self.names.index(was) * len(self.names) + self.names.index(now)
        return self._rows[self._pairs == pair][:_SHOWN].tolist()


def changed_settings(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[list[Any]]:
    """Return [key, value in our recipe, value in theirs] of the settings that differ."""
    a, b = _flat(ours), _flat(theirs)
    keys = sorted(k for k in {*a, *b} if a.get(k) != b.get(k))
    return [[key, a.get(key), b.get(key)] for key in keys[:_SHOWN]]


def _flat(recipe: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in recipe.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + str(name)] = json.dumps(value, ensure_ascii=False, default=str)
    return found


def _fates(ledger: Ledger) -> list[str]:
    return [
        KEPT if fate.reason is None else f"{fate.stage}: {fate.reason}" for fate in ledger.fates
    ]


def _firsts(groups: Groups) -> tuple[npt.NDArray[np.uint64], npt.NDArray[Any]]:
    """Return the keys in order, each once, and the first row of each."""
    first = np.ones(len(groups.keys), bool)
    np.not_equal(groups.keys[1:], groups.keys[:-1], out=first[1:])
    return groups.keys[first], groups.rows[first]
