"""Which blocks are kept, given the probability of each to be main content."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from curation.extract import scan as s
from curation.extract.settings import Decision

# How far up code and formulas (in rows of tables, often) and the text around them look for a
# container that they share.
_LEVELS_OF_CODE, _LEVELS_OF_TEXT = 5, 2


def attached(probabilities: npt.NDArray[np.float64], page: s.Page) -> npt.NDArray[np.float64]:
    """Probabilities [n] where code and formulas share the fate of the text before or behind them.

    Their words say little about them; what they stand in says more.
    """
    words_alike = page.b_chars <= 4 * page.b_atoms
    special = ((page.b_flags & s.PRE) != 0) | ((page.b_atoms > 0) & words_alike)
    if not special.any():
        return probabilities
    return _attached(probabilities, special, page.b_element, page.e_parent)


@numba.njit(cache=True, nogil=True)
def _attached(probabilities, special, b_element, e_parent):  # type: ignore[no-untyped-def]
    n = len(probabilities)
    out = probabilities.copy()
    after = np.full(n + 1, -1, np.int32)  # the next ordinary block from here on
    for b in range(n - 1, -1, -1):
        after[b] = after[b + 1] if special[b] else b
    before = np.int32(-1)
    around = np.empty(_LEVELS_OF_CODE + 1, np.int32)
    for b in range(n):
        if not special[b]:
            before = np.int32(b)
            continue
        count = _containers(b_element[b], e_parent, _LEVELS_OF_CODE, around)
        for other in (before, after[b]):
            if other >= 0 and probabilities[other] > out[b]:
                element = b_element[other]
                for _ in range(_LEVELS_OF_TEXT + 1):
                    shared = False
                    for k in range(count):
                        shared = shared or around[k] == element
                    if shared:
                        out[b] = probabilities[other]
                        break
                    element = e_parent[element]
                    if element <= 0:
                        break
    return out


@numba.njit(cache=True, nogil=True)
def _containers(element, e_parent, levels, out):  # type: ignore[no-untyped-def]
    """The element and so many above it, the body left out, into `out`; how many."""
    out[0] = element
    count = 1
    for _ in range(levels):
        element = e_parent[element]
        if element <= 0:
            break
        out[count] = element
        count += 1
    return count


class Fate(NamedTuple):
    """What is decided on the blocks of a page, and by what."""

    kept: npt.NDArray[np.bool_]  # [n]
    score: npt.NDArray[np.float64]  # [n] probability to be content, as the decision saw it
    threshold: npt.NDArray[np.float64]  # [n] score that the block needed
    article: bool  # held to the threshold of articles


def decide(
    probabilities: npt.NDArray[np.float64],
    page: s.Page,
    in_comments: npt.NDArray[np.bool_],
    decision: Decision,
    comments: bool,
) -> Fate:
    """The fate of blocks, given their probabilities [n] and whether each stands in comments [n].

    A page with a sure body of text, an article, is held to a higher threshold than one on which
    nothing is certain. Where an article stands outside the comments, these need to be surer still;
    on other pages they are the page. Something is always kept.
    """
    n = len(probabilities)
    if n == 0:
        return Fate(np.zeros(0, np.bool_), probabilities, probabilities, False)
    probabilities = attached(probabilities, page)
    weight = page.b_chars + 20.0 * page.b_atoms
    if not comments:
        probabilities = np.where(in_comments, 0.0, probabilities)
    likely = float(weight[probabilities >= decision.open_threshold].sum())
    sure = float(weight[probabilities >= decision.sure_probability].sum())
    article = sure >= max(decision.article_characters, decision.sure_share * likely)
    threshold = np.full(n, decision.article_threshold if article else decision.open_threshold)
    outside = (probabilities >= threshold) & ~in_comments
    if float(weight[outside].sum()) >= decision.article_characters:
        threshold[in_comments] = np.maximum(threshold, decision.comment_threshold)[in_comments]
    kept = probabilities >= threshold
    if not kept.any():
        kept = probabilities >= probabilities.max()
    return Fate(kept, probabilities, threshold, article)
