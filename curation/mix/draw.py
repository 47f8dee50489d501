"""Decide on each document of a shard from the plan alone."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import repeated
from curation.errors import ConfigError
from curation.mix.columns import F64, Bools, Rows, copy_bits, grouped, open_unit, rows
from curation.mix.plan import MixPlan
from curation.mix.repeats import first_place
from curation.mix.schedule import places, spans, streams
from curation.schema import PLACES, Verdicts, with_column

OVER_BUDGET = "mix.over_budget"
TOPIC_DOWNSAMPLED = "mix.topic_downsampled"
FORMAT_DOWNSAMPLED = "mix.format_downsampled"
TOO_SHORT = "mix.too_short"
LOW_VARIETY = "mix.low_variety"
NO_REPEATS = "mix.no_repeats"
UNLICENSED = "mix.licence"


@dataclass(frozen=True)
class Draw:
    """How often each document is drawn, and why not. Arrays have one entry per document."""

    repeats: npt.NDArray[np.int32]
    verdicts: Verdicts  # a reason exactly where repeats is 0
    #: Of a mix with phases: where in training each copy is, list<uint64> (`schedule.places`).
    places: pa.Array | None = None

    def added_to(self, batch: pa.RecordBatch, tokens: pa.Array) -> pa.RecordBatch:
        """Return the documents with what the stage adds: `tokens`, `repeats`, and any places."""
        batch = with_column(batch, "tokens", tokens)
        batch = with_column(batch, "repeats", pa.array(self.repeats, pa.int32()))
        return batch if self.places is None else with_column(batch, PLACES, self.places)


def draw(batch: pa.RecordBatch | pa.Table, mix: MixPlan) -> Draw:
    """Repeats and verdicts of rows of `NARROW`, from a plan whose levels are known.

    A document left out by its topic or format has its random value and the share of documents that
    may be drawn as value and threshold; one of a length or variety that isn't wanted what it has
    and the limit; one without a licence that the mix takes neither; one to which its curve gives no
    copies its place on the curve and the place where copies begin; one over the budget the level at
    which its first copy would come and the level of its cell.
    Raises ConfigError on a plan without levels.
    """
    if any(cell.levels is None for cell in mix.cells):
        raise ConfigError("mix: the plan has no levels yet; settle it first")
    batch = grouped(batch, mix.settings)
    every = [
        rows(batch, mix.cell_names, stream, *learned)
        for stream, learned in zip(streams(mix.settings), mix.streams, strict=True)
    ]
    phases = spans(mix.settings)
    every_level = [cell.levels for cell in mix.cells]
    levels = np.array(every_level, np.float64).reshape(-1, len(phases), 2).swapaxes(0, 1)
    copies = np.zeros((len(phases), batch.num_rows), np.int32)  # of each document in each phase
    for k, span in enumerate(phases):
        r = every[span.stream]
        upto = r.copies(levels[k, :, 1]) - r.copies(levels[k, :, 0])
        copies[k] = np.where(r.eligible, upto, 0)
    repeats = copies.sum(axis=0, dtype=np.int32)
    main = phases[0].stream
    last = max(k for k, span in enumerate(phases) if span.stream == main)
    verdicts = _verdicts(every[main], mix, main, levels[last, :, 1], repeats == 0)
    return Draw(repeats, verdicts, _places(batch, mix, copies) if mix.settings.phases else None)


def _places(
    batch: pa.RecordBatch | pa.Table, mix: MixPlan, copies: npt.NDArray[np.int32]
) -> pa.Array:
    """Return where in training each copy of a document is, those of earlier phases first.

    The copies within a phase are evenly apart in it, as dense as the shares allow.
    """
    documents, nth = repeated(copies.sum(axis=0))
    bits = copy_bits(batch.column("id_hash").to_numpy().astype(np.uint64), mix.settings.seed)
    bits = bits[documents]
    domains = batch.column("domain").to_numpy(zero_copy_only=False)[documents]
    found = np.zeros(len(documents), np.uint64)
    ends = np.cumsum(copies, axis=0)[:, documents]
    for k, span in enumerate(spans(mix.settings)):
        count = copies[k][documents]
        before = ends[k] - count
        ours = (nth < ends[k]) & (nth >= before)
        first, last = (
            np.array([shares[domain] for domain in domains[ours]], np.float64)
            for shares in (span.first, span.last)
        )
        u = ((nth - before)[ours] + open_unit(bits[ours])) / count[ours]
        found[ours] = places(u, bits[ours], first, last, span)
    offsets = np.append(0, np.cumsum(copies.sum(axis=0)))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(found))


def _verdicts(r: Rows, mix: MixPlan, main: int, levels: F64, gone: Bools) -> Verdicts:
    """Why documents are not drawn, by the first of the reasons."""
    curves = (mix.settings.repeats_of(cell.domain) for cell in mix.cells)
    pairs = zip(curves, mix.streams[main].copies, strict=True)
    begins = np.array([np.nan if c is None else first_place(c, f) for c, f in pairs], np.float64)
    first = (1 - r.phases) / np.where(r.rates > 0, r.rates, np.nan)
    # reason, where it applies, value, threshold
    nothing = np.full(len(gone), np.nan)
    cases = [
        (UNLICENSED, r.unlicensed, nothing, nothing),
        (TOPIC_DOWNSAMPLED, r.topic_values >= r.topic_shares, r.topic_values, r.topic_shares),
        (FORMAT_DOWNSAMPLED, ~r.outlived, r.topic_values, r.shares),
        (TOO_SHORT, r.too_short, r.tokens, float(mix.settings.min_tokens or 0)),
        (LOW_VARIETY, r.monotonous, r.varieties, float(mix.settings.min_variety or 0)),
        (NO_REPEATS, r.rates == 0, r.places, begins[r.cells]),
        (OVER_BUDGET, np.ones(len(gone), bool), first, levels[r.cells]),
    ]
    names, where, values, thresholds = zip(*cases, strict=True)
    value, threshold = np.select(where, values), np.select(where, thresholds)
    return Verdicts(
        pa.array(np.select(where, names, "").astype(object), pa.string(), mask=~gone),
        pa.array(value, pa.float64(), mask=~gone | np.isnan(value)),
        pa.array(threshold, pa.float64(), mask=~gone | np.isnan(threshold)),
    )
