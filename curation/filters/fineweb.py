"""The four measurements of FineWeb (Penedo et al. 2024, section 3.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from curation.bytes.code_points import code_point, last_character
from curation.compiled import Bool, Bytes, Int, Record, Uint16s, borrowing
from curation.filters.repetition import copied_pieces
from curation.text import characters as ch
from curation.text.lines import characters, ends_in_colon_mark, strip_left

if TYPE_CHECKING:
    from curation.filters.scratch import Document, Scratch
    from curation.filters.signals import Kit

_TERMINAL, _CLOSE, _SPACE = ch.TERMINAL, ch.CLOSE, ch.SPACE
#: Characters up to which a line is short, by the paper.
SHORT_LINE = 30


class FineWeb(NamedTuple):
    """Settings in the form kernels take; see filter_settings.FineWebSettings."""

    short_line: int
    closers_end_lines: bool
    colons_end_lines: bool


@borrowing
def _ends_sentence(data: Bytes, start: Int, end: Int, properties: Uint16s, rule: FineWeb) -> Bool:
    """Whether the line data[start:end], which is not blank, ends in a terminal mark, but for white
    space: files of Windows end lines in `\\r\\n`."""
    passed = _SPACE | _CLOSE if rule.closers_end_lines else _SPACE
    last = last_character(data, start, end)
    while last > start and properties[code_point(data, last)[0]] & passed:
        end, last = last, last_character(data, start, last)
    if properties[code_point(data, last)[0]] & _TERMINAL:
        return True
    return rule.colons_end_lines and ends_in_colon_mark(data, start, end, properties)


@borrowing
def measure(data: Bytes, doc: Document, kit: Kit, space: Scratch, row: Record) -> None:
    """Measure FineWeb's signals after those of repetition; all NaN in a blank text.

    Lines are the pieces between line feeds that hold more than white space.
    """
    lines, rule = space.lines, kit.fineweb
    feeds = doc.feeds - 1
    n = ended = brief = 0
    for i in range(doc.feeds):
        start, end = space.feeds.starts[i], space.feeds.ends[i]
        if strip_left(data, start, end, kit.properties) < end:
            lines.starts[n], lines.ends[n] = start, end
            n += 1
            ended += _ends_sentence(data, start, end, kit.properties, rule)
            brief += characters(data, start, end) <= rule.short_line
    if n == 0:
        return
    row.fineweb_line_punct = ended / n
    row.fineweb_short_lines = brief / n
    row.fineweb_char_dup = 0.0
    if row.repetition_dup_line:
        row.fineweb_char_dup = copied_pieces(data, n, doc.characters - feeds, space)[1]
    if doc.tokens:
        row.fineweb_newlines_per_word = feeds / doc.tokens
