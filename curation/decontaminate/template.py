"""Decide whether a match is an edited item, or another text that has most of its words.

Edits fall anywhere. Another item of a template differs only where items of the template differ. So
the tokens of an item that are lost at a place are compared with those in which it differs from
other items that fit there. A sentence that a question asks about differs from it in one piece: its
end, its beginning, or what the question puts in the place of the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.decontaminate.align import PIECE, Tokens, places
from curation.decontaminate.decontaminate_settings import SourceRules, TemplateRules
from curation.decontaminate.index import NUMBER

Weights = npt.NDArray[np.uint8]
#: Other items that are compared.
_MOST_RIVALS = 32


class Rival(NamedTuple):
    """Another item of the set that fits the same place."""

    score: float
    tokens: Tokens


def is_template(
    own: Tokens, span: Tokens, score: float, rivals: Sequence[Rival], rules: TemplateRules
) -> bool:
    """Whether the span, in which an item's tokens have the score, is of another item.

    It is where edits would not fall so often on just those tokens in which rivals differ. Where
    only such are lost, but too few to be unlikely, it is if several rivals fit about as well.
    `rivals`: best first.
    """
    if not rivals:
        return False
    lost = losses(own, span)
    differ = np.logical_or.reduce([losses(own, rival.tokens) for rival in rivals[:_MOST_RIVALS]])
    inside = int((lost & differ).sum())
    if _tail(len(lost), int(differ.sum()), int(lost.sum()), inside) < rules.unlikely:
        return True
    alike = sum(rival.score >= score - rules.less for rival in rivals)
    return bool(inside == lost.sum() and score < rules.unique and alike >= rules.alike)


def is_source(
    own: Tokens, weights: Weights, span: Tokens, score: float, words: int, rules: SourceRules
) -> bool:
    """Whether the span lacks one piece of the item's `words`, where edits would not fall together.

    A scan statistic: the probability that so many lost words are within so many neighbours. A piece
    of a template, such as its options, says nothing. Numbers in a row, as of a date, are a word.
    """
    lost = losses(own, span) if score < rules.whole else np.zeros(0, np.bool_)
    bits, is_number = weights & (NUMBER - 1), weights & NUMBER != 0
    if not lost.any() or bits[: len(lost)][lost].mean() < rules.light * bits.mean():
        return False
    begins = ~is_number[: len(lost)]
    begins[0] = True
    begins[1:] |= ~is_number[: len(lost) - 1]
    unit = np.cumsum(begins) - 1
    places = np.unique(unit[lost])
    units = int(unit[-1]) + 1
    reach = units + 1 - int(np.diff(places, append=places[0] + units).max())
    at_end = places[0] == 0 or places[-1] == units - 1
    # Letters of scripts without spaces are parts of words.
    scale = min(1, words / len(own))
    n, k, reach = round(units * scale), int(len(places) * scale), math.ceil(reach * scale)
    if not (rules.at_end if at_end else rules.inside) <= k < n:
        return False
    windows = reach + 1 if at_end else n
    return windows * math.comb(reach - 1, k - 1) / math.comb(n, k) < rules.unlikely


def _tail(tokens: int, marked: int, drawn: int, found: int) -> float:
    """Probability of `found` or more marked ones among `drawn` of the tokens (hypergeometric)."""
    ways = (
        math.comb(marked, k) * math.comb(tokens - marked, drawn - k)
        for k in range(found, min(marked, drawn) + 1)
    )
    return sum(ways) / math.comb(tokens, drawn)


def losses(own: Tokens, other: Tokens) -> npt.NDArray[np.bool_]:
    """Return which tokens are not in the other sequence, or are followed there by an insertion.

    Of longer sequences only `PIECE` tokens are compared.
    """
    at = places(own[:PIECE], other[:PIECE])
    lost: npt.NDArray[np.bool_] = at < 0
    lost[:-1] |= ~lost[1:] & (at[1:] > at[:-1] + 1)
    return lost
