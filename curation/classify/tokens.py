"""Reads a text token by token, and counts what tells prose, formulas and code apart.

What is known while a text is read is in two records: `PLACE` says what came just before, `COUNTS`
how much there was of everything. A text begins with both all zero.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import code_point
from curation.bytes.hash_tables import find, of_hashes
from curation.compiled import Bool, Bytes, Int, Record, inlined
from curation.config import read_yaml
from curation.resources import root
from curation.text import characters as ch

MATH_WORD, CODE_WORD, SITE = 1, 2, 3
_MASK = (1 << 64) - 1


_WORD, _SPACE, _SINGLE = ch.WORD, ch.SPACE, ch.SINGLE
_UPPER, _NUMBER, _IGNORE, _TERMINAL = ch.UPPER, ch.NUMBER, ch.IGNORE, ch.TERMINAL
_CLOSE, _MATH = ch.CLOSE, ch.MATH

# FNV-1a (its published offset and prime) over code points.
_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)


def _hash_of(word: str) -> int:
    h = int(_SEED)
    for character in word:
        h = ((h ^ ord(character)) * int(_PRIME)) & _MASK
    return h


LINE_FEED = np.uint64(10)
_DIGIT = np.uint64(48)  # every digit is read as 0

# Signs that are counted together: where in `COUNTS.signs`, 0 for none.
_GROUPS = {
    "exclamations": "!",
    "questions": "?",
    "commas": ",",
    "full_stops": ".",
    "quotes": "\"'",
    "brackets": "()[]",
    "bars": "|",
    "code_signs": "{};=<>_",
    "math_signs": "\\^+*/$",
}
SIGNS = ("others", *_GROUPS)
_MATH_SIGNS = SIGNS.index("math_signs")
_GROUP_OF = np.zeros(128, np.uint8)
for _group, _signs in enumerate(_GROUPS.values(), 1):
    _GROUP_OF[[ord(sign) for sign in _signs]] = _group

# Bits of an ASCII sign for the marks of formulas and code.
_OPERATOR, _DOUBLES, _BEFORE_EQUAL = 1, 2, 4
_MARKS = np.zeros(128, np.uint8)
for _bit, _signs in ((_OPERATOR, "=+<>*"), (_DOUBLES, "=:&|/-"), (_BEFORE_EQUAL, "!+-*<>")):
    for _sign in _signs:
        _MARKS[ord(_sign)] |= _bit
_VOWELS = np.zeros(128, np.bool_)
_VOWELS[[ord(v) for v in "aeiouyAEIOUY"]] = True  # words by themselves in many languages
_ALPHA, _OMEGA = 0x391, 0x3C9
_APOSTROPHES = (0x27, 0x2019)
_BULLETS = (0x2A, 0x2D, 0x2022, 0xB7, 0x2013)  # * - • · –


_LONG_LINE = 200  # characters
_SHORT_LINE = 30
_LONG_WORD = 8

COUNTS = np.dtype(
    [
        (name, np.int64)
        for name in (
            # characters
            "chars",
            "spaces",
            "upper",
            "digits",
            "symbols",
            "not_ascii",
            # words
            "words",
            "word_chars",
            "capitalised",
            "capitals",
            "long_words",
            "unspaced",
            # tokens, and pairs of neighbours
            "tokens",
            "vocabulary",
            "pairs",
            "new_pairs",
            # mathematics and code
            "math_words",
            "code_words",
            "math_vocabulary",
            "code_vocabulary",
            "formulas",
            "code_tokens",
            "commands",
            # lines that are not blank
            "lines",
            "line_squares",  # of their lengths
            "longest_line",
            "lines_ended",
            "lines_short",
            "lines_bullet",
            "lines_indented",
            "chars_in_long_lines",
        )
    ]
    + [("signs", np.int64, len(SIGNS))]
)

PLACE = np.dtype(
    [
        ("line_chars", np.int64),  # of the current line, without leading white space
        ("lead", np.int64),  # white space before them
        ("bullet", np.bool_),  # the line begins with one
        ("closed", np.bool_),  # the last visible character ends a sentence, closing quotes aside
        ("joined", np.bool_),  # no white space parts the next token from the one before it
        ("last", np.int64),  # last code point of the token before
        ("last_length", np.int64),  # its length when it is a word, else 0
        ("kind", np.int64),  # of the lexicon's lists, which the token is in
        ("operand", np.bool_),  # the token before ends a term: a number, a letter, a bracket
        ("after_command", np.bool_),  # the token before is a TeX command, or belongs to its name
        ("tex_braces", np.int64),  # open braces that are TeX's
        ("address", np.bool_),  # inside an address of the web: its dots and names are no code
    ]
)


class Tables(NamedTuple):
    """What is known of characters."""

    properties: npt.NDArray[np.uint16]
    lower: npt.NDArray[np.uint32]
    words: npt.NDArray[np.uint64]  # hashes of those that mark a subject or a site, in slots
    kinds: npt.NDArray[np.int32]  # of these


@functools.cache
def tables() -> Tables:
    """Return the properties of characters, and `configs/lists/subject_words.yaml`."""
    listed = read_yaml(root() / "configs" / "lists" / "subject_words.yaml")
    kinds = {"mathematics": MATH_WORD, "code": CODE_WORD, "sites": SITE}
    words = of_hashes({_hash_of(w): kind for n, kind in kinds.items() for w in listed[n].split()})
    return Tables(ch.properties(), ch.lower_case(), *words)


class Token(NamedTuple):
    """A word, a letter of an unspaced script, or a sign."""

    hash: Any
    end: Any  # byte behind it
    last: Any  # code point
    length: Any  # code points
    upper: Any  # of these, letters in upper case
    figures: Any  # of these, digits
    humps: Any  # of these, capitals inside: camelCase
    capitalised: Any


@inlined
def _code_pair(a: Int, b: Int) -> Bool:
    """Whether two neighbouring ASCII signs are an operator or brackets of code."""
    if a == b:
        return _MARKS[a] & _DOUBLES != 0
    if b == 61:  # =
        return _MARKS[a] & _BEFORE_EQUAL != 0
    if b == 62:  # >
        return a == 45 or a == 61
    return (a == 40 and b == 41) or (a == 91 and b == 93) or (a == 60 and b == 47)


@inlined
def end_line(counts: Record, at: Record) -> None:
    """Count the line that ends here, if it isn't blank, and begin another."""
    chars = at.line_chars
    if chars:
        counts.lines += 1
        counts.line_squares += chars * chars
        counts.longest_line = max(counts.longest_line, chars)
        counts.lines_ended += at.closed
        counts.lines_short += chars < _SHORT_LINE
        counts.lines_bullet += at.bullet
        counts.lines_indented += at.lead > 0
        counts.chars_in_long_lines += chars if chars > _LONG_LINE else 0
    at.line_chars = at.lead = at.kind = 0
    at.bullet = at.closed = at.joined = at.operand = at.after_command = at.address = False


