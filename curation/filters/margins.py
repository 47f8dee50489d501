"""What moving one threshold of the filter changes, from the signals alone.

A rule decides alone over the documents that no other rule removes and that it could remove itself.
These, sorted by its signal, tell for every threshold who is kept, exactly as `redecide` would.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.filter_settings import FilterSettings, Rule, Rules
from curation.filters.lists import closest
from curation.filters.rules import RuleBook

#: Families of reasons that come before the rules and do not depend on them.
_BEFORE = ("blocklist.", "error.", "crash.", "memory.")
_PRIVATE = "pii."


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


def _blocked(recorded: pa.Array) -> pa.Array:
    blocked = pa.array(np.zeros(len(recorded), bool))
    for family in _BEFORE:
        blocked = pc.or_(blocked, pc.fill_null(pc.starts_with(recorded, family), False))
    return blocked


Side = Literal["min", "max"]
Bits = npt.NDArray[np.bool_]


class Limit(NamedTuple):
    """One end of a rule: documents whose signal is below `min`, or above `max`, fail it."""

    where: str  # "rules", or "by_language.de" for a language's own
    family: str
    name: str
    side: Side
    signal: str
    threshold: float

    @property
    def reason(self) -> str:
        return f"{self.family}.{self.name}"

    @property
    def language(self) -> str | None:
        """The language that it is of alone; None: of all without one of their own."""
        return self.where.partition(".")[2] or None

    @property
    def key(self) -> str:
        """The setting that holds the threshold: `filter.rules.gopher.word_count.min`."""
        return f"filter.{self.where}.{self.family}.{self.name}.{self.side}"


def limits_of(settings: FilterSettings) -> list[Limit]:
    """Every threshold of the settings, in the order of the rules."""
    return [
        Limit(where, family, name, side, rule.signal, end)
        for where, family, name, rule in settings.each_rule()
        for side, end in _ends(rule)
    ]


def _ends(rule: Rule) -> list[tuple[Side, float]]:
    ends: list[tuple[Side, float | None]] = [("min", rule.min), ("max", rule.max)]
    return [(side, end) for side, end in ends if end is not None]


def only(settings: FilterSettings, limit: Limit, threshold: float | None = None) -> RuleBook:
    """The rules with a single one left, and of it a single end, at another threshold.

    Exemptions, overruling and the languages that have rules of their own stay as they are.
    """
    rules: Rules = {}
    own: dict[str, Rules] = {}
    end = limit.threshold if threshold is None else threshold
    if limit.language is None:
        rules = {limit.family: {limit.name: _one_end(settings.rules, limit, end)}}
        own = {
            language: {limit.family: {limit.name: None}}
            for language, changes in settings.by_language.items()
            if _replaces(changes, limit)
        }
    else:
        language = limit.language
        rule = _one_end(settings.by_language[language], limit, end)
        own = {language: {limit.family: {limit.name: rule}}}
        rules = _measured_by_code(settings.rules, limit.signal)
    # `zh-Hant` with rules of its own doesn't have those of `zh`, and here it would.
    variants: dict[str, Rules] = {n: {} for n in settings.by_language if closest(n, own)}
    changes = {"rules": rules, "by_language": variants | own}
    return RuleBook(settings.model_copy(update=changes))


def _measured_by_code(rules: Rules, signal: str) -> Rules:
    """The rule that makes a signal of the user's own, without limits: it names the signal."""
    return {
        family: {name: rule.model_copy(update={"min": None, "max": None})}
        for family, members in rules.items()
        for name, rule in (members or {}).items()
        if rule is not None and rule.python is not None and rule.signal == signal
    }


def _judges(limit: Limit, known: str | None, by_language: Mapping[str, Rules]) -> bool:
    """Whether a limit is for documents whose language has the rules of `known`."""
    if limit.language is not None:
        return limit.language == known
    return known is None or not _replaces(by_language[known], limit)


def _replaces(changes: Rules, limit: Limit) -> bool:
    if limit.family not in changes:
        return False
    members = changes[limit.family]
    return members is None or limit.name in members


