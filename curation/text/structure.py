"""Structure of plain text: which lines are program code or formulas, and which are prose.

Extraction and plain tables deliver text without markup, so structure is derived from the text
itself: each line is scored by marks of code (calls, assignments, operators, brackets, keywords,
comment signs, indentation) against marks of prose (runs of plain words, sentence ends), and its
neighbours decide where the line alone does not (`else:`, a docstring, a lone bracket). Comments
that touch code are code, however much they read like prose: a licence, a manual above a function. A
formula line has TeX commands, powers or mathematical symbols. No rule is tied to one natural
language.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import Texts, large_strings, line_spans, text_buffers
from curation.bytes import ascii as by
from curation.bytes.ascii import ALNUM as _ALNUM
from curation.bytes.ascii import byte_set
from curation.bytes.code_points import code_point
from curation.bytes.hash_tables import find, of_hashes
from curation.bytes.search import same, stands_at, word
from curation.columns import MATH_RATIO
from curation.compiled import (
    Bool,
    Bools,
    Bytes,
    Float64s,
    Int,
    Int64s,
    Uint16s,
    borrowing,
    inlined,
    merged,
)
from curation.text import characters as ch
from curation.text.lines import characters, strip_left, strip_right
from curation.text.noise import MOST as MOST_NOISE
from curation.text.noise import noise

#: Kinds of lines. A sentence is prose with formulas in it: not to be cut, but to be read as prose.
BLANK, PROSE, CODE, FORMULA, SENTENCE = 0, 1, 2, 3, 4

_STRONG = 2  # score from which a line is code if another one is near
_CERTAIN = 4  # score from which a line is code by itself
_NEAR = 3  # non-blank lines around a strong line in which another must lie
_GAP = 3  # undecided lines between two lines of code that are code as well
_DOCSTRING = 60  # the same for indented lines, among them the prose of comments
_FORMULA_MARKS = 2  # marks of mathematics from which a line is a formula line
_SENTENCE_WORDS = 6  # plain words from which a line reads as prose
_WORDS_A_FORMULA = 2  # a sentence has more plain words for each of its formulas

_CLOSERS = byte_set("{}[]();,")
_BRACKETS = byte_set("{}[]()<>;,|&*+=\\\"'`_$#@/:.-")
#: Signs that open a comment up to the end of the line, if white space or the end follows.
_LINE_SIGNS = byte_set("#;%!\"'")
#: Kinds of comments: of one line (the sign's code itself), or up to a closing sign.
_BLOCK, _DOCUMENT, _APOSTROPHES, _MARKUP = 1, 2, 3, 4
_SIZES = np.array([0, 2, 3, 3, 3])  # of the closing signs
_CLOSING = np.array([[*sign.ljust(3)] for sign in (b"", b"*/", b'"""', b"'''", b"-->")], np.uint8)
_OPENS_MARKUP = word(b"<!--")
#: Signs of prose, and what comes behind one that ends a word.
_OF_PROSE, _BEHIND_SIGNS = byte_set(',.;:!?"-'), byte_set(' "-)')
#: What comes before a `$` and after it, letters and digits aside, that may be of a formula.
_BEFORE_DOLLAR, _AFTER_DOLLAR = byte_set(")}"), byte_set("\\({")
#: What comes before and after the `^` of a power, letters and digits aside.
_BASES = byte_set(")]}|'", beyond=True)
_POWERS = byte_set("{([-+*\\", beyond=True)
#: Mathematical symbols that ordinary pages use more often. Arrows lead to other pages; `×` gives
#: sizes and quantities; triangles and the sharp are ornaments; full-width forms are punctuation in
#: Chinese and Japanese.
_EVERYDAY = (
    (0xD7, 0xD8), (0x2190, 0x2200), (0x25B7, 0x25B8), (0x25C1, 0x25C2),
    (0x266F, 0x2670), (0x27F0, 0x2800), (0x2900, 0x2980), (0x2B00, 0x2C00), (0xFF00, 0xFFF0),
)  # fmt: skip
# A symbol between a word and a number, a word or the end, as in "about ±5 %", is of no formula,
# where one has a letter alone, a bracket or a number before it.
_WORD = "[A-Za-z\xc0-\u1fff\u2e80-\U0010ffff]{2}"
_UNRELATED = re.compile(
    f"(?:^|[\n.,:;!?(/–—-]|{_WORD}[.,:;!?(/–-]?)\\s*[±÷µ\u2202-\u22ff]+"
    f"\\s*(?:\\d|{_WORD}|[.,:;!?)\n]|$)"
)
_MATH = ch.MATH
_ALPHA = ch.ALPHA

