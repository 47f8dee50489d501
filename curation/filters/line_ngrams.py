"""Lines made of n-grams that the document repeats: logs, error messages, forms filled in.

The Llama 3 report (Dubey et al. 2024, section 3.1.1) removes lines by the duplicate n-gram coverage
of Gopher, without numbers; the reading here is ours. Such lines differ in numbers and dates, so an
n-gram is n words of one line whatever numbers and symbols are between them. Tables are no such
lines: numbers and symbols alone make no n-gram, and neither do words that hold fewer characters
than the numbers between them, as units do (`3.5 mm 4.1 mm`).

A letter of a script written without spaces is a part of a word, so that an
n-gram is about as much text in every script: else four letters would be an n-gram, and a long
document holds most of those four times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curation.bytes.hash_tables import intern, scrambled
from curation.compiled import Bool, Float, Int, borrowing, inlined
from curation.filters.scratch import begin, begin_counts, token_characters, with_room
from curation.text.words import HAS_ALPHA, HAS_NUMBER, IS_SINGLE, IS_SPELLING, finish

if TYPE_CHECKING:
    from curation.filters.scratch import Scratch

REASON = "llama3.line_ngram_coverage"

_NONE = -1
_MOST_SEEN = 255  # of a small count


class LineNgrams(NamedTuple):
    """Limits of the rule, ours; text is measured in a common part of words and letters.

    XQuAD in Chinese and Thai has 1.7 and 4.3 words and symbols for one in eight spaced languages.
    """

    length: int = 16  # of an n-gram: four words
    word: int = 4
    letter: int = 2  # of Han, kana, bopomofo
    spelling_letter: int = 1  # of Thai, Lao, Khmer, Myanmar
    min_count: int = 4  # times the document must have an n-gram
    max_coverage: float = 0.6  # beyond this share a line is dropped
    #: Such lines that must follow each other, blank ones aside, to be cut: of 2,128 pages' runs,
    #: all but one below were read to be good text.
    min_run: int = 10


@inlined
def _length(flags: Int, rule: LineNgrams) -> Int:
    if flags & IS_SPELLING:
        return rule.spelling_letter
    return rule.letter if flags & IS_SINGLE else rule.word


@borrowing
def _find_grams(size: Int, n_lines: Int, scratch: Scratch, rule: LineNgrams) -> Bool:
    """Number the n-gram that ends at each token: the fewest words there that are long enough.

    Writes the number to `grams.at`, _NONE where there is no n-gram, and the token it begins with to
    `grams.active`. Returns False if there is none at all.
    """
    grams, interner, firsts = scratch.grams, scratch.interner, scratch.grams.active
    most = min(rule.min_count, _MOST_SEEN)
    _count_pairs(size, scratch, most)
    if not _find_spans(size, n_lines, scratch, rule, most):
        return False
    mask = begin(interner, 0)
    fresh = 0
    for i in range(size):
        grams.at[i] = _NONE
        if firsts[i] == _NONE:
            continue
        h = _hash(firsts[i], i, scratch)
        k = intern(h, interner.slots, interner.keys, mask, fresh)
        if k == fresh:
            grams.counts[k] = 0
            fresh += 1
            mask = with_room(interner, mask, fresh)
        grams.counts[k] += 1
        grams.at[i] = k
    return True


@borrowing
def _count_pairs(size: Int, scratch: Scratch, most: Int) -> None:
    """Count the pairs of words that follow each other; write to `grams.at` where a word's is."""
    tokens, distinct, counts = scratch.tokens, scratch.distinct, scratch.bytes
    seen = begin_counts(counts, size)
    before = np.int64(0)
    for i in range(size):
        if tokens.flags[i] & HAS_ALPHA:
            here = np.int64(distinct.classes[tokens.ids[i]])
            place = scrambled(np.uint64(before << 32 | here)) & seen
            scratch.grams.at[i] = place
            counts[place] += counts[place] < most
            before = here