def _one_end(rules: Rules, limit: Limit, end: float) -> Rule:
    rule = (rules[limit.family] or {})[limit.name]
    assert rule is not None  # `limits_of` names rules that are switched on
    return rule.model_copy(update={"min": None, "max": None, limit.side: end})


class Judges:
    """Every limit of some settings, each as rules of its own."""

    def __init__(self, settings: FilterSettings) -> None:
        self._settings = settings
        self.limits = limits_of(settings)

    @functools.cached_property
    def _as_run(self) -> list[RuleBook]:
        return [only(self._settings, limit) for limit in self.limits]

    @functools.cached_property
    def _at_the_end(self) -> list[RuleBook]:
        ends = {"min": np.inf, "max": -np.inf}
        return [only(self._settings, limit, ends[limit.side]) for limit in self.limits]

    def languages(self, present: Iterable[str]) -> list[list[str]]:
        """For each limit, those of the languages present that it judges; "" is an unknown one."""
        by_language = self._settings.by_language
        own = {name: closest(name or None, by_language) for name in sorted(present)}
        return [
            [name for name, known in own.items() if _judges(limit, known, by_language)]
            for limit in self.limits
        ]

    def signals(self, limit: int | None = None) -> list[str]:
        """Signals that a limit reads, or all of them."""
        books = self._as_run if limit is None else [self._as_run[limit]]
        return list(dict.fromkeys(name for book in books for name in book.signals))

    def fails(
        self, limit: int, signals: pa.StructArray, languages: pa.Array | None
    ) -> tuple[Bits, Bits]:
        """Documents that fail a limit, and those that would at some threshold -> [documents]."""
        return (
            self._as_run[limit].removes(signals, languages),
            self._at_the_end[limit].removes(signals, languages),
        )


def fixed(recorded: pa.Array) -> Bits:
    """Documents that were removed by what no threshold changes -> [documents]."""
    private = pc.fill_null(pc.starts_with(recorded, _PRIVATE), False)
    return pc.or_(_blocked(recorded), private).to_numpy(zero_copy_only=False)


class Change(NamedTuple):
    """What a threshold changes against the run: numbers of documents, sums of their weights."""

    gained: int
    lost: int
    gained_weight: int
    lost_weight: int


@dataclass(frozen=True)
class Margin:
    """The documents over which a limit decides alone.

    All arrays have one entry per document.
    """

    side: Side
    values: npt.NDArray[np.float64]  # of the limit's signal, never NaN
    rows: npt.NDArray[np.int64]
    kept: Bits  # in the run
    weights: npt.NDArray[np.int64]

    def passes(self, threshold: float) -> Bits:
        """The documents that this threshold keeps -> [documents]."""
        return self.values >= threshold if self.side == "min" else self.values <= threshold

    def change(self, threshold: float) -> Change:
        """What this threshold would change."""
        passes = self.passes(threshold)
        gained, lost = passes & ~self.kept, ~passes & self.kept
        return Change(
            int(gained.sum()),
            int(lost.sum()),
            int(self.weights[gained].sum()),
            int(self.weights[lost].sum()),
        )

    def flipped(self, threshold: float) -> npt.NDArray[np.int64]:
        """Rows of the documents that it would gain or lose."""
        return self.rows[self.passes(threshold) != self.kept]

    def nearest(self, threshold: float, most: int) -> tuple[list[int], list[int]]:
        """Rows of the documents just below and just above, each the nearest first.

        One with exactly this value is on the side that it passes on.
        """
        below = ~self.passes(threshold) if self.side == "min" else self.passes(threshold)
        return self._closest(below, threshold, most), self._closest(~below, threshold, most)

    def _closest(self, among: Bits, threshold: float, most: int) -> list[int]:
        places = np.flatnonzero(among)
        far = np.abs(self.values[places] - threshold)
        if len(places) > most:
            few = np.flatnonzero(far <= np.partition(far, most)[most])
            places, far = places[few], far[few]
        found: list[int] = self.rows[places[np.lexsort((self.rows[places], far))]][:most].tolist()
        return found
