"""Which blocks are kept, given the probability of each to be main content."""

from __future__ import annotations

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
    out = probabilities.copy()
    n = len(out)
    ordinary = np.flatnonzero(~special)
    for block in np.flatnonzero(special):
        around = _containers(page, int(page.b_element[block]), _LEVELS_OF_CODE)
        place = int(np.searchsorted(ordinary, block))
        for other in ordinary[max(0, place - 1) : min(n, place + 1)]:
            if around & _containers(page, int(page.b_element[other]), _LEVELS_OF_TEXT):
                out[block] = max(out[block], probabilities[other])
    return out


def _containers(page: s.Page, element: int, levels: int) -> set[int]:
    found = {element}
    for _ in range(levels):
        element = int(page.e_parent[element])
        if element <= 0:
            break
        found.add(element)
    return found


def keep(
    probabilities: npt.NDArray[np.float64],
    page: s.Page,
    in_comments: npt.NDArray[np.bool_],
    decision: Decision,
    comments: bool,
) -> npt.NDArray[np.bool_]:
    """Blocks to keep [n], given their probabilities [n] and whether each stands in comments [n].

    A page with a sure body of text, an article, is held to a higher threshold than one on which
    nothing is certain. Where an article stands outside the comments, these need to be surer still;
    on other pages they are the page. Something is always kept.
    """
    n = len(probabilities)
    if n == 0:
        return np.zeros(0, np.bool_)
    probabilities = attached(probabilities, page)
    weight = page.b_chars + 20.0 * page.b_atoms
    if not comments:
        probabilities = np.where(in_comments, 0.0, probabilities)
    likely = float(weight[probabilities >= decision.open_threshold].sum())
    sure = float(weight[probabilities >= decision.sure_probability].sum())
    article = sure >= max(decision.article_characters, decision.sure_share * likely)
    threshold = decision.article_threshold if article else decision.open_threshold
    kept = probabilities >= threshold
    outside = kept & ~in_comments
    if float(weight[outside].sum()) >= decision.article_characters:
        kept &= ~in_comments | (probabilities >= decision.comment_threshold)
    if not kept.any():
        kept = probabilities >= probabilities.max()
    return kept
