"""Decide each document of a shard by the plan alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.mix.columns import Rows, rows
from curation.mix.plan import MixPlan
from curation.mix.repeats import first_place
from curation.schema import Verdicts

OVER_BUDGET = "mix.over_budget"
TOPIC_DOWNSAMPLED = "mix.topic_downsampled"
FORMAT_DOWNSAMPLED = "mix.format_downsampled"
TOO_SHORT = "mix.too_short"
TOO_LONG = "mix.too_long"
NO_REPEATS = "mix.no_repeats"


@dataclass(frozen=True)
class Draw:
    """How often each document is drawn, and why not. Arrays have one entry per document."""

    repeats: npt.NDArray[np.int32]
    verdicts: Verdicts  # a reason exactly where repeats is 0


def draw(batch: pa.RecordBatch | pa.Table, mix: MixPlan) -> Draw:
    """Repeats and verdicts of rows of `NARROW`, from a plan whose levels are known.

    A document left out by its topic or format has its random value and the share of documents that
    may be drawn as value and threshold; one of a length that isn't wanted its tokens and the limit;
    one to which its curve gives no copies its place on the curve and the place where copies begin;
    one over the budget the level at which its first copy would come and the level of its cell.
    Raises ConfigError on a plan without levels.
    """
    if any(cell.level is None for cell in mix.cells):
        raise ConfigError("mix: the plan has no levels yet; settle it first")
    r = rows(batch, mix.cell_names, mix.settings, mix.ranks, mix.scales)
    levels = np.array([cell.level for cell in mix.cells], np.float64)
    repeats = np.where(r.eligible, r.copies(levels), 0).astype(np.int32)
    return Draw(repeats, _verdicts(r, mix, levels, repeats == 0))


def _verdicts(
    r: Rows, mix: MixPlan, levels: npt.NDArray[np.float64], gone: npt.NDArray[np.bool_]
) -> Verdicts:
    """Why documents are not drawn, by the first of the reasons."""
    curves = [mix.settings.repeats_of(cell.domain) for cell in mix.cells]
    begins = np.array([np.nan if c is None else first_place(c) for c in curves], np.float64)
    first = (1 - r.phases) / np.where(r.rates > 0, r.rates, np.nan)
    # reason, where it applies, value, threshold
    cases = [
        (TOPIC_DOWNSAMPLED, r.topic_values >= r.topic_shares, r.topic_values, r.topic_shares),
        (FORMAT_DOWNSAMPLED, ~r.outlived, r.topic_values, r.shares),
        (TOO_SHORT, r.too_short, r.tokens, float(mix.settings.min_tokens or 0)),
        (TOO_LONG, r.too_long, r.tokens, float(mix.settings.max_tokens or 0)),
        (NO_REPEATS, r.rates == 0, r.places, begins[r.cells]),
        (OVER_BUDGET, np.ones(len(gone), bool), first, levels[r.cells]),
    ]
    names, where, values, thresholds = zip(*cases, strict=True)
    value = np.select(where, values)
    return Verdicts(
        pa.array(np.select(where, names, "").astype(object), pa.string(), mask=~gone),
        pa.array(value, pa.float64(), mask=~gone | np.isnan(value)),
        pa.array(np.select(where, thresholds), pa.float64(), mask=~gone),
        pa.nulls(len(gone), pa.string()),
    )