@borrowing
def _find_spans(size: Int, n_lines: Int, scratch: Scratch, rule: LineNgrams, most: Int) -> Bool:
    """Write to `grams.active` the word that the n-gram at each token begins with, _NONE without;
    return if any has one.

    A document has a pair of words at least as often as an n-gram with it.
    """
    tokens, distinct, classes = scratch.tokens, scratch.distinct, scratch.classes
    firsts, lines = scratch.grams.active, scratch.breaks
    found = False
    line = 0
    first = 0  # words from here on are of one line, and these and their pairs frequent enough
    length = 0  # of the words from there
    chars = numbers = 0  # of these words, and of the numbers among them
    for i in range(size):
        firsts[i] = _NONE
        while line + 1 < n_lines and tokens.starts[i] >= lines.starts[line + 1]:
            line += 1
            length = chars = 0
        if not tokens.flags[i] & HAS_ALPHA:
            numbers += token_characters(tokens, i) * (tokens.flags[i] & HAS_NUMBER != 0)
            continue
        # without branches, which no processor could foresee
        common = np.int64(classes.counts[distinct.classes[tokens.ids[i]]] >= rule.min_count)
        length *= common & np.int64(scratch.bytes[scratch.grams.at[i]] >= most)
        first = i if length == 0 else first
        chars = 0 if length == 0 else chars
        numbers = 0 if length == 0 else numbers
        length += common * _length(tokens.flags[i], rule)
        chars += token_characters(tokens, i)
        while length - _length(tokens.flags[first], rule) >= rule.length:
            length -= _length(tokens.flags[first], rule)
            chars -= token_characters(tokens, first)
            first += 1
            while not tokens.flags[first] & HAS_ALPHA:
                numbers -= token_characters(tokens, first) * (tokens.flags[first] & HAS_NUMBER != 0)
                first += 1
        if length >= rule.length and numbers <= chars:
            firsts[i] = first
            found = True
    return found


@inlined
def _hash(first: Int, last: Int, scratch: Scratch) -> Int:
    """Of the classes of the words among tokens[first:last + 1]."""
    tokens, distinct = scratch.tokens, scratch.distinct
    h = np.uint64(0)
    for i in range(first, last + 1):
        if tokens.flags[i] & HAS_ALPHA:
            h = (h ^ np.uint64(distinct.classes[tokens.ids[i]])) + np.uint64(1)
            h *= np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
    return finish(h)


@borrowing
def line_ngram_coverage(size: Int, n_lines: Int, rule: LineNgrams, space: Scratch) -> Float:
    """Share of the text's token characters in lines covered beyond `max_coverage`.

    Writes `space.coverage`, the share of each line's token characters in n-grams that the document
    has `min_count` times, and `space.counts`, the characters of the tokens of each line. Lines are
    `space.breaks`, in the order of the text, and have all tokens; tokens are classified.
    """
    tokens, grams, lines = space.tokens, space.grams, space.breaks
    coverage, characters = space.coverage, space.counts
    i = np.int64(0)
    for k in range(n_lines):
        coverage[k] = 0.0
        first = i
        while i < size and (k + 1 == n_lines or tokens.starts[i] < lines.starts[k + 1]):
            i += 1
        characters[k] = tokens.before[i] - tokens.before[first]
    any_gram = _find_grams(size, n_lines, space, rule)
    free = size  # tokens from here on are counted
    line = n_lines - 1
    for last in range(size - 1 if any_gram else -1, -1, -1):
        if grams.at[last] == _NONE or grams.counts[grams.at[last]] < rule.min_count:
            continue
        first = grams.active[last]
        while tokens.starts[first] < lines.starts[line]:
            line -= 1
        for i in range(first, min(last + 1, free)):
            coverage[line] += token_characters(tokens, i)
        free = min(free, first)
    total = lost = 0
    for k in range(n_lines):
        if characters[k]:
            coverage[k] /= characters[k]
        total += characters[k]
        if coverage[k] > rule.max_coverage:
            lost += characters[k]
    return lost / total if total else np.nan


@borrowing
def drop_short_runs(n_lines: Int, rule: LineNgrams, space: Scratch) -> None:
    """Set the coverage of lines to 0 where fewer than `rule.min_run` in a row are covered.

    Lines without tokens neither count nor end a run.
    """
    coverage, characters = space.coverage, space.counts
    first = 0  # line with which the run begins
    run = 0
    for k in range(n_lines + 1):
        if k < n_lines and characters[k] == 0:
            continue
        if k < n_lines and coverage[k] > rule.max_coverage:
            first = k if run == 0 else first
            run += 1
            continue
        if run < rule.min_run:
            for j in range(first, min(k, n_lines)):
                coverage[j] = 0.0
        run = 0
        first = k
