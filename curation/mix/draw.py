"""Decide each document of a shard by the plan alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.mix.columns import rows
from curation.mix.keys import key_values
from curation.mix.plan import MixPlan
from curation.schema import Verdicts

OVER_BUDGET = "mix.over_budget"
TOPIC_DOWNSAMPLED = "mix.topic_downsampled"
FORMAT_DOWNSAMPLED = "mix.format_downsampled"
TOO_SHORT = "mix.too_short"
TOO_LONG = "mix.too_long"
UNLICENSED = "mix.licence"


@dataclass(frozen=True)
class Draw:
    """How often each document is drawn, and why not. Arrays have one entry per document."""

    repeats: npt.NDArray[np.int32]
    verdicts: Verdicts  # a reason exactly where repeats is 0


def draw(batch: pa.RecordBatch | pa.Table, mix: MixPlan) -> Draw:
    """Repeats and verdicts of rows of `NARROW`, from a plan whose cuts are known.

    A document left out by its topic or format has its random value and the share of documents that
    may be drawn as value and threshold; one of a length that isn't wanted its tokens and the
    limit; one without a licence that the mix takes neither; one over the budget its key and the key
    of its cell's cut (0 if none is drawn).
    Raises ConfigError on a plan without cuts.
    """
    if any(cell.kept is None for cell in mix.cells):
        raise ConfigError("mix: the plan has no cuts yet; settle it first")
    r = rows(batch, mix.cell_names, mix.settings, mix.ranks)
    whole = np.array([cell.whole_epochs for cell in mix.cells], np.int64)
    partial = np.array([cell.cut is not None for cell in mix.cells], bool)
    cuts = np.array([cell.cut or 0 for cell in mix.cells], np.uint64)
    allowed = r.eligible
    drawn = whole[r.cells] + (partial[r.cells] & (r.keys <= cuts[r.cells]))
    repeats = np.where(allowed, drawn, 0).astype(np.int32)

    weighted = np.array([mix.settings.weighted(cell.domain) for cell in mix.cells], bool)
    thresholds = np.where(partial, key_values(cuts, weighted), 0.0)[r.cells]
    gone = repeats == 0
    cases = [r.topic_values >= r.topic_shares, ~r.outlived, r.too_short, r.too_long]
    reasons = [TOPIC_DOWNSAMPLED, FORMAT_DOWNSAMPLED, TOO_SHORT, TOO_LONG]
    reason = np.where(r.unlicensed, UNLICENSED, np.select(cases, reasons, OVER_BUDGET))
    measured = gone & ~r.unlicensed
    value = np.select(
        cases,
        [r.topic_values, r.topic_values, r.tokens, r.tokens],
        key_values(r.keys, weighted[r.cells]),
    )
    limits = [float(mix.settings.min_tokens or 0), float(mix.settings.max_tokens or 0)]
    threshold = np.select(cases, [r.topic_shares, r.shares, *limits], thresholds)
    return Draw(
        repeats,
        Verdicts(
            pa.array(reason.astype(object), pa.string(), mask=~gone),
            pa.array(value, pa.float64(), mask=~measured),
            pa.array(threshold, pa.float64(), mask=~measured),
            pa.nulls(len(repeats), pa.string()),
        ),
    )
