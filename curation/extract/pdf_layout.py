"""From characters on pages to paragraphs, headings and rows of tables, in reading order.

Characters come in the order of the page's content, which is that of reading in nearly all files.
Those without a wide gap between them make a cell, the cells of a line a row, rows a paragraph.
Lengths are compared with the height of characters, so units don't matter.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import NamedTuple

import numpy as np

from curation.compiled import Bools, Float32s, Int64s, Uint32s

#: What PDFium makes of a hyphen at the end of a line, and hyphens.
_HYPHEN, _HYPHENS = "\x02", ("\x02", "-", "\u2010", "\u00ad")
#: Lines at the top and at the bottom of a page that may be running ones, and pages on which a line
#: recurs that is one.
_MOST_RUNNING, _LEAST_PAGES = 4, 3
_NUMBERS = re.compile(r"\d+|\b[ivxlcdm]+\b", re.IGNORECASE)
#: Lines of a page that lead by dots to a page number, where they are a list of contents.
_LEAST_LEADERS = 5
_LEADERS = re.compile(r"(?:[.\u2026\u00b7_]\s?){5,}\s*\w{0,8}$")
_PAGE_NUMBER = re.compile(r"[\s.](?:\d+|[ivxlc]+)$")
_ITEM = re.compile(
    r"[\u2022\u25e6\u25aa\u25cf\u25cb\u25a0\u2023\u2043\u2013*\u00b7-]\s|\(?(?:\d{1,3}|[a-z])[.)]\s"
)
_SECTION = re.compile(r"(?:\w\.)?\d{1,3}(?:\.\d{1,3})+\.?\s")
_SENTENCE_END = re.compile("[.!?:;\u3002\uff01\uff1f\uff1a][\"'\u201d\u2019)\\]]*$")
_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
_WORD = re.compile(r"[^\W\d_]+")
_LAST_WORD = re.compile(r"[^\W\d_]+$")
#: Characters that are letters in another form: ligatures, radicals.
_FORMS = re.compile("[\ufb00-\ufb06\u2e80-\u2fd5]")
#: Lines of a cell of a table, at most: what is further up is another column of text.
_MOST_CELL_LINES = 12


class Characters(NamedTuple):
    """The visible characters of a document."""

    page: Int64s  # [n]
    code: Uint32s  # [n]
    box: Float32s  # [n, 4]: left, top, right, bottom
    spaced: Bools  # [n] white space before it


class Spans(NamedTuple):
    """Cells or rows: neighbours among the characters; [spans] each."""

    first: Int64s  # its first character
    last: Int64s
    page: Int64s
    left: Float32s
    right: Float32s
    middle: Float32s
    height: Float32s


class Rows(NamedTuple):
    """Rows, in reading order."""

    at: Spans
    cells: Int64s
    word: Float32s  # width of the first word
    fixed: Bools  # whether all characters have one width
    text: list[str]  # words divided by spaces, cells by tabs

    def only(self, wanted: Bools) -> Rows:
        """Return the wanted rows."""
        text = [text for text, want in zip(self.text, wanted.tolist(), strict=True) if want]
        at = Spans._make(column[wanted] for column in self.at)
        return Rows(at, self.cells[wanted], self.word[wanted], self.fixed[wanted], text)


def layout(found: Characters, pages: int) -> tuple[str, list[int]]:
    """Return the text, a line for each paragraph, and the byte in it where each page begins."""
    rows = _rows(_in_reading_order(found))
    rows = rows.only(~_running(rows))
    rows = rows.only(~_contents(rows))
    if not rows.text:
        return "", [0] * pages
    return _assembled(rows, _glue(rows), pages)


def _breaks(found: Characters) -> tuple[Bools, Bools]:
    """Tell the characters with which a row begins, and those with which a cell does."""
    left, top, right, bottom = found.box.T
    height, middle = np.maximum(top - bottom, 1), (top + bottom) / 2
    least, most = np.minimum(height[1:], height[:-1]), np.maximum(height[1:], height[:-1])
    gap = left[1:] - right[:-1]
    inside = np.sign(np.diff(top)) * np.sign(np.diff(bottom)) < 0
    row = (np.diff(found.page) != 0) | ((np.abs(np.diff(middle)) > 0.5 * least) & ~inside)
    row |= (gap < -0.8 * most) & (np.diff(left) < 0)  # characters of a ligature have one place
    begin = np.array([True])
    return np.concatenate([begin, row]), np.concatenate([begin, row | (gap > 1.2 * most)])


def _spans(found: Characters, begins: Bools) -> Spans:
    left, top, right, bottom = found.box.T
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(begins)) - 1
    return Spans(
        first,
        last,
        found.page[first],
        np.minimum.reduceat(left, first),
        np.maximum.reduceat(right, first),
        (np.add.reduceat((top + bottom) / 2, first) / (last - first + 1)).astype(np.float32),
        np.maximum.reduceat(np.maximum(top - bottom, 1), first),
    )


def _in_reading_order(found: Characters) -> Characters:
    """Return the characters with those pages put in order whose content is not.

    A page whose content often goes back up, but not to the next column, is read line by line. Where
    lines have text on both sides of one gap, the left side is read before the right one.
    """
    row, cell = _breaks(found)
    cells = _spans(found, cell)
    order = np.arange(len(cells.first))
    bounds = np.searchsorted(cells.page, np.unique(cells.page))
    begins = row[cells.first]
    back = np.concatenate([[False], (np.diff(cells.middle) > cells.height[1:])])
    back[1:] &= (cells.left[1:] < cells.right[:-1]) & (np.diff(cells.page) == 0)
    changed = False
    for a, b in zip(bounds.tolist(), np.append(bounds[1:], len(order)).tolist(), strict=True):
        some, starts = order[a:b], begins[a:b]
        if np.count_nonzero(back[a:b]) > max(4, (b - a) / 10):
            line = np.round(-cells.middle[some] / np.median(cells.height[some]) * 2)
            some = some[np.lexsort((cells.left[some], line))]
            starts = np.concatenate([[True], np.diff(np.sort(line)) != 0])
        if 2 * np.count_nonzero(~starts) > np.count_nonzero(starts) > 8:
            some = _by_columns(cells, some, starts)
        changed |= bool((some != order[a:b]).any())
        order[a:b] = some
    if not changed:
        return found
    sizes = (cells.last - cells.first + 1)[order]
    begin = np.repeat(cells.first[order] - np.cumsum(sizes) + sizes, sizes)
    return Characters._make(column[begin + np.arange(len(begin))] for column in found)


def _by_columns(cells: Spans, some: Int64s, starts: Bools) -> Int64s:
    """Return the cells of a page by columns, if it has two of running text."""
    left, right = cells.left[some], cells.right[some]
    seconds = np.flatnonzero(~starts)
    middle = np.median((right[seconds - 1] + left[seconds]) / 2)
    pairs = seconds[(right[seconds - 1] < middle) & (left[seconds] > middle)]
    across = (left < middle) & (right > middle)
    if not len(pairs) or 2 * len(pairs) < np.count_nonzero(starts) - np.count_nonzero(across):
        return some
    halves = (middle - left.min(), right.max() - middle)
    widths = np.median((right - left)[pairs - 1]), np.median((right - left)[pairs])
    if min(widths[0] / halves[0], widths[1] / halves[1]) < 0.7:  # cells of a table
        return some
    part = np.cumsum(across) * 2 - across  # what goes across is between what is above and below it
    return some[np.lexsort((np.arange(len(some)), left > middle, part))]


def _rows(found: Characters) -> Rows:
    begins, cell = _breaks(found)
    at = _spans(found, begins)
    left, _, right, _ = found.box.T
    words = np.flatnonzero(found.spaced | cell)
    following = np.append(words, len(cell))[np.searchsorted(words, at.first, "right")]
    narrow = np.minimum.reduceat(right - left, at.first)
    wide = np.maximum.reduceat(right - left, at.first)
    return Rows(
        at,
        np.add.reduceat(cell.astype(np.int64), at.first),
        right[np.minimum(following - 1, at.last)] - left[at.first],
        (wide < 1.05 * narrow) & (at.last - at.first > 2) & (wide < 0.8 * at.height),
        _texts(found, at, cell),
    )


def _texts(found: Characters, at: Spans, cell: Bools) -> list[str]:
    blank = found.spaced | cell
    blank[at.first] = False
    place = np.cumsum(blank) + np.arange(len(blank))
    whole = np.full(place[-1] + 1, ord(" "), np.uint32)
    whole[place[cell & blank] - 1] = ord("\t")
    whole[place] = found.code
    text = whole.tobytes().decode("utf-32-le")
    bounds = zip(place[at.first].tolist(), place[at.last].tolist(), strict=True)
    return [_composed(text[first : last + 1]) for first, last in bounds]


def _composed(text: str) -> str:
    if text.isascii():
        return text
    usual = _FORMS.sub(lambda form: unicodedata.normalize("NFKC", form[0]), text)
    return unicodedata.normalize("NFC", usual)


def _running(rows: Rows) -> Bools:
    """Tell headers, footers and page numbers: outermost lines that recur, or lie where such do."""
    found = np.zeros(len(rows.text), bool)
    for side in (-1, 1):
        order = np.lexsort((side * rows.at.middle, rows.at.page))
        page, middle = rows.at.page[order], rows.at.middle[order]
        apart = np.abs(np.diff(middle)) > 0.4 * rows.at.height[order][1:]
        begins = np.flatnonzero(np.concatenate([[True], (np.diff(page) != 0) | apart]))
        ends = np.append(begins[1:], len(order))
        at = np.searchsorted(page[begins], np.unique(page))
        for _ in range(_MOST_RUNNING):
            lines = [order[begins[n] : ends[n]] for n in at]
            recur = []
            for n, line, recurs in zip(at, lines, _recurring(rows, lines), strict=True):
                if recurs:
                    found[line] = True
                    recur.append(n)
            inner = np.array(recur, np.int64) + 1
            inner = inner[inner < len(begins)]
            at = inner[page[begins[inner]] == page[begins[inner - 1]]]
    return found


def _recurring(rows: Rows, lines: list[Int64s]) -> list[bool]:
    """Tell lines of different pages that recur with other numbers, or most of whose place do."""
    keys = [_keys(rows, line) for line in lines]
    seen = Counter(key for line in keys for key in set(line))
    most = [max(seen[key] for key in line) for line in keys]
    places = [line[0][0] for line in keys]
    here = Counter(places)
    recur = Counter(place for place, n in zip(places, most, strict=True) if n >= _LEAST_PAGES)
    least = max(_LEAST_PAGES, len(lines) // 10)
    usual = {place for place in here if 2 * recur[place] > here[place] >= least}
    return [n >= least or place in usual for place, n in zip(places, most, strict=True)]


def _keys(rows: Rows, line: Int64s) -> list[tuple[int, str]]:
    """Return the place of a line with each of its cells that has a word, else with all of it."""
    texts = [_NUMBERS.sub("#", cell) for row in line for cell in rows.text[row].split("\t")]
    named = [text for text in texts if _WORD.search(text)] or [" ".join(texts)]
    return [(round(float(rows.at.middle[line[0]]) / 3), text) for text in named]


def _contents(rows: Rows) -> Bools:
    """Tell the lines of lists of contents and indexes: those that lead by dots to a page."""
    found = np.array([bool(_LEADERS.search(text)) for text in rows.text], bool)
    page = rows.at.page
    found &= (
        np.bincount(page[found], minlength=len(page) and int(page.max()) + 1)[page]
        >= _LEAST_LEADERS
    )
    edge = np.round(rows.at.right / 2).astype(np.int64)
    edges = set(zip(page[found].tolist(), edge[found].tolist(), strict=True))
    places = zip(page.tolist(), edge.tolist(), strict=True)
    for row, (place, text) in enumerate(zip(places, rows.text, strict=True)):
        found[row] |= place in edges and bool(_PAGE_NUMBER.search(text))
    return found


def _glue(rows: Rows) -> list[str | None]:
    """Return what is between each row and the one before it in a paragraph, None where one begins."""
    found: list[str | None] = [" " if on else None for on in _goes_on(rows).tolist()]
    at = rows.at
    up = (np.diff(at.middle) > 0.5 * at.height[1:]) & (at.left[1:] > at.left[:-1])
    for row in (np.flatnonzero(up & (np.diff(at.page) == 0)) + 1).tolist():
        begin = max(0, row - _MOST_CELL_LINES)
        level = np.abs(at.middle[begin:row] - at.middle[row]) < 0.4 * at.height[row]
        level &= (at.page[begin:row] == at.page[row]) & (at.left[begin:row] < at.left[row])
        if level.any():  # another cell of a row of a table, each of which has lines
            first = begin + int(np.flatnonzero(level)[-1])
            found[first + 1 : row] = [gap or " " for gap in found[first + 1 : row]]
            found[row] = " | "
    return found


def _goes_on(rows: Rows) -> Bools:
    """Tell rows that go on with the paragraph of the row before them."""
    at = rows.at
    item = np.array([bool(_ITEM.match(text)) for text in rows.text])
    section = np.array([bool(_SECTION.match(text)) for text in rows.text])
    ended = np.array([bool(_SENTENCE_END.search(text)) for text in rows.text])
    hyphen = np.array([text.endswith(_HYPHENS) for text in rows.text])
    height = np.maximum(at.height[1:], at.height[:-1])
    alike = height < 1.15 * np.minimum(at.height[1:], at.height[:-1])
    down = at.middle[:-1] - at.middle[1:]
    here, next_page = np.diff(at.page) == 0, np.diff(at.page) == 1
    near = alike & here & (down > 0) & (down < 1.2 * _leading(at, down, alike & here)[1:])
    # A line is full if the first word of the next one has no room behind it.
    run = np.concatenate([[0], np.cumsum(~near)])
    margin = np.maximum.reduceat(at.right, np.flatnonzero(np.diff(run, prepend=-1)))[run]
    usual = _usual_edge(at)
    slack = 1.5 * at.height
    flush = np.bincount(run, at.right > margin - 0.3 * at.height)[run] > 1
    flush &= at.right - at.left > 15 * at.height  # else rows of a table, or verses
    flush |= margin > usual - slack
    margin = np.where(np.abs(margin - usual) < 2 * slack, np.minimum(margin, usual), margin)
    full = flush & (margin - at.right - np.append(rows.word[1:], 0) < slack)
    turn = alike & ~ended[:-1] & (next_page | (here & (down < 0)))
    indented = (at.left[1:] > at.left[:-1] + 0.5 * height) & ~item[:-1] & ~turn
    plain = ~rows.fixed & (rows.cells == 1)
    begins = item[1:] | indented | (section[1:] & ended[:-1])
    goes_on = (near | turn) & (full | hyphen)[:-1] & plain[1:] & plain[:-1] & ~begins
    large = at.height > 1.15 * np.median(at.height)
    goes_on |= near & (large[1:] & large[:-1]) & ~item[1:] & ~section[1:]
    return np.concatenate([[False], goes_on])


def _usual_edge(at: Spans) -> Float32s:
    """Return where most rows of each row's page end, on the right."""
    edge, page = np.round(at.right).astype(np.int64), at.page
    places, count = np.unique(np.stack([page, edge], axis=1), axis=0, return_counts=True)
    order = np.lexsort((places[:, 1], count, places[:, 0]))
    last = np.append(np.diff(places[order, 0]) != 0, True)
    best = dict(places[order][last].tolist())
    return np.array([best[one] for one in page.tolist()], np.float32)


