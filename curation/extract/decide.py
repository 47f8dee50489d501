"""Which blocks are kept, given the probability of each to be main content."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from curation.extract import scan as s
from curation.extract.features import NAMES
from curation.extract.markup import ANCESTOR
from curation.extract.settings import Decision
from curation.extract.tables import whole_tables

# How far up code and formulas (in rows of tables, often) and the text around them look for a
# container that they share.
_LEVELS_OF_CODE, _LEVELS_OF_TEXT = 8, 2
_LINKED = 0.8  # share of a block's characters in links that makes it one
_COMMENTS = NAMES.index("region_0")
_QUESTIONS, _WORDS = NAMES.index("page_questions"), NAMES.index("b_words")
_LINK_DENSITY = NAMES.index("b_link_density")
_REMARK = float(np.log1p(5.0))  # as `b_words` counts: shorter ones are names, dates and votes
_PANEL_NAME, _PANEL_ROLE = NAMES.index("region_12"), NAMES.index("flag_panel")


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


class Places(NamedTuple):
    """What the blocks of a page stand in, [n] each."""

    comments: npt.NDArray[np.bool_]
    remarks: npt.NDArray[np.bool_]  # comments on questions and answers, with words of their own
    hidden: npt.NDArray[np.bool_]  # out of sight, and nothing says that a reader can unfold it
    gutter: npt.NDArray[np.bool_]  # where line numbers or empty columns of the layout stand


def places(page: s.Page, measured: npt.NDArray[np.float32], rows: npt.NDArray[np.int64]) -> Places:
    """Where the blocks of a page stand; row `rows` [n] of `measured` has the features of each."""
    above = page.e_above[page.b_element]
    unfolds = (measured[:, _PANEL_NAME] > 0) | (measured[:, _PANEL_ROLE] > 0)
    comments = measured[:, _COMMENTS] > 0
    wordy = (measured[:, _WORDS] > _REMARK) & (measured[:, _LINK_DENSITY] < 0.5)
    remarks = comments & wordy & (measured[:, _QUESTIONS] > 0)
    return Places(
        comments[rows],
        remarks[rows],
        ((above & ANCESTOR["hidden"]) != 0) & ~unfolds[rows],
        (above & ANCESTOR["gutter"]) != 0,
    )


def line_numbers(page: s.Page, gutter: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which blocks in a gutter [n] are nothing but numbers."""
    out = np.zeros(len(gutter), np.bool_)
    for block in np.flatnonzero(gutter):
        text = page.text[page.b_start[block] : page.b_end[block]].tobytes()
        out[block] = b"".join(text.split()).isdigit()
    return out


class Fate(NamedTuple):
    """What is decided on the blocks of a page, and by what."""

    kept: npt.NDArray[np.bool_]  # [n]
    score: npt.NDArray[np.float64]  # [n] probability to be content, as the decision saw it
    threshold: npt.NDArray[np.float64]  # [n] score that the block needed
    article: bool  # held to the threshold of articles


def decide(
    probabilities: npt.NDArray[np.float64],
    page: s.Page,
    where: Places,
    decision: Decision,
    comments: bool,
) -> Fate:
    """The fate of blocks, given their probabilities [n] and what they stand in.

    A page with a sure body of text, an article, is held to a higher threshold than one on which
    nothing is certain. Where an article stands outside the comments, these need to be surer still;
    on other pages they are the page. Something is always kept.
    """
    n = len(probabilities)
    if n == 0:
        return Fate(np.zeros(0, np.bool_), probabilities, probabilities, False)
    weight = page.b_chars + 20.0 * page.b_atoms
    linked = page.b_link_chars > _LINKED * page.b_chars
    score = np.where(linked & (probabilities < decision.link_threshold), 0.0, probabilities)
    score = attached(score, page)
    score = whole_tables(score, page, linked, decision.table_share)
    score = _with_remarks(score, where, comments)
    score = _without_hidden(score, weight, where.hidden, decision)
    score[line_numbers(page, where.gutter)] = 0.0
    likely = float(weight[score >= decision.open_threshold].sum())
    sure = float(weight[score >= decision.sure_probability].sum())
    article = sure >= max(decision.article_characters, decision.sure_share * likely)
    threshold = np.full(n, decision.article_threshold if article else decision.open_threshold)
    outside = (score >= threshold) & ~where.comments
    if float(weight[outside].sum()) >= decision.article_characters:
        surer = np.maximum(threshold, decision.comment_threshold)
        threshold = np.where(where.comments, surer, threshold)
    kept = score >= threshold
    if not kept.any():
        kept = score >= score.max()
    return Fate(kept, score, threshold, article)


def _with_remarks(
    probabilities: npt.NDArray[np.float64], where: Places, comments: bool
) -> npt.NDArray[np.float64]:
    """Remarks on questions and answers are part of the page; without comments none of them is."""
    if not comments:
        return np.where(where.comments, 0.0, probabilities)
    return np.where(where.remarks, 1.0, probabilities)


def _without_hidden(
    probabilities: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    hidden: npt.NDArray[np.bool_],
    decision: Decision,
) -> npt.NDArray[np.float64]:
    """Hidden text goes, unless it is most of the page, which a script then shows as a whole."""
    if not hidden.any():
        return probabilities
    likely = np.where(probabilities >= decision.open_threshold, weight, 0.0)
    if likely[hidden].sum() > likely[~hidden].sum():
        return probabilities
    return np.where(hidden, 0.0, probabilities)
