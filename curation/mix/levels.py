"""Find the exact level of each cell: the one at which its copies come nearest to its target.

At a level, a document has `floor(level * rate + phase)` copies (`Rows.copies`), so tokens rise with
the level, one copy at a time. Levels are found by bisection over the numbers that a float64 can be.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.mix.columns import F64, NARROW, Bools, Rows, cell_names, grouped, rows
from curation.mix.mix_settings import Mixture
from curation.mix.plan import Learned, MixPlan, Supply, check_shares, most_epochs, plan
from curation.mix.ranks import Batch, learn
from curation.mix.repeats import BUCKETS, UNIT, bucket_of, fitted
from curation.mix.schedule import spans, streams

I64 = npt.NDArray[np.int64]


def plan_tables(tables: Iterable[pa.RecordBatch | pa.Table], settings: Mixture) -> MixPlan:
    """Plan a mix: ranks, targets, copies by quality, levels; `tables` are of `NARROW`.

    Raises ConfigError as `plan`.
    """
    held = [grouped(table, settings) for table in (NARROW.empty_table(), *tables)]
    cells = sorted({cell for table in held for cell in cell_names(table)})
    check_shares({domain for _, domain in cells}, settings)
    eligible = [rows(table, cells, settings).eligible for table in held]
    drawn = streams(settings)
    learned = [Learned(learn(held, stream.ranked)) for stream in drawn]
    own = _rows(held, eligible, cells, drawn[0], learned[0])
    mix = plan(supplies(own, cells), settings)
    used = {span.stream for span in spans(settings)}
    for k, stream in enumerate(drawn):
        copies: list[list[float]] = [[] for _ in cells]
        if k in used:
            parts = _rows(held, eligible, cells, stream, learned[k]) if k else own
            copies = [_fit(mix, parts, stream, k, i) for i in range(len(cells))]
            mix = settle(mix, parts.fitted(copies), k)
        learned[k] = learned[k]._replace(copies=copies)
    return replace(mix, streams=tuple(learned))


def _fit(mix: MixPlan, r: Rows, stream: Mixture, place: int, cell: int) -> list[float]:
    """Copies of a cell's buckets of quality in a stream; empty if none follow from its target."""
    chosen = mix.cells[cell]
    repeats = stream.repeats_of(chosen.domain)
    every = zip(chosen.targets, spans(mix.settings), strict=True)
    target = sum(tokens for tokens, span in every if span.stream == place)
    if repeats is None or not repeats.fitted or not target:
        return []
    ours = r.only(r.cells == cell)
    tokens = np.bincount(bucket_of(ours.places), ours.tokens, BUCKETS).astype(np.float64)
    most = most_epochs(chosen.domain, chosen.source, stream)
    return fitted(tokens, target, most, stream.is_limited)


def _rows(
    held: Sequence[Batch],
    eligible: Sequence[Bools],
    cells: list[tuple[str, str]],
    stream: Mixture,
    learned: Learned,
) -> Rows:
    """Return the documents that may be drawn, of all tables."""
    parts = [
        rows(table, cells, stream, *learned).only(allowed)
        for table, allowed in zip(held, eligible, strict=True)
    ]
    return Rows._make(np.concatenate(columns) for columns in zip(*parts, strict=True))


def supplies(r: Rows, cells: Sequence[tuple[str, str]]) -> list[Supply]:
    """Sum what may be drawn of each cell."""
    documents = np.bincount(r.cells, minlength=len(cells))
    available = _tokens(r, np.ones(len(r.cells), np.int64), len(cells))
    expected = _tokens(r, np.rint(r.rates * UNIT).astype(np.int64), len(cells))
    return [
        Supply(*cell, int(documents[k]), int(available[k]), int(expected[k]) // UNIT)
        for k, cell in enumerate(cells)
    ]


def settle(mix: MixPlan, r: Rows, stream: int) -> MixPlan:
    """Return the plan with levels and kept tokens of a stream's phases.

    `r` are all documents that may be drawn. Of the last level that falls short of a target and the
    first that reaches it, the nearer one is taken, so a cell misses by half a document at most, at
    the end of each phase. Documents whose next copies come at the same level are drawn together.
    """
    every = spans(mix.settings)
    levels = [list(c.levels or [(0.0, 0.0)] * len(every)) for c in mix.cells]
    kept = [list(c.kept or [0] * len(every)) for c in mix.cells]
    target, drawn = np.zeros((2, len(mix.cells)), np.int64)  # of the stream's phases so far
    level: F64 = np.zeros(len(mix.cells))
    for k, span in enumerate(every):
        if span.stream == stream:
            target = target + np.array([cell.targets[k] for cell in mix.cells], np.int64)
            reached, tokens = _level(r, target)
            for i in range(len(mix.cells)):
                levels[i][k] = (float(level[i]), float(reached[i]))
                kept[i][k] = int(tokens[i] - drawn[i])
            level, drawn = reached, tokens
    cells = [
        replace(cell, levels=tuple(a), kept=tuple(b))
        for cell, a, b in zip(mix.cells, levels, kept, strict=True)
    ]
    return replace(mix, cells=tuple(cells))


def _level(r: Rows, targets: I64) -> tuple[F64, I64]:
    """Return the level of each cell that comes nearest to its target, and the tokens there."""
    wanted = r.only((targets[r.cells] > 0) & (r.rates > 0))
    low, high, under, over = _bracket(wanted, targets)
    upper = over - targets < targets - under
    return np.where(upper, high, low), np.where(upper, over, under)


def _bracket(r: Rows, targets: I64) -> tuple[F64, F64, I64, I64]:
    """Return the last level of each cell below its target, the first that reaches it, tokens at
    both."""
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
    """Return tokens of so many copies by cell, exact."""
    out = np.zeros(cells, np.int64)
    np.add.at(out, r.cells, r.tokens * copies)
    return out