#: First words of statements. In prose they begin sentences too, so they count only on lines of few
#: plain words or with other marks.
_KEYWORDS = """
abstract alias and apt as assert async await begin bool break byte case catch cd char chmod class
cmake const continue curl declare def default del delete do docker done double dynamic echo elif
else elsif end endif enum esac except exec exit export extends extern fi final finally float fn
for foreach from func function git global go goto group having if ifdef ifndef impl implements
import in include inline insert instanceof int interface into is join kubectl lambda let local
long loop make match mkdir mod module mut namespace native new next nil node none not npm null
nullptr object of or order override package pass pip print printf println private proc protected
protocol pub public puts python raise rake readonly redo ref register repeat require rescue return
rm sealed select self set short signed sizeof static string struct sub sudo super switch template
then this throw throws trait transient try type typedef typename typeof undef union unless unsafe
unsigned until update use using val values var virtual void volatile where while with xor yarn
yield
""".split()


def _word_hash(word: str) -> int:
    h = 5381
    for byte in word.encode():
        h = (h * 33 ^ byte) & 0xFFFFFFFF
    return h


_KEYWORD_KEYS, _KEYWORD_VALUES = of_hashes({_word_hash(word): 1 for word in _KEYWORDS})


class LineMarks(NamedTuple):
    """Counts of marks on one line."""

    plain_words: int  # runs of letters between spaces and punctuation of prose
    calls: int  # `name(` and `name[`
    assigned: int  # `=` that is no comparison
    operators: int  # pairs such as `==`, `->`, `::`, `&&`
    names: int  # inner underscores, camelCase
    symbols: int  # bytes of brackets, operators and quotes
    letters: int
    digits: int
    visible: int  # bytes that are not white space
    mathematics: int  # TeX commands, powers, indices, mathematical symbols
    dollars: int  # `$` that may open or close a formula
    signs: int  # marks of mathematics in the wide sense, equations included


@borrowing
def _is_keyword(data: Bytes, start: Int, end: Int) -> Bool:
    """Whether the line begins with a keyword, also `SELECT` or `End`."""
    h = np.uint32(5381)
    i = start
    capitals = start + 1 < end and 65 <= data[start + 1] <= 90  # all of SQL's, or the first alone
    while i < end and (97 <= data[i] <= 122 or (65 <= data[i] <= 90 and (capitals or i == start))):
        h = np.uint32(h * np.uint32(33)) ^ np.uint32(data[i] | 32)
        i += 1
    if i - start < 2 or i - start > 12 or (i < end and (_ALNUM[data[i]] or data[i] >= 0x80)):
        return False
    return find(_KEYWORD_KEYS, _KEYWORD_VALUES, np.uint64(h)) > 0


@borrowing
def _is_operator(a: Int, b: Int) -> Bool:
    """Whether two bytes are an operator of two signs."""
    if b == by.EQUALS:
        return a in (by.EQUALS, by.BANG, by.LESS, by.GREATER, by.PLUS, by.STAR, by.COLON, by.BAR)
    if b == by.GREATER:
        return a in (by.DASH, by.EQUALS, by.SLASH, by.QUESTION)
    if a == b:
        return a in (by.AMPERSAND, by.BAR, by.COLON, by.LESS)
    return a == by.LESS and (b == by.SLASH or b == by.DASH or b == by.QUESTION)


@inlined
def _is_letter(b: Int) -> Bool:
    """Whether a byte is an ASCII letter."""
    return 97 <= (b | 32) <= 122


