"""One table of properties per Unicode code point, and one of lower-case forms.

Built once per machine from the property data of the `regex` package, whose Unicode version is the
one all stages share. Bits rather than classes, because a character can be several things at once:
`।` ends a sentence and is punctuation.
"""

import functools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import regex

from curation.kernels import kept

CODE_POINTS = 0x110000

ALPHA = 1  # letters, as str.isalpha
EXTEND = 2  # marks and joiners, which never begin a word of their own
NUMBER = 4
SINGLE = 8  # letters of scripts written without spaces: a word each
SPACE = 16  # as str.isspace
BREAK = 32  # ends a line, as str.splitlines
PUNCTUATION = 64  # the set of CCNet and datatrove: words made only of these are symbols
TERMINAL = 128  # ends a sentence
UPPER = 256
MID = 512  # joins two letters or two digits: don't, example.org, 3.14
MID_NUMBER = 1024  # joins two digits only: 1,000
CONNECT = 2048  # underscores
CLOSE = 4096  # closing quotes and brackets, which belong to the sentence before them
IGNORE = 8192  # controls and formats that are neither word nor symbol
MATH = 16384  # mathematical symbols outside ASCII
SPELLING = 32768  # of SINGLE, the letters that stand for a sound: it takes several to make a word

WORD = ALPHA | EXTEND | NUMBER

#: Scripts whose words are not set apart by spaces.
SPELLING_SCRIPTS = ("Thai", "Lao", "Khmer", "Myanmar")
UNSPACED_SCRIPTS = ("Han", "Hiragana", "Katakana", "Bopomofo", *SPELLING_SCRIPTS)

# The typographic marks that CCNet deletes, of those which are not ASCII.
_TYPOGRAPHIC = "—”：％１〈（）、━【」，】；“《„’∶´．–？！～«〉》。…►»「"


def _letters_of(scripts: tuple[str, ...]) -> str:
    return r"[[" + "".join(rf"\p{{Script={script}}}" for script in scripts) + r"]&&\p{L}]+"


_PATTERNS = (
    (ALPHA, r"\p{L}+"),
    (EXTEND, r"[\p{M}\u200c\u200d\u00ad]+"),
    (NUMBER, r"\p{N}+"),
    (SINGLE, _letters_of(UNSPACED_SCRIPTS)),
    (SPELLING, _letters_of(SPELLING_SCRIPTS)),
    (PUNCTUATION, r"[!-/:-@\[-`{-~" + _TYPOGRAPHIC + r"\x00-\x08\x0b-\x1f\x7f-\x9f]+"),
    # Sentence_Terminal of Unicode and three Khmer signs, counted as punctuation too
    (TERMINAL | PUNCTUATION, r"[\p{Sentence_Terminal}\u17d6\u17d9\u17da]+"),
    (UPPER, r"\p{Lu}+"),
    (MID, r"['’.·‧״＇．]+"),
    (MID_NUMBER, r"[,٫٬]+"),
    (CONNECT, r"\p{Pc}+"),
    (CLOSE, r"[\"'\p{Pe}\p{Pf}\p{Pi}]+"),
    (MATH, r"[[\p{Sm}]--[\x00-\x7f]]+"),
)
_LINE_BREAKS = "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"


# Above the ideographic planes only tags and variation selectors (U+E0000...) are assigned.
_SCANNED = 0x40000
_TAGS, _SELECTORS, _SUPPLEMENT_END = 0xE0000, 0xE0100, 0xE01F0


@functools.cache
def every_character() -> str:
    """Code points in order; surrogates, which UTF-8 cannot encode, become U+0000."""
    below, above = range(0xD800), range(0xE000, _SCANNED)
    return "".join(map(chr, below)) + "\0" * 0x800 + "".join(map(chr, above))


def bits_of(patterns: Iterable[tuple[int, str]]) -> npt.NDArray[np.uint16]:
    """Bits of every code point, of all patterns that it matches: uint16 [0x110000]."""
    table = np.zeros(CODE_POINTS, np.uint16)
    for bits, pattern in patterns:
        for match in regex.compile(pattern, regex.V1).finditer(every_character()):
            table[match.start() : match.end()] |= np.uint16(bits)
    return table


@functools.cache
@kept
def properties() -> npt.NDArray[np.uint16]:
    """Property bits of every code point: uint16 [0x110000]."""
    table = bits_of(_PATTERNS)
    for match in regex.finditer(r"[\p{Cc}\p{Cf}\p{Z}]", every_character()):
        code = match.start()
        if chr(code).isspace():
            table[code] |= SPACE
        elif not table[code] & EXTEND:
            table[code] |= IGNORE
    for char in _LINE_BREAKS:
        table[ord(char)] |= BREAK
    table[0xD800:0xE000] = 0
    table[_TAGS:_SELECTORS] = IGNORE
    table[_SELECTORS:_SUPPLEMENT_END] = EXTEND
    table.flags.writeable = False
    return table


@functools.cache
@kept
def lower_case() -> npt.NDArray[np.uint32]:
    """Lower-case form of every code point (its first, where there are several): uint32."""
    table = np.arange(CODE_POINTS, dtype=np.uint32)
    for match in regex.finditer(r"[\p{Lu}\p{Lt}\p{Nl}\p{So}]", every_character()):
        table[match.start()] = ord(match.group().lower()[0])
    table.flags.writeable = False
    return table


@functools.cache
@kept
def decimal_zeros() -> npt.NDArray[np.int64]:
    """The zeros of all scripts in order, each followed by 1 to 9: int64 [n]."""
    runs = regex.finditer(r"\p{Nd}+", every_character())
    return np.array([zero for run in runs for zero in range(run.start(), run.end(), 10)], np.int64)
