"""Fit how much two language models count, on texts of sources that neither was trained on."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from curation.language.evidence import KNOTS, WEIGHED, Evidence, Floats, Ints, Mask, hats

_DIGITS = 3  # what is stored: the last bits of a sum differ between machines
_RIDGE = 1.0  # strength, in texts, with which weights are drawn to their neighbours and defaults
_STEPS = 60


def fit_weights(
    first: Floats,
    second: Floats,
    sizes: Ints,
    truth: Ints,
    counts: Floats,
    large: Mask,
    foreign: Mask,
) -> Floats:
    """Weights [WEIGHED, knots] that make the true labels most probable.

    `first` and `second` are log probabilities [texts, labels]; `truth` are columns of them,
    `counts` as how many texts each text counts.
    """
    at = hats(sizes)
    rows = np.arange(len(truth))
    start = np.repeat([0.7, 0.7, 0.0, 0.0, 0.0, 0.0], len(KNOTS))

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(len(WEIGHED), -1)
        scores = Evidence(weights, weights, 0.0).scores(first, second, sizes, large, foreign)
        scores -= scores.max(1, keepdims=True)
        own = scores[rows, truth]
        p = np.exp(scores, out=scores)
        total = p.sum(1, keepdims=True)
        value = (counts * (np.log(total[:, 0]) - own)).sum()
        p /= total
        p[rows, truth] -= 1
        p *= counts[:, None]
        one, two = p * first, p * second
        sums = [one.sum(1), two.sum(1), one[:, large].sum(1), two[:, large].sum(1)]
        sums += [p[:, large].sum(1), p[:, foreign].sum(1)]
        slope = np.stack([at.T @ part for part in sums]).ravel()
        value += _RIDGE * ((flat - start) ** 2).sum()
        return float(value), slope + 2 * _RIDGE * (flat - start)

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    return np.asarray(found.reshape(len(WEIGHED), -1).round(_DIGITS))


def fit_refusal(seen: Floats, unknown: Mask, share: float) -> Floats:
    """Log odds, by `REFUSAL`, that a text is in a language of neither model.

    Texts in such languages count as this share of all.
    """
    there = unknown.mean().clip(1e-9, 1 - 1e-9)
    counts = np.where(unknown, share / there, (1 - share) / (1 - there))

    def loss(w: Floats) -> tuple[float, Floats]:
        z = seen @ w
        value = (counts * (np.logaddexp(0, z) - unknown * z)).sum() + _RIDGE * (w**2).sum()
        slope = seen.T @ (counts * (1 / (1 + np.exp(-z)) - unknown)) + 2 * _RIDGE * w
        return float(value), slope

    start = np.zeros(seen.shape[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    return np.asarray(found.round(_DIGITS))
