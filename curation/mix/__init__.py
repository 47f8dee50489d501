"""Draw documents so that domains have exact shares of a token budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.mix.columns import NARROW
    from curation.mix.draw import Draw, draw
    from curation.mix.mix_settings import DomainMix, MixSettings, Mixture, SourceMix
    from curation.mix.mix_table import advice, align, plan_table
    from curation.mix.plan import Cell, MixPlan, Shortage, merge_stats, plan, stats
    from curation.mix.thresholds import (
        Crossing,
        candidates,
        crossing,
        histogram,
        plan_tables,
        settle,
    )

__all__ = [
    "NARROW",
    "Cell",
    "Crossing",
    "DomainMix",
    "Draw",
    "MixPlan",
    "MixSettings",
    "Mixture",
    "Shortage",
    "SourceMix",
    "advice",
    "align",
    "candidates",
    "crossing",
    "draw",
    "histogram",
    "merge_stats",
    "plan",
    "plan_table",
    "plan_tables",
    "settle",
    "stats",
]

_MODULES = {
    "columns": ("NARROW",),
    "draw": ("Draw", "draw"),
    "plan": ("Cell", "MixPlan", "Shortage", "merge_stats", "plan", "stats"),
    "mix_settings": ("DomainMix", "MixSettings", "Mixture", "SourceMix"),
    "mix_table": ("advice", "align", "plan_table"),
    "thresholds": (*("Crossing", "candidates", "crossing", "histogram", "plan_tables", "settle"),),
}
lazily(__name__, _MODULES)