@merged
def _wide_marks(c: Int, held: Int, run: Int) -> tuple[Bool, Bool, Bool, Int]:
    """Of a character beyond ASCII: is it, or ends it, a word; a letter; of mathematics; the run."""
    if held & ch.SINGLE and held & _ALPHA:
        return True, True, False, run  # a letter of an unspaced script
    if held & _ALPHA or held & ch.EXTEND:
        return False, True, False, run + 1 if run >= 0 else run
    if held & _MATH:
        everyday = False
        for low, high in _EVERYDAY:
            everyday = everyday or low <= c < high
        return False, False, not everyday, np.int64(-1)
    return run > 1, False, False, np.int64(0) if run > 1 else run


@merged
def _run_ends(b: Int, after: Int, run: Int) -> tuple[Bool, Int]:
    """Whether a sign or digit ends a plain word of `run` letters, and the run behind it."""
    if 48 <= b <= 57:
        return False, np.int64(-1) if run > 0 else run
    if _OF_PROSE[b]:
        if run > 1 and _BEHIND_SIGNS[after]:
            return True, np.int64(0)
        return False, np.int64(-1) if run > 0 and b != by.DASH else run
    if b == by.APOSTROPHE:
        return False, run
    bracket = b == by.PAREN or b == by.END_PAREN
    return run > 1 and b == by.END_PAREN, np.int64(0) if bracket else np.int64(-1)


@inlined
def _code_marks(
    data: Bytes, start: Int, i: Int, end: Int, opened: Int
) -> tuple[Int, Int, Int, Int]:
    """(calls, inner underscores, assignments) of the sign at i, and where an index is `opened`."""
    b, before, after = data[i], _byte_at(data, start, i - 1, end), _byte_at(data, start, i + 1, end)
    named = _ALNUM[before] or before == by.UNDERSCORE
    if b == by.EQUALS:
        return 0, 0, np.int64(after != by.EQUALS and not _is_operator(before, b)), opened
    if b == by.BRACKET and named:
        return 0, 0, 0, i
    if b == by.END_BRACKET and opened >= 0 and i + 1 < end:
        return 1, 0, 0, np.int64(-1)  # `name[i] ...`, but not a mark of an encyclopaedia
    under = b == by.UNDERSCORE and named and _ALNUM[after]
    return np.int64(b == by.PAREN and named), np.int64(under), 0, opened


@inlined
def _formula_marks(data: Bytes, start: Int, i: Int, end: Int) -> tuple[Int, Int, Int]:
    """(marks of mathematics, marks in the wide sense, dollars) of the sign at i."""
    b, before, after = data[i], _byte_at(data, start, i - 1, end), _byte_at(data, start, i + 1, end)
    if b == by.UNDERSCORE:
        named = _ALNUM[before] or before == by.UNDERSCORE
        return np.int64(named and after == by.BRACE), 0, 0
    if b == by.EQUALS:
        k = i - 1 if before != by.SPACE else i - 2
        sided = k >= start and (48 <= data[k] <= 57 or data[k] == by.END_PAREN)
        return 0, np.int64(sided), 0
    if b == by.CARET and i > start and i + 1 < end:
        power = (_ALNUM[before] or _BASES[before]) and (_ALNUM[after] or _POWERS[after])
        return np.int64(power), np.int64(power), 0
    if b == by.BACKSLASH and i + 1 < end:
        command = _is_letter(after)
        return np.int64(command or after == by.PAREN or after == by.BRACKET), np.int64(command), 0
    if b == by.DOLLAR:
        edge = _ALNUM[before] or _BEFORE_DOLLAR[before] or _is_letter(after) or _AFTER_DOLLAR[after]
        return np.int64(after == by.DOLLAR or before == by.DOLLAR), 0, np.int64(edge)
    return 0, 0, 0


@inlined
def _byte_at(data: Bytes, start: Int, i: Int, end: Int) -> Int:
    """The byte at i, a blank outside of the line data[start:end]."""
    return data[np.uint64(i)] if start <= i < end else np.uint8(by.SPACE)


