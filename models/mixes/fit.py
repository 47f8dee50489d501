"""Read results of training runs, fit all mixing laws, and propose shares from the best one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.config import nearest
from curation.errors import InputError
from models.mixes.design import Design, draw_around
from models.mixes.laws import cross_validated, fits, resampled_laws
from models.mixes.search import SearchSettings, Space
from models.training.metrics import spearman

F64 = npt.NDArray[np.float64]
_LEAST_RUNS = 6
_FOLDS = 5
_INTERVAL = (5, 95)  # percent, of what resampled runs propose


@dataclass(frozen=True)
class Results:
    """Losses of runs; scores, of which more is better, are taken as losses below 0."""

    space: Space
    targets: tuple[str, ...]
    shares: F64  # [runs, domains]
    losses: F64  # [runs, targets]


def read_results(lines: Iterable[str], file: str, design: Design | None) -> Results:
    """Read JSON lines with `run` or `shares`, and `losses` or `scores` by target.

    Several lines of a run, of other seeds, are runs of their own. Raises InputError with file and
    line.
    """
    rows: list[tuple[dict[str, float], dict[str, float]]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            rows.append(_row(line, f"{file}: line {number}", design))
            first, found = rows[0], rows[-1]
            for a, b, what in zip(first, found, ("domains", "targets"), strict=True):
                if a.keys() != b.keys():
                    raise InputError(
                        f"{file}: line {number}: {what} {', '.join(sorted(b))}, but line 1 has "
                        f"{', '.join(sorted(a))}"
                    )
    if len(rows) < _LEAST_RUNS:
        raise InputError(f"{file}: {len(rows)} runs, too few to fit: give {_LEAST_RUNS} or more")
    domains, targets = tuple(rows[0][0]), tuple(rows[0][1])
    shares = np.array([[row[d] for d in domains] for row, _ in rows])
    losses = np.array([[row[t] for t in targets] for _, row in rows])
    space = design.space if design else Space(domains, shares.mean(axis=0), np.ones(len(domains)))
    return Results(space, targets, shares, losses)


def _row(line: str, place: str, design: Design | None) -> tuple[dict[str, float], dict[str, float]]:
    """Shares by domain and losses by target of one line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON: {error}") from None
    if not isinstance(row, dict) or not (row.get("losses") or row.get("scores")):
        raise InputError(f"{place}: neither `losses` nor `scores`")
    if "shares" in row:
        shares = _numbers(row["shares"], f"{place}: shares")
        if abs(sum(shares.values()) - 1) > 1e-3:
            raise InputError(f"{place}: shares sum to {sum(shares.values()):g}, not 1")
        if design:
            order = design.space.domains
            if set(shares) != set(order):
                raise InputError(f"{place}: shares are not of the design's domains")
            shares = {d: shares[d] for d in order}
    elif design is None:
        raise InputError(f"{place}: no `shares`, and no mix-design.json in --output lists the run")
    elif row.get("run") not in design.runs:
        name = str(row.get("run"))
        raise InputError(f"{place}: no run {name!r} in the design{nearest(name, design.runs)}")
    else:
        found = design.runs[row["run"]]
        shares = dict(zip(design.space.domains, map(float, found), strict=True))
    losses = _numbers(row.get("losses") or {}, f"{place}: losses")
    scores = _numbers(row.get("scores") or {}, f"{place}: scores")
    return shares, losses | {name: -value for name, value in scores.items()}


def _numbers(values: Any, place: str) -> dict[str, float]:
    if not isinstance(values, dict):
        raise InputError(f"{place}: expected a mapping of names to numbers")
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise InputError(f"{place}.{name}: {value!r} is not a number")
    return {str(name): float(value) for name, value in values.items()}


@dataclass(frozen=True)
class Fitted:
    """The outcome of a fit. Arrays over domains, except those over targets."""

    results: Results
    law: str
    errors: dict[str, float]  # by law: root mean square on left-out runs, in spreads of the losses
    ranks: dict[str, float]  # by law: mean rank correlation on left-out runs
    shares: F64
    low: F64  # of the shares that resampled runs propose
    high: F64
    predicted: F64  # [targets]
    uncertainty: F64  # [targets]
    settled: tuple[str, ...]
    next_runs: F64  # [runs, domains]
    gains: F64  # [runs] uncertainty of a mixture's value that its run would take away

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        domains, targets = self.results.space.domains, self.results.targets
        columns = zip(
            *(domains, self.results.space.shares, self.shares, self.low, self.high), strict=True
        )
        return {
            "runs": len(self.results.shares),
            "law": self.law,
            "laws": {
                name: {"error": self.errors[name], "rank_correlation": self.ranks[name]}
                for name in self.errors
            },
            "domains": [
                {
                    "domain": d,
                    "prior": p,
                    "proposed": s,
                    "low": a,
                    "high": b,
                    "settled": d in self.settled,
                }
                for d, p, s, a, b in ((d, *map(float, rest)) for d, *rest in columns)
            ],
            "targets": [
                {"target": t, "predicted": float(p), "uncertainty": float(u)}
                for t, p, u in zip(targets, self.predicted, self.uncertainty, strict=True)
            ],
            "next": [
                {"shares": dict(zip(domains, map(float, row), strict=True)), "gain": float(gain)}
                for row, gain in zip(self.next_runs, self.gains, strict=True)
            ],
        }


