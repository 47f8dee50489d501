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
_MIX = np.uint64(0x9E3779B97F4A7C15)


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
    #: (rank, place) of documents to show; the smallest ranks of all, a draw that is always the same
    samples: list[tuple[int, int]] = field(default_factory=list)


class WhatIf:
    """Tallies of one set of rules against the reasons that a run recorded."""

    def __init__(self, rules: RuleBook, samples: int = 0) -> None:
        self._rules, self._samples = rules, samples
        self.documents = 0
        self.kept = 0
        self.characters = 0
        self.words = 0
        self.removed: Counter[str] = Counter()
        self.flips: dict[tuple[str, str], Flips] = {}

    @property
    def signals(self) -> list[str]:
        """Signals that `add` needs."""
        return list(dict.fromkeys([*self._rules.signals, *SIZES]))

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
        self.documents += len(reasons)
        self.kept += int(stays.sum())
        characters, words = (signals.field(n).to_numpy(zero_copy_only=False) for n in SIZES)
        self.characters += int(characters[stays].sum())
        self.words += int(words[stays].sum())
        for held in pc.value_counts(reasons.drop_null()):
            self.removed[held["values"].as_py()] += held["counts"].as_py()
        self._add_flips(recorded, reasons, first)

    def _add_flips(self, recorded: pa.Array, reasons: pa.Array, first: int) -> None:
        before, after = (pc.fill_null(r, _KEPT) for r in (recorded, reasons))
        rows = np.flatnonzero(pc.not_equal(before, after).to_numpy(zero_copy_only=False))
        if not len(rows):
            return
        taken = pa.array(rows)
        pairs = pc.dictionary_encode(
            pc.binary_join_element_wise(before.take(taken), after.take(taken), "\0")
        )
        codes = pairs.indices.to_numpy(zero_copy_only=False)
        ranks = _ranks(rows + first)
        order = np.argsort(ranks, kind="stable")
        for code, pair in enumerate(pairs.dictionary.to_pylist()):
            was, _, now = pair.partition("\0")
            held = self.flips.setdefault((was, now), Flips())
            mine = order[codes[order] == code]
            held.documents += len(mine)
            drawn = [(int(ranks[i]), int(rows[i]) + first) for i in mine[: self._samples]]
            held.samples = sorted([*held.samples, *drawn])[: self._samples]

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


def _ranks(places: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """A fixed shuffle of document numbers."""
    h = (places.astype(np.uint64) + np.uint64(1)) * _MIX
    h = (h ^ (h >> np.uint64(29))) * _MIX
    return h ^ (h >> np.uint64(32))