@borrowing
def _marks(data: Bytes, start: Int, end: Int, properties: Uint16s) -> LineMarks:
    """Count the marks of data[start:end], a line without white space at its ends."""
    words = calls = assigned = operators = names = symbols = 0
    letters = digits = visible = mathematics = dollars = signs = 0
    opened = np.int64(-1)  # the bracket of an index
    run = np.int64(0)  # letters since the last byte that is none, -1 in a run that is no plain word
    i = start
    while i < end:
        b = data[np.uint64(i)]
        if b >= 0x80:
            c, size = code_point(data, i)
            word, letter, formula, run = _wide_marks(c, np.int64(properties[c]), run)
            words += word
            letters += size if letter else 0
            mathematics += formula
            signs += formula
            visible += size
            i += size
        elif _is_letter(b):
            before = _byte_at(data, start, i - 1, end)
            camel = 97 <= before <= 122 and b <= 90 and run != 0
            names += camel
            run = np.int64(-1) if camel else run
            first = i
            i += 1
            while i < end and 97 <= data[np.uint64(i)] <= 122:  # more of the same decide nothing
                i += 1
            letters += i - first
            visible += i - first
            run = run + i - first if run >= 0 else run
        elif b == by.SPACE or b == by.TAB:
            words += run > 1
            run = np.int64(0)
            i += 1
        else:
            after = _byte_at(data, start, i + 1, end)
            word, run = _run_ends(b, after, run)
            call, name, assigns, opened = _code_marks(data, start, i, end, opened)
            formulas, wide, dollar = _formula_marks(data, start, i, end)
            words += word
            calls += call
            names += name
            assigned += assigns
            mathematics += formulas
            signs += wide
            dollars += dollar
            visible += 1
            digits += 48 <= b <= 57
            symbols += _BRACKETS[b]
            operators += _is_operator(b, after)
            i += 1
    words += run > 1
    return LineMarks(
        words, calls, assigned, operators, names, symbols, letters, digits, visible, mathematics,
        dollars, signs,
    )  # fmt: skip


@borrowing
def _opens_as_code(data: Bytes, start: Int, end: Int) -> Int:
    """Score of the first bytes: comments, tags, prompts, directives, decorators."""
    a = data[start]
    b, c = _byte_at(data, start, start + 1, end), _byte_at(data, start, start + 2, end)
    if (a == by.SLASH and b in (by.SLASH, by.STAR)) or (a == by.STAR and b == by.SLASH):
        return 3
    if a == by.HASH:
        # `#!`, `#include`; a hashtag alone stays undecided by its neighbours
        directive = b == by.BANG or (97 <= b <= 122 and end - start > 3)
        return 2 if directive else np.int64(b == by.SPACE)
    if a == by.LESS and (_is_letter(b) or b in (by.SLASH, by.BANG, by.QUESTION)):
        return 3 if data[end - 1] == by.GREATER else 2
    if a == by.GREATER and b == by.GREATER and c == by.GREATER:
        return 4
    if a == by.DOLLAR and b == by.SPACE and _is_letter(c):
        return 2
    if a == by.DASH and b == by.DASH and end - start > 3 and c != by.DASH:
        return 1
    if a == by.QUOTE and b == by.QUOTE and c == by.QUOTE:
        return 2
    return np.int64(a == by.AT and _is_letter(b)) + np.int64(a == by.STAR and b == by.SPACE)


@borrowing
def _is_setting(data: Bytes, start: Int, end: Int) -> Bool:
    """Whether the line is `key:` or `key: value` as in YAML, with a key in lower case."""
    i = start
    if i + 1 < end and data[i] == by.DASH and data[i + 1] == by.SPACE:
        i += 2
    first = i
    while i < end and (97 <= data[i] <= 122 or data[i] in (by.UNDERSCORE, by.DASH)):
        i += 1
    return (
        i > first and i < end and data[i] == by.COLON and (i + 1 == end or data[i + 1] == by.SPACE)
    )