@inlined
def line_feed(counts: Record, at: Record) -> None:
    """Read a line feed."""
    counts.spaces += 1
    counts.chars += 1
    if at.line_chars:
        counts.code_tokens += at.last == 59 or at.last == 123 or at.last == 125  # ; { }
    end_line(counts, at)


@inlined
def white_space(p: Int, counts: Record, at: Record) -> None:
    """Read any other white space, or a character that is never seen."""
    counts.spaces += (p & _SPACE) != 0
    counts.chars += 1
    if at.line_chars:
        at.line_chars += 1
    else:
        at.lead += 1
    at.joined = at.address = False


@inlined
def read_token(
    data: Bytes, i: Int, end: Int, first: tuple[Int, Int], known: Tables, counts: Record
) -> Token:
    """Read the token whose `first` character, and the size of it, is at byte i."""
    c, size = first
    p = np.int64(known.properties[c])
    alone = not p & _WORD or (p & _SINGLE) != 0
    token = _SEED
    length = upper = figures = humps = not_ascii = 0
    was_upper = True
    capitalised = False
    while True:
        length += 1
        if p & _UPPER:
            upper += 1
            capitalised = capitalised or length == 1
            humps += not was_upper and c < 128
        was_upper = (p & _UPPER) != 0
        folded = np.uint64(known.lower[c])
        if p & _NUMBER:
            figures += 1
            folded = _DIGIT
        token = (token ^ folded) * _PRIME
        not_ascii += c > 127
        i += size
        if alone or i >= end:
            break
        c_next, size = code_point(data, i)
        p = np.int64(known.properties[c_next])
        if not p & _WORD or p & _SINGLE:
            break
        c = c_next
    counts.chars += length
    counts.digits += figures
    counts.not_ascii += not_ascii
    return Token(token, i, c, length, upper, figures, humps, capitalised)


