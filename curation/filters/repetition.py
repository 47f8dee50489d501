"""Repetition within a document: duplicate lines, paragraphs and n-grams of words.

The measurements are those of Gopher (Rae et al. 2021, table A1), in the meanings that tools gave
them (docs/filters.md lists the differences). One pass per n suffices because an (n+1)-gram can only
repeat where its first n words do: the positions still in play shrink quickly as n grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curation.bytes.hash_tables import intern, scrambled
from curation.compiled import Bool, Bytes, Float, Float64s, Int, Record, Uint16s, borrowing, inlined
from curation.filters.dialects import DATATROVE, DCLM, DOLMA, NEMO
from curation.filters.scratch import begin, begin_counts, count_up, with_room
from curation.hashing import xxh64
from curation.text.lines import characters, paragraphs, strip_left, strip_right
from curation.text.words import IS_SINGLE

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Grams, Interner, Lines, Scratch, Tokens
    from curation.filters.signals import Kit

_LF = 10
_BLANK = 0x20
_SHIFT = np.uint64(32)


@borrowing
def merge_empty(n: Int, source: Lines, lines: Lines) -> Int:
    """Pieces that a split at runs of line feeds would give, from those between single ones."""
    kept = 0
    for i in range(n):
        inner = i > 0 and i < n - 1
        if inner and source.starts[i] == source.ends[i]:
            continue
        lines.starts[kept] = source.starts[i]
        lines.ends[kept] = source.ends[i]
        kept += 1
    return kept


@borrowing
def duplicate_pieces(
    data: Bytes, n: Int, lines: Lines, space: Scratch, every: Bool
) -> tuple[Int, Int]:
    """(number, characters) of the pieces that repeat an earlier one; of all copies if `every`."""
    interner, grams = space.interner, space.grams
    mask = begin(interner)
    fresh = 0
    copies = 0
    chars = 0
    for i in range(n):
        h = xxh64(data, lines.starts[i], lines.ends[i], np.uint64(0))
        k = intern(h, interner.slots, interner.keys, mask, fresh)
        if k == fresh:
            grams.counts[k] = 0
            grams.firsts[k] = i
            fresh += 1
            mask = with_room(interner, mask, fresh)
        elif not every:
            copies += 1
            chars += characters(data, lines.starts[i], lines.ends[i])
        grams.counts[k] += 1
    if every:
        for k in range(fresh):
            if grams.counts[k] > 1:
                i = grams.firsts[k]
                copies += grams.counts[k]
                chars += grams.counts[k] * characters(data, lines.starts[i], lines.ends[i])
    return copies, chars


@inlined
def _key(n: Int, i: Int, tokens: Tokens, grams: Grams) -> Int:
    """The n-gram at token i, by its first n - 1 tokens and the last."""
    return (np.uint64(grams.at[i]) << _SHIFT) | np.uint64(tokens.ids[i + n - 1])


@borrowing
def _drop_single(n: Int, active: Int, size: Int, space: Scratch) -> Int:
    """Keep the active positions whose n-gram may occur again; return how many.

    Most n-grams of a text occur once; none of these needs a place in the table.
    """
    tokens, grams, counts = space.tokens, space.grams, space.bytes
    last = size - n
    kept = 0
    for a in range(active):
        i = grams.active[a]
        if i <= last and space.distinct.counts[tokens.ids[i + n - 1]] > 1:
            grams.active[kept] = i
            kept += 1
    active, kept = kept, 0
    mask = begin_counts(counts, active)
    for a in range(active):
        place = scrambled(_key(n, grams.active[a], tokens, grams)) & mask
        count_up(counts, np.int64(place), 2)
    for a in range(active):
        i = grams.active[a]
        if counts[scrambled(_key(n, i, tokens, grams)) & mask] > 1:
            grams.active[kept] = i
            kept += 1
    return kept


@borrowing
def _grow(n: Int, active: Int, tokens: Tokens, interner: Interner, grams: Grams) -> Int:
    """Turn (n-1)-grams into n-grams at the first `active` positions; return distinct n-grams."""
    mask = begin(interner)
    fresh = 0
    for a in range(active):
        i = grams.active[a]
        key = _key(n, i, tokens, grams)
        k = intern(key, interner.slots, interner.keys, mask, fresh)
        if k == fresh:
            grams.counts[k] = 0
            grams.firsts[k] = i
            fresh += 1
            mask = with_room(interner, mask, fresh)
        grams.counts[k] += 1
        grams.at[i] = k
    return fresh


@inlined
def _length(tokens: Tokens, i: Int, n: Int) -> Int:
    return tokens.before[i + n] - tokens.before[i]


@borrowing
def _literal_copies(data: Bytes, begin: Int, end: Int, tokens: Tokens, first: Int, n: Int) -> Int:
    """How often n words, a blank between each two, follow each other in the text, as
    str.replace finds them: also inside of longer words, not across other white space."""
    found = 0
    i = begin
    while i < end:
        at = i
        for k in range(first, first + n):
            if k > first:
                if at >= end or data[at] != _BLANK:
                    at = -1
                    break
                at += 1
            for source in range(tokens.starts[k], tokens.ends[k]):
                if at >= end or data[at] != data[source]:
                    at = -1
                    break
                at += 1
            if at < 0:
                break
        if at < 0:
            i += 1
        else:
            found += 1
            i = at
    return found


@borrowing
def _top(
    data: Bytes, doc: Document, n: Int, distinct_grams: Int, space: Scratch, dialect: Int
) -> Int:
    """Characters in all copies of the most frequent n-gram."""
    tokens, grams = space.tokens, space.grams
    best = 1
    first = 0
    for k in range(distinct_grams):
        i = grams.firsts[k]
        if grams.counts[k] > best:
            best = grams.counts[k]
            first = i
        elif (
            dialect == DCLM
            and grams.counts[k] == best > 1
            and _length(tokens, i, n) > _length(tokens, first, n)
        ):
            first = i
    if dialect == DATATROVE:  # a single occurrence counts too
        # The tokens are joined by spaces, but letters of unspaced scripts by nothing, unless the
        # tokens are another tool's words, which joins all of them by spaces.
        joined = _length(tokens, first, n) + n - 1
        for i in range(first, first if doc.supplied else first + n - 1):
            joined -= tokens.flags[i] & tokens.flags[i + 1] & IS_SINGLE != 0
        return best * joined
    if dialect == NEMO:
        copies = _literal_copies(data, doc.begin, doc.end, tokens, first, n)
        return copies * (_length(tokens, first, n) + n - 1)
    if dialect == DCLM and best == 1:
        return 0
    return best * _length(tokens, first, n)


@borrowing
def _duplicated(
    n: Int, active: Int, distinct_grams: Int, tokens: Tokens, grams: Grams, dialect: Int
) -> Int:
    """Characters in repeated n-grams; `grams.active` holds just the repeated positions."""
    total = 0
    if dialect == DOLMA:
        for a in range(active):
            total += _length(tokens, grams.active[a], n)
        return total
    if dialect == DCLM:  # union of the words covered
        covered = 0
        for a in range(active):
            i = grams.active[a]
            start = max(covered, i)
            covered = i + n
            total += _length(tokens, start, covered - start)
        return total
    for k in range(distinct_grams):
        grams.marks[k] = 0
    free = 0
    if dialect == NEMO:  # words of later copies, each once, with the blanks before new ones
        for a in range(active):
            i = grams.active[a]
            if grams.marks[grams.at[i]]:
                start = max(free, i)
                free = i + n
                total += _length(tokens, start, free - start) + min(free - start, n - 1)
            grams.marks[grams.at[i]] = 1
        return total
    for a in range(active):
        i = grams.active[a]
        if i < free:
            continue
        if grams.marks[grams.at[i]]:
            total += _length(tokens, i, n)
            free = i + n
        else:
            grams.marks[grams.at[i]] = 1
    return total


@borrowing
def _measure_ngrams(
    data: Bytes, doc: Document, space: Scratch, dialect: Int, shares: Float64s
) -> None:
    """Fill `shares` of the top 2..4-grams and the repeated 5..10-grams, the value of n at n - 2.

    Where a text has fewer words, the share is 0, but 1 with NeMo Curator.
    """
    tokens, grams, distinct = space.tokens, space.grams, space.distinct
    size = doc.tokens
    active = 0
    for i in range(size):
        grams.at[i] = tokens.ids[i]
        if distinct.counts[tokens.ids[i]] > 1:
            grams.active[active] = i
            active += 1
    whole = doc.characters if dialect == DATATROVE or dialect == NEMO else tokens.before[size]
    for n in range(2, 11):
        if size < n or whole == 0:
            shares[n - 2] = 1.0 if dialect == NEMO else 0.0
            continue
        active = _drop_single(n, active, size, space)
        fresh = _grow(n, active, tokens, space.interner, grams)
        if n <= 4:
            top = _top(data, doc, n, fresh, space, dialect)
            shares[n - 2] = top / whole
        kept = 0
        for a in range(active):
            i = grams.active[a]
            if grams.counts[grams.at[i]] > 1:
                grams.active[kept] = i
                kept += 1
        active = kept
        if n > 4:
            if dialect == DOLMA:
                whole = 0
                for i in range(size - n + 1):
                    whole += _length(tokens, i, n)
            shares[n - 2] = _duplicated(n, active, fresh, tokens, grams, dialect) / whole


@borrowing
def drop_blank(data: Bytes, n: Int, source: Lines, lines: Lines, properties: Uint16s) -> Int:
    """Write the pieces that hold more than white space to `lines`; return how many there are."""
    kept = 0
    for i in range(n):
        if strip_left(data, source.starts[i], source.ends[i], properties) < source.ends[i]:
            lines.starts[kept] = source.starts[i]
            lines.ends[kept] = source.ends[i]
            kept += 1
    return kept


@borrowing
def double_feeds(data: Bytes, begin: Int, end: Int, lines: Lines) -> Int:
    """Pieces between pairs of line feeds, taken from the left."""
    n = 0
    start = begin
    i = begin
    while i < end:
        if data[i] == _LF and i + 1 < end and data[i + 1] == _LF:
            lines.starts[n] = start
            lines.ends[n] = i
            n += 1
            i += 2
            start = i
        else:
            i += 1
    lines.starts[n] = start
    lines.ends[n] = end
    return n + 1


@borrowing
def _piece_shares(
    data: Bytes, n: Int, whole: Int, space: Scratch, every: Bool
) -> tuple[Float, Float]:
    """(share of the pieces that are copies, of the characters that are in these)."""
    copies, chars = duplicate_pieces(data, n, space.lines, space, every)
    return copies / max(n, 1), chars / max(whole, 1)


@borrowing
def _dclm_shares(
    data: Bytes, n: Int, source: Lines, properties: Uint16s, space: Scratch
) -> tuple[Float, Float]:
    """Pieces are stripped, and blank ones don't count."""
    lines = space.lines
    n = drop_blank(data, n, source, lines, properties)
    whole = 0
    for i in range(n):
        lines.starts[i] = strip_left(data, lines.starts[i], lines.ends[i], properties)
        lines.ends[i] = strip_right(data, lines.starts[i], lines.ends[i], properties)
        whole += characters(data, lines.starts[i], lines.ends[i])
    return _piece_shares(data, n, whole, space, True)