@borrowing
def _code_score(data: Bytes, raw: Int, start: Int, end: Int, marks: LineMarks) -> Int:
    """Evidence that the stripped line data[start:end] is code; negative for prose.

    `raw` is where the line begins with its indentation.
    """
    if marks.letters == 0:
        closers = 0
        for i in range(start, end):
            closers += _CLOSERS[data[i]]
        if closers == end - start <= 6:
            return 3
        return np.int64(start - raw >= 2)
    last = data[end - 1]
    before = data[end - 2] if end - start > 1 else np.uint8(by.SPACE)
    score = _opens_as_code(data, start, end)
    score += np.int64(start - raw >= 2 or (start > raw and data[raw] == by.TAB))
    score += min(marks.operators, 2) + np.int64(marks.operators > 0)
    score += np.int64(marks.names > 0) + np.int64(marks.assigned > 0)
    score += np.int64(marks.calls > 0) + np.int64(marks.calls > 2)
    few = marks.plain_words < 4
    if last == by.BRACE or last == by.END_BRACE:
        score += 3
    elif last == by.SEMICOLON:
        score += 3 if few or marks.calls + marks.assigned + marks.operators else 0
    elif last == by.COLON and (before == by.END_PAREN or before == by.END_BRACKET):
        score += 2
    elif last in (by.PAREN, by.BRACKET, by.BACKSLASH) or (
        last == by.END_PAREN and before == by.PAREN
    ):
        score += 2
    if data[start] == by.QUOTE and marks.plain_words < 3:
        for i in range(start + 1, end - 1):
            if data[i] == by.QUOTE and data[i + 1] == by.COLON:
                score += 2
                break
    if _is_keyword(data, start, end):
        other = marks.calls + marks.assigned + marks.operators + marks.names
        score += np.int64(few) + np.int64(other > 0)
        score += np.int64(last == by.COLON and marks.plain_words < 2 * _SENTENCE_WORDS)
    elif marks.plain_words < 4 and _is_setting(data, start, end):
        score += 1
    if marks.symbols * 5 > marks.visible:
        score += 1
    if marks.plain_words >= _SENTENCE_WORDS:
        score -= 2 + (marks.plain_words >= 2 * _SENTENCE_WORDS)
        score -= np.int64(marks.symbols * 12 < marks.visible)
    return score


@borrowing
def _settle(scores: Int64s, indented: Bools, kinds: Bytes, n: Int) -> None:
    """Find the lines of code among kinds[:n], non-blank lines, by scores and neighbours."""
    for k in range(n):
        if kinds[k] == FORMULA:
            continue
        weak = scores[k] >= 1 and 0 < k < n - 1 and scores[k - 1] >= 1 and scores[k + 1] >= 1
        if weak and (indented[k - 1] or indented[k] or indented[k + 1]):
            kinds[k] = CODE  # settings, one to a line
        if scores[k] >= _CERTAIN:
            kinds[k] = CODE
        elif scores[k] >= _STRONG:
            near = False
            for j in range(max(0, k - _NEAR), min(n, k + _NEAR + 1)):
                near = near or (j != k and scores[j] >= _STRONG)
            if near:
                kinds[k] = CODE


@borrowing
def _fill_gaps(scores: Int64s, indented: Bools, kinds: Bytes, n: Int) -> None:
    """Make what is between two lines of code that, and lines that touch one and look like it."""
    last = -1  # the last line of code
    for k in range(n):
        if kinds[k] != CODE:
            continue
        gap = k - last - 1
        undecided, inside = gap <= _GAP, gap <= _DOCSTRING
        for j in range(last + 1, k if last >= 0 else 0):
            undecided = undecided and (scores[j] >= 0 or kinds[j] == FORMULA)
            inside = inside and indented[j]
        if last >= 0 and (undecided or inside):
            for j in range(last + 1, k):
                kinds[j] = CODE
        last = k
    for k in range(1, n):  # lines below code that look a little like it
        if kinds[k] == PROSE and kinds[k - 1] == CODE and scores[k] >= 1:
            kinds[k] = CODE
    for k in range(n - 2, -1, -1):
        if kinds[k] == PROSE and kinds[k + 1] == CODE and scores[k] >= 1:
            kinds[k] = CODE


@borrowing
def _closes(data: Bytes, i: Int, end: Int, kind: Int) -> Bool:
    """Whether the sign that ends a comment of this kind is in data[i:end]."""
    size = _SIZES[kind]
    while i + size <= end and not same(data, i, _CLOSING[kind], 0, size):
        i += 1
    return i + size <= end


