"""Align a match with its item, and tell an edited item from another text with most of its words.

Such are functions with nearly the same words, and items made from one template."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from curation.compiled import Int64s, Uint32s, kernel
from curation.decontaminate.decontaminate_settings import CodeRules, SourceRules, TemplateRules
from curation.decontaminate.index import NUMBER

Tokens = npt.NDArray[np.uint32]
#: Tokens that are aligned at once, with twice as many of the other sequence.
PIECE = 1024
_UP, _LEFT, _MATCH = 0, 1, 2


def places(own: Tokens, other: Tokens) -> npt.NDArray[np.int64]:
    """Return where in the other sequence each token is, -1 where it is not.

    Matches are as many as can be; those that go on count a little more. Longer sequences are
    aligned piece by piece, so that time is linear: the next piece begins in the middle of one.
    """
    found = np.full(len(own), -1, np.int64)
    i = j = 0
    while i < len(own):
        some = found[i : i + PIECE]
        _align(own[i : i + PIECE], other[j : j + 2 * PIECE], some)
        if i + PIECE < len(own):
            some[PIECE // 2 :] = -1
            some = some[: PIECE // 2]
        matched = some >= 0
        some[matched] += j
        i += len(some)
        j = int(some.max(initial=j - 1)) + 1
    return found


@kernel
def _align(own: Uint32s, other: Uint32s, found: Int64s) -> None:
    n, m = len(own), len(other)
    best = np.zeros((n + 1, m + 1), np.int32)
    step = np.zeros((n + 1, m + 1), np.uint8)
    step[0] = _LEFT
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            up, left = best[i - 1, j], best[i, j - 1]
            if up >= left:
                best[i, j], step[i, j] = up, _UP
            else:
                best[i, j], step[i, j] = left, _LEFT
            if own[i - 1] == other[j - 1]:
                goes_on = i > 1 and j > 1 and step[i - 1, j - 1] == _MATCH
                score = best[i - 1, j - 1] + (3 if goes_on else 2)
                if score >= best[i, j]:
                    best[i, j], step[i, j] = score, _MATCH
    i, j = n, m
    found[:] = -1
    while i > 0:
        if step[i, j] == _MATCH:
            i -= 1
            j -= 1
            found[i] = j
        elif step[i, j] == _LEFT:
            j -= 1
        else:
            i -= 1


#: A line that begins as definitions, imports and statements do in the usual languages.
_STATEMENT = regex.compile(
    r"(?m)^[ \t]*(?:(?:async )?def \w+\(|class \w+.*[:{]$|import [\w.{*]|from [\w.]+ import "
    r"|#include"
    r"|(?:export |async )*function\b.*\(|(?:public|private|static|const|var|let|func|fn) .*[({;=]"
    r"|(?:int|void|char|double|float|bool|long|string) \w+.*[({;=]|return\b.*;?$)"
)
_TOKEN = regex.compile(
    r"[^\W\d]\w*|\d+(?:\.\d+)?|[=!<>]=|->|\*\*|//|&&|\|\||<<|>>+|[-+*/%<>=!&|^~]"
)
#: Words that stand for an operation: one in place of another is another function.
_LOGIC = frozenset(
    "and or not in is if else elif while for true false none null break continue "
    "min max all any append insert extend lower upper start end left right first last".split()
)


def is_code(text: str) -> bool:
    """Return whether a text has the shape of code."""
    return _STATEMENT.search(text) is not None


def is_other_code(item: str, span: str, rules: CodeRules) -> bool:
    """Return whether a span has other operators, numbers or cases of letters than an item of code.

    Only a token in the place of another of its kind counts: comments and line numbers are
    insertions, and what edits a text as prose puts words in the place of words.
    """
    own, other = _TOKEN.findall(item), _TOKEN.findall(span)
    folded = [[token.lower() for token in tokens] for tokens in (own, other)]
    at = places(*_numbered(*folded))
    matched = [(k, int(at[k])) for k in np.flatnonzero(at >= 0).tolist()]
    changed = a = c = 0  # a and c: behind the tokens that are equal
    for b, d in [*matched, (len(own), len(other))]:
        if b - a == d - c:
            pairs = zip(map(_kind, folded[0][a:b]), map(_kind, folded[1][c:d]), strict=True)
            # Both are operators, numbers, or words for an operation.
            changed += sum(mine == its != "word" for mine, its in pairs)
        a, c = b + 1, d + 1
    words = sum(own[k][0].isalpha() for k, _ in matched)
    # Those that are equal only without case, wherever else one in its own case may be.
    cased = len(matched) - int((places(*_numbered(own, other)) >= 0).sum())
    if cased <= rules.restyled * words:
        changed += cased
    return changed > rules.edited * len(own)


def _numbered(*sequences: list[str]) -> list[Tokens]:
    """The sequences as numbers of their tokens."""
    numbers: dict[str, int] = {}
    return [
        np.array([numbers.setdefault(t, len(numbers)) for t in tokens], np.uint32)
        for tokens in sequences
    ]


def _kind(token: str) -> str:
    if token in _LOGIC:
        return "operation"
    if token[0].isdigit():
        return "number"
    return "word" if token[0].isalpha() or token[0] == "_" else "operator"


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


def is_renumbered(
    own: Tokens, weights: Weights, span: Tokens, digits: npt.NDArray[np.bool_], least: float
) -> bool:
    """Whether the share `least` of the numbers are others: edits of a text leave these alone."""
    at, numbers = places(own[:PIECE], span[:PIECE]), weights & NUMBER != 0
    before, after = at[:-2], at[2:]
    replaced = (before >= 0) & (at[1:-1] < 0) & (after == before + 2) & numbers[1 : len(at) - 1]
    others = int(digits[before[replaced] + 1].sum())
    return others > 0 and others >= least * int(numbers.sum())


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
