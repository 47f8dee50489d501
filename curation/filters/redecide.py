"""Other thresholds on measured documents: who would stay, who would go, without any text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.rules import RuleBook

#: Signals that every tally needs: the length of the text.
SIZES = ("c4_characters", "gopher_word_count")
#: Families of reasons that come before the rules and do not depend on them.
_BEFORE = ("blocklist.", "error.", "crash.", "memory.")
_PRIVATE = "pii."
_KEPT = "kept"


def redecide(
    rules: RuleBook, signals: pa.StructArray, languages: pa.Array | None, recorded: pa.Array
) -> pa.Array:
    """Reasons (string, null: kept) under `rules` of documents removed for the reasons `recorded`.

    Block lists judge before the rules and personal data after them, both by the text, so their
    verdicts stand where the rules leave them. What was set aside has no signals.
    """
    fresh = rules.decide(signals, languages).reason
    private = pc.fill_null(pc.starts_with(recorded, _PRIVATE), False)
    stands = pc.or_(_blocked(recorded), pc.and_(private, pc.is_null(fresh)))
    return pc.if_else(stands, recorded, fresh)


def removed_under_any_rules(recorded: pa.Array) -> pa.Array:
    """Whether documents stay removed under any rules -> boolean [documents]."""
    private = pc.fill_null(pc.starts_with(recorded, _PRIVATE), False)
    return pc.or_(_blocked(recorded), private)


def _blocked(recorded: pa.Array) -> pa.Array:
    blocked = pa.array(np.zeros(len(recorded), bool))
    for family in _BEFORE:
        blocked = pc.or_(blocked, pc.fill_null(pc.starts_with(recorded, family), False))
    return blocked


@dataclass
class Flips:
    """Documents whose reason changed from `before` to `after` (`kept` among them)."""

    documents: int = 0
    #: (distance, place, value) of documents to show: those nearest to a threshold of the rule
    samples: list[tuple[float, int, float]] = field(default_factory=list)


class WhatIf:
    """Tallies of one set of rules against the reasons that a run recorded."""

    def __init__(self, rules: RuleBook, samples: int = 0) -> None:
        self._rules, self._samples = rules, samples
        self.characters = 0
        self.words = 0
        #: Documents by reason, `kept` among them, and language, "" for none.
        self.counts: Counter[tuple[str, str]] = Counter()
        self.flips: dict[tuple[str, str], Flips] = {}

    @property
    def signals(self) -> list[str]:
        """Signals that `add` needs."""
        return list(dict.fromkeys([*self._rules.signals, *SIZES]))

    @property
    def removed(self) -> Counter[str]:
        """Documents by the reason that removes them."""
        found: Counter[str] = Counter()
        for (reason, _), documents in self.counts.items():
            found[reason] += documents
        del found[_KEPT]
        return found

    @property
    def kept(self) -> int:
        """Documents that no rule removes."""
        return self.counts.total() - self.removed.total()

    def add(
        self,
        signals: pa.StructArray,
        languages: pa.Array | None,
        recorded: pa.Array,
        first: int,
    ) -> None:
        """Count a batch, whose first document has the number `first` among all of the run."""
        reasons = redecide(self._rules, signals, languages, recorded)
        stays = pc.is_null(reasons).to_numpy(zero_copy_only=False)
        characters, words = (signals.field(n).to_numpy(zero_copy_only=False) for n in SIZES)
        self.characters += int(characters[stays].sum())
        self.words += int(words[stays].sum())
        was, now = (pc.fill_null(column, _KEPT) for column in (recorded, reasons))
        of = pa.repeat("", len(now)) if languages is None else pc.fill_null(languages, "")
        for held in pc.value_counts(pc.binary_join_element_wise(now, of, "\0")).to_pylist():
            reason, _, language = held["values"].partition("\0")
            self.counts[reason, language] += held["counts"]
        changed = np.flatnonzero(pc.not_equal(was, now).to_numpy(zero_copy_only=False))
        named = (column.take(pa.array(changed)).to_pylist() for column in (was, now, of))
        flipped: dict[tuple[str, str, str], list[int]] = {}
        for row, key in zip(changed.tolist(), zip(*named, strict=True), strict=True):
            flipped.setdefault(key, []).append(row)
        for (before, after, language), rows in flipped.items():
            flips = self.flips.setdefault((before, after), Flips())
            flips.documents += len(rows)
            values, far = self._margin(before if after == _KEPT else after, language, signals, rows)
            nearest = np.argsort(far, kind="stable")[: self._samples]
            drawn = [(float(far[i]), rows[i] + first, float(values[i])) for i in nearest]
            flips.samples = sorted([*flips.samples, *drawn])[: self._samples]

    def _margin(
        self, reason: str, language: str, signals: pa.StructArray, rows: list[int]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return values of the rule's signal and their distance to its nearest threshold.

        Where the rule is off, values are NaN, and the distance is infinite.
        """
        named = (rule.rule for rule in self._rules.of(language or None) if rule.reason == reason)
        if (rule := next(named, None)) is None:
            return np.full(len(rows), np.nan), np.full(len(rows), np.inf)
        values = signals.field(rule.signal).to_numpy(zero_copy_only=False)[rows]
        ends = [end for end in (rule.min, rule.max) if end is not None]
        far = np.min([np.abs(values - end) for end in ends], axis=0)
        return values, np.nan_to_num(far, nan=np.inf)

    def gained(self) -> int:
        """Documents that were removed and would be kept."""
        return sum(f.documents for (_, now), f in self.flips.items() if now == _KEPT)

    def lost(self) -> int:
        """Documents that were kept and would be removed."""
        return sum(f.documents for (was, _), f in self.flips.items() if was == _KEPT)

    def ranked(self) -> Sequence[tuple[tuple[str, str], Flips]]:
        """Flips that change whether documents are kept, the most frequent first."""
        crossing = [(k, f) for k, f in self.flips.items() if _KEPT in k]
        return sorted(crossing, key=lambda item: (-item[1].documents, item[0]))