@borrowing
def _comment(data: Bytes, start: Int, end: Int) -> Int:
    """Kind of the comment that the stripped line data[start:end] opens, 0 for none."""
    a = data[start]
    b = _byte_at(data, start, start + 1, end)
    if a == by.SLASH and b == by.STAR:
        return _BLOCK
    if stands_at(data, start, end, _OPENS_MARKUP):
        return _MARKUP
    for kind in (_DOCUMENT, _APOSTROPHES):
        if stands_at(data, start, end, _CLOSING[kind]):
            return kind
    if (a == by.SLASH and b == by.SLASH) or (a == by.DASH and b == by.DASH):
        return np.int64(a)
    if _LINE_SIGNS[a]:
        i = start + 1
        while i < end and data[i] == a:
            i += 1
        if i == end or (i == start + 1 and (b == by.SPACE or b == by.TAB)):
            return np.int64(a)
    return 0


@borrowing
def _is_sure(comments: Bytes, k: Int, n: Int) -> Bool:
    """Whether line k is a comment; one line of `#` and the like is a heading as often."""
    kind = comments[k]
    if kind <= _MARKUP or kind == by.SLASH:
        return kind > 0
    return (k > 0 and comments[k - 1] == kind) or (k + 1 < n and comments[k + 1] == kind)


@borrowing
def _settle_comments(comments: Bytes, kinds: Bytes, n: Int) -> None:
    """Make comments code that touch code, or comments that do."""
    for k in range(n - 2, -1, -1):
        if kinds[k + 1] == CODE and _is_sure(comments, k, n):
            kinds[k] = CODE
    for k in range(1, n):
        if kinds[k - 1] == CODE and _is_sure(comments, k, n):
            kinds[k] = CODE


