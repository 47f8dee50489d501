"""Find the exact key at which each cell's partial epoch ends, over any number of shards.

Two passes over narrow columns: a histogram of tokens by key prefix finds the bin where the target
is crossed; the few documents of those bins, gathered in one place, give the exact key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.mix.columns import Rows, rows
from curation.mix.mix_settings import Mixture
from curation.mix.plan import MixPlan, merge_stats, plan, stats
from curation.mix.ranks import learn

_BITS = 16  # of a key that choose its bin
BINS = 1 << _BITS
_SHIFT = np.uint64(64 - _BITS)

CANDIDATES = pa.schema([("cell", pa.int64()), ("key", pa.uint64()), ("tokens", pa.int64())])


@dataclass(frozen=True)
class Crossing:
    """Where each cell's target is crossed: bin (-1: nothing to draw) and tokens before it."""

    bins: npt.NDArray[np.int64]  # [cells]
    before: npt.NDArray[np.int64]  # [cells]


def _eligible(batch: pa.RecordBatch | pa.Table, mix: MixPlan) -> Rows:
    r = rows(batch, mix.cell_names, mix.settings, mix.ranks)
    return r.only(r.eligible)


def histogram(batch: pa.RecordBatch | pa.Table, mix: MixPlan) -> npt.NDArray[np.int64]:
    """Tokens by cell and key bin: int64 [cells, BINS]. Histograms of shards add up."""
    r = _eligible(batch, mix)
    out = np.zeros((len(mix.cells), BINS), np.int64)
    np.add.at(out, (r.cells, (r.keys >> _SHIFT).astype(np.int64)), r.tokens)
    return out


def crossing(mix: MixPlan, tokens: npt.NDArray[np.int64]) -> Crossing:
    """The bin of each cell in which the summed histogram reaches the cell's remainder."""
    bins = np.full(len(mix.cells), -1, np.int64)
    before = np.zeros(len(mix.cells), np.int64)
    for k, cell in enumerate(mix.cells):
        if cell.remainder > 0:
            sums = np.cumsum(tokens[k])
            bins[k] = np.searchsorted(sums, cell.remainder)
            before[k] = sums[bins[k]] - tokens[k, bins[k]]
    return Crossing(bins, before)


def candidates(batch: pa.RecordBatch | pa.Table, mix: MixPlan, where: Crossing) -> pa.RecordBatch:
    """The documents in the crossing bins: columns `CANDIDATES`, sorted by cell and key."""
    r = _eligible(batch, mix)
    inside = (r.keys >> _SHIFT).astype(np.int64) == where.bins[r.cells]
    cells, keys, tokens = r.cells[inside], r.keys[inside], r.tokens[inside]
    order = np.lexsort((keys, cells))
    return pa.RecordBatch.from_arrays(
        [pa.array(cells[order]), pa.array(keys[order]), pa.array(tokens[order])], schema=CANDIDATES
    )


def settle(mix: MixPlan, where: Crossing, parts: Iterable[pa.RecordBatch]) -> MixPlan:
    """The plan with exact cuts and kept tokens, from the candidates of all shards.

    The document at which the remainder is crossed is drawn if that brings the cell nearer to its
    target than leaving it out, so a cell misses by at most half a document. Documents with equal
    keys are drawn together.
    """
    table = pa.Table.from_batches(list(parts), CANDIDATES)
    all_cells = table.column("cell").to_numpy()
    all_keys = table.column("key").to_numpy()
    all_tokens = table.column("tokens").to_numpy()
    settled = []
    for k, cell in enumerate(mix.cells):
        kept = cell.whole_epochs * cell.available
        cut: int | None = None
        if cell.remainder > 0:
            mine = all_cells == k
            keys, groups = np.unique(all_keys[mine], return_inverse=True)
            tokens = np.zeros(len(keys), np.int64)
            np.add.at(tokens, groups, all_tokens[mine])
            sums = where.before[k] + np.cumsum(tokens)
            last = int(np.searchsorted(sums, cell.remainder))
            over = int(sums[last]) - cell.remainder
            under = cell.remainder - int(sums[last] - tokens[last])
            drawn = int(sums[last])
            cut = int(keys[last])
            if over >= under:
                drawn -= int(tokens[last])
                # Keys below the crossing one are drawn: those of this bin, or all earlier bins.
                cut -= 1
            kept += drawn
            if cut < 0:
                cut = None
        settled.append(replace(cell, cut=cut, kept=kept))
    return mix.with_cells(settled)


def plan_tables(tables: Iterable[pa.RecordBatch | pa.Table], settings: Mixture) -> MixPlan:
    """The whole way in one process: stats, targets, ranks, cuts; `tables` are rows of `NARROW`."""
    held = list(tables)
    mix = plan(merge_stats(stats(table, settings) for table in held), settings)
    mix = replace(mix, ranks=learn(held, settings.ranked, settings.missing_quality))
    total = np.zeros((len(mix.cells), BINS), np.int64)
    for table in held:
        total += histogram(table, mix)
    where = crossing(mix, total)
    return settle(mix, where, [candidates(table, mix, where) for table in held])
