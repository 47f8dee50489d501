"""Tell a function from another that has nearly its words.

Tokens of prose leave out operators and case. In code these decide: `a + b` is not `a - b`.
"""

from __future__ import annotations

import numpy as np
import regex

from curation.decontaminate.align import Tokens, places
from curation.decontaminate.decontaminate_settings import CodeRules

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
            changed += sum(map(_alike, folded[0][a:b], folded[1][c:d]))
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


def _alike(own: str, other: str) -> bool:
    """Whether both are operators, numbers, or words for an operation."""
    return _kind(own) == _kind(other) != "word"


def _kind(token: str) -> str:
    if token in _LOGIC:
        return "operation"
    if token[0].isdigit():
        return "number"
    return "word" if token[0].isalpha() or token[0] == "_" else "operator"
