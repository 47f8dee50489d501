"""Which blocks are kept, given the probability of each to be main content."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.extract import scan as s
from curation.extract.settings import Decision


def keep(
    probabilities: npt.NDArray[np.float64],
    page: s.Page,
    in_comments: npt.NDArray[np.bool_],
    decision: Decision,
    comments: bool,
) -> npt.NDArray[np.bool_]:
    """Blocks to keep [n], given their probabilities [n] and whether each stands in comments [n].

    The threshold is the one that maximises the expected F1 of the page's characters, within the
    bounds of the settings, so that a page of which nothing is certain keeps its likeliest blocks
    (Lewis, Evaluating and Optimizing Autonomous Text Classification Systems, 1995).
    """
    n = len(probabilities)
    if n == 0:
        return np.zeros(0, np.bool_)
    weight = page.b_chars + 20.0 * page.b_atoms
    if not comments:
        probabilities = np.where(in_comments, 0.0, probabilities)
    order = np.argsort(-probabilities, kind="stable")
    mass = np.cumsum(probabilities[order] * weight[order])
    expected = 2 * mass / (np.cumsum(weight[order]) + mass[-1] + 1e-9)
    best = float(probabilities[order][int(np.argmax(expected))])
    threshold = min(max(best, decision.lowest_threshold), decision.highest_threshold)
    kept = probabilities >= threshold
    # Readers' comments below an article need to be surer than those that are the page.
    outside = kept & ~in_comments
    if float(weight[outside].sum()) >= decision.article_characters:
        kept &= ~in_comments | (probabilities >= decision.comment_threshold)
    if not kept.any():
        kept = probabilities >= probabilities.max()
    return kept
