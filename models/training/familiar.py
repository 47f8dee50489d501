"""Learn which runs of letters a language has, and how many of them its texts usually share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from curation.language.familiar import BITS, Familiarity, places

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
