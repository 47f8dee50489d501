"""What the text of each block looks like: counts of words and marks, hashes, learned word scores.

Nothing here knows a language: a word is a run of letters, each Han character or kana counts as one
word, and sentence marks of all scripts count alike.
"""

import numpy as np

from curation.bytes.code_points import code_point
from curation.bytes.hash_tables import slot_of
from curation.bytes.search import HIGH, bits_below, count_bytes, eight_at, eight_of
from curation.compiled import (
    Bools,
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
from curation.extract.markup import FNV_PRIME, FNV_START, fnv
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
SHAPES = np.int64(256)  # of words, so that few of them are looked up in the title
_NUMBER = np.uint64(fnv(b"0"))  # hash of any

_UPPER, _LOWER, _CASELESS, _HAN, DIGIT, _SENTENCE, _COMMA, _SYMBOL, _SPACE = range(9)
_END = np.int64(32), np.int64(0), np.int64(_SPACE)  # as `_next` has it


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


_FROM_A, _ABOVE_Z = eight_of.py_func(0x80 - ord("a")), eight_of.py_func(0x7F - ord("z"))
_ASCII_KINDS = np.append(_KINDS[:128], np.full(128, _SPACE, np.uint8))


@inlined
def _next(text: Bytes, i: Int) -> tuple[Int, Int, Int]:
    """Code point at byte i, its length in bytes, and its kind."""
    byte = text[np.uint64(i)]
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
def _word_hash(text: Bytes, start: Int, end: Int) -> Int:
    """The hash of a word without case, the numbers that words begin with all alike."""
    word, i = FNV_START, start
    while i < end:
        point, size, kind = _next(text, i)
        if kind == DIGIT and (word == FNV_START or word == _NUMBER):
            word = _NUMBER
        else:
            word = (word ^ np.uint64(_folded(point, kind))) * FNV_PRIME
        i += size
    return word


@inlined
def _small_end(text: Bytes, i: Int, end: Int) -> Int:
    """Where the small letters of ASCII from i on end; near the end of the text, perhaps before."""
    while i < end and i + 8 <= len(text):
        x = eight_at(text, i)
        seven = x & ~HIGH
        others = ~((seven + _FROM_A) & ~(seven + _ABOVE_Z) & ~x) & HIGH
        if others:
            return min(end, i + count_bytes(bits_below(others)))
        i += 8
    return min(end, i)


@kernel
def count_words(
    text: Bytes, starts: Int32s, ends: Int32s, title_keys: Uint64s, title_shapes: Bools
) -> tuple[Float32s, Uint64s, Uint64s, Int32s]:
    """What is in the blocks text[starts:ends].

    Counts [n, COLUMNS], text hash [n], and the hashes of the first words and pairs of words of the
    short blocks, with the place [n + 1] where those of each start.
    """
    n = len(starts)
    counts = np.empty((n, COLUMNS), np.float32)
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
        word_length = seen = words = 0
        begin, initial = i, np.int64(0)  # of the word under way
        previous_word = np.uint64(0)
        last = _SPACE
        first = -1
        sentences = commas = digits = upper = letters = 0
        symbols = lower_starts = shared = short = 0
        while True:
            point, size, kind = _next(text, i) if i < end else _END
            if first < 0 and kind != _SPACE:
                first = kind
            if kind <= DIGIT:
                if word_length == 0:
                    begin, initial = i, _folded(point, kind) if kind != DIGIT else np.int64(0)
                    lower_starts += kind == _LOWER
                    words += kind != _HAN
                words += kind == _HAN
                digits += kind == DIGIT
                upper += kind == _UPPER
                # most letters follow others, and are small ones of ASCII
                small = _small_end(text, i + 1, end) - i - 1 if size == 1 else 0
                letters += small + (kind != DIGIT)
                word_length += small + 1
                last = _LOWER if small else kind
                i += size + small
                continue
            if word_length:
                short += word_length <= 3
                is_scored = scored and seen < SCORED_WORDS
                shape = (initial + 37 * word_length) % SHAPES if initial else 0
                if is_scored or title_shapes[shape]:
                    word = _word_hash(text, begin, i)
                    shared += title_keys[slot_of(title_keys, word, word, np.uint64(0))] != 0
                    if is_scored:
                        hashes[written] = word
                        written += 1
                        if seen:
                            hashes[written] = (previous_word * FNV_PRIME) ^ word
                            written += 1
                        previous_word = word
                        seen += 1
                word_length = 0
            if size == 0:
                break
            if kind == _SENTENCE:
                # stops inside of numbers and addresses end none
                after = text[i + 1] if i + 1 < end else 32
                sentences += point != 46 or after <= 32 or after == 34
            elif kind == _COMMA:
                commas += 1
            elif kind == _SYMBOL:
                symbols += 1
            if kind != _SPACE:
                last = kind if point != 58 else 20
            i += size
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
def title_words(text: Bytes, start: Int, end: Int) -> tuple[Uint64s, Bools]:
    """Hashes of the words of text[start:end], as `count_words` makes them, and which shapes they have,
    by first letter and length. Behind the end is a zero.
    """
    out = np.empty(end - start + 1, np.uint64)
    shapes = np.zeros(SHAPES, np.bool_)
    n = 0
    i = begin = start
    length = 0
    initial = np.int64(0)
    while i <= end:
        point, size = code_point(text, i)
        # In titles all beyond the first plane are signs: so the model has learned them.
        kind = kind_of(point) if size < 4 else _SYMBOL
        if kind <= DIGIT:
            if length == 0:
                begin, initial = i, _folded(point, kind) if kind != DIGIT else np.int64(0)
            length += 1
        elif length:
            out[n] = _word_hash(text, begin, i)
            shapes[(initial + 37 * length) % SHAPES if initial else 0] = True
            n += 1
            length = 0
        i += size
    return out[:n], shapes
