"""Masks of a run's documents by filters: stage, rule and every dimension."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np

from curation.errors import ConfigError
from curation.filters.margins import Bits
from pipelines.reading.ledger import DIMENSIONS, Ledger

#: Value of filter `stage` for documents that no stage removed.
KEPT = "kept"
FATE = ("stage", "rule")
#: Masks that stay in memory.
_MASKS = 8


class Masks:
    """Masks over a ledger by filters: `{"stage": "filter", "language": "de"}`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._held: OrderedDict[str, Bits] = OrderedDict()

    def of(self, filters: Mapping[str, str]) -> Bits | None:
        """Documents that pass all filters -> [documents]; None: no filter, so all of them.

        Raises ConfigError for a filter that there is not.
        """
        if not filters:
            return None
        key = self.key(filters)
        if key not in self._held:
            self._held[key] = self._made(filters)
            while len(self._held) > _MASKS:
                self._held.popitem(last=False)
        return self._held[key]

    @staticmethod
    def key(filters: Mapping[str, str]) -> str:
        """One spelling for equal filters."""
        return "\n".join(f"{name}={value}" for name, value in sorted(filters.items()))

    def _made(self, filters: Mapping[str, str]) -> Bits:
        mask = np.ones(len(self._ledger), bool)
        if any(name in FATE for name in filters):
            wanted = [self._fits(fate, filters) for fate in self._ledger.fates]
            mask &= np.array(wanted, bool)[self._ledger.numbers["fate"]]
        for name, value in filters.items():
            if name in DIMENSIONS:
                names = self._ledger.values[name]
                code = names.index(value) if value in names else -1
                mask &= self._ledger.codes[name] == code
            elif name not in FATE:
                raise ConfigError(f"no filter {name!r}")
        return mask

    def _fits(self, fate: tuple[str, str | None], filters: Mapping[str, str]) -> bool:
        stage, reason = fate
        stage = KEPT if reason is None else stage
        return filters.get("stage", stage) == stage and filters.get("rule", reason) == reason
