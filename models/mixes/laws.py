"""Mixing laws: the loss on a target as a function of the shares that a model was trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

F64 = npt.NDArray[np.float64]


class Law(Protocol):
    """What is known of the losses at any shares."""

    def predict(self, shares: F64) -> F64:
        """Losses [n, targets] at shares [n, shares]."""


#: Fits a law to runs: shares [runs, shares], losses [runs, targets].
Fit = Callable[[F64, F64], Law]


@dataclass(frozen=True)
class Exponential:
    """`floor + scale * exp(shares @ slopes)` for each target (Ye et al. 2024, arXiv 2403.16952)."""

    floor: F64  # [targets]
    scale: F64  # [targets]
    slopes: F64  # [shares, targets]

    def predict(self, shares: F64) -> F64:
        return self.floor + self.scale * np.exp(shares @ self.slopes)


@dataclass(frozen=True)
class Linear:
    """`shares @ slopes`, or its exponential.

    The first is the linear regression of RegMix (arXiv 2407.01492), the second the log-linear model
    of Olmo 3 (arXiv 2512.13961, 3.4.4). Shares sum to 1, so slopes have the constant in them.
    """

    slopes: F64  # [shares, targets]
    logarithmic: bool

    def predict(self, shares: F64) -> F64:
        found = shares @ self.slopes
        return np.exp(found) if self.logarithmic else found


def fit_exponential(shares: F64, losses: F64, ridge: float) -> Exponential:
    """Fit the exponential law.

    Shares sum to 1, so a constant on all slopes is the same as a scale; `ridge` times the squared
    slopes is added to the squared errors, which settles that and holds back slopes that few runs
    speak for.
    """
    floors, scales, slopes = [], [], []
    for losses_of_target in losses.T:
        # The floor is above 0: scores, which are losses below 0, are moved there.
        moved = 2 * np.ptp(losses_of_target) - losses_of_target.min() + 1e-6
        moved = 0.0 if losses_of_target.min() > 0 else moved
        losses_of_target = losses_of_target + moved
        low, spread = losses_of_target.min(), max(np.ptp(losses_of_target), 1e-6)
        start = np.zeros(2 + shares.shape[1])
        start[0], start[1] = np.log(max(low - spread, 1e-3)), np.log(2 * spread)

        def errors(p: F64, y: F64 = losses_of_target) -> F64:
            fitted = np.exp(p[0]) + np.exp(np.clip(p[1] + shares @ p[2:], -50, 50))
            return np.concatenate([fitted - y, np.sqrt(ridge) * p[2:]])

        found = least_squares(errors, start, method="trf", max_nfev=2000).x
        floors.append(np.exp(found[0]) - moved)
        scales.append(np.exp(found[1]))
        slopes.append(found[2:])
    return Exponential(np.array(floors), np.array(scales), np.array(slopes).T)


def fit_linear(shares: F64, losses: F64, ridge: float, logarithmic: bool = False) -> Linear:
    """Fit the linear law; `ridge` holds back how far slopes are from the mean loss."""
    values = np.log(losses) if logarithmic else losses
    mean = values.mean(axis=0)
    gram = shares.T @ shares + ridge * np.eye(shares.shape[1])
    return Linear(np.linalg.solve(gram, shares.T @ (values - mean)) + mean, logarithmic)


def fits(ridge: float, positive: bool) -> dict[str, Fit]:
    """Return all laws by name; that with a logarithm needs losses above 0."""
    found: dict[str, Fit] = {
        "linear": partial(fit_linear, ridge=ridge),
        "exponential": partial(fit_exponential, ridge=ridge),
    }
    if positive:
        found["log-linear"] = partial(fit_linear, ridge=ridge, logarithmic=True)
    return found


def resampled_laws(shares: F64, losses: F64, fit: Fit, count: int, seed: int) -> list[Law]:
    """Laws fitted to runs drawn with replacement: how far they differ is how sure one can be."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, len(shares), (count, len(shares)))
    return [fit(shares[draw], losses[draw]) for draw in draws]


def cross_validated(shares: F64, losses: F64, fit: Fit, folds: int, seed: int) -> F64:
    """Predictions [runs, targets] of each run by a law that was fitted without its fold."""
    order = np.random.default_rng(seed).permutation(len(shares))
    found = np.empty_like(losses)
    for fold in range(folds):
        inside = order[fold::folds]
        rest = np.setdiff1d(order, inside)
        found[inside] = fit(shares[rest], losses[rest]).predict(shares[inside])
    return found
