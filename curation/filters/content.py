"""Measurements of code and formulas, and the prose that is left when both are taken out.

Rules for prose judge a page without the listings and formulas on it, and code and mathematics have
rules of their own. Where a document's share of code or its marks of mathematics reach the settings
of `paths`, all of it is code or mathematics.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import regex

from curation.arrow import Texts, cut_out, text_buffers
from curation.bytes.code_points import code_point
from curation.bytes.search import same, word
from curation.columns import CODE_PATH, MATH_PATH, PROSE_PATH, document_paths
from curation.compiled import (
    Bool,
    Bytes,
    Int,
    Int64s,
    Record,
    Records,
    Uint16s,
    borrowing,
)
from curation.filters.names import CONTENT, TEXT
from curation.text import characters as ch
from curation.text.characters import properties
from curation.text.noise import noise
from curation.text.structure import BLANK, CODE, FORMULA, PROSE, Structure, structure

_LINE_FEED, _BACKSLASH, _DOLLAR = 0x0A, 0x5C, 0x24
_OPEN, _CLOSE = 0x7B, 0x7D
_ALPHA, _NUMBER, _SPACE = ch.ALPHA, ch.NUMBER, ch.SPACE

#: Alphanumeric runs of this many characters are data (hashes, base64), not names.
_DATA_RUN = 40
#: Bytes after which a formula that does not end counts as broken.
_LONGEST_FORMULA = 4000
#: Formulas that must be there to speak of a share: a `$` of a shell or a pattern makes one or two.
_FEWEST_FORMULAS = 5
#: Lines at the head of a source file that are searched for the marks of generated files.
_HEAD_LINES = 5

_GENERATED = regex.compile(
    r"(?i)auto-?generated|automatically generated|@generated|"
    r"(?:file|code) (?:is|was|has been) generated|do not (?:edit|modify) (?:this file|by hand)"
)
#: An XML declaration, looked for in the first characters of a file, and what XSLT, a language of
#: programs that is written in XML, has and data have not.
_XML, _XML_HEAD = "<?xml version=", 100
_XSLT = regex.compile(r"<xsl:(?:stylesheet|transform)\b")
_LICENCE = regex.compile(r"(?i)licen[sc]e|copyright|all rights reserved|spdx-")
_COMMENT = regex.compile(r"[ \t]*(?:#|//|/\*|\*|--|;|%|<!--|\"\"\"|'''|rem\b|$)", regex.I)


#: What is measured of a text, by name.
_ROW = np.dtype([(name, np.float64) for name in CONTENT])


class Content(NamedTuple):
    """Structure of a batch, and what follows from it."""

    structure: Structure
    paths: npt.NDArray[np.uint8]  # [texts], index into curation.columns.PATHS
    signals: npt.NDArray[np.float64]  # [texts, len(CONTENT)]


def look_at(texts: Texts, paths: bool) -> Content:
    """Find code and formulas in every text and measure them; without `paths` all is prose.

    What concerns code alone is NaN off the path of code, and what concerns formulas off that of
    mathematics.
    """
    signs = noise(texts)
    found = structure(texts, signs)
    offsets, data = text_buffers(texts)
    rows = len(offsets) - 1
    of_texts = document_paths(found) if paths else np.full(rows, PROSE_PATH, np.uint8)
    out = np.full((rows, len(CONTENT)), np.nan)
    signals = out.view(_ROW).reshape(-1)
    signals["code_share"] = found.code_share
    signals["math_ratio"] = found.math_ratio
    out[:, -len(TEXT) :] = signs
    _measure(data, offsets, found, of_texts, properties(), signals)
    for row in np.flatnonzero(of_texts == CODE_PATH):
        text = data[offsets[row] : offsets[row + 1]].tobytes().decode()
        head = "\n".join(text.lstrip().split("\n", _HEAD_LINES)[:_HEAD_LINES])
        signals["code_generated"][row] = len(_GENERATED.findall(head))
        signals["code_xml"][row] = _XML in text[:_XML_HEAD] and not _XSLT.search(text)
        signals["code_licence_ratio"][row] = licence_share(text)
    return Content(found, of_texts, out)


def licence_share(source: str) -> float:
    """Return the share of a source file in the comment at its head, if that states a licence."""
    end = 0
    for line in source.splitlines(keepends=True):
        if not _COMMENT.match(line):
            break
        end += len(line)
    return end / len(source) if _LICENCE.search(source, 0, end) else 0.0


def has_blocks(found: Content) -> npt.NDArray[np.bool_]:
    """Whether each document is prose with lines of code or formulas in it -> bool [texts]."""
    kinds = found.structure.kinds
    lines = np.concatenate([[0], np.cumsum((kinds == CODE) | (kinds == FORMULA))])
    offsets = found.structure.doc_offsets
    return (found.paths == PROSE_PATH) & (lines[offsets[1:]] > lines[offsets[:-1]])


def prose_of(texts: Texts, found: Content, rows: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the texts, those of `rows` without their lines of code and formulas: large_string."""
    buffers, held = text_buffers(texts), found.structure
    owners = np.repeat(np.arange(len(rows)), np.diff(held.doc_offsets))
    lines = np.flatnonzero(rows[owners] & ((held.kinds == CODE) | (held.kinds == FORMULA)))
    ends = np.minimum(held.ends[lines] + 1, buffers.offsets[owners[lines] + 1])
    return cut_out(buffers, owners[lines], np.stack([held.starts[lines], ends], axis=1))[0]


