"""Word lists as hash tables: stop words, and obscene words with the phrases that excuse them.

A phrase is a sequence of tokens, hashed word by word, so that one table finds words, phrases and,
because letters of unspaced scripts are words of their own, substrings in those scripts.

Words that are obscene only in obscene company ("cock", "chatte") are marked in the list: they count
at most as often as the unmarked ones of the same document, so that a text on poultry has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from curation.compiled import borrowing, inlined
from curation.filters.hash_tables import Table, build, lookup
from curation.filters.scratch import DIGITS
from curation.text.words import IS_WORD, finish, token_hash, word_list

CONTINUES = 1  # some phrase goes on behind these tokens
FLAGGED = 2
ALLOWED = 4
EVERYDAY = 8

_EVERYDAY_MARK = "?"


@inlined
def chain(h, token):  # type: ignore[no-untyped-def]
    """Hash of a phrase that goes on with the token of this hash."""
    return finish((h * np.uint64(0x9E3779B97F4A7C15)) ^ token)


@borrowing
def list_seed(number):  # type: ignore[no-untyped-def]
    """Hash with which the phrases of list `number` begin."""
    return finish(np.uint64(number) + np.uint64(0x5851F42D4C957F2D))


@borrowing
def _chain(h, token):  # type: ignore[no-untyped-def]
    return chain(h, token)


def dirty_phrases(entries: Iterable[str], allowed: Iterable[str]) -> dict[int, list[str]]:
    """Phrases by their bits; `entries` that begin with `?` are everyday ones.

    Example: `["porn", "? cock"]` gives `{FLAGGED: ["porn"], EVERYDAY: ["cock"], ALLOWED: []}`.
    """
    held = list(entries)
    return {
        FLAGGED: [entry for entry in held if not entry.startswith(_EVERYDAY_MARK)],
        EVERYDAY: [
            entry.removeprefix(_EVERYDAY_MARK).strip()
            for entry in held
            if entry.startswith(_EVERYDAY_MARK)
        ],
        ALLOWED: list(allowed),
    }


def phrase_table(lists: Mapping[int, Mapping[int, Iterable[str]]]) -> Table:
    """Table of the phrases of every numbered list, by the bits they carry.

    Example: `{0: {FLAGGED: ["xxx"], ALLOWED: ["super bowl xxx"]}}`.
    """
    keys: list[int] = []
    values: list[int] = []
    for number, by_bits in lists.items():
        for bits, phrases in by_bits.items():
            for phrase in phrases:
                tokens = word_list(phrase)
                h = np.uint64(list_seed(number))
                for i, token in enumerate(tokens):
                    h = np.uint64(_chain(h, np.uint64(token_hash(token))))
                    keys.append(int(h))
                    values.append(bits if i == len(tokens) - 1 else CONTINUES)
    return build(np.array(keys, np.uint64), np.array(values, np.int64))


@borrowing
def is_flagged(token, number, keys, values):  # type: ignore[no-untyped-def]
    """Whether the token of this hash is a word of list `number`."""
    return lookup(keys, values, chain(list_seed(number), token)) & FLAGGED != 0


@borrowing
def stop_words(kinds, scratch, number, keys, values, every):  # type: ignore[no-untyped-def]
    """Stop words of list `number` in a document of `kinds` distinct tokens: different ones as they
    are spelled, or all their occurrences in upper and lower case if `every`."""
    tokens, distinct = scratch.tokens, scratch.distinct
    found = 0
    for k in range(kinds):
        i = distinct.firsts[k]
        if is_flagged(tokens.lows[i] if every else tokens.hashes[i], number, keys, values):
            found += distinct.counts[k] if every else 1
    return found


@borrowing
def flagged(n, kinds, scratch, number, keys, values):  # type: ignore[no-untyped-def]
    """(phrases found, words in them, words in all) for list `number`; `kinds` classes of tokens.

    At each word the longest phrase counts, and an allowed one excuses the words it covers. Everyday
    phrases count at most as often as the others, and so do their words.
    """
    tokens, distinct, classes = scratch.tokens, scratch.distinct, scratch.classes
    seed = list_seed(number)
    for c in range(kinds):  # most words begin no phrase
        h = classes.hashes[c]
        classes.marks[c] = h == DIGITS or lookup(keys, values, chain(seed, h)) != 0
    found = 0
    covered = 0
    everyday = 0
    everyday_covered = 0
    total = 0
    free = 0
    for i in range(n):
        if not tokens.flags[i] & IS_WORD:
            continue
        total += 1
        if i < free or not classes.marks[distinct.classes[tokens.ids[i]]]:
            continue
        h = seed
        kind = np.int64(0)
        length = 0
        stop = i
        for j in range(i, n):
            if not tokens.flags[j] & IS_WORD:
                break
            h = chain(h, tokens.lows[j])
            bits = lookup(keys, values, h)
            if bits & (FLAGGED | ALLOWED | EVERYDAY):
                kind = bits
                length = j + 1 - i
                stop = j + 1
            if not bits & CONTINUES:
                break
        if kind:
            free = stop
        if kind & ALLOWED:
            continue
        if kind & FLAGGED:
            found += 1
            covered += length
        elif kind & EVERYDAY:
            everyday += 1
            everyday_covered += length
    return found + min(everyday, found), covered + min(everyday_covered, covered), total
