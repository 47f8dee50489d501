"""C4 (Raffel et al. 2020): which lines and documents its cleaning keeps.

A line is judged in the order of datatrove's filter, whose steps are those of the TFDS code; only
`C4Limits` differ between them. Measurements simulate the removal of lines, so that they are the
same before and after the lines were cut (curation.filters.edits).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curation.bytes.code_points import code_point, last_character
from curation.bytes.search import same, word
from curation.compiled import Bool, Bytes, Int, Record, Uint16s, borrowing, merged
from curation.filters.phrases import Phrases, compile_phrases, find_phrases
from curation.text import characters as ch
from curation.text.lines import (
    characters,
    count_sentences,
    ends_in_colon_mark,
    strip_left,
    strip_right,
)

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Scratch
    from curation.filters.signals import Kit

KEEP, LONG_WORD, NO_TERMINAL, FEW_WORDS, JAVASCRIPT, POLICY = 0, 1, 2, 3, 4, 5
#: Reasons by code, for the record of cut lines.
REASONS = (
    "c4.kept",
    "c4.long_word",
    "c4.no_terminal_punctuation",
    "c4.few_words",
    "c4.javascript",
    "c4.policy",
)
CITATION = "c4.citation"
#: Of the C4 paper; those on policy are of the code in TensorFlow Datasets.
LOREM_PHRASE, JAVASCRIPT_PHRASE = "lorem ipsum", "javascript"
POLICY_PHRASES = (
    *("terms of use", "privacy policy", "cookie policy"),
    *("uses cookies", "use of cookies", "use cookies"),
)

_LOREM_BIT, _JAVASCRIPT_BIT, _POLICY_BIT, _CURLY_BIT = 1, 2, 4, 8
#: Bits a line sets that condemn the whole document.
LOREM, CURLY = 1, 2

_SPACE, _SINGLE, _TERMINAL, _CLOSE = ch.SPACE, ch.SINGLE, ch.TERMINAL, ch.CLOSE
_BREAK = ch.BREAK
_ZEROS = ch.decimal_zeros()
_OPEN, _SHUT = 0x5B, 0x5D
_CITATIONS = (word(b"[edit]"), word(b"[citation needed]"))


class C4Limits(NamedTuple):
    """Settings in the form kernels take; see filter_settings.C4Settings for their meaning."""

    terminal_punctuation: bool
    min_words: int = 3  # of a line: C4 paper and datatrove; the code in TensorFlow Datasets says 5
    max_word_length: int = 1000  # characters: that code
    long_line: int = 200  # mC4: characters of a line that counts as a paragraph


def line_phrases() -> Phrases:
    """Phrases that condemn a line or a document."""
    first = [(_LOREM_BIT, LOREM_PHRASE), (_JAVASCRIPT_BIT, JAVASCRIPT_PHRASE), (_CURLY_BIT, "{")]
    return compile_phrases([*first, *((_POLICY_BIT, phrase) for phrase in POLICY_PHRASES)])


@merged
def _is_digit(c: Int) -> Bool:
    k = np.searchsorted(_ZEROS, c, "right") - 1
    return k >= 0 and c < _ZEROS[k] + 10


@borrowing
def citation_end(data: Bytes, i: Int, end: Int) -> Int:
    r"""Byte after the citation mark `[12]`, `[]`, `[edit]`, `[citation needed]` at i, or i.

    Digits are those of any script, as in the published `\[\d*\]`.
    """
    if data[i] != _OPEN:
        return i
    k = i + 1
    while k < end:
        c, size = code_point(data, k)
        if not _is_digit(c):
            break
        k += size
    if k < end and data[k] == _SHUT:
        return k + 1
    for mark in _CITATIONS:
        if i + len(mark) <= end and same(data, i, mark, 0, len(mark)):
            return i + len(mark)
    return i


@borrowing
def _without_citations(data: Bytes, start: Int, end: Int, buffer: Bytes) -> Int:
    """Copy a line without its citation marks into `buffer`; return the bytes written."""
    n = 0
    i = start
    while i < end:
        stop = citation_end(data, i, end)
        if stop > i:
            i = stop
            continue
        buffer[n] = data[i]
        n += 1
        i += 1
    return n


@borrowing
def _ends_well(data: Bytes, start: Int, end: Int, properties: Uint16s) -> Bool:
    """Whether a line ends in `. ? ! " '` or any script's mark, but not in `...`."""
    if start == end:
        return False
    b = data[end - 1]
    if b < 0x80:
        if b == 46:
            return not (end - start >= 3 and data[end - 2] == 46 and data[end - 3] == 46)
        if b == 33 or b == 63 or b == 34 or b == 39:
            return True
    if ends_in_colon_mark(data, start, end, properties):
        return True
    last = last_character(data, start, end)
    return b >= 0x80 and properties[code_point(data, last)[0]] & (_TERMINAL | _CLOSE) != 0