@borrowing
def _measure_code(
    data: Bytes, found: Structure, first: Int, past: Int, properties: Uint16s, row: Record
) -> None:
    """Measure the lines of code: letters, mean and longest line, data, size."""
    lines = 0
    visible = letters = dump = total = longest = 0
    for k in range(first, past):
        if found.kinds[k] <= PROSE:
            continue
        lines += 1
        size = run = digits = 0
        i = found.starts[k]
        while i < found.ends[k]:
            c, step = code_point(data, i)
            held = properties[c]
            size += 1
            visible += not held & _SPACE
            letters += held & _ALPHA > 0
            if held & (_ALPHA | _NUMBER):
                run += 1
                digits += held & _NUMBER > 0
            else:
                dump += run if run >= _DATA_RUN else digits
                run = digits = 0
            i += step
        dump += run if run >= _DATA_RUN else digits
        total += size
        longest = max(longest, size)
    if lines and visible:
        row.code_alpha_ratio = letters / visible
        row.code_mean_line_length = total / lines
        row.code_max_line_length = longest
        row.code_data_ratio = dump / visible
    row.code_characters = visible


@borrowing
def _word_after(data: Bytes, i: Int, end: Int, letters: Bytes) -> Bool:
    """Whether data[i:] begins with the `letters`, and no letter follows."""
    after = i + len(letters)
    if after > end or not same(data, i, letters, 0, len(letters)):
        return False
    return after == end or not 97 <= (data[after] | 32) <= 122


_BEGIN = word(b"begin")
_END = word(b"end")
_LEFT = word(b"left")
_RIGHT = word(b"right")


@borrowing
def _measure_formulas(data: Bytes, begin: Int, end: Int, row: Record) -> None:
    """Measure the share of formulas whose delimiters, braces or environments do not match."""
    formulas = broken = 0
    opened = 0  # 0: outside; else the closing byte: `$`, `)` or `]`
    since = begin
    braces = pairs = inner = outer = 0
    i = begin
    while i < end:
        b = data[i]
        blank = b == _LINE_FEED and i + 1 < end and data[i + 1] == _LINE_FEED
        if opened and (blank or i - since > _LONGEST_FORMULA):
            formulas += 1
            broken += 1
            opened = 0
        closed = False
        if b == _BACKSLASH and i + 1 < end:
            c = data[i + 1]
            i += 1
            if not opened and c in (0x28, 0x5B):
                opened, since = c + (1 if c == 0x28 else 2), i
                braces = pairs = inner = 0
            elif opened in (0x29, 0x5D) and c == opened:
                closed = True
            elif 97 <= c <= 122:
                step = int(_word_after(data, i, end, _BEGIN)) - int(_word_after(data, i, end, _END))
                if opened:
                    inner += step
                    pairs += int(_word_after(data, i, end, _LEFT))
                    pairs -= int(_word_after(data, i, end, _RIGHT))
                else:
                    outer += step
        elif b == _DOLLAR:
            if i + 1 < end and data[i + 1] == _DOLLAR:
                i += 1
            if opened == _DOLLAR:
                closed = True
            elif not opened:
                opened, since = _DOLLAR, i
                braces = pairs = inner = 0
        elif opened:
            braces += int(b == _OPEN) - int(b == _CLOSE)
        if closed:
            formulas += 1
            broken += braces != 0 or pairs != 0 or inner != 0
            opened = 0
        i += 1
    formulas += (opened != 0) + abs(outer)
    broken += (opened != 0) + abs(outer)
    row.math_broken_formulas = broken / formulas if formulas >= _FEWEST_FORMULAS else 0.0


@borrowing
def _measure_numbers(data: Bytes, begin: Int, end: Int, properties: Uint16s, row: Record) -> None:
    """Measure the share of digits among letters and digits."""
    letters = digits = 0
    i = begin
    while i < end:
        c, step = code_point(data, i)
        letters += properties[c] & _ALPHA > 0
        digits += properties[c] & _NUMBER > 0
        i += step
    if letters + digits:
        row.math_number_ratio = digits / (letters + digits)


@borrowing
def _measure(
    data: Bytes,
    offsets: Int64s,
    found: Structure,
    paths: Bytes,
    properties: Uint16s,
    signals: Records,
) -> None:
    for d in range(len(offsets) - 1):
        first, past = found.doc_offsets[d], found.doc_offsets[d + 1]
        filled = False
        for k in range(first, past):
            filled = filled or found.kinds[k] != BLANK
        if not filled:
            signals[d].code_share = np.nan
            signals[d].math_ratio = np.nan
            continue
        if paths[d] == CODE_PATH:
            _measure_code(data, found, first, past, properties, signals[d])
        if paths[d] == MATH_PATH:
            _measure_formulas(data, offsets[d], offsets[d + 1], signals[d])
            _measure_numbers(data, offsets[d], offsets[d + 1], properties, signals[d])
