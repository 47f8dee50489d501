"""Per-code-point tables that turn a text normalization into look-ups for compiled kernels.

A table says for every code point what it is (part of a word, white space, a number, ...) and what
replaces it. It follows the Unicode version of the running Python
(`unicodedata.unidata_version`). Acting on one code point at a time, it does not reorder several
marks on one letter, the one thing in which it departs from Unicode's normal form D.
"""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from curation.dedup.dedup_settings import TextNormalization
from curation.kernels import kept

WORD = 0  #: part of a word (a letter, a kept digit, or anything else that is not distinguished)
SPACE = 1  #: separates words
DELETE = 2  #: leaves no trace
NUMBER = 3  #: a digit of a number that becomes one 0
SINGLE = 4  #: a letter of a script without spaces between words: a token of its own
MARK = 5  #: belongs to what precedes it
KIND = np.uint8(0x7F)  #: mask of the kinds above
SEPARATOR = np.uint8(0x80)  #: flag: joins two runs of digits to one number

CODE_POINTS = 0x110000

# FineWeb's pattern for numbers: digits, and once one of these with digits after it.
_NUMBER_SEPARATORS = ".,،٫⎖⎗⎘"

# Scripts whose writing does not mark the ends of words.
_UNSPACED_SCRIPTS = [
    *("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar"),
    *("Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet", "Javanese", "Balinese", "Cham"),
]

# Where Unicode has assigned characters that are not private: the rest is as it is.
_ASSIGNED = ((0, 0xD800), (0xE000, 0xE001), (0xF900, 0x34000), (0xE0000, 0xE01F0))


class CharacterTable(NamedTuple):
    """What a kernel does with each code point."""

    kind: npt.NDArray[np.uint8]  # [CODE_POINTS], a kind and perhaps SEPARATOR
    ascii: npt.NDArray[np.uint8]  # [128], replacement of each ASCII character
    entry: npt.NDArray[np.int32]  # [CODE_POINTS], replacement as entry below; 0: stays as it is
    offsets: npt.NDArray[np.int64]  # [entries + 1]
    data: npt.NDArray[np.uint8]  # UTF-8 of the replacements, entry e at offsets[e:e + 2]
    growth: int  # bytes written for one byte read, at most (a space before each token included)


@functools.lru_cache(maxsize=8)
@kept
def character_table(rules: TextNormalization) -> CharacterTable:
    """Return the table for the given rules, built once per machine."""
    kind = np.zeros(CODE_POINTS, np.uint8)
    entry = np.zeros(CODE_POINTS, np.int32)
    replacements = [b""]
    growth = 2  # an ASCII character and a space
    for point, char, category in _assigned():
        kind[point] = _kind(char, category, rules)
        if kind[point] in (SPACE, DELETE, NUMBER):
            continue
        folded = _fold(char, category, rules)
        if folded != char:
            encoded = folded.encode()
            entry[point] = len(replacements)
            replacements.append(encoded)
            growth = max(growth, -(-(len(encoded) + 1) // len(char.encode())))
    for char in _NUMBER_SEPARATORS:
        kind[ord(char)] |= SEPARATOR
    points = _unspaced()
    kind[points[kind[points] == WORD]] = SINGLE
    lengths = np.array([len(r) for r in replacements])
    ascii_map = np.arange(128, dtype=np.uint8)
    for point in np.flatnonzero(entry[:128]).tolist():
        ascii_map[point] = replacements[entry[point]][0]
    entry[:128] = 0
    return CharacterTable(
        kind,
        ascii_map,
        entry,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.frombuffer(b"".join(replacements), np.uint8),
        growth,
    )


def _kind(char: str, category: str, rules: TextNormalization) -> int:
    if char in rules.delete:
        return DELETE
    if char in rules.keep:
        return WORD
    if char.isspace() or category[0] == "Z":
        return SPACE
    if category in ("Cc", "Cf"):
        return DELETE if rules.controls == "delete" else WORD
    if category == "Nd":
        return NUMBER if rules.digits == "number_to_zero" else WORD
    if category[0] in "PS":
        return {"keep": WORD, "space": SPACE, "delete": DELETE}[rules.punctuation]
    if category == "Mn" and rules.marks == "delete":
        return DELETE
    return MARK if category[0] == "M" else WORD


def _fold(char: str, category: str, rules: TextNormalization) -> str:
    if category == "Nd" and rules.digits == "each_to_zero":
        return "0"
    folded = char
    if rules.case == "fold":
        folded = char.casefold()
    elif rules.case == "lower":  # str.lower tells final sigma by its neighbours, which we don't see
        folded = "σ" if char == "ς" else char.lower()
    if rules.marks != "keep":
        folded = unicodedata.normalize("NFD", folded)
    if rules.marks == "delete":
        kept = "".join(c for c in folded if unicodedata.category(c) != "Mn")
        folded = kept or folded
    return folded


@functools.cache
def _assigned() -> tuple[tuple[int, str, str], ...]:
    """Code point, character and category of every character that rules may act on."""
    return tuple(
        (point, chr(point), category)
        for first, end in _ASSIGNED
        for point in range(first, end)
        if (category := unicodedata.category(chr(point))) not in ("Cn", "Co", "Cs")
    )


@functools.cache
def _unspaced() -> npt.NDArray[np.int64]:
    scripts = "".join(rf"\p{{Script_Extensions={name}}}" for name in _UNSPACED_SCRIPTS)
    letter = regex.compile(rf"(?V1)[[{scripts}]&&[\p{{L}}\p{{Nl}}\p{{No}}]]")
    text = "".join(char for _, char, _ in _assigned())
    return np.array([ord(match.group()) for match in letter.finditer(text)], np.int64)
