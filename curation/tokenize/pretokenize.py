"""Split text into the pieces inside which byte pairs merge, straight over UTF-8 bytes.

The kernel is the regular expression of `PATTERNS[name].expression`, written out by hand; tests hold
it against tiktoken and Hugging Face tokenizers running the expression itself. Character classes
are those of one Unicode version, so that ids don't change with Python or Rust.
"""

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curation.bytes.code_points import sound_point
from curation.compiled import Bytes, Int, borrowing, inlined
from curation.errors import ConfigError
from curation.resources import resolve

#: Classes of the table. Everything that is none of them is OTHER.
OTHER, LETTER, NUMBER, SPACE, NEWLINE = 0, 1, 2, 3, 4

_CODES = {"L": LETTER, "N": NUMBER, "Z": SPACE}


@functools.cache
def character_classes(marks_are_letters: bool) -> npt.NDArray[np.uint8]:
    """Class of every code point: uint8 [0x110000], read-only.

    Combining marks (vowel signs of Indic scripts, Thai, accents written apart) are LETTER if asked,
    else OTHER. Carriage return and line feed are NEWLINE, other white space is SPACE.
    """
    table = np.zeros(0x110000, np.uint8)
    codes = {**_CODES, "M": LETTER if marks_are_letters else OTHER}
    with open(resolve("builtin:models/tokenizer/unicode-16.tsv"), encoding="ascii") as lines:
        for line in lines:
            if not line.startswith("#"):
                first, last, name = line.split()
                table[int(first, 16) : int(last, 16) + 1] = codes[name]
    table[[0x0A, 0x0D]] = NEWLINE
    table.setflags(write=False)
    return table


@dataclass(frozen=True)
class Pattern:
    """How text divides into pieces: an expression for other libraries and its character table."""

    name: str
    expression: str
    marks_are_letters: bool

    @property
    def classes(self) -> npt.NDArray[np.uint8]:
        return character_classes(self.marks_are_letters)


def _expression(letter: str) -> str:
    """The cl100k expression with `letter` for its letters.

    Contractions are spelled out: `(?i:s)` also means U+017F, on which libraries disagree.
    """
    return (
        r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])"
        rf"|[^\r\n{letter}\p{{N}}]?[{letter}]+"
        r"|\p{N}{1,3}"
        rf"| ?[^\s{letter}\p{{N}}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


PATTERNS = {
    # As tiktoken's cl100k_base.
    "cl100k": Pattern("cl100k", _expression(r"\p{L}"), False),
    # Marks belong to their word, so that Indic, Thai, Khmer... words stay whole; text without marks
    # divides exactly as under cl100k.
    "marks": Pattern("marks", _expression(r"\p{L}\p{M}"), True),
}


def pattern(name: str) -> Pattern:
    """The pattern of that name. Raises ConfigError on an unknown one."""
    if name not in PATTERNS:
        raise ConfigError(f"unknown pre-tokenisation pattern {name!r}: one of {sorted(PATTERNS)}")
    return PATTERNS[name]


@inlined
def _class(data: Bytes, i: Int, end: Int, classes: Bytes) -> tuple[Int, Int]:
    """Return class and bytes of the character at i; a stray byte is OTHER of one byte."""
    if data[i] < 0x80:
        return np.int64(classes[data[i]]), np.int64(1)
    point, size = sound_point(data, i, end)
    return np.int64(classes[point] if size else OTHER), max(size, np.int64(1))


@inlined
def _run(data: Bytes, i: Int, end: Int, classes: Bytes, wanted: Int) -> Int:
    """End of the run of characters of one class that starts at i."""
    while i < end:
        kind, size = _class(data, i, end, classes)
        if kind != wanted:
            break
        i += size
    return i


@inlined
def _contraction(data: Bytes, i: Int, end: Int) -> Int:
    """Bytes of a contraction ('s, 'll...) at i, or 0."""
    if data[i] != 0x27 or i + 1 >= end:
        return 0
    a = data[i + 1] | 0x20
    if (data[i + 1] & 0xC0) != 0x40:
        return 0
    if a == 0x73 or a == 0x64 or a == 0x6D or a == 0x74:  # s d m t
        return 2
    if i + 2 >= end or (data[i + 2] & 0xC0) != 0x40:
        return 0
    b = data[i + 2] | 0x20
    if (a == 0x6C and b == 0x6C) or ((a == 0x76 or a == 0x72) and b == 0x65):  # ll, ve, re
        return 3
    return 0


@borrowing
def piece_end(data: Bytes, i: Int, end: Int, classes: Bytes) -> Int:
    """End of the piece that starts at byte i of data[:end]; i < end. Callable from kernels."""
    kind, size = _class(data, i, end, classes)
    after = i + size
    if kind == LETTER:
        return _run(data, after, end, classes, LETTER)
    if kind == NUMBER:
        for _ in range(2):
            if after >= end:
                break
            kind, size = _class(data, after, end, classes)
            if kind != NUMBER:
                break
            after += size
        return after
    if kind in (OTHER, SPACE):
        short = _contraction(data, i, end)
        if short > 0:
            return i + short
        if after < end:
            follows, _ = _class(data, after, end, classes)
            if follows == LETTER:
                return _run(data, after, end, classes, LETTER)
            if follows == OTHER and data[i] == 0x20:
                kind = np.int64(OTHER)
        if kind == OTHER:
            after = _run(data, after, end, classes, OTHER)
            while after < end and (data[after] == 0x0A or data[after] == 0x0D):
                after += 1
            return after
    # White space: up to its last line end; else all but the last character, unless text ends here.
    line = i
    last = i
    j = i
    while j < end:
        kind, size = _class(data, j, end, classes)
        if kind != SPACE and kind != NEWLINE:
            break
        last = j
        j += size
        if kind == NEWLINE:
            line = j
    if line > i:
        return line
    if j < end and last > i:
        return last
    return j
