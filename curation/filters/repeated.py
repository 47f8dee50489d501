"""Passages that a document holds again: both layouts of a page, a teaser, a quoted post.

A passage is a run of lines, white space around them and blank lines aside, that equal lines further
up which follow each other just so. The first of all copies stays. Gopher's rules would remove the
document whole, though one copy of it is often a good text. The rule and its limits are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curation.bytes.hash_tables import intern
from curation.compiled import Bool, Bools, Bytes, Int, Int32s, Uint16s, borrowing
from curation.filters.filter_settings import CopySettings
from curation.filters.scratch import begin, number_tokens, token_characters
from curation.hashing import xxh64
from curation.text import characters as ch
from curation.text.lines import breadth, strip_left, strip_right

if TYPE_CHECKING:
    from curation.filters.scratch import Scratch

REASON = "copies.passage"

_SPACE = ch.SPACE


class Copies(NamedTuple):
    """Settings in the form kernels take."""

    wanted: bool
    min_characters: int
    max_share: float


def copies(settings: CopySettings | None) -> Copies:
    """The settings as kernels take them; None wants no cuts."""
    if settings is None:
        return Copies(False, 0, 0.0)
    return Copies(True, settings.min_characters, settings.max_share)


@borrowing
def find_copies(data: Bytes, lines: Int, properties: Uint16s, rule: Copies, space: Scratch) -> Bool:
    """Fill `space.copied`: whether each of `space.breaks` is part of a copy; return if any is.

    A run is sought where its first line occurs first, so that every line is looked at
    once: O(bytes).
    """
    starts, ends, copied = space.breaks.starts, space.breaks.ends, space.copied
    copied[:lines] = False
    if not rule.wanted:
        return False
    place, firsts = space.lines.starts, space.grams.firsts  # of line j among all; of a kind of line
    size, first = space.grams.counts, space.grams.at
    table = space.interner
    mask = begin(table, lines)
    n = 0  # lines that are not blank
    kinds = 0
    total = 0
    for k in range(lines):
        a = strip_left(data, starts[k], ends[k], properties)
        b = strip_right(data, a, ends[k], properties)
        if a == b:
            continue
        h = xxh64(data, a, b, np.uint64(0))
        kind = intern(h, table.slots, table.keys, mask, kinds)
        if kind == kinds:
            firsts[kind] = n
            kinds += 1
        first[n] = kind
        place[n] = k
        n += 1
    if kinds == n:
        return False
    for j in range(n):
        if firsts[first[j]] == j:
            line = place[j]
            size[first[j]] = breadth(data, starts[line], ends[line], properties, _SPACE)
        total += size[first[j]]
    lost = _mark_runs(n, first, firsts, size, place, rule.min_characters, copied)
    if lost <= rule.max_share * total:
        return lost > 0
    copied[:lines] = False
    return False


@borrowing
def _mark_runs(
    n: Int, kind: Int32s, firsts: Int32s, size: Int32s, place: Int32s, least: Int, copied: Bools
) -> Int:
    """Mark the lines of all runs that are long enough; return their characters."""
    lost = 0
    j = 0
    while j < n:
        source = firsts[kind[j]]
        if source == j:
            j += 1
            continue
        begin_run = j
        length = 0
        while j < n and kind[j] == kind[source]:
            length += size[kind[j]]
            j += 1
            source += 1
        if length >= least:
            lost += length
            for i in range(begin_run, j):
                copied[place[i]] = True
    return lost


@borrowing
def drop_tokens(n: Int, space: Scratch) -> tuple[Int, Int]:
    """Leave out the tokens of copied lines; return how many are left, and how many kinds."""
    tokens, lines = space.tokens, space.breaks
    kept = 0
    line = 0
    for i in range(n):
        while tokens.starts[i] >= lines.ends[line]:
            line += 1
        if space.copied[line]:
            continue
        # those that stay follow each other
        tokens.before[kept + 1] = tokens.before[kept] + token_characters(tokens, i)
        tokens.starts[kept], tokens.ends[kept] = tokens.starts[i], tokens.ends[i]
        tokens.flags[kept] = tokens.flags[i]
        tokens.hashes[kept], tokens.lows[kept] = tokens.hashes[i], tokens.lows[i]
        kept += 1
    return kept, number_tokens(kept, tokens, space.distinct, space.interner)
