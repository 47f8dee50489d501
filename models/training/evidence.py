"""Fit how much two language models count, and which runs of letters are usual in a language."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from curation.language.evidence import KNOTS, WEIGHED, Evidence, Floats, Ints, Mask, hats
from curation.language.familiar import BITS, Familiarity, places

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


_FEWEST = 10  # texts of a language for which a usual share can be estimated
_LEAST_SPREAD = 0.02


def learn(
    lines: Sequence[str], truth: npt.NDArray[np.int64], labels: int, everywhere: int
) -> Familiarity:
    """Familiarity of `labels` languages, from lines of letters and their languages.

    A run of a text counts as known if another text of the language has it, as for texts to come, or
    any text of the language `everywhere`, whose own texts are never strange.
    """
    order = np.argsort(truth, kind="stable")
    ordered = [lines[i] for i in order]
    found, counts = places(ordered, truth[order])
    shared, _ = places(ordered, np.full(len(order), everywhere))
    text = np.repeat(np.arange(len(order)), counts)
    keys = np.unique(text << BITS | found)  # each run once per text
    texts = np.bincount(keys & ((1 << BITS) - 1), minlength=1 << BITS)
    known = np.bincount(text, (texts[found] > 1) | (texts[shared] > 0), len(order))
    share = known / np.maximum(counts, 1)
    language = truth[order]
    usual = np.zeros(labels)
    spread = np.full(labels, np.inf)
    runs = np.ones(labels)
    for label in range(labels):
        ours = (language == label) & (counts > 0)
        if label != everywhere and ours.sum() >= _FEWEST:
            usual[label] = share[ours].mean()
            spread[label] = max(share[ours].std(), _LEAST_SPREAD)
            runs[label] = counts[ours].mean()
    return Familiarity(np.packbits(texts > 0, bitorder="little"), usual, spread, runs, everywhere)
