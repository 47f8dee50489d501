"""What the text of each block looks like: counts of words and marks, hashes, learned word scores.

Nothing here knows a language: a word is a run of letters, each Han character or kana counts as one
word, and sentence marks of all scripts count alike.
"""

import numpy as np

from curation.bytes.code_points import code_point
from curation.bytes.hash_tables import slot_of
from curation.compiled import (
    Bool,
    Bytes,
    Float32s,
    Int,
    Int32s,
    Uint64s,
    borrowing,
    inlined,
    kernel,
    merged,
)
from curation.extract.markup import FNV_PRIME, FNV_START
from curation.hashing import xxh64

# Columns of the counts that `count_words` returns.
(
    WORDS,
    SENTENCES,
    COMMAS,
    DIGITS,
    UPPER,
    LETTERS,
    ENDS_SENTENCE,
    FIRST,
    SYMBOLS,
    LOWER_STARTS,
    TITLE_SHARED,
    SHORT_WORDS,
) = range(12)
COLUMNS = 12

SCORED_BYTES = 200  # longer blocks get no word score: their shape says enough
SCORED_WORDS = 16

_UPPER, _LOWER, _CASELESS, _HAN, DIGIT, _SENTENCE, _COMMA, _SYMBOL, _SPACE = range(9)


# Code points of each kind, first and last; of rows that overlap, the last one counts.
_RANGES: tuple[tuple[int, int, int], ...] = (
    (0, 32, _SPACE), (33, 0xBF, _SYMBOL), (0xC0, 0x1FFF, _CASELESS),
    *((ord(sign), ord(sign), _SENTENCE) for sign in ".!?\u061f\u06d4\u0964\u0965\u1362\u104a\u104b\u17d4"),
    *((ord(sign), ord(sign), _COMMA) for sign in ",;\u060c\u061b"),
    (0x30, 0x39, DIGIT), (0x41, 0x5A, _UPPER), (0x61, 0x7A, _LOWER),
    *((ord(sign), ord(sign), _LOWER) for sign in "\u00aa\u00b5\u00ba"),
    (0xC0, 0xDE, _UPPER), (0x391, 0x3A9, _UPPER), (0x400, 0x42F, _UPPER),
    (0xDF, 0xFF, _LOWER), (0x3B1, 0x3C9, _LOWER), (0x430, 0x45F, _LOWER),
    (0xD7, 0xD7, _SYMBOL), (0xF7, 0xF7, _SYMBOL),
    (0x2000, 0x2BFF, _SYMBOL), (0x2026, 0x2026, _SENTENCE), (0x2C00, 0x2DFF, _CASELESS),
    (0x2E00, 0x303F, _SYMBOL), (0x3001, 0x3001, _COMMA), (0x3002, 0x3002, _SENTENCE),
    (0x3040, 0x30FF, _HAN), (0x3100, 0x33FF, _CASELESS),
)  # fmt: skip
_HAN_FROM = 0x3400  # kinds of code points below are in a table
_KINDS = np.zeros(_HAN_FROM, np.uint8)
for _first, _last, _kind in _RANGES:
    _KINDS[_first : _last + 1] = _kind


@borrowing
def kind_of(point: Int) -> Int:
    """Return the coarse kind of a code point, with case where that is one comparison."""
    if point < _HAN_FROM:
        return np.int64(_KINDS[point])
    if point < 0xA000:
        return _HAN if point < 0x4DC0 or point >= 0x4E00 else _SYMBOL
    if 0xF900 <= point <= 0xFAFF or 0x20000 <= point <= 0x3FFFF:
        return _HAN
    if 0xFF00 <= point <= 0xFF65:
        return _full_width(point)
    sign = 0xFE30 <= point <= 0xFE4F or point >= 0x1F000 or 0xE000 <= point <= 0xF8FF
    return _SYMBOL if sign else _CASELESS


@merged
def _full_width(point: Int) -> Int:
    """The kind of a sign of ASCII in the width of Han, or of the half-width ones behind them."""
    if 0xFF01 <= point <= 0xFF5E:
        return np.int64(_KINDS[point - 0xFEE0])
    return _SENTENCE if point == 0xFF61 else _COMMA if point == 0xFF64 else _SYMBOL


_ASCII_KINDS = np.append(_KINDS[:128], np.full(128, _SPACE, np.uint8))


@inlined
def _next(text: Bytes, i: Int) -> tuple[Int, Int, Int]:
    """Code point at byte i, its length in bytes, and its kind."""
    byte = text[i]
    if byte < 128:
        return np.int64(byte), 1, np.int64(_ASCII_KINDS[byte])
    point, size = code_point(text, i)
    return point, size, kind_of(point)


@borrowing
def _folded(point: Int, kind: Int) -> Int:
    """Small letter of a capital, for the scripts where `kind_of` tells them apart."""
    if kind != _UPPER:
        return point
    if 0x400 <= point <= 0x40F:
        return point + 80
    return point + 32


