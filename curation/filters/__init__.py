"""Heuristic filters: measurements of texts, and rules as thresholds over them.

`judge` measures and judges a table by a recipe. `Filter` does what a recipe says to a batch of
documents: block lists, line edits, signals, rules, personal data. `measure` and `RuleBook` are its
parts for those who need one alone.
"""

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.filters.apply import judge as judge

lazily(__name__, apply="judge")
