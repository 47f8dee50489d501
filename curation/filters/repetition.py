"""Repetition within a document: duplicate lines, paragraphs and n-grams of words.

The measurements are those of Gopher (Rae et al. 2021, table A1) as datatrove means them. One pass
per n suffices because an (n+1)-gram can only repeat where its first n words do: the positions still
in play shrink quickly as n grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curation.bytes.hash_tables import intern, scrambled
from curation.compiled import Bytes, Float, Float64s, Int, Record, borrowing, inlined
from curation.filters.scratch import begin, begin_counts, with_room
from curation.hashing import xxh64
from curation.text.lines import characters, paragraphs, strip_left, strip_right
from curation.text.words import IS_SINGLE

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Grams, Lines, Scratch, Tokens
    from curation.filters.signals import Kit

_SHIFT = np.uint64(32)


@borrowing
def merge_empty(n: Int, source: Lines, lines: Lines) -> Int:
    """Pieces that a split at runs of line feeds would give, from those between single ones."""
    kept = 0
    for i in range(n):
        if 0 < i < n - 1 and source.starts[i] == source.ends[i]:
            continue
        lines.starts[kept] = source.starts[i]
        lines.ends[kept] = source.ends[i]
        kept += 1
    return kept


@borrowing
def copied_pieces(data: Bytes, n: Int, whole: Int, space: Scratch) -> tuple[Float, Float]:
    """(share of the pieces that repeat an earlier one, of the characters that are in these)."""
    lines, interner = space.lines, space.interner
    mask = begin(interner, n)
    fresh = 0
    copies = 0
    chars = 0
    for i in range(n):
        h = xxh64(data, lines.starts[i], lines.ends[i], np.uint64(0))
        k = intern(h, interner.slots, interner.keys, mask, fresh)
        if k == fresh:
            fresh += 1
        else:
            copies += 1
            chars += characters(data, lines.starts[i], lines.ends[i])
    return copies / max(n, 1), chars / max(whole, 1)


@inlined
def _key(n: Int, i: Int, tokens: Tokens, grams: Grams) -> Int:
    """The n-gram at token i, by its first n - 1 tokens and the last."""
    first, last = np.uint64(i), np.uint64(i + n - 1)
    return (np.uint64(grams.at[first]) << _SHIFT) | np.uint64(tokens.ids[last])


@borrowing
def _drop_single(n: Int, active: Int, size: Int, space: Scratch) -> Int:
    """Keep the active positions whose n-gram may occur again; return how many.

    Most n-grams of a text occur once; none of these needs a place in the table.
    """
    tokens, grams, counts = space.tokens, space.grams, space.bytes
    places = grams.marks
    while active and grams.active[active - 1] > size - n:
        active -= 1
    kept = 0
    mask = begin_counts(counts, active)
    for a in range(active):
        i = grams.active[np.uint64(kept)] = grams.active[a]
        wanted = space.distinct.counts[tokens.ids[np.uint64(i + n - 1)]] > 1
        place = scrambled(_key(n, i, tokens, grams)) & mask
        places[np.uint64(kept)] = place
        counts[place] += counts[place] < 2 * wanted
        kept += wanted
    active, kept = kept, 0
    for a in range(active):
        grams.active[np.uint64(kept)] = grams.active[a]
        kept += counts[np.uint64(places[a])] > 1
    return kept


@borrowing
def _top(n: Int, distinct_grams: Int, tokens: Tokens, grams: Grams) -> Int:
    """Characters in all copies of the most frequent n-gram; a single occurrence counts, too."""
    best = 1
    first = 0
    for k in range(distinct_grams):
        if grams.counts[k] > best:
            best = grams.counts[k]
            first = grams.firsts[k]
    # The tokens are joined by spaces, but letters of unspaced scripts by nothing.
    joined = tokens.before[first + n] - tokens.before[first] + n - 1
    for i in range(first, first + n - 1):
        joined -= tokens.flags[i] & tokens.flags[i + 1] & IS_SINGLE != 0
    return best * joined


@borrowing
def _duplicated(n: Int, active: Int, distinct_grams: Int, tokens: Tokens, grams: Grams) -> Int:
    """Characters in repeated n-grams; `grams.active` holds just the repeated positions."""
    total = 0
    for k in range(distinct_grams):
        grams.marks[k] = 0
    free = 0
    for a in range(active):
        i = grams.active[a]
        if i < free:
            continue
        if grams.marks[grams.at[i]]:
            total += tokens.before[i + n] - tokens.before[i]
            free = i + n
        else:
            grams.marks[grams.at[i]] = 1
    return total


@borrowing
def _measure_ngrams(doc: Document, space: Scratch, shares: Float64s) -> None:
    """Fill `shares` of the top 2..4-grams and the repeated 5..10-grams, the value of n at n - 2.

    Where a text has fewer words, the share is 0.
    """
    tokens, grams, distinct = space.tokens, space.grams, space.distinct
    size = doc.tokens
    active = 0
    for i in range(size):
        grams.at[i] = tokens.ids[i]
        if distinct.counts[tokens.ids[i]] > 1:
            grams.active[active] = i
            active += 1
    for n in range(2, 11):
        if size < n:
            shares[n - 2] = 0.0
            continue
        active = _drop_single(n, active, size, space)
        mask = begin(space.interner, active // 2)  # most are there twice
        fresh = 0
        for a in range(active):
            i = grams.active[a]
            key = _key(n, i, tokens, grams)
            k = intern(key, space.interner.slots, space.interner.keys, mask, fresh)
            if k == fresh:
                grams.counts[k] = 0
                grams.firsts[k] = i
                fresh += 1
                mask = with_room(space.interner, mask, fresh)
            grams.counts[np.uint64(k)] += 1
            grams.at[np.uint64(i)] = k
        if n <= 4:
            shares[n - 2] = _top(n, fresh, tokens, grams) / doc.characters
        kept = 0
        for a in range(active):
            i = grams.active[np.uint64(kept)] = grams.active[a]
            kept += grams.counts[np.uint64(grams.at[np.uint64(i)])] > 1
        active = kept
        if n > 4:
            shares[n - 2] = _duplicated(n, active, fresh, tokens, grams) / doc.characters


@borrowing
def measure(
    data: Bytes, doc: Document, kit: Kit, space: Scratch, row: Record, shares: Float64s
) -> None:
    """Measure what is repeated in tokens, lines and paragraphs; n-grams to `shares`."""
    lines, whole = space.lines, doc.characters
    n = merge_empty(doc.feeds, space.feeds, lines)
    row.repetition_dup_line, row.repetition_dup_line_chars = copied_pieces(data, n, whole, space)
    row.repetition_dup_para = row.repetition_dup_para_chars = 0.0
    begin, end, properties = doc.begin, doc.end, kit.properties
    padded = strip_left(data, begin, end, properties) > begin
    padded = padded or strip_right(data, begin, end, properties) < end
    if padded or row.repetition_dup_line:  # else no paragraph's first line is there twice
        n = paragraphs(data, begin, end, properties, lines.starts, lines.ends)
        row.repetition_dup_para, row.repetition_dup_para_chars = copied_pieces(
            data, n, whole, space
        )
    _measure_ngrams(doc, space, shares)