@borrowing
def _nemo_shares(data: Bytes, n: Int, space: Scratch) -> tuple[Float, Float]:
    """What would go if each piece were there once; NaN where there is nothing."""
    lines = space.lines
    whole = 0
    for i in range(n):
        whole += characters(data, lines.starts[i], lines.ends[i])
    copies, chars = duplicate_pieces(data, n, lines, space, False)
    return copies / n if n else np.nan, chars / whole if whole else np.nan


@borrowing
def _measure_pieces(
    data: Bytes, doc: Document, kit: Kit, space: Scratch
) -> tuple[tuple[Float, Float], tuple[Float, Float]]:
    """`_piece_shares` of lines, and of paragraphs.

    Dolma measures no paragraphs: NaN.
    """
    lines, feeds, properties, dialect = space.lines, space.feeds, kit.properties, kit.repetition
    n = doc.feeds
    if dialect == DCLM:
        of_lines = _dclm_shares(data, n, feeds, properties, space)
        n = double_feeds(data, doc.begin, doc.end, lines)
        of_paragraphs = _dclm_shares(data, n, lines, properties, space)
    elif dialect == NEMO:
        of_lines = _nemo_shares(data, drop_blank(data, n, feeds, lines, properties), space)
        of_paragraphs = _nemo_shares(data, double_feeds(data, doc.begin, doc.end, lines), space)
    elif dialect == DOLMA:
        for i in range(n):
            lines.starts[i], lines.ends[i] = feeds.starts[i], feeds.ends[i]
        of_lines = _piece_shares(data, n, space.tokens.before[doc.tokens], space, True)
        of_paragraphs = (np.nan, np.nan)
    else:
        n = merge_empty(n, feeds, lines)
        of_lines = _piece_shares(data, n, doc.characters, space, False)
        n = paragraphs(data, doc.begin, doc.end, properties, lines.starts, lines.ends)
        of_paragraphs = _piece_shares(data, n, doc.characters, space, False)
    return of_lines, of_paragraphs


@borrowing
def measure(
    data: Bytes, doc: Document, kit: Kit, space: Scratch, row: Record, shares: Float64s
) -> None:
    """Measure what is repeated in tokens as the dialect of `kit` has them, n-grams to `shares`."""
    of_lines, of_paragraphs = _measure_pieces(data, doc, kit, space)
    row.repetition_dup_line, row.repetition_dup_line_chars = of_lines
    row.repetition_dup_para, row.repetition_dup_para_chars = of_paragraphs
    _measure_ngrams(data, doc, space, kit.repetition, shares)
