"""What the text of each block looks like: counts of words and marks, hashes, learned word scores.

Nothing here knows a language: a word is a run of letters, each Han character or kana counts as one
word, and sentence marks of all scripts count alike.
"""

from __future__ import annotations

import numpy as np

from curation.compiled import borrowing, inlined, kernel
from curation.extract.markup import FNV_PRIME, FNV_START, find, first_keys, slot_of
from curation.hashing import xxh64
from curation.text.words import code_point

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

_UPPER, _LOWER, _CASELESS, _HAN, _DIGIT, _SENTENCE, _COMMA, _SYMBOL, _SPACE = range(9)


@borrowing
def kind_of(point):  # type: ignore[no-untyped-def]
    """Coarse kind of a code point, with case distinguished where that is one comparison."""
    if point < 128:
        if 97 <= point <= 122:
            return _LOWER
        if 65 <= point <= 90:
            return _UPPER
        if 48 <= point <= 57:
            return _DIGIT
        if point <= 32:
            return _SPACE
        if point == 46 or point == 33 or point == 63:
            return _SENTENCE
        if point == 44 or point == 59:
            return _COMMA
        return _SYMBOL
    if point < 0x2000:
        if point < 0xC0:
            if point == 0xAA or point == 0xB5 or point == 0xBA:
                return _LOWER
            return _SYMBOL
        if point <= 0xDE:
            return _SYMBOL if point == 0xD7 else _UPPER
        if point == 0xF7:
            return _SYMBOL
        if 0x391 <= point <= 0x3A9 or 0x400 <= point <= 0x42F:
            return _UPPER
        if 0xDF <= point <= 0xFF or 0x3B1 <= point <= 0x3C9 or 0x430 <= point <= 0x45F:
            return _LOWER
        if point == 0x60C or point == 0x61B:
            return _COMMA
        if point == 0x61F or point == 0x6D4 or point == 0x964 or point == 0x965:
            return _SENTENCE
        if point == 0x1362 or point == 0x104A or point == 0x104B or point == 0x17D4:
            return _SENTENCE
        return _CASELESS
    if point < 0x2C00:
        return _SENTENCE if point == 0x2026 else _SYMBOL
    if point < 0x3040:
        if point == 0x3002:
            return _SENTENCE
        if point == 0x3001:
            return _COMMA
        return _CASELESS if point < 0x2E00 else _SYMBOL
    if point < 0xA000:
        if point >= 0x3400 or point <= 0x30FF:
            return _HAN if point < 0x4DC0 or point >= 0x4E00 else _SYMBOL
        return _CASELESS
    if 0xF900 <= point <= 0xFAFF or 0x20000 <= point <= 0x3FFFF:
        return _HAN
    if 0xFE30 <= point <= 0xFE4F:
        return _SYMBOL
    if 0xFF00 <= point <= 0xFF65:
        if point == 0xFF01 or point == 0xFF0E or point == 0xFF1F or point == 0xFF61:
            return _SENTENCE
        if point == 0xFF0C or point == 0xFF1B or point == 0xFF64:
            return _COMMA
        if 0xFF10 <= point <= 0xFF19:
            return _DIGIT
        if 0xFF21 <= point <= 0xFF3A:
            return _UPPER
        return _LOWER if 0xFF41 <= point <= 0xFF5A else _SYMBOL
    if point >= 0x1F000 or 0xE000 <= point <= 0xF8FF:
        return _SYMBOL
    return _CASELESS


_ASCII_KINDS = np.array([kind_of.py_func(point) for point in range(128)] + [_SPACE] * 128, np.uint8)


@inlined
def _next(text, i):  # type: ignore[no-untyped-def]
    """Code point at byte i, its length in bytes, and its kind."""
    byte = text[i]
    if byte < 128:
        return np.int64(byte), 1, np.int64(_ASCII_KINDS[byte])
    point, size = code_point(text, i)
    return point, size, kind_of(point)


@borrowing
def _folded(point, kind):  # type: ignore[no-untyped-def]
    """Small letter of a capital, for the scripts where `kind_of` tells them apart."""
    if kind != _UPPER:
        return point
    if 0x400 <= point <= 0x40F:
        return point + 80
    return point + 32


@kernel
def count_words(text, starts, ends, title_keys, title_values):  # type: ignore[no-untyped-def]
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
        word_length = 0
        word_digit = False
        previous_word = np.uint64(0)
        seen = 0
        words = 0
        last = _SPACE
        first = -1
        sentences = 0
        commas = 0
        digits = 0
        upper = 0
        letters = 0
        symbols = 0
        lower_starts = 0
        shared = 0
        short = 0
        while True:
            if i >= end:
                kind = _SPACE
                point = np.int64(32)
                size = 0
            else:
                point, size, kind = _next(text, i)
            in_word = kind <= _DIGIT
            if in_word:
                if word_length == 0:
                    word_digit = kind == _DIGIT
                    if kind == _LOWER:
                        lower_starts += 1
                    if kind != _HAN:
                        words += 1
                if kind == _HAN:
                    words += 1
                if kind == _DIGIT:
                    digits += 1
                else:
                    letters += 1
                    if kind == _UPPER:
                        upper += 1
                if word_digit and kind == _DIGIT:
                    word = (FNV_START ^ np.uint64(48)) * FNV_PRIME
                else:
                    word_digit = False
                    word = (word ^ np.uint64(_folded(point, kind))) * FNV_PRIME
                word_length += 1
            else:
                if word_length:
                    if word_length <= 3:
                        short += 1
                    if find(title_keys, title_values, word) >= 0:
                        shared += 1
                    if scored and seen < SCORED_WORDS:
                        hashes[written] = word
                        written += 1
                        if seen:
                            hashes[written] = (previous_word * FNV_PRIME) ^ word
                            written += 1
                        previous_word = word
                        seen += 1
                    word = FNV_START
                    word_length = 0
                if size == 0:
                    break
                if kind == _SENTENCE:
                    # A full stop inside a number or an address ends no sentence.
                    if point != 46 or i + 1 >= end or text[i + 1] <= 32 or text[i + 1] == 34:
                        sentences += 1
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
def word_scores(hashes, starts, keys, values):  # type: ignore[no-untyped-def]
    """Score [n] of each block: the sum of its weights over the square root of their number."""
    n = len(starts) - 1
    score = np.zeros(n, np.float32)
    first = first_keys(keys, hashes, len(hashes))
    for b in range(n):
        total = np.float32(0)
        hits = 0
        for k in range(starts[b], starts[b + 1]):
            slot = slot_of(keys, first[k], hashes[k])
            if slot >= 0:
                total += values[slot]
                hits += 1
        if hits:
            score[b] = total / np.sqrt(np.float32(hits))
    return score


@kernel
def title_words(text, start, end):  # type: ignore[no-untyped-def]
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
        if kind <= _DIGIT:
            if length == 0:
                word_digit = kind == _DIGIT
            if word_digit and kind == _DIGIT:
                word = (FNV_START ^ np.uint64(48)) * FNV_PRIME
            else:
                word_digit = False
                word = (word ^ np.uint64(_folded(point, kind))) * FNV_PRIME
            length += 1
        elif length:
            out[n] = word
            n += 1
            word = FNV_START
            length = 0
        i += size
    return out[:n]
