"""Find the exact level of each cell: the one at which its copies come nearest to its target.

At a level, a document has `floor(level * rate + phase)` copies (`Rows.copies`), so tokens rise with
the level, one copy at a time. Levels are found by bisection over the numbers that a float64 can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.mix.columns import Rows, cell_names, rows
from curation.mix.mix_settings import Mixture
from curation.mix.plan import MixPlan, Supply, check_shares, plan
from curation.mix.ranks import learn
from curation.mix.repeats import UNIT, learn_scales

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


def plan_tables(tables: Iterable[pa.RecordBatch | pa.Table], settings: Mixture) -> MixPlan:
    """Plan a mix: ranks, scales, targets and levels; `tables` are rows of `NARROW`.

    Raises ConfigError as `plan`, InputError on documents without a domain.
    """
    held = list(tables)
    cells = sorted({cell for table in held for cell in cell_names(table)})
    check_shares({domain for _, domain in cells}, settings)
    ranks = learn(held, settings.ranked, settings.missing_quality)
    eligible = [rows(table, cells, settings).eligible for table in held]
    scales = learn_scales(held, eligible, settings, ranks)
    parts = [rows(table, cells, settings, ranks, scales) for table in held]
    parts = [r.only(allowed) for r, allowed in zip(parts, eligible, strict=True)]
    mix = replace(plan(supplies(parts, cells), settings), ranks=ranks, scales=scales)
    return settle(mix, parts)


def supplies(parts: Sequence[Rows], cells: Sequence[tuple[str, str]]) -> list[Supply]:
    """Sum what may be drawn of each cell."""
    documents, available, expected = (np.zeros(len(cells), np.int64) for _ in range(3))
    for r in parts:
        documents += np.bincount(r.cells, minlength=len(cells))
        np.add.at(available, r.cells, r.tokens)
        np.add.at(expected, r.cells, r.tokens * np.rint(r.rates * UNIT).astype(np.int64))
    return [
        Supply(*cell, int(documents[k]), int(available[k]), int(expected[k]) // UNIT)
        for k, cell in enumerate(cells)
    ]


def settle(mix: MixPlan, parts: Sequence[Rows]) -> MixPlan:
    """Return the plan with levels and kept tokens, from all documents that may be drawn.

    Of the last level that falls short of a target and the first that reaches it, the nearer one is
    taken, so a cell misses by half a document at most. Documents whose next copies come at the same
    level are drawn together.
    """
    targets = np.array([cell.target for cell in mix.cells], np.int64)
    every = Rows._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    wanted = every.only((targets[every.cells] > 0) & (every.rates > 0))
    low, high, under, over = _bracket(wanted, targets)
    upper = over - targets < targets - under
    levels, kept = np.where(upper, high, low), np.where(upper, over, under)
    cells = [
        replace(cell, level=float(level), kept=int(tokens))
        for cell, level, tokens in zip(mix.cells, levels, kept, strict=True)
    ]
    return replace(mix, cells=tuple(cells))


def _bracket(r: Rows, targets: I64) -> tuple[F64, F64, I64, I64]:
    """The last level of each cell below its target, the first that reaches it, tokens at both."""
    high = np.where(targets > 0, 1.0, 0.0)
    while (short := _tokens(r, r.copies(high), len(targets)) < targets).any():
        high[short] *= 2
    # Floats of one sign are ordered as their bits are.
    bottom, top = np.zeros(len(targets), np.int64), high.view(np.int64).copy()
    settled = np.zeros(len(targets), np.int64)  # tokens of documents that are as at `bottom`
    while (top - bottom > 1).any():
        middle = bottom + (top - bottom) // 2
        enough = settled + _tokens(r, r.copies(middle.view(np.float64)), len(targets)) >= targets
        top, bottom = np.where(enough, middle, top), np.where(enough, bottom, middle)
        least = r.copies(bottom.view(np.float64))
        open_ = r.copies(top.view(np.float64)) > least
        settled += _tokens(r.only(~open_), least[~open_], len(targets))
        r = r.only(open_)
    low, high = bottom.view(np.float64), top.view(np.float64)
    under = settled + _tokens(r, r.copies(low), len(targets))
    return low, high, under, settled + _tokens(r, r.copies(high), len(targets))


def _tokens(r: Rows, copies: I64, cells: int) -> I64:
    """Tokens of so many copies by cell, exact."""
    out = np.zeros(cells, np.int64)
    np.add.at(out, r.cells, r.tokens * copies)
    return out