@borrowing
def classify_lines(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    kinds: Bytes,
    properties: Uint16s,
    space: StructureSpace,
) -> Int:
    """Fill `kinds`, those of the lines of a text; return marks of mathematics.

    Lines are data[starts[k]:ends[k]].
    """
    filled = 0
    signs = dollars = 0
    opened = since = 0  # the comment that the line is in, and its first line
    for k in range(len(kinds)):
        a = strip_left(data, starts[k], ends[k], properties)
        kinds[k] = BLANK
        if a == ends[k]:
            continue
        b = strip_right(data, a, ends[k], properties)
        marks = _marks(data, a, b, properties)
        space.scores[filled] = _code_score(data, starts[k], a, b, marks)
        space.indented[filled] = a - starts[k] >= 2 or data[starts[k]] == by.TAB
        if opened:
            space.comments[filled] = opened
            opened = 0 if _closes(data, a, b, opened) else opened
        else:
            kind = _comment(data, a, b)
            space.comments[filled] = kind
            if 0 < kind <= _MARKUP:
                if not _closes(data, a + 2, b, kind):
                    opened, since = kind, filled
                elif kind == _DOCUMENT or kind == _APOSTROPHES:
                    space.comments[filled] = 0  # also bold text, and a string
        paired = marks.dollars >= _FORMULA_MARKS and space.scores[filled] < _STRONG
        command = b - a > 2 and data[a] == by.BACKSLASH and 97 <= (data[a + 1] | 32) <= 122
        formula = marks.mathematics >= _FORMULA_MARKS or paired or command  # `\\begin{align}`
        space.settled[filled] = FORMULA if formula else PROSE
        space.places[filled] = k
        space.signs[filled] = marks.signs
        space.dollars[filled] = marks.dollars
        formulas = max(marks.mathematics, marks.dollars // 2)
        words = marks.plain_words
        space.worded[filled] = words >= _SENTENCE_WORDS and words > _WORDS_A_FORMULA * formulas
        filled += 1
    if opened:  # never closed: no comment
        space.comments[since:filled] = 0
    _settle(space.scores, space.indented, space.settled, filled)
    _fill_gaps(space.scores, space.indented, space.settled, filled)
    _settle_comments(space.comments, space.settled, filled)
    for k in range(filled):
        sentence = space.settled[k] == FORMULA and space.worded[k]
        kinds[space.places[k]] = SENTENCE if sentence else space.settled[k]
        if space.settled[k] != CODE:  # where `$` opens a variable and `\\` an escape
            signs += space.signs[k]
            dollars += space.dollars[k]
    signs += min(signs, dollars)  # `$` alone is money
    return signs if signs >= _FORMULA_MARKS else 0


class StructureSpace(NamedTuple):
    """Arrays for the lines of the longest text."""

    settled: npt.NDArray[np.uint8]
    scores: npt.NDArray[np.int64]
    indented: npt.NDArray[np.bool_]
    comments: npt.NDArray[np.uint8]
    places: npt.NDArray[np.int64]
    signs: npt.NDArray[np.int64]
    dollars: npt.NDArray[np.int64]
    worded: npt.NDArray[np.bool_]


def structure_space(lines: int) -> StructureSpace:
    """Arrays for texts of up to `lines` lines."""
    small, wide, is_so = np.uint8, np.int64, np.bool_
    kinds: tuple[Any, ...] = small, wide, is_so, small, wide, wide, wide, is_so
    return StructureSpace(*(np.zeros(lines, kind) for kind in kinds))


class Structure(NamedTuple):
    """Lines of a batch, separated by line feeds; those of text i are `doc_offsets[i:i + 2]`."""

    starts: npt.NDArray[np.int64]  # [lines], bytes in the batch's buffer
    ends: npt.NDArray[np.int64]  # [lines], line feed excluded
    kinds: npt.NDArray[np.uint8]  # [lines], BLANK, PROSE, CODE, FORMULA or SENTENCE
    doc_offsets: npt.NDArray[np.int64]  # [texts + 1]
    code_share: npt.NDArray[np.float64]  # [texts], of the characters in non-blank lines
    math_ratio: npt.NDArray[np.float64]  # [texts], marks of mathematics per character


def structure(texts: Texts, found: npt.NDArray[np.float64] | None = None) -> Structure:
    """Find the lines of every text and what each is. Linear in the bytes.

    `found` is the texts' `noise`, where it is known.
    """
    buffers = text_buffers(texts)
    offsets, data = buffers
    starts, ends, doc_offsets = line_spans(buffers)
    kinds = np.empty(len(starts), np.uint8)
    shares = np.zeros((len(offsets) - 1, 2))
    space = structure_space(int(np.diff(doc_offsets).max(initial=0)))
    _structure(data, offsets, ch.properties(), space, doc_offsets, (starts, ends), kinds, shares)
    rows = np.flatnonzero(shares.sum(1) > 0)
    column = large_strings(texts)
    some = noise(column.take(pa.array(rows))) if found is None else found[rows]
    # escapes look like code, mojibake like formulas
    for text in rows[some.sum(1) > MOST_NOISE]:
        lines = slice(doc_offsets[text], doc_offsets[text + 1])
        kinds[lines] = np.minimum(kinds[lines], PROSE)
        shares[text] = 0
    for text in np.flatnonzero(shares[:, 1] >= MATH_RATIO):
        written = column[text].as_py()
        left = shares[text, 1] * len(written) - len(_UNRELATED.findall(written))
        shares[text, 1] = left / len(written) if left > _FORMULA_MARKS - 0.5 else 0
    return Structure(starts, ends, kinds, doc_offsets, shares[:, 0].copy(), shares[:, 1].copy())


@borrowing
def _structure(
    data: Bytes,
    offsets: Int64s,
    properties: Uint16s,
    space: StructureSpace,
    doc_offsets: Int64s,
    spans: tuple[Int64s, Int64s],
    kinds: Bytes,
    shares: Float64s,
) -> None:
    starts, ends = spans
    for d in range(len(offsets) - 1):
        first, past = doc_offsets[d], doc_offsets[d + 1]
        if first == past:
            continue
        signs = classify_lines(
            data, starts[first:past], ends[first:past], kinds[first:past], properties, space
        )
        any_code = False
        for k in range(first, past):
            any_code = any_code or kinds[k] == CODE
        total = code = 0
        for k in range(first, past if any_code else first):
            if kinds[k] != BLANK:
                size = characters(data, starts[k], ends[k])
                total += size
                code += size * (kinds[k] == CODE)
        if total:
            shares[d, 0] = code / total
        if signs:
            shares[d, 1] = signs / characters(data, offsets[d], offsets[d + 1])
