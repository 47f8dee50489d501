"""What the linear classifiers see of a text: hashed words and word pairs, and its shape.

One pass over the UTF-8 bytes gives, per text,

* a sparse vector in a space of `2 ** BITS` buckets: every token and every pair of neighbouring
  tokens, hashed ("feature hashing", Weinberger et al. 2009), with value 1 + ln(count), scaled to
  unit length;
* a dense vector of `SHAPE` numbers that no bag of words knows: lengths, line ends, capitals ...

Tokens: runs of letters, marks and digits, lower-cased, every digit read as 0; letters of unspaced
scripts one by one; every other visible character by itself; a run of line feeds. Texts are taken as
they are read (`curation.text.plain`). TeX's commands and
braces are no tokens, only a number of the dense vector. Only the first `max_bytes` of a text are
read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.bytes.code_points import code_point
from curation.classify import tokens as tk
from curation.compiled import (
    Bytes,
    Float,
    Float32s,
    Float64s,
    Int,
    Int32s,
    Int64s,
    Record,
    borrowing,
    inlined,
    kernel,
    merged,
)
from curation.text import characters as ch
from curation.text.plain import plain

#: Size of the hashed space: 2 ** BITS buckets.
BITS = 18

#: Names of the dense features, in order.
SHAPE = (
    "log_characters",
    "log_lines",
    "log_words",
    "log_line_length",
    "log_longest_line",
    "line_length_deviation",
    "word_length",
    "vocabulary",
    "lines_ended",
    "lines_short",
    "lines_bullet",
    "lines_indented",
    "characters_in_long_lines",
    "upper",
    "digits",
    "spaces",
    "symbols",
    *tk.SIGNS[1:],
    "not_ascii",
    "unspaced",
    "words_capitalised",
    "words_upper",
    "words_long",
    "pairs_repeated",
    "math_words",
    "code_words",
    "formulas",
    "mathematics",
    "code_tokens",
    "programming",
    "math_vocabulary",
    "code_vocabulary",
    "tex",
)

_DIGITS = 1 << BITS // 2  # half of the bits of a bucket
# Finishes a hash, and joins two.
_PAIR = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_LINE_FEED, _WORD, _IS_SPACE = tk.LINE_FEED, ch.WORD, ch.SPACE | ch.IGNORE

# Scales that bring counts per character near 1; the models standardise once more.
_PERCENT = 100.0
_PER_THOUSAND = 1000.0
_SIGNS = slice(SHAPE.index(tk.SIGNS[1]), SHAPE.index(tk.SIGNS[-1]) + 1)
_SHAPE = np.dtype([(name, np.float32) for name in SHAPE])


class Features(NamedTuple):
    """Features of a batch; the buckets of text i are `ids[starts[i]:starts[i + 1]]`, ascending."""

    starts: npt.NDArray[np.int64]  # [texts + 1]
    ids: npt.NDArray[np.int32]  # [entries], each below 2 ** BITS
    values: npt.NDArray[np.float32]  # [entries], unit length per text
    shape: npt.NDArray[np.float32]  # [texts, len(SHAPE)]

    def __len__(self) -> int:  # type: ignore[override]
        return len(self.starts) - 1

    def take(self, rows: npt.NDArray[np.int64]) -> Features:
        """Return the features of the texts with these numbers."""
        sizes = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entries = np.repeat(self.starts[rows] - starts[:-1], sizes) + np.arange(starts[-1])
        return Features(starts, self.ids[entries], self.values[entries], self.shape[rows])


class _State(NamedTuple):
    """What `tokens` keeps of each text."""

    counts: Any  # [texts], COUNTS
    places: Any  # [texts], PLACE


class _Rows(NamedTuple):
    """`Features.shape` by name, and its part about signs by number."""

    shape: Any  # [texts], _SHAPE
    signs: npt.NDArray[np.float32]  # [texts, len(tk.SIGNS) - 1]


class _Buckets(NamedTuple):
    """Space for the buckets of a batch: as in `Features`, with the counts of one text."""

    starts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int32]  # [2 ** BITS]


def measure(texts: Texts, max_bytes: int) -> Features:
    """Features of every text, from its first `max_bytes` bytes (cut between characters)."""
    offsets, data = text_buffers(plain(texts))
    lengths = np.minimum(np.diff(offsets), max_bytes)
    bound = 2 * int(lengths.sum()) + 1
    found = _Buckets(
        np.zeros(len(offsets), np.int64),
        np.empty(bound, np.int32),
        np.empty(bound, np.float32),
        np.zeros(1 << BITS, np.int32),
    )
    # Columns of one row alone would be contiguous: another type, compiled anew.
    shape = np.zeros((max(len(lengths), 2), len(SHAPE)), np.float32)
    rows = _Rows(shape.view(_SHAPE).reshape(-1), shape[:, _SIGNS])
    longest = int(lengths.max()) if len(lengths) else 0
    logs = 1.0 + np.log(np.maximum(np.arange(2 * longest + 2), 1))
    state = _State(np.zeros(len(lengths), tk.COUNTS), np.zeros(len(lengths), tk.PLACE))
    _measure(offsets, data, max_bytes, tk.tables(), logs, found, state, rows)
    entries = int(found.starts[-1])
    ids, values = found.ids[:entries].copy(), found.values[:entries].copy()
    return Features(found.starts, ids, values, shape[: len(lengths)])


@merged
def _bucket(h: Int) -> Int:
    h = (h ^ (h >> np.uint64(32))) * _MIX
    return np.int64(h >> np.uint64(64 - BITS))


@borrowing
def _count(counts: Int32s, bucket: Int, ids: Int32s, n: Int) -> Int:
    """Count one occurrence; a bucket new to this text is appended to `ids`."""
    if counts[bucket] == 0:
        ids[n] = bucket
        n += 1
    counts[bucket] += 1
    return n


@borrowing
def _sort(ids: Int32s, spare: Int32s, places: Int64s) -> None:
    """Sort buckets by the lower half of their bits, then by the upper."""
    for shift in (0, BITS // 2):
        places[:] = 0
        for bucket in ids:
            places[((bucket >> shift) & (_DIGITS - 1)) + 1] += 1
        for digit in range(_DIGITS):
            places[digit + 1] += places[digit]
        for bucket in ids:
            digit = (bucket >> shift) & (_DIGITS - 1)
            spare[np.uint64(places[digit])] = bucket
            places[digit] += 1
        for k in range(len(ids)):
            ids[k] = spare[k]


@kernel
def _measure(
    offsets: Int64s,
    data: Bytes,
    max_bytes: Int,
    known: tk.Tables,
    logs: Float64s,
    found: _Buckets,
    state: _State,
    rows: _Rows,
) -> None:
    starts, ids, values, counts = found
    spare, places = np.empty_like(ids), np.empty(_DIGITS + 1, np.int64)
    n = 0
    for doc in range(len(offsets) - 1):
        begin = offsets[doc]
        end = offsets[doc + 1]
        if end - begin > max_bytes:
            end = begin + max_bytes
            while end > begin and data[end] & 0xC0 == 0x80:
                end -= 1
        first = n
        n = _read(data, begin, end, known, found, n, state.counts[doc], state.places[doc])
        _sort(ids[first:n], spare, places)
        square = 0.0
        for k in range(first, n):
            value = logs[counts[ids[k]]]
            square += value * value
        norm = np.sqrt(square) if square > 0 else 1.0
        for k in range(first, n):
            values[k] = logs[counts[ids[k]]] / norm
            counts[ids[k]] = 0
        starts[doc + 1] = n
        if n > first:
            unread = 0
            for at in range(np.uint64(end), np.uint64(offsets[doc + 1])):
                unread += (data[at] & 0xC0) != 0x80
            _describe(state.counts[doc], unread, rows.shape[doc], rows.signs[doc])


@kernel
def _read(
    data: Bytes,
    begin: Int,
    end: Int,
    known: tk.Tables,
    found: _Buckets,
    n: Int,
    counts: Record,
    at: Record,
) -> Int:
    """Read data[begin:end]: what it has of everything, and its tokens and pairs by bucket."""
    previous = np.uint64(0)
    i = begin
    while i < end:
        c, size = code_point(data, i)
        p = np.int64(known.properties[c])
        token = _LINE_FEED
        if c == 10:
            tk.line_feed(counts, at)
            i += 1
            if i < end and data[i] == 10:
                continue
        elif p & _IS_SPACE:
            tk.white_space(p, counts, at)
            i += size
            continue
        else:
            read = tk.read_token(data, i, end, (c, size), known, counts)
            token, i = read.hash, read.end
            if p & _WORD:
                markup = tk.count_word(read, p, known, counts, at)
            else:
                before_word = i < end and known.properties[code_point(data, i)[0]] & _WORD != 0
                markup = tk.count_sign(c, p, before_word, counts, at)
            at.line_chars += read.length
            at.joined = True
            if markup:  # commands and braces of TeX would vote for code
                continue
        counts.tokens += 1
        before = n
        n = _count(found.counts, _bucket(token), found.ids, n)
        if n > before:
            counts.vocabulary += 1
            counts.math_vocabulary += at.kind == tk.MATH_WORD
            counts.code_vocabulary += at.kind == tk.CODE_WORD
        if previous:
            counts.pairs += 1
            before = n
            n = _count(found.counts, _bucket(previous * _PAIR + token), found.ids, n)
            counts.new_pairs += n - before
        previous = token
    tk.end_line(counts, at)
    return n


@inlined
def _log(x: Float) -> Float:
    return np.log(1.0 + x)


@kernel
def _describe(counts: Record, unread: Int, shape: Record, signs: Float32s) -> None:
    """Fill the row of a text that has tokens; `unread` characters come after what was read."""
    text = np.float64(counts.chars)
    lines, words = max(counts.lines, 1), max(counts.words, 1)
    visible = max(text - counts.spaces, 1.0)
    shape.log_characters = _log(counts.chars + unread)
    shape.log_words = _log(counts.words)
    shape.word_length = counts.word_chars / words
    shape.vocabulary = _log(counts.vocabulary) / np.log(2.0 + counts.tokens)
    shape.pairs_repeated = 1.0 - counts.new_pairs / max(counts.pairs, 1)
    _describe_lines(counts, lines, visible / lines, text, shape)
    shape.upper = _PERCENT * counts.upper / text
    shape.digits = _PERCENT * counts.digits / text
    shape.spaces = _PERCENT * counts.spaces / text
    shape.symbols = _PERCENT * counts.symbols / text
    shape.not_ascii = counts.not_ascii / text
    shape.unspaced = counts.unspaced / words
    shape.words_capitalised = counts.capitalised / words
    shape.words_upper = counts.capitals / words
    shape.words_long = counts.long_words / words
    share = 100.0 / words
    shape.math_words = _log(share * counts.math_words)
    shape.code_words = _log(share * counts.code_words)
    shape.formulas = _log(share * counts.formulas)
    shape.mathematics = _log(share * (counts.formulas + counts.math_words))
    shape.code_tokens = _log(share * counts.code_tokens)
    shape.programming = _log(share * (counts.code_tokens + counts.code_words))
    shape.math_vocabulary = _log(counts.math_vocabulary)
    shape.code_vocabulary = _log(counts.code_vocabulary)
    shape.tex = _log(share * counts.commands)
    for group in range(len(signs)):
        signs[group] = _log(_PER_THOUSAND * counts.signs[group + 1] / text)


@inlined
def _describe_lines(counts: Record, lines: Int, mean: Float, text: Float, shape: Record) -> None:
    """The lines that are not blank: `mean` is how long they are."""
    deviation = np.sqrt(max(counts.line_squares / lines - mean * mean, 0.0))
    shape.log_lines = _log(counts.lines)
    shape.log_line_length = _log(mean)
    shape.log_longest_line = _log(counts.longest_line)
    shape.line_length_deviation = deviation / (mean + 1.0)
    shape.lines_ended = counts.lines_ended / lines
    shape.lines_short = counts.lines_short / lines
    shape.lines_bullet = counts.lines_bullet / lines
    shape.lines_indented = counts.lines_indented / lines
    shape.characters_in_long_lines = counts.chars_in_long_lines / text
