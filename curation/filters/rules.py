"""Rules: thresholds over signals, as the recipe lists them; the first to fail is the reason."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.filter_settings import Exemption, FilterSettings, Rule, Rules
from curation.filters.lists import closest
from curation.filters.names import NAMES
from curation.schema import Verdicts

_NO_RULE = -1


class NamedRule(NamedTuple):
    family: str
    reason: str  # stable id, `family.name`
    rule: Rule


def flatten(rules: Mapping[str, Any]) -> list[NamedRule]:
    """Rules that are switched on, in the order of the recipe."""
    return [
        NamedRule(family, f"{family}.{name}", rule)
        for family, members in rules.items()
        if members is not None
        for name, rule in members.items()
        if rule is not None
    ]


def overlay(rules: Rules, changes: Rules) -> Rules:
    """Rules with a language's changes: null switches a family or a rule off, others replace."""
    out: Rules = {k: dict(v) if v is not None else None for k, v in rules.items()}
    for family, members in changes.items():
        held = out.get(family)
        out[family] = None if members is None else {**(held or {}), **members}
    return out


class Judgement(NamedTuple):
    """What rules decided on each document of a batch."""

    verdicts: Verdicts
    overruled: pa.Array  # string: first rule that the document failed and its quality overruled


class _Decided(NamedTuple):
    """Arrays have one entry per document; rules are numbers of `catalogue`, or _NO_RULE."""

    reasons: npt.NDArray[np.int64]  # the first rule that the document fails
    found: npt.NDArray[np.float64]  # the value that failed it
    limits: npt.NDArray[np.float64]  # the threshold that was crossed
    passed: npt.NDArray[np.int64]  # the first rule that its quality overruled
    catalogue: dict[str, int]


class RuleBook:
    """The rules of every language."""

    def __init__(self, settings: FilterSettings) -> None:
        self._default = flatten(settings.rules)
        self._by_language = {
            language: flatten(overlay(settings.rules, changes))
            for language, changes in settings.by_language.items()
        }
        self._exempt = settings.exemptions
        self._overrule = settings.overrule
        self._meant_for = {*settings.default_languages, *settings.by_language}
        self.signals = self._signals([*NAMES, *settings.custom_signals])

    def _signals(self, names: Iterable[str]) -> list[str]:
        """Return the signals that the rules read, in the order of these names."""
        rules = [*self._default, *(r for rules in self._by_language.values() for r in rules)]
        read = {r.rule.signal for r in rules}
        read |= {name for e in self._exempt.values() for name in (e.signal, *e.unless)}
        read |= {"quality"} if self._overrule is not None else set()
        return [name for name in names if name in read]

    def of(self, language: str | None) -> list[NamedRule]:
        """Return the rules for a language; those of its base language, else the default ones."""
        known = closest(language, self._by_language)
        return self._default if known is None else self._by_language[known]

    def without_settings(self, languages: Iterable[str | None]) -> list[str | None]:
        """Languages that the default rules were not meant for, and that have none of their own."""
        foreign = {label for label in languages if closest(label, self._meant_for) is None}
        return sorted(foreign, key=str)

    def decide(self, signals: pa.StructArray, languages: pa.Array | None) -> Verdicts:
        """Return the verdicts of `judge`."""
        return self.judge(signals, languages).verdicts

    def judge(self, signals: pa.StructArray, languages: pa.Array | None) -> Judgement:
        """Find the first rule that each document fails, in the recipe's order.

        `signals` has the fields that `self.signals` names. A signal that is NaN could not be
        measured and fails no rule.
        """
        reasons, found, limits, passed, catalogue = self._decided(signals, languages)
        kept = reasons == _NO_RULE
        names = np.array([*catalogue, ""], object)
        verdicts = Verdicts(
            pa.array(names[reasons], pa.string(), mask=kept),
            pa.array(found, pa.float64(), mask=kept),
            pa.array(limits, pa.float64(), mask=kept),
        )
        overruled = kept & (passed != _NO_RULE)
        return Judgement(verdicts, pa.array(names[passed], pa.string(), mask=~overruled))

    def removes(self, signals: pa.StructArray, languages: pa.Array | None) -> npt.NDArray[np.bool_]:
        """Return which documents `judge` removes -> [documents]."""
        return self._decided(signals, languages).reasons != _NO_RULE

    def _decided(self, signals: pa.StructArray, languages: pa.Array | None) -> _Decided:
        rows = len(signals)
        values = {name: signals.field(name).to_numpy(zero_copy_only=False) for name in self.signals}
        reasons = np.full(rows, _NO_RULE, np.int64)
        found = np.full(rows, np.nan)
        limits = np.full(rows, np.nan)
        exempt = _exempt_rows(self._exempt, values, rows)
        passed = np.full(rows, _NO_RULE, np.int64)
        catalogue: dict[str, int] = {}
        for members, mine in self._groups(languages, rows):
            for rule in members:
                fails, limit = _fails(rule.rule, values[rule.rule.signal])
                fails &= mine & (reasons == _NO_RULE)
                for passed_over, of_kind in exempt:
                    if rule.family in passed_over or rule.reason in passed_over:
                        fails &= ~of_kind
                number = catalogue.setdefault(rule.reason, len(catalogue))
                if self._can_be_overruled(rule):
                    good = fails & (values["quality"] >= self._overrule.quality)  # type: ignore[union-attr]
                    passed[good & (passed == _NO_RULE)] = number
                    fails &= ~good
                reasons[fails] = number
                found[fails] = values[rule.rule.signal][fails]
                limits[fails] = limit[fails]
        return _Decided(reasons, found, limits, passed, catalogue)

    def _can_be_overruled(self, rule: NamedRule) -> bool:
        held = self._overrule
        return held is not None and (rule.family in held.rules or rule.reason in held.rules)

    def _groups(
        self, languages: pa.Array | None, rows: int
    ) -> list[tuple[list[NamedRule], npt.NDArray[np.bool_]]]:
        """Rule sets with the documents that they judge."""
        if languages is None or not self._by_language:
            return [(self._default, np.ones(rows, bool))]
        labels = pc.unique(languages).to_pylist()
        groups: list[tuple[list[NamedRule], npt.NDArray[np.bool_]]] = []
        rest = np.ones(rows, bool)
        for label in sorted(labels, key=str):
            if label is not None and closest(label, self._by_language) is not None:
                found = pc.is_in(languages, pa.array([label], pa.string()))
                mine = found.to_numpy(zero_copy_only=False)
                groups.append((self.of(label), mine))
                rest &= ~mine
        return [*groups, (self._default, rest)]


def _fails(
    rule: Rule, values: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Return where the rule fires, and the threshold that was crossed."""
    low = values < rule.min if rule.min is not None else np.zeros(len(values), bool)
    high = values > rule.max if rule.max is not None else np.zeros(len(values), bool)
    floor = np.nan if rule.min is None else rule.min
    ceiling = np.nan if rule.max is None else rule.max
    return low | high, np.where(low, floor, ceiling)


def _exempt_rows(
    exempt: Mapping[str, Exemption], values: Mapping[str, npt.NDArray[np.float64]], rows: int
) -> list[tuple[set[str], npt.NDArray[np.bool_]]]:
    """For each kind of document: the rules that pass over it, and which documents are of it."""
    kinds = []
    for held in exempt.values():
        of_kind = values[held.signal] >= held.min
        for name, limit in held.unless.items():
            of_kind &= ~(values[name] > limit)  # what could not be measured (NaN) speaks for none
        kinds.append((set(held.rules), of_kind))
    return kinds
