"""Word lists as hash tables: stop words, and obscene words with the phrases that excuse them.

A phrase is a sequence of tokens, hashed word by word, so that one table finds words, phrases and,
because letters of unspaced scripts are words of their own, substrings in those scripts.

Words that are obscene only in obscene company ("cock", "chatte") are marked in the list: they count
at most as often as the unmarked ones of the same document, so that a text on poultry has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import text_buffers
from curation.bytes.hash_tables import Table, find, of_hashes
from curation.compiled import (
    Bytes,
    Float,
    Int,
    Int64s,
    Uint64s,
    borrowing,
    inlined,
)
from curation.filters.lists import read_list
from curation.filters.scratch import DIGITS
from curation.kernels import kept
from curation.text import characters as ch
from curation.text.words import IS_WORD, describe_words, words

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Scratch
    from curation.filters.signals import Kit
    from curation.text.words import Spans

CONTINUES = 1  # some phrase goes on behind these tokens
FLAGGED = 2
ALLOWED = 4
EVERYDAY = 8

_EVERYDAY_MARK = "?"
_PLACES = 1 << 13


class Lists(NamedTuple):
    """Phrases of numbered lists."""

    table: Table  # their bits by the number of the list and the hash of each, or of its beginning
    some: npt.NDArray[np.bool_]  # [lists, _PLACES] whether any hash has these low bits


@inlined
def chain(h: Int, token: Int) -> Int:
    """Hash of a phrase that goes on with the token of this hash; that of its first is its own."""
    h = (h * np.uint64(0x9E3779B97F4A7C15)) ^ token
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(32))


@kept
def stop_words(*paths: Path) -> Lists:
    """Return the table of lists of stop words, in the order of the files."""
    rows = [(i, FLAGGED, phrase) for i, path in enumerate(paths) for phrase in read_list(path)]
    return _phrase_table(len(paths), rows)


@kept
def obscene_words(languages: tuple[str, ...], excused: tuple[str, ...], *paths: Path) -> Lists:
    """Return the table of lists of obscene words, those that begin with `?` everyday ones.

    Files are the lists by language, then those of harmless phrases by language.
    """
    rows = list[tuple[int, int, str]]()
    for place, (language, path) in enumerate(zip((*languages, *excused), paths, strict=True)):
        for phrase in read_list(path) if language in languages else ():
            bits = EVERYDAY if phrase.startswith(_EVERYDAY_MARK) else FLAGGED
            bits = bits if place < len(languages) else ALLOWED
            rows.append((languages.index(language), bits, phrase))
    return _phrase_table(len(languages), rows)


def _phrase_table(lists: int, rows: Sequence[tuple[int, int, str]]) -> Lists:
    """Return the table of phrases, each with the number of its list and the bits it carries."""
    numbers, bits = (np.array([row[k] for row in rows], np.int64) for k in (0, 1))
    texts = pa.array([phrase for _, _, phrase in rows], pa.large_string())
    spans = words(texts)
    keys = _phrase_keys(text_buffers(texts).data, spans, numbers)
    values, some = np.full(len(keys), CONTINUES), np.diff(spans.doc_offsets) > 0
    values[spans.doc_offsets[1:][some] - 1] = bits[some]
    places = np.zeros((lists, _PLACES), np.bool_)
    places[np.repeat(numbers, np.diff(spans.doc_offsets)), keys % _PLACES] = True
    entries = dict.fromkeys(keys.tolist(), 0)
    for key, bit in zip(keys.tolist(), values.tolist(), strict=True):
        entries[key] |= bit
    return Lists(of_hashes(entries), places)


def _phrase_keys(data: Bytes, spans: Spans, numbers: Int64s) -> Uint64s:
    """Return the key of every beginning of each phrase, word by word of all of them."""
    chain_all: Any = chain.py_func  # of arrays as of numbers
    _, keys = describe_words(data, spans, ch.properties(), ch.lower_case())
    firsts, ends = spans.doc_offsets[:-1], spans.doc_offsets[1:]
    h, lists = np.zeros(len(numbers), np.uint64), numbers.astype(np.uint64)
    for place in range(int((ends - firsts).max(initial=0))):
        going = firsts + place < ends
        here = firsts[going] + place
        h[going] = chain_all(h[going], keys[here]) if place else keys[here]
        keys[here] = chain_all(lists[going], h[going])
    return keys


@inlined
def bits_of(h: Int, number: Int, lists: Lists) -> Int:
    """Bits of the phrase, or the beginning of one, of this hash in list `number`: 0 for most."""
    key = chain(np.uint64(number), h)
    some = lists.some[number, key % np.uint64(_PLACES)]
    return max(find(lists.table.keys, lists.table.values, key), 0) if some else np.int64(0)


@borrowing
def dirty_words(doc: Document, kit: Kit, space: Scratch) -> tuple[Float, Float]:
    """(obscene phrases found, the share of their words); NaN without a list.

    At each word the longest phrase counts, and an allowed one excuses the words it covers. Everyday
    phrases count at most as often as the others, and so do their words.
    """
    if doc.dirty_words < 0:
        return np.nan, np.nan
    tokens, distinct, classes = space.tokens, space.distinct, space.classes
    table = kit.dirty_words
    for c in range(doc.classes):  # most words begin no phrase
        h = classes.hashes[c]
        classes.marks[c] = -1 if h == DIGITS else bits_of(h, doc.dirty_words, table)
    found = covered = everyday = everyday_covered = total = free = 0
    for i in range(doc.tokens):
        if not tokens.flags[i] & IS_WORD:
            continue
        total += 1
        mark = classes.marks[distinct.classes[tokens.ids[i]]]
        if i < free or not mark:
            continue
        h = np.uint64(0)
        kind = np.int64(0)
        length = 0
        stop = i
        for j in range(i, doc.tokens):
            if not tokens.flags[j] & IS_WORD:
                break
            low = distinct.lows[tokens.ids[j]]
            h = low if j == i else chain(h, low)
            known = j == i and mark > 0
            bits = np.int64(mark) if known else bits_of(h, doc.dirty_words, table)
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
    covered += min(everyday_covered, covered)
    return float(found + min(everyday, found)), covered / total if total else np.nan
