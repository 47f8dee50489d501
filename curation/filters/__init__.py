"""Heuristic filters: measurements of texts, and rules as thresholds over them.

`judge` measures and judges a table by a recipe. `Filter` does what a recipe says to a batch of
documents: block lists, line edits, signals, rules, personal data. `measure` and `RuleBook` are its
parts for those who need one alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.filters.apply import NO_LANGUAGE, Filter, FilterResult, judge, load_filter
    from curation.filters.filter_settings import FilterSettings
    from curation.filters.rules import RuleBook
    from curation.filters.signals import Meter, measure

__all__ = [
    "NO_LANGUAGE",
    "Filter",
    "FilterResult",
    "FilterSettings",
    "Meter",
    "RuleBook",
    "judge",
    "load_filter",
    "measure",
]

_MODULES = {
    "apply": ("NO_LANGUAGE", "Filter", "FilterResult", "judge", "load_filter"),
    "rules": ("RuleBook",),
    "filter_settings": ("FilterSettings",),
    "signals": ("Meter", "measure"),
}
lazily(__name__, _MODULES)
