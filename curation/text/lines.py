"""Lines, paragraphs and sentence ends, found on UTF-8 buffers.

Lines come in the two meanings that published rules use: pieces between line feeds (`split("\\n")`)
and lines that end in any Unicode line break (`splitlines()`).
"""

import numpy as np

from curation.bytes import ascii
from curation.bytes.code_points import code_point, is_tail, last_character
from curation.compiled import Bool, Bytes, Int, Int32s, Uint16s, borrowing, merged
from curation.text import characters as ch
from curation.text.words import is_dense

_SPACE, _BREAK, _TERMINAL, _CLOSE, _UPPER = ch.SPACE, ch.BREAK, ch.TERMINAL, ch.CLOSE, ch.UPPER
_ALPHA = ch.ALPHA
_INNER = ascii.INNER.copy()
_INNER[0x3A] = False  # a colon, which ends sentences in some scripts
#: Bytes with which line breaks begin.
BREAKING = ascii.byte_set("\n\v\f\r\x1c\x1d\x1e")
BREAKING[[0xC2, 0xE2]] = True  # lead bytes of U+0085, U+2028 and U+2029
_LF = 10
_CR = 13
_STOP = 46
_COLON, _WORDSPACE = 0x3A, 0x1361
_ARMENIAN = (0x0531, 0x0588)
_ETHIOPIC = ((0x1200, 0x13A0), (0x2D80, 0x2DE0), (0xAB00, 0xAB30))
_ASCII = 0x80
_DENSE = 3


@borrowing
def characters(data: Bytes, start: Int, end: Int) -> Int:
    """Number of code points in data[start:end]."""
    n = 0
    for i in range(np.uint64(start), np.uint64(end)):  # compiled to vector instructions
        n += not is_tail(data[i])
    return n


@borrowing
def breadth(data: Bytes, start: Int, end: Int, properties: Uint16s, left_out: Int) -> Int:
    """Number of characters without a property of `left_out`; a letter of Han, kana or bopomofo,
    being as much text, counts as several."""
    n = 0
    i = start
    while i < end:
        c, size = code_point(data, i)
        if not properties[c] & left_out:
            n += _DENSE if is_dense(properties[c]) else 1
        i += size
    return n


@borrowing
def strip_left(data: Bytes, start: Int, end: Int, properties: Uint16s) -> Int:
    """Offset of the first character that is no white space, or `end`."""
    while start < end:
        c, size = code_point(data, start)
        if not properties[c] & _SPACE:
            break
        start += size
    return start


@borrowing
def strip_right(data: Bytes, start: Int, end: Int, properties: Uint16s) -> Int:
    """Offset after the last character that is no white space, or `start`."""
    while end > start:
        last = last_character(data, start, end)
        if not properties[code_point(data, last)[0]] & _SPACE:
            break
        end = last
    return end


@borrowing
def feed_lines(data: Bytes, begin: Int, end: Int, starts: Int32s, ends: Int32s) -> Int:
    """Pieces of data[begin:end] between line feeds, empty ones included; at least one piece."""
    n = 0
    start = begin
    for i in range(begin, end):
        if data[np.uint64(i)] == _LF:
            starts[n] = start
            ends[n] = i
            n += 1
            start = i + 1
    starts[n] = start
    ends[n] = end
    return n + 1


@borrowing
def all_lines(
    data: Bytes, begin: Int, end: Int, properties: Uint16s, starts: Int32s, ends: Int32s
) -> Int:
    """Lines of data[begin:end] as str.splitlines gives them (`\\r\\n` is one break)."""
    n = 0
    start = begin
    i = begin
    while i < end:
        b = data[np.uint64(i)]
        if not BREAKING[b]:
            i += 1
            continue
        c, size = code_point(data, i)
        broken = properties[c] & _BREAK
        if broken:
            starts[n] = start
            ends[n] = i
            n += 1
            if b == _CR and i + 1 < end and data[i + 1] == _LF:
                size = 2
            start = i + size
        i += size
    if start < end:
        starts[n] = start
        ends[n] = end
        n += 1
    return n


@borrowing
def paragraphs(
    data: Bytes, begin: Int, end: Int, properties: Uint16s, starts: Int32s, ends: Int32s
) -> Int:
    """Pieces of the stripped text between runs of two or more line feeds; at least one piece."""
    begin = strip_left(data, begin, end, properties)
    end = strip_right(data, begin, end, properties)
    n = 0
    start = begin
    i = begin
    while i < end:
        if data[i] != _LF:
            i += 1
            continue
        stop = i
        while i < end and data[i] == _LF:
            i += 1
        if i - stop >= 2:
            starts[n] = start
            ends[n] = stop
            n += 1
            start = i
    starts[n] = start
    ends[n] = end
    return n + 1


