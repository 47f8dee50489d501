"""Lines made of n-grams that the document repeats: logs, error messages, tables of readings.

The Llama 3 report (Dubey et al. 2024, section 3.1.1) removes lines by the duplicate n-gram coverage
of Gopher, without numbers; the reading here is ours. Such lines differ in numbers and dates, so
every token of digits counts as the same token. An n-gram lies within one line.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from curation.filters.scratch import begin
from curation.filters.tables import intern
from curation.text.words import finish

REASON = "llama3.line_ngram_coverage"

_NONE = -1


class LineNgrams(NamedTuple):
    """Settings in the form kernels take; see settings.LineNgramSettings."""

    n: int
    min_count: int
    max_coverage: float


@numba.njit(cache=True, nogil=True)
def cover_lines(size, scratch, n_lines, rule, coverage, characters):  # type: ignore[no-untyped-def]
    """Per line: share of its token characters in n-grams that the document holds `min_count` times.

    Writes float `coverage` and int `characters` of the tokens of each line. Lines are
    `scratch.feeds`, in the order of the text, and hold all tokens; tokens are classified.
    """
    n = rule.n
    tokens, distinct, classes = scratch.tokens, scratch.distinct, scratch.classes
    grams, interner, lines = scratch.grams, scratch.interner, scratch.feeds
    stamp, mask = begin(interner, size)
    fresh = 0
    line = 0
    for i in range(size):  # number the line of each token: grams.marks
        while line + 1 < n_lines and tokens.starts[i] >= lines.starts[line + 1]:
            line += 1
        grams.marks[i] = line
    run = 0  # tokens up to here, of one line, that are frequent enough each by itself
    for end in range(size):
        grams.at[end] = _NONE
        if end and grams.marks[end] != grams.marks[end - 1]:
            run = 0
        common = classes.counts[distinct.classes[tokens.ids[end]]] >= rule.min_count
        run = run + 1 if common else 0
        if run < n:
            continue
        i = end + 1 - n
        h = np.uint64(n)
        for k in range(i, end + 1):
            token = np.uint64(distinct.classes[tokens.ids[k]])
            h = (h ^ token) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        k = intern(finish(h), interner.keys, interner.ids, interner.stamps, stamp, mask, fresh)
        if k == fresh:
            grams.counts[k] = 0
            fresh += 1
        grams.counts[k] += 1
        grams.at[i] = k
    for k in range(n_lines):
        coverage[k] = 0.0
        characters[k] = 0
    until = 0
    for i in range(size):
        if grams.at[i] != _NONE and grams.counts[grams.at[i]] >= rule.min_count:
            until = i + n
        line = grams.marks[i]
        characters[line] += tokens.chars[i]
        if i < until:
            coverage[line] += tokens.chars[i]
    for k in range(n_lines):
        if characters[k]:
            coverage[k] /= characters[k]


@numba.njit(cache=True, nogil=True)
def measure_line_ngrams(size, n_lines, scratch, rule, coverage, counts, out):  # type: ignore[no-untyped-def]
    """Fill out[0]: share of the text's token characters in lines covered beyond `max_coverage`."""
    cover_lines(size, scratch, n_lines, rule, coverage, counts)
    total = 0
    lost = 0
    for k in range(n_lines):
        total += counts[k]
        if coverage[k] > rule.max_coverage:
            lost += counts[k]
    out[0] = lost / total if total else np.nan