@borrowing
def _count_words(
    data: Bytes, start: Int, end: Int, properties: Uint16s, enough: Int
) -> tuple[Int, Int]:
    """(pieces between white space, characters of the longest).

    Every letter of an unspaced script is a piece (ours: Chinese has no word between spaces).
    Counting stops at `enough` pieces, unless that is negative.
    """
    words = 0
    longest = 0
    current = 0
    i = start
    while i < end:
        c, size = code_point(data, i)
        p = properties[c]
        i += size
        if p & _SPACE:
            current = 0
        elif p & _SINGLE:
            words += 1
            current = 0
        else:
            words += current == 0
            current += 1
            longest = max(longest, current)
        if words == enough:
            break
    return words, longest


@borrowing
def _judge(
    data: Bytes, start: Int, end: Int, properties: Uint16s, words: Int, limits: C4Limits, found: Int
) -> tuple[Int, Int, Int]:
    """(code, document bits, sentences) of a line without citations that holds phrases `found`."""
    if limits.terminal_punctuation and not _ends_well(data, start, end, properties):
        return NO_TERMINAL, 0, 0
    if words < limits.min_words:
        return FEW_WORDS, 0, 0
    if found & _LOREM_BIT:
        return KEEP, LOREM, 0
    if found & _JAVASCRIPT_BIT:
        return JAVASCRIPT, 0, 0
    if found & _CURLY_BIT:
        return KEEP, CURLY, 0
    if found & _POLICY_BIT:
        return POLICY, 0, 0
    return KEEP, 0, count_sentences(data, start, end, properties)


@borrowing
def judge_line(
    data: Bytes,
    start: Int,
    end: Int,
    stop: Int,
    properties: Uint16s,
    limits: C4Limits,
    phrases: Phrases,
    buffer: Bytes,
) -> tuple[Int, Int, Int]:
    """(code, document bits, sentences) of the stripped line data[start:end], in a document that
    ends at `stop`.

    A line that condemns its document is not cut, so that the document's measurement still shows it.
    "Lorem ipsum" also condemns over a line break, if what follows is no line of a few words.
    """
    # a line that is no longer than the longest word allowed needs no look at all of its words
    enough = limits.min_words if end - start <= limits.max_word_length else -1
    words, longest = _count_words(data, start, end, properties, enough)
    if longest > limits.max_word_length:
        return LONG_WORD, 0, 0
    found, beyond, after = find_phrases(data, start, end, stop, phrases, properties)
    if beyond & _LOREM_BIT:
        rest = after
        while rest < stop:
            c, size = code_point(data, rest)
            if properties[c] & _BREAK:
                break
            rest += size
        more, _ = _count_words(data, end, rest, properties, limits.min_words)
        if more >= limits.min_words:
            return KEEP, LOREM, 0
    brackets = 0
    for i in range(np.uint64(start), np.uint64(end)):
        brackets += data[i] == _OPEN
    if brackets:
        n = _without_citations(data, start, end, buffer)
        found, _, _ = find_phrases(buffer, 0, n, n, phrases, properties)
        return _judge(buffer, 0, n, properties, words, limits, found)
    return _judge(data, start, end, properties, words, limits, found)


@borrowing
def judge_lines(data: Bytes, end: Int, lines: Int, kit: Kit, space: Scratch, row: Record) -> None:
    """Write the code of each of the lines of a text that stops at `end` to `space.codes`, and what
    C4 measures by them to `row`: sentences are those of kept lines."""
    properties = kit.properties
    sentences = lorem = curly = 0
    for k in range(lines):
        a = strip_left(data, space.breaks.starts[k], space.breaks.ends[k], properties)
        b = strip_right(data, a, space.breaks.ends[k], properties)
        space.codes[k], bits, found = judge_line(
            data, a, b, end, properties, kit.c4_limits, kit.c4_phrases, space.bytes
        )
        sentences += found
        lorem += bits & LOREM != 0
        curly += bits & CURLY != 0
    row.c4_sentences = sentences
    row.c4_lorem_ipsum = lorem
    row.c4_curly_bracket = curly


@borrowing
def long_lines(data: Bytes, doc: Document, kit: Kit, space: Scratch) -> Int:
    """Lines of at least `long_line` characters (mC4)."""
    feeds, least, found = space.feeds, kit.c4_limits.long_line, 0
    for k in range(doc.feeds):
        a, b = feeds.starts[k], feeds.ends[k]
        found += b - a >= least and characters(data, a, b) >= least
    return found