@borrowing
def _is_initial(data: Bytes, begin: Int, end: Int, properties: Uint16s) -> Bool:
    """Whether data[begin:end] ends in a capital that no letter precedes."""
    if begin == end:
        return False
    last = last_character(data, begin, end)
    if not properties[code_point(data, last)[0]] & _UPPER:
        return False
    if last == begin:
        return True
    before = code_point(data, last_character(data, begin, last))[0]
    return not properties[before] & (_UPPER | _ALPHA)


@borrowing
def _last_letter(data: Bytes, begin: Int, end: Int, properties: Uint16s) -> Int:
    """Code point of the last letter of data[begin:end], 0 if there is none."""
    while end > begin:
        end = last_character(data, begin, end)
        c = code_point(data, end)[0]
        if properties[c] & _ALPHA:
            return c
    return 0


@merged
def _is_ethiopic(c: Int) -> Bool:
    return (
        _ETHIOPIC[0][0] <= c < _ETHIOPIC[0][1]
        or _ETHIOPIC[1][0] <= c < _ETHIOPIC[1][1]
        or _ETHIOPIC[2][0] <= c < _ETHIOPIC[2][1]
    )


@borrowing
def colon_mark(data: Bytes, begin: Int, i: Int, end: Int, properties: Uint16s) -> Int:
    """Byte after the colons at i that are typed for a full stop of the script, or i.

    They are `:` for `։` in Armenian, `::` and `፡፡` for `።` in Ethiopic; the script is that of the
    last letter in data[begin:i].
    """
    c, size = code_point(data, i)
    if c != _COLON and c != _WORDSPACE:
        return i
    letter = _last_letter(data, begin, i, properties)
    if _ARMENIAN[0] <= letter < _ARMENIAN[1]:
        return i + size if c == _COLON else i
    if not _is_ethiopic(letter) or i + 2 * size > end:
        return i
    return i + 2 * size if code_point(data, i + size)[0] == c else i


@borrowing
def ends_in_colon_mark(data: Bytes, begin: Int, end: Int, properties: Uint16s) -> Bool:
    """Whether data[begin:end] ends in colons that are typed for a full stop (`colon_mark`)."""
    if end - begin < 2:
        return False
    last = last_character(data, begin, end)
    if colon_mark(data, begin, last, end, properties) == end:
        return True
    first = 2 * last - end  # where the mark begins if it is two of these characters
    return first >= begin and colon_mark(data, begin, first, end, properties) == end


@borrowing
def next_sentence(data: Bytes, start: Int, end: Int, properties: Uint16s) -> Int:
    """Byte after the sentence that begins at `start`.

    A sentence ends after a run of sentence-terminal characters and the closing quotes or brackets
    behind it, if white space or the end follows; characters beyond ASCII (`。`, `।`) need nothing
    behind them. A full stop after a single capital letter (an initial) ends no sentence. Colons end
    one where a script has them for its full stop (`colon_mark`).
    """
    begin = start  # of the characters since the last mark
    i = start
    while i < end:
        while i < end and _INNER[data[i]]:
            i += 1
        if i >= end:
            break
        c, size = code_point(data, i)
        p = np.int64(properties[c])
        stop = i + size if p & _TERMINAL else i
        if stop == i and (c == _COLON or c == _WORDSPACE):
            stop = colon_mark(data, begin, i, end, properties)
        if stop == i:
            i += size
            continue
        initial = c == _STOP and _is_initial(data, begin, i, properties)
        free = c >= _ASCII
        run = 1
        i = stop
        while i < end:
            c, size = code_point(data, i)
            p = np.int64(properties[c])
            if not p & (_TERMINAL | _CLOSE):
                break
            if p & _TERMINAL:
                run += 1
                free = free or c >= _ASCII
            i += size
        begin = i
        if i >= end or free or (p & _SPACE and not (initial and run == 1)):
            return i
    return end


@borrowing
def count_sentences(data: Bytes, begin: Int, end: Int, properties: Uint16s) -> Int:
    """Number of sentences in data[begin:end]; white space alone is none."""
    n = 0
    i = strip_left(data, begin, end, properties)
    while i < end:
        n += 1
        i = strip_left(data, next_sentence(data, i, end, properties), end, properties)
    return n