@inlined
def _with_letter(word: Int, is_number: Bool, point: Int, kind: Int) -> tuple[Int, Bool]:
    """The hash of a word and one more letter, and whether it still is a number: all are alike."""
    if is_number and kind == DIGIT:
        return (FNV_START ^ np.uint64(48)) * FNV_PRIME, True
    return (word ^ np.uint64(_folded(point, kind))) * FNV_PRIME, False


@inlined
def _write_word(hashes: Uint64s, n: Int, word: Int, before: Int, seen: Int) -> Int:
    """Write the hash of a word and that of the pair with the one before it; return how many."""
    hashes[n] = word
    if seen == 0:
        return n + 1
    hashes[n + 1] = (before * FNV_PRIME) ^ word
    return n + 2


@kernel
def count_words(
    text: Bytes, starts: Int32s, ends: Int32s, title_keys: Uint64s
) -> tuple[Float32s, Uint64s, Uint64s, Int32s]:
    """What is in the blocks text[starts:ends].

    Counts [n, COLUMNS], text hash [n], and the hashes of the first words and pairs of words of the
    short blocks, with the place [n + 1] where those of each start.
    """
    n = len(starts)
    counts = np.zeros((n, COLUMNS), np.float32)
    whole = np.empty(n, np.uint64)
    hashes = np.empty(n * 2 * SCORED_WORDS, np.uint64)
    hash_starts = np.empty(n + 1, np.int32)
    hash_starts[0] = 0
    written = 0
    for b in range(n):
        i = np.int64(starts[b])
        end = np.int64(ends[b])
        scored = end - i < SCORED_BYTES
        whole[b] = xxh64(text, i, end, np.uint64(0))
        word = FNV_START
        word_length = seen = words = 0
        word_digit = False
        previous_word = np.uint64(0)
        last = _SPACE
        first = -1
        sentences = commas = digits = upper = letters = 0
        symbols = lower_starts = shared = short = 0
        while True:
            if i >= end:
                kind = _SPACE
                point = np.int64(32)
                size = 0
            else:
                point, size, kind = _next(text, i)
            in_word = kind <= DIGIT
            if in_word:
                if word_length == 0:
                    word_digit = kind == DIGIT
                    if kind == _LOWER:
                        lower_starts += 1
                    if kind != _HAN:
                        words += 1
                if kind == _HAN:
                    words += 1
                if kind == DIGIT:
                    digits += 1
                else:
                    letters += 1
                    if kind == _UPPER:
                        upper += 1
                word, word_digit = _with_letter(word, word_digit, point, kind)
                word_length += 1
            else:
                if word_length:
                    if word_length <= 3:
                        short += 1
                    if title_keys[slot_of(title_keys, word, word, np.uint64(0))] != 0:
                        shared += 1
                    if scored and seen < SCORED_WORDS:
                        written = _write_word(hashes, written, word, previous_word, seen)
                        previous_word = word
                        seen += 1
                    word = FNV_START
                    word_length = 0
                if size == 0:
                    break
                if kind == _SENTENCE:
                    # stops inside of numbers and addresses end none
                    behind = text[i + 1] if i + 1 < end else 32
                    sentences += point != 46 or behind <= 32 or behind == 34
                elif kind == _COMMA:
                    commas += 1
                elif kind == _SYMBOL:
                    symbols += 1
            if kind != _SPACE:
                if first < 0:
                    first = kind
                last = kind if point != 58 else 20
            i += size
            if in_word:  # most letters follow others, and are small ones of ASCII
                while i < end and _ASCII_KINDS[text[i]] == _LOWER:
                    word = (word ^ np.uint64(text[i])) * FNV_PRIME
                    word_length += 1
                    word_digit = False
                    letters += 1
                    last = _LOWER
                    i += 1
        counts[b, WORDS] = words
        counts[b, SENTENCES] = sentences
        counts[b, COMMAS] = commas
        counts[b, DIGITS] = digits
        counts[b, UPPER] = upper
        counts[b, LETTERS] = letters
        counts[b, ENDS_SENTENCE] = 1 if last == _SENTENCE else (2 if last == 20 else 0)
        counts[b, FIRST] = first
        counts[b, SYMBOLS] = symbols
        counts[b, LOWER_STARTS] = lower_starts
        counts[b, TITLE_SHARED] = shared
        counts[b, SHORT_WORDS] = short
        hash_starts[b + 1] = written
    return counts, whole, hashes[:written], hash_starts


@kernel
def title_words(text: Bytes, start: Int, end: Int) -> Uint64s:
    """Hashes of the words of text[start:end], as `count_words` makes them."""
    out = np.empty(end - start + 1, np.uint64)
    n = 0
    i = start
    word = FNV_START
    length = 0
    word_digit = False
    while i <= end:
        if i == end:
            point = np.int64(32)
            size = 1
        else:
            point, size = code_point(text, i)
        # In titles all beyond the first plane are signs: so the model has learned them.
        kind = kind_of(point) if size < 4 else _SYMBOL
        if kind <= DIGIT:
            if length == 0:
                word_digit = kind == DIGIT
            word, word_digit = _with_letter(word, word_digit, point, kind)
            length += 1
        elif length:
            out[n] = word
            n += 1
            word = FNV_START
            length = 0
        i += size
    return out[:n]
