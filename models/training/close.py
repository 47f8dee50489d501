"""Learn which words tell close languages from each other, and how much they count."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from curation.language.close import FLOOR, PARTS, WEIGHED, CloseLanguages, keys, weighed
from curation.language.corrector import softmax
from curation.language.evidence import KNOTS, Floats, Ints, Mask, hats
from models.training.settings import CloseTraining

_DIGITS = 3  # what is stored: the last bits of a sum differ between machines
_RIDGE = 1.0  # strength, in texts, with which weights are drawn to their defaults
_DEFAULTS = (1.0, 0.0, 0.5)
_MOST = 4.0  # log odds


@dataclass(frozen=True, eq=False)
class Source:
    """How often a language has each word in one source."""

    keys: Ints  # ascending
    counts: Floats
    is_list: bool  # of words by frequency, from much text


def source_of(lines: Sequence[str], counts: Floats | None = None) -> Source:
    """Words of lines; of a list of words, each line with its count."""
    found, sizes = keys(lines)
    weights = np.ones(len(found)) if counts is None else np.repeat(counts, sizes)
    distinct, place = np.unique(found, return_inverse=True)
    sums = np.bincount(place, weights, len(distinct)).astype(np.float64)
    return Source(distinct.astype(np.int64), sums, counts is not None)


def learn(
    groups: Sequence[Sequence[int]],
    sources: Mapping[int, Sequence[Source]],
    settings: CloseTraining,
) -> CloseLanguages:
    """Log odds of the words of every group of labels, from sources by label; weights are 0.

    A word counts as often as in all sources of a language together, of which none has more than
    its share of words. Of several lists, in two scripts say, it is the one that has the word most:
    a language in two scripts is not half as sure of either. Counts are drawn to the average of the
    group (a Dirichlet prior), so that a language of which there is little text is neither favoured
    nor punished. The words that say most are kept.
    """
    widest = max(map(len, groups), default=1)
    starts, all_keys, all_odds = [0], [], []
    for group in groups:
        words, odds = _of_group([sources.get(label, ()) for label in group], settings)
        wide = np.zeros((len(words), widest), np.int8)
        wide[:, : len(group)] = odds
        starts.append(starts[-1] + len(words))
        all_keys.append(words.astype(np.uint32))
        all_odds.append(wide)
    return CloseLanguages(
        tuple(tuple(map(int, group)) for group in groups),
        np.array(starts),
        np.concatenate([np.zeros(0, np.uint32), *all_keys]),
        np.concatenate([np.zeros((0, widest), np.int8), *all_odds]),
        np.zeros((len(WEIGHED), len(KNOTS))),
    )


def _of_group(members: Sequence[Sequence[Source]], settings: CloseTraining) -> tuple[Ints, Ints]:
    """Hashes of the words that are kept, ascending, and log odds [words, members] times `PARTS`."""
    words = np.unique(
        np.concatenate([np.zeros(0, np.int64), *(s.keys for m in members for s in m)])
    )
    counts, total = np.zeros((len(words), len(members))), np.zeros(len(members))
    for member, sources in enumerate(members):
        listed, size = np.zeros(len(words)), 0.0
        for source in sources:
            most = settings.of_list if source.is_list else settings.of_source
            scaled = source.counts * min(1.0, most / max(source.counts.sum(), 1.0))
            at = np.searchsorted(words, source.keys)
            if source.is_list:
                listed[at] = np.maximum(listed[at], scaled)
                size = max(size, scaled.sum())
            else:
                counts[at, member] += scaled
                total[member] += scaled.sum()
        counts[:, member] += listed
        total[member] += size
    usual = (counts / np.maximum(total, 1)).mean(1, keepdims=True)
    seen = counts + settings.prior * usual + settings.smoothing
    odds = np.log(seen / ((total + settings.prior) * usual + settings.smoothing))
    rounded = np.rint(odds.clip(-_MOST, _MOST) * PARTS).astype(np.int64)
    says = (usual * rounded**2).sum(1)
    kept = np.sort(np.argsort(-says, kind="stable")[: settings.words])
    return words[kept], rounded[kept]


@dataclass(frozen=True, eq=False)
class Judged:
    """Texts of one group, with their language and what is known of them."""

    shares: Floats  # [texts, members] of the group's probability, before
    words: Floats  # [texts, members] log odds
    sizes: Ints  # bytes
    truth: Ints  # members
    length: Ints  # characters to which they were cut; 0: whole
    large: Mask  # [members]


def fit(groups: Sequence[Judged], settings: CloseTraining) -> Floats:
    """Weights [WEIGHED, knots] that make the true members most probable."""
    start = np.repeat(_DEFAULTS, len(KNOTS))

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(len(WEIGHED), -1)
        value = _RIDGE * ((flat - start) ** 2).sum()
        slope = 2 * _RIDGE * (flat - start)
        for one in groups:
            scores = weighed(weights, one.shares, one.words, one.sizes, one.large)
            rows = np.arange(len(one.truth))
            counts = np.where(one.large[one.truth], settings.large_counts, 1.0)
            p = softmax(scores)
            value -= (counts * np.log(np.maximum(p[rows, one.truth], 1e-300))).sum()
            p[rows, one.truth] -= 1
            p *= counts[:, None]
            at = hats(one.sizes)
            parts = (np.log(one.shares + FLOOR), one.large[None], one.words)
            slope += np.concatenate([at.T @ (p * part).sum(1) for part in parts])
        return float(value), slope

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    return np.asarray(found.reshape(len(WEIGHED), -1).round(_DIGITS))


def pair_accuracy(
    judged: Sequence[tuple[Judged, Floats]], names: Sequence[str], settings: CloseTraining
) -> dict[str, dict[str, list[float]]]:
    """By pair of languages and length, how often the right one is before the other.

    Of both languages equally, without words and with them. `judged` are texts of one group with the
    weights that are used, `names` its languages. Pairs that are told apart without words are left
    out, and those with few texts.
    """
    truth = np.concatenate([one.truth for one, _ in judged])
    length = np.concatenate([one.length for one, _ in judged])
    without = np.concatenate([one.shares for one, _ in judged])
    with_them = np.concatenate(
        [weighed(w, one.shares, one.words, one.sizes, one.large) for one, w in judged]
    )
    found = {}
    for a, b in itertools.combinations(range(len(names)), 2):
        by_length = {}
        for size in np.unique(length).tolist():
            own = [(truth == member) & (length == size) for member in (a, b)]
            if min(map(np.count_nonzero, own)) >= settings.judged:
                by_length[size] = [
                    float(
                        (s[own[0], a] > s[own[0], b]).mean() + (s[own[1], b] > s[own[1], a]).mean()
                    )
                    / 2
                    for s in (without, with_them)
                ]
        if min((shares[0] for size, shares in by_length.items() if size), default=1.0) < (
            settings.told_apart
        ):
            found[f"{names[a]} {names[b]}"] = {
                str(size or "whole"): [round(share, 4) for share in shares]
                for size, shares in by_length.items()
            }
    return found