@inlined
def count_word(token: Token, p: Int, known: Tables, counts: Record, at: Record) -> Bool:
    """Count a word whose first character has properties p; return whether it is a TeX command."""
    length, figures, c, last = token.length, token.figures, token.last, at.last
    counts.words += 1
    counts.word_chars += length
    counts.upper += token.upper
    counts.capitalised += token.capitalised
    counts.capitals += token.upper == length and length > 1
    counts.long_words += length >= _LONG_WORD
    counts.unspaced += (p & _SINGLE) != 0
    kind = find(known.words, known.kinds, token.hash)
    counts.math_words += kind == MATH_WORD
    counts.code_words += kind == CODE_WORD and not at.address
    letter = (
        length == 1 and figures == 0 and ((c < 128 and not _VOWELS[c]) or _ALPHA <= c <= _OMEGA)
    )
    command = at.joined and last == 92
    counts.commands += command
    counts.formulas += command or (letter and last != _APOSTROPHES[0] and last != _APOSTROPHES[1])
    if not at.address:
        dotted = at.joined and last == 46 and length > 1 and not figures
        counts.code_tokens += token.humps > 0 or (dotted and kind != SITE)
    at.closed = False
    at.kind = kind
    at.operand = letter or figures == length
    at.after_command = command
    at.last_length = length
    at.last = c
    return command


@inlined
def _tex_brace(c: Int, at: Record) -> Bool:
    """Whether a brace is TeX's: { after a command, ^ or _, or inside another of TeX's."""
    if c == 123:
        tex = at.after_command or at.tex_braces > 0 or (at.joined and at.last == 94)
        at.tex_braces += tex
        return tex
    tex = c == 125 and at.tex_braces > 0
    at.tex_braces -= tex
    return tex


@inlined
def _ascii_sign(c: Int, counts: Record, at: Record) -> Bool:
    """Count a sign of ASCII; return whether it is a brace of TeX's."""
    tex = _tex_brace(c, at)
    at.address = at.address or (c == 47 and at.last == 58 and at.joined)  # :/
    if at.joined and not tex and not at.address:
        if at.last_length == 0 and 0 < at.last < 128:
            counts.code_tokens += _code_pair(at.last, c)
        elif at.last_length > 1 and not at.after_command:
            counts.code_tokens += c == 40 or c == 95  # a call, a name of several words
    counts.formulas += at.operand and (_MARKS[c] & _OPERATOR) != 0
    counts.signs[_GROUP_OF[c]] += 1
    at.after_command = at.after_command and tex  # \frac{}{}
    at.operand = c == 41 or c == 93
    at.last = 0 if tex else c
    return tex


@inlined
def count_sign(c: Int, p: Int, before_word: Bool, counts: Record, at: Record) -> Bool:
    """Count a sign; return whether it is TeX's: a brace, or the backslash of a command."""
    counts.symbols += 1
    markup = c == 92 and before_word
    if c < 128:
        markup = _ascii_sign(c, counts, at) or markup
    else:
        counts.formulas += at.operand and (p & _MATH) != 0
        counts.signs[_MATH_SIGNS] += (p & _MATH) != 0
        at.operand = at.after_command = False
        at.last = c
    at.kind = at.last_length = 0
    at.closed = (p & _TERMINAL) != 0 or (at.closed and (p & _CLOSE) != 0)
    if at.line_chars == 0:
        at.bullet = c in _BULLETS
    return markup