def _leading(at: Spans, down: Float32s, close: Bools) -> Float32s:
    """Return the usual distance of lines of each row's height."""
    kind = np.round(at.height * 2).astype(np.int64)
    usual = np.zeros(int(kind.max()) + 1, np.float32)
    use = close & (down > 0) & (down < 2.5 * at.height[1:])
    for one in np.unique(kind[1:][use]):
        quarters = np.round(down[use & (kind[1:] == one)] * 4).astype(np.int64)
        usual[one] = np.bincount(quarters).argmax() / 4
    return np.where(usual[kind] > 0, usual[kind], 1.3 * at.height)


def _assembled(rows: Rows, glue: list[str | None], pages: int) -> tuple[str, list[int]]:
    words = set("\n".join(rows.text).lower().split())
    many = rows.cells > 1
    beside = many[1:] & many[:-1] & (np.diff(rows.at.page) == 0)
    in_table = np.append(beside, False) | np.append([False], beside)
    parts: list[str] = []
    begins: list[int] = []  # the part of each row
    for row, (text, gap) in enumerate(zip(rows.text, glue, strict=True)):
        text = text.replace("\t", " | " if in_table[row] else " ")
        if gap is None:
            gap = "\n" if parts else ""
        elif gap == " ":
            parts[-1], gap = _joined(parts[-1], text, words)
        begins.append(len(parts) + 1)
        parts += (gap, text)
    places = np.cumsum([0, *(len(part.encode()) for part in parts), 0])
    # Pages without text begin where the next one does.
    first = np.searchsorted(rows.at.page, np.arange(pages))
    starts = places[np.append(begins, len(parts))[first]].tolist()
    return "".join(parts).replace(_HYPHEN, "-"), starts


def _joined(before: str, after: str, words: set[str]) -> tuple[str, str]:
    """Return the end of a line as it is before the next one, and what is between them."""
    if not before.endswith(_HYPHENS):
        return before, "" if _WIDE.match(before[-1]) and _WIDE.match(after) else " "
    held = before[:-1]
    return held if before[-1] == "\u00ad" or _is_cut(held, after, words) else f"{held}-", ""


def _is_cut(before: str, after: str, words: set[str]) -> bool:
    """Return whether a hyphen between these divides a word, by the other words of the document."""
    first, second = _LAST_WORD.search(before), _WORD.match(after)
    if not first or not second:
        return False
    one, other = first[0].lower(), second[0].lower()
    if one + other in words:
        return True
    return f"{one}-{other}" not in words and second[0][0].islower()
