"""Pages that React streams: parts that come late, in hidden elements, are put where they belong.

The page has a place, `<template id="B:0"></template>` with what is shown while it waits up to
`<!--/$-->`, or `<template id="P:1"></template>` with nothing; behind it `<div hidden id="S:0">` with
the part, and a script, `$RC("B:0","S:0")` or `$RS("S:1","P:1")`, that puts one into the other.
"""

from __future__ import annotations

import bisect
import re

from curation.bytes.search import has, word

_MOVE = re.compile(rb"""\$R([CS])\(\s*["']([\w:.-]{1,40})["']\s*,\s*["']([\w:.-]{1,40})["']""")
_TEMPLATE, _COMPLETES, _SHOWS = word(b"<template"), word(b"$RC("), word(b"$RS(")
_PART = re.compile(rb"""<div\s+hidden(?:="")?\s+id=["']([\w:.-]{1,40})["']\s*>""")
_PLACE = re.compile(
    rb"""<template\s[^<>]{0,100}?id=["']([\w:.-]{1,40})["'][^<>]{0,100}>\s*</template>"""
)
_EDGE = re.compile(rb"<(/?)div\b", re.I)
_WAITING_ENDS = b"<!--/$-->"
_WAITING = re.compile(rb"<!--(?:\$[?!]?|/\$)-->")
_MOST_DEPTH = 50  # parts within parts


def in_place(source: bytes) -> bytes:
    """A page with its late parts where their script puts them; any other page as it is. O(bytes)."""
    if not has(source, _TEMPLATE) or not (has(source, _COMPLETES) or has(source, _SHOWS)):
        return source
    moves: dict[bytes, bytes] = {}  # part by place
    for kind, one, other in _MOVE.findall(source):
        moves.setdefault(*((one, other) if kind == b"C" else (other, one)))
    parts = _parts(source) if moves else {}
    if not parts:
        return source
    return _Page(source, moves, parts).whole()


def _parts(source: bytes) -> dict[bytes, tuple[int, int, int, int]]:
    """Of each part: start and end of its element, and of its content."""
    starts = {found.start(): found for found in _PART.finditer(source)}
    if not starts:
        return {}
    parts: dict[bytes, tuple[int, int, int, int]] = {}
    opened: list[int] = []
    for edge in _EDGE.finditer(source, min(starts)):
        if not edge[1]:
            opened.append(edge.start())
        elif opened and (found := starts.get(opened.pop())):
            end = source.find(b">", edge.end()) + 1 or len(source)
            parts.setdefault(found[1], (found.start(), end, found.end(), edge.start()))
    return parts


class _Page:
    def __init__(
        self,
        source: bytes,
        moves: dict[bytes, bytes],
        parts: dict[bytes, tuple[int, int, int, int]],
    ) -> None:
        self._source, self._moves, self._parts = source, moves, parts
        self._used: set[bytes] = set()
        places = [found for found in _PLACE.finditer(source) if found[1] in moves]
        self._behind = _ends(source, places)
        wanted = set(moves.values())
        self._events = sorted(
            [(place.start(), True, place[1]) for place in places]
            + [(part[0], False, name) for name, part in parts.items() if name in wanted]
        )

    def whole(self) -> bytes:
        text = self._between(0, len(self._source), 0)
        return text if self._used else self._source

    def _between(self, start: int, end: int, depth: int) -> bytes:
        """The source from start to end, parts in their places, and left out where they came."""
        out: list[bytes] = []
        at = start
        for k in range(bisect.bisect_left(self._events, (start,)), len(self._events)):
            where, is_place, name = self._events[k]
            if where >= end:
                break
            if where < at:
                continue
            if not is_place:
                out.append(self._source[at:where])
                at = self._parts[name][1]
                continue
            part = self._parts.get(self._moves[name])
            if part is None or self._moves[name] in self._used or depth >= _MOST_DEPTH:
                continue
            if part[0] <= where < part[1]:
                continue  # a place within the part that it waits for
            self._used.add(self._moves[name])
            out += [self._source[at:where], self._between(part[2], part[3], depth + 1)]
            at = min(end, self._behind[where])
        out.append(self._source[at:end])
        return b"".join(out)


def _ends(source: bytes, places: list[re.Match[bytes]]) -> dict[int, int]:
    """Where what is shown while each place waits ends."""
    ends = {place.start(): place.end() for place in places}
    marks = sorted(
        [(place.start(), place) for place in places]
        + [(mark.start(), mark) for mark in _WAITING.finditer(source)],
        key=lambda mark: mark[0],
    )
    opened: list[list[int]] = []  # of each pair of comments, the places directly in it
    for _, mark in marks:
        if mark.re is _PLACE:
            if opened and not mark[1].startswith(b"P"):
                opened[-1].append(mark.start())
        elif mark[0] != _WAITING_ENDS:
            opened.append([])
        elif opened:
            ends |= dict.fromkeys(opened.pop(), mark.end())
    return ends
