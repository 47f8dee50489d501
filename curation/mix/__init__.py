"""Draw documents so that domains have exact shares of a token budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.mix.columns import NARROW
    from curation.mix.draw import Draw, draw
    from curation.mix.levels import plan_tables
    from curation.mix.mix_settings import DomainMix, MixSettings, Mixture, Repeats, SourceMix
    from curation.mix.mix_table import advice, align, lacking, plan_table
    from curation.mix.plan import Cell, MixPlan, Shortage, Supply, plan

__all__ = [
    "NARROW",
    "Cell",
    "DomainMix",
    "Draw",
    "MixPlan",
    "MixSettings",
    "Mixture",
    "Repeats",
    "Shortage",
    "SourceMix",
    "Supply",
    "advice",
    "align",
    "draw",
    "lacking",
    "plan",
    "plan_table",
    "plan_tables",
]

_MODULES = {
    "columns": ("NARROW",),
    "draw": ("Draw", "draw"),
    "levels": ("plan_tables",),
    "plan": ("Cell", "MixPlan", "Shortage", "Supply", "plan"),
    "mix_settings": ("DomainMix", "MixSettings", "Mixture", "Repeats", "SourceMix"),
    "mix_table": ("advice", "align", "lacking", "plan_table"),
}
lazily(__name__, _MODULES)
