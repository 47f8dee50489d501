"""Mixing laws: the loss on a domain as a function of the shares that a model was trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """`floor + scale * exp(shares @ slopes)` for each domain (Ye et al. 2024, arXiv 2403.16952)."""

    floor: F64  # [domains]
    scale: F64  # [domains]
    slopes: F64  # [shares, domains]

    def predict(self, shares: F64) -> F64:
        """Losses [n, domains] at shares [n, shares]."""
        return self.floor + self.scale * np.exp(shares @ self.slopes)


def fit_law(shares: F64, losses: F64, ridge: float) -> Law:
    """Fit a law to runs: shares [runs, shares], losses [runs, domains].

    Shares sum to 1, so a constant on all slopes is the same as a scale; `ridge` times the squared
    slopes is added to the squared errors, which settles that and holds back slopes that few runs
    speak for.
    """
    floors, scales, slopes = [], [], []
    for losses_of_domain in losses.T:
        low, spread = losses_of_domain.min(), max(np.ptp(losses_of_domain), 1e-6)
        start = np.zeros(2 + shares.shape[1])
        start[0], start[1] = np.log(max(low - spread, 1e-3)), np.log(2 * spread)

        def errors(p: F64, y: F64 = losses_of_domain) -> F64:
            fitted = np.exp(p[0]) + np.exp(np.clip(p[1] + shares @ p[2:], -50, 50))
            return np.concatenate([fitted - y, np.sqrt(ridge) * p[2:]])

        found = least_squares(errors, start, method="trf", max_nfev=2000).x
        floors.append(np.exp(found[0]))
        scales.append(np.exp(found[1]))
        slopes.append(found[2:])
    return Law(np.array(floors), np.array(scales), np.array(slopes).T)


def resampled_laws(shares: F64, losses: F64, ridge: float, count: int, seed: int) -> list[Law]:
    """Laws fitted to runs drawn with replacement: how far they differ is how sure one can be."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, len(shares), (count, len(shares)))
    return [fit_law(shares[draw], losses[draw], ridge) for draw in draws]