def fit_results(
    results: Results, settings: SearchSettings, count: int, weights: Mapping[str, float]
) -> Fitted:
    """Fit every law, take the one that predicts left-out runs best, and propose.

    What is minimised is the sum over targets, by `weights` (others: 1), of the predicted losses in
    units of their spread over the runs. Proposed is the mean of the best
    candidates; its interval is that of proposals from resampled runs. Domains whose interval is
    narrower than `settled` are settled; in the next runs, `count`, they keep their proportions.
    """
    shares, losses = results.shares, results.losses
    spread = np.maximum(losses.std(axis=0), 1e-12)
    errors, ranks = {}, {}
    laws = fits(settings.ridge, bool((losses > 0).all()))
    for name, fit in laws.items():
        left_out = cross_validated(shares, losses, fit, _FOLDS, settings.seed)
        errors[name] = float(np.sqrt((((left_out - losses) / spread) ** 2).mean()))
        pairs = zip(left_out.T, losses.T, strict=True)
        ranks[name] = float(np.mean(np.nan_to_num([spearman(a, b) for a, b in pairs])))
    law = min(errors, key=lambda name: errors[name])
    resampled = resampled_laws(shares, losses, laws[law], settings.resamples, settings.seed)

    worth = np.array([weights.get(t, 1.0) for t in results.targets]) / spread
    rng = np.random.default_rng([settings.seed, 5])
    candidates = np.concatenate(
        [
            results.space.draw(settings.candidates // 2, centre, span, settings.min_share, rng)
            for centre, span in (
                (results.space.shares, settings.concentration),
                (
                    _within(shares[np.argmin(losses @ worth)], results.space),
                    settings.near_concentration,
                ),
            )
        ]
    )
    values = np.array([one.predict(candidates) @ worth for one in resampled])
    chosen = _best(candidates, values.mean(axis=0), settings.best)
    each = np.array([_best(candidates, row, settings.best) for row in values])
    low, high = np.percentile(each, _INTERVAL, axis=0)
    at = np.array([one.predict(chosen[None])[0] for one in resampled])
    narrow = high - low <= settings.settled
    settled = tuple(d for d, yes in zip(results.space.domains, narrow, strict=True) if yes)
    frozen = settled if 1 < len(settled) < len(narrow) else ()
    near = draw_around(results.space, chosen, 2000, settings.concentration, settings, frozen, rng)
    picked, gains = _most_telling(np.array([one.predict(near) @ worth for one in resampled]), count)
    return Fitted(
        *(results, law, errors, ranks, chosen, low, high, at.mean(axis=0)),
        np.sqrt(at.var(axis=0) + (errors[law] * spread) ** 2),
        *(settled, near[picked], gains),
    )


def _within(shares: F64, space: Space) -> F64:
    """Shares no larger than what can be had, as a centre for draws."""
    held = np.minimum(np.maximum(shares, 1e-6), space.most)
    return held / held.sum()


def _best(candidates: F64, values: F64, count: int) -> F64:
    return candidates[np.argsort(values, kind="stable")[:count]].mean(axis=0)


def _most_telling(values: F64, count: int) -> tuple[Sequence[int], F64]:
    """Return which candidates to run next, from what resampled laws say of them: [laws,
    candidates].

    The first is the one on which laws differ most among the better half. What laws agree on once
    its value is known is taken away from all others, and so on: no two runs tell the same.
    """
    good = np.flatnonzero(values.mean(axis=0) <= np.median(values.mean(axis=0)))
    left = values[:, good] - values[:, good].mean(axis=0)
    picked, gains = [], []
    for _ in range(min(count, len(good))):
        spread = left.std(axis=0)
        k = int(np.argmax(spread))
        picked.append(int(good[k]))
        gains.append(float(spread[k]))
        direction = left[:, k] / max(np.linalg.norm(left[:, k]), 1e-300)
        left = left - np.outer(direction, direction @ left)
    return picked, np.array(gains)
