"""What the linear classifiers see of a text: hashed words and word pairs, and its shape.

One pass over the UTF-8 bytes gives, per text,

* a sparse vector in a space of `2 ** BITS` buckets: every token and every pair of neighbouring
  tokens, hashed ("feature hashing", Weinberger et al. 2009), with value 1 + ln(count), scaled to
  unit length;
* a dense vector of `SHAPE` numbers that no bag of words knows: lengths, line ends, capitals ...

Tokens: runs of letters, marks and digits, lower-cased, every digit read as 0; letters of unspaced
scripts one by one; every other visible character by itself; a run of line feeds. TeX's commands and
braces are no tokens, only a number of the dense vector. Only the first `max_bytes` of a text are
read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts
from curation.classify import lexicon
from curation.compiled import borrowing, inlined, kernel
from curation.text import characters as ch
from curation.text.buffers import read_only
from curation.text.words import code_point

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
    "exclamations",
    "questions",
    "commas",
    "full_stops",
    "quotes",
    "brackets",
    "bars",
    "code_signs",
    "math_signs",
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

_WORD, _SPACE, _SINGLE = ch.WORD, ch.SPACE, ch.SINGLE
_UPPER, _NUMBER, _IGNORE, _TERMINAL = ch.UPPER, ch.NUMBER, ch.IGNORE, ch.TERMINAL
_CLOSE, _MATH = ch.CLOSE, ch.MATH

# FNV-1a (its published offset and prime) over code points, finished by a multiply and shift.
_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_PAIR = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xFF51AFD7ED558CCD)

_LINE_FEED = np.uint64(10)
# Which counter an ASCII sign belongs to: index into the per-text counts, 0 for none.
_GROUPS = {"!": 1, "?": 2, ",": 3, ".": 4}
_GROUPS |= dict.fromkeys("\"'", 5)
_GROUPS |= dict.fromkeys("()[]", 6)
_GROUPS |= {"|": 7}
_GROUPS |= dict.fromkeys("{};=<>_", 8)
_GROUPS |= dict.fromkeys("\\^+*/$", 9)
_SIGNS = np.zeros(128, np.uint8)
for _sign, _group in _GROUPS.items():
    _SIGNS[ord(_sign)] = _group
_GROUP_COUNT = 10

# Bits of an ASCII sign for the marks of formulas and code.
_OPERATOR, _DOUBLES, _BEFORE_EQUAL = 1, 2, 4
_MARKS = np.zeros(128, np.uint8)
for _bit, _signs in ((_OPERATOR, "=+<>*"), (_DOUBLES, "=:&|/-"), (_BEFORE_EQUAL, "!+-*<>")):
    for _sign in _signs:
        _MARKS[ord(_sign)] |= _bit
_VOWELS = np.zeros(128, np.bool_)
_VOWELS[[ord(v) for v in "aeiouyAEIOUY"]] = True  # words by themselves in many languages
_KEYS, _KINDS = lexicon.table(int(_SEED), int(_PRIME))
_MATH_WORD, _CODE_WORD, _SITE = lexicon.MATH_WORD, lexicon.CODE_WORD, lexicon.SITE
_SLOT_MASK = np.uint64(lexicon.SLOTS - 1)
_MATH_GROUP = 9

# Scales that bring counts per character near 1; the models standardise once more.
_PERCENT = 100.0
_LONG_LINE = 200
_SHORT_LINE = 30
_LONG_WORD = 8


class Features(NamedTuple):
    """Features of a batch; the buckets of text i are `ids[starts[i]:starts[i + 1]]`, ascending."""

    starts: npt.NDArray[np.int64]  # [texts + 1]
    ids: npt.NDArray[np.int32]  # [entries], each below 2 ** BITS
    values: npt.NDArray[np.float32]  # [entries], unit length per text
    shape: npt.NDArray[np.float32]  # [texts, len(SHAPE)]

    def __len__(self) -> int:  # type: ignore[override]
        return len(self.starts) - 1


class _Tables(NamedTuple):
    """What is known of characters and of words."""

    properties: npt.NDArray[np.uint16]
    lower: npt.NDArray[np.uint32]
    signs: npt.NDArray[np.uint8]
    marks: npt.NDArray[np.uint8]
    vowels: npt.NDArray[np.bool_]
    keys: npt.NDArray[np.uint64]
    kinds: npt.NDArray[np.uint8]


class _Buckets(NamedTuple):
    """Space for the buckets of a batch: as in `Features`, with the counts of one text."""

    starts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int32]  # [2 ** BITS]


def measure(texts: Texts, max_bytes: int) -> Features:
    """Features of every text, from its first `max_bytes` bytes (cut between characters)."""
    offsets, data = read_only(texts)
    lengths = np.minimum(np.diff(offsets), max_bytes)
    bound = 2 * int(lengths.sum()) + 1
    found = _Buckets(
        np.zeros(len(offsets), np.int64),
        np.empty(bound, np.int32),
        np.empty(bound, np.float32),
        np.zeros(1 << BITS, np.int32),
    )
    shape = np.zeros((len(offsets) - 1, len(SHAPE)), np.float32)
    longest = int(lengths.max()) if len(lengths) else 0
    logs = 1.0 + np.log(np.maximum(np.arange(2 * longest + 2), 1))
    tables = _Tables(ch.properties(), ch.lower_case(), _SIGNS, _MARKS, _VOWELS, _KEYS, _KINDS)
    _measure(offsets, data, max_bytes, tables, logs, found, shape)
    entries = int(found.starts[-1])
    return Features(found.starts, found.ids[:entries].copy(), found.values[:entries].copy(), shape)


@inlined
def _bucket(h):  # type: ignore[no-untyped-def]
    h = (h ^ (h >> np.uint64(32))) * _MIX
    return np.int64(h >> np.uint64(64 - BITS))


@borrowing
def _kind(token, keys, kinds):  # type: ignore[no-untyped-def]
    """Which list of the lexicon a token is in, 0 for none."""
    slot = token & _SLOT_MASK
    while keys[slot]:
        if keys[slot] == token:
            return np.int64(kinds[slot])
        slot = (slot + np.uint64(1)) & _SLOT_MASK
    return np.int64(0)


@inlined
def _code_pair(a, b, marks):  # type: ignore[no-untyped-def]
    """Whether two neighbouring ASCII signs are an operator or brackets of code."""
    if a == b:
        return marks[a] & _DOUBLES != 0
    if b == 61:  # =
        return marks[a] & _BEFORE_EQUAL != 0
    if b == 62:  # >
        return a == 45 or a == 61
    return (a == 40 and b == 41) or (a == 91 and b == 93) or (a == 60 and b == 47)


@borrowing
def _count(counts, bucket, ids, n):  # type: ignore[no-untyped-def]
    """Count one occurrence; a bucket new to this text is appended to `ids`."""
    if counts[bucket] == 0:
        ids[n] = bucket
        n += 1
    counts[bucket] += 1
    return n


@kernel
def _measure(offsets, data, max_bytes, tables, logs, found, shape):  # type: ignore[no-untyped-def]
    starts, ids, values, counts = found
    n = 0
    for doc in range(len(offsets) - 1):
        begin = offsets[doc]
        end = offsets[doc + 1]
        if end - begin > max_bytes:
            end = begin + max_bytes
            while end > begin and data[end] & 0xC0 == 0x80:
                end -= 1
        first = n
        n = _document(data, begin, end, offsets[doc + 1], tables, found, n, shape[doc])
        ids[first:n].sort()
        square = 0.0
        for k in range(first, n):
            value = logs[counts[ids[k]]]
            square += value * value
        norm = np.sqrt(square) if square > 0 else 1.0
        for k in range(first, n):
            values[k] = logs[counts[ids[k]]] / norm
            counts[ids[k]] = 0
        starts[doc + 1] = n


@inlined
def _end_line(of_lines, chars, lead, closed, bullet):  # type: ignore[no-untyped-def]
    """Add a line that is not blank to the counts of lines."""
    of_lines[0] += 1
    of_lines[1] += chars * chars
    of_lines[2] = max(of_lines[2], chars)
    of_lines[3] += closed
    of_lines[4] += chars < _SHORT_LINE
    of_lines[5] += bullet
    of_lines[6] += lead > 0
    of_lines[7] += chars if chars > _LONG_LINE else 0


@inlined
def _fill_lines(of_lines, text, visible, shape):  # type: ignore[no-untyped-def]
    """What `shape` says of the lines of `text` characters, of which so many are `visible`."""
    lines, square, longest, ended, short, bullets, indented, in_long = of_lines
    mean = visible / max(lines, 1)
    deviation = np.sqrt(max(square / max(lines, 1) - mean * mean, 0.0))
    shape[1] = np.log(1.0 + lines)
    shape[3] = np.log(1.0 + mean)
    shape[4] = np.log(1.0 + longest)
    shape[5] = deviation / (mean + 1.0)
    shape[8] = ended / max(lines, 1)
    shape[9] = short / max(lines, 1)
    shape[10] = bullets / max(lines, 1)
    shape[11] = indented / max(lines, 1)
    shape[12] = in_long / text


@kernel
def _document(data, begin, end, whole_end, tables, found, n, shape):  # type: ignore[no-untyped-def]
    """Count the buckets of data[begin:end] and fill its row of `shape`."""
    properties, lower, signs, marks, vowels, keys, kinds = tables
    ids, counts = found.ids, found.counts
    groups = np.zeros(_GROUP_COUNT, np.int64)
    chars = upper = digits = spaces = symbols = not_ascii = unspaced = 0
    words = word_chars = capitalised = capitals = long_words = 0
    tokens = pairs = vocabulary = new_pairs = 0
    of_lines = np.zeros(8, np.int64)
    line_chars = 0  # characters of the current line without leading white space
    lead = 0  # white space before them
    bullet = False
    closed = False  # the last visible character ends a sentence, closing quotes aside
    previous = np.uint64(0)
    math_words = code_words = math_vocabulary = code_vocabulary = formulas = code_tokens = 0
    commands = 0
    last = 0  # last code point of the token before this one
    last_length = 0  # its length when it is a word, else 0
    gap = True  # white space precedes this token
    operand = False  # the token before ends a term: a number, a lone letter, a closing bracket
    after_command = False  # the token before is a TeX command, or belongs to its name
    kind = 0
    tex_braces = 0  # open braces that are TeX's
    address = False  # inside an address of the web: its dots, slashes and names are no code
    i = begin
    while i < end:
        c, size = code_point(data, i)
        p = np.int64(properties[c])
        if c == 10:
            spaces += 1
            chars += 1
            if line_chars:
                _end_line(of_lines, line_chars, lead, closed, bullet)
                code_tokens += last == 59 or last == 123 or last == 125  # ; { }
            line_chars = lead = 0
            bullet = closed = operand = after_command = address = False
            gap = True
            i += 1
            if i < end and data[i] == 10:
                continue
            token = _LINE_FEED
            word = markup = False
        elif p & (_SPACE | _IGNORE):
            spaces += (p & _SPACE) != 0
            chars += 1
            if line_chars:
                line_chars += 1
            else:
                lead += 1
            i += size
            gap = True
            address = False
            continue
        else:
            token = _SEED
            length = uppers = figures = humps = 0
            was_upper = True
            starts_upper = False
            word = (p & _WORD) != 0
            alone = not word or (p & _SINGLE) != 0
            while True:
                chars += 1
                length += 1
                if p & _UPPER:
                    uppers += 1
                    starts_upper = starts_upper or length == 1
                    humps += not was_upper and c < 128
                was_upper = (p & _UPPER) != 0
                folded = np.uint64(lower[c])
                if p & _NUMBER:
                    digits += 1
                    figures += 1
                    folded = np.uint64(48)
                token = (token ^ folded) * _PRIME
                not_ascii += c > 127
                i += size
                if alone or i >= end:
                    break
                c_next, size = code_point(data, i)
                p = np.int64(properties[c_next])
                if not p & _WORD or p & _SINGLE:
                    break
                c = c_next
            if word:
                words += 1
                word_chars += length
                upper += uppers
                capitalised += starts_upper
                capitals += uppers == length and length > 1
                long_words += length >= _LONG_WORD
                unspaced += alone
                closed = False
                kind = _kind(token, keys, kinds)
                math_words += kind == _MATH_WORD
                code_words += kind == _CODE_WORD and not address
                letter = (
                    length == 1
                    and figures == 0
                    and ((c < 128 and not vowels[c]) or 0x391 <= c <= 0x3C9)
                )
                command = not gap and last == 92
                commands += command
                markup = command
                formulas += command or (letter and last != 39 and last != 0x2019)
                if not address:
                    dotted = not gap and last == 46 and length > 1 and not figures
                    code_tokens += humps > 0 or (dotted and kind != _SITE)
                operand = letter or figures == length
                after_command = command
                last_length = length
                last = c
            else:
                kind = 0
                symbols += 1
                markup = c == 92 and i < end and properties[code_point(data, i)[0]] & _WORD != 0
                if c < 128:
                    tex = False
                    if c == 123:  # { after a TeX command, ^ or _, or inside another of TeX's
                        tex = after_command or tex_braces > 0 or (not gap and last == 94)
                        tex_braces += tex
                    elif c == 125 and tex_braces > 0:
                        tex_braces -= 1
                        tex = True
                    address = address or (c == 47 and last == 58 and not gap)  # :/
                    if not gap and not tex and not address:
                        if last_length == 0 and 0 < last < 128:
                            code_tokens += _code_pair(last, c, marks)
                        elif last_length > 1 and not after_command:
                            code_tokens += c == 40 or c == 95  # a call, a name of several words
                    markup = markup or tex
                    formulas += operand and (marks[c] & _OPERATOR) != 0
                    after_command = after_command and tex  # \frac{}{}
                    operand = c == 41 or c == 93
                    last = 0 if tex else c
                    groups[signs[c]] += 1
                else:
                    formulas += operand and (p & _MATH) != 0
                    groups[_MATH_GROUP] += (p & _MATH) != 0
                    operand = after_command = False
                    last = c
                last_length = 0
                if p & _TERMINAL:
                    closed = True
                elif not p & _CLOSE:
                    closed = False
                if line_chars == 0:
                    bullet = c == 42 or c == 45 or c == 0x2022 or c == 0xB7 or c == 0x2013
            line_chars += length
            gap = False
            if markup:  # commands and braces of TeX would vote for code
                continue
        tokens += 1
        before = n
        n = _count(counts, _bucket(token), ids, n)
        vocabulary += n - before
        if token != _LINE_FEED and n > before:
            math_vocabulary += kind == _MATH_WORD
            code_vocabulary += kind == _CODE_WORD
        if previous:
            pairs += 1
            before = n
            n = _count(counts, _bucket(previous * _PAIR + token), ids, n)
            new_pairs += n - before
        previous = token
    if line_chars:
        _end_line(of_lines, line_chars, lead, closed, bullet)
    if tokens == 0:
        return n

    every = chars
    for k in range(end, whole_end):
        every += (data[k] & 0xC0) != 0x80
    text = np.float64(chars)
    _fill_lines(of_lines, text, max(text - spaces, 1.0), shape)
    shape[0] = np.log(1.0 + every)
    shape[2] = np.log(1.0 + words)
    shape[6] = word_chars / max(words, 1)
    shape[7] = np.log(1.0 + vocabulary) / np.log(2.0 + tokens)
    shape[13] = _PERCENT * upper / text
    shape[14] = _PERCENT * digits / text
    shape[15] = _PERCENT * spaces / text
    shape[16] = _PERCENT * symbols / text
    for group in range(1, _GROUP_COUNT):
        shape[16 + group] = np.log(1.0 + 1000.0 * groups[group] / text)
    shape[26] = not_ascii / text
    shape[27] = unspaced / max(words, 1)
    shape[28] = capitalised / max(words, 1)
    shape[29] = capitals / max(words, 1)
    shape[30] = long_words / max(words, 1)
    shape[31] = 1.0 - new_pairs / max(pairs, 1)
    share = 100.0 / max(words, 1)
    shape[32] = np.log(1.0 + share * math_words)
    shape[33] = np.log(1.0 + share * code_words)
    shape[34] = np.log(1.0 + share * formulas)
    shape[35] = np.log(1.0 + share * (formulas + math_words))
    shape[36] = np.log(1.0 + share * code_tokens)
    shape[37] = np.log(1.0 + share * (code_tokens + code_words))
    shape[38] = np.log(1.0 + math_vocabulary)
    shape[39] = np.log(1.0 + code_vocabulary)
    shape[40] = np.log(1.0 + share * commands)
    return n
