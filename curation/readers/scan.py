"""Scan the records of a WARC or ARC file in order, intact or damaged.

A record's length is believed if something plausible follows it: blank lines, another record, a new
compressed member, or the end. If the length can't be right, the record ends where the next one
begins. Where no record begins, reading continues at the next place where one does.

Each step costs about as much as the bytes that it gets on by, whatever they are: what has been
searched in vain is not searched again, and the record that follows is looked for in windows that
grow.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from curation.readers.headers import (
    RecordHead,
    find_record,
    header_end,
    may_begin_warc,
    parse_arc,
    parse_warc,
)
from curation.readers.members import RECORD
from curation.readers.pages import Problem, Record, skip_reason, to_event
from curation.readers.records import Damage, Event, Skipped
from curation.readers.settings import KEEP_RAW_BYTES, ReaderSettings
from curation.readers.stream import Mark, Stream

_STEP = 1 << 20  # bytes between looks for the next record
_OVERLAP = 1 << 15  # bytes looked at twice, in which a record's first lines fit
#: Bytes of a header block, or of ARC's header line; browsers and servers stop at 8 to 256 KiB.
_HEADER = 1 << 16
_NEAR = 1 << 12  # bytes that a record's header usually fits in
_PROOF = 1 << 13  # bytes that tell whether a record begins
_WINDOW = 1 << 10  # bytes looked at first for the next record
_LINE = 1 << 8  # bytes of a record's first line, and of the name behind it
_LINE_ENDS = re.compile(rb"[\r\n]*")
_PADDING = re.compile(rb"[\r\n\0]*")


class _Extent(NamedTuple):
    end: int  # of the block
    next: int  # where reading goes on
    problem: Problem | None
    at_break: bool = False  # whether the problem is the next break of the stream


class _Barren:
    """A span of positions in which a search found nothing."""

    def __init__(self) -> None:
        self._begin = self.end = 0

    def behind(self, begin: int) -> int:
        """Return where a search from `begin` on has to start."""
        return self.end if self._begin <= begin < self.end else begin

    def add(self, begin: int, end: int) -> None:
        """Nothing begins in [begin, end)."""
        if begin > self.end:
            self._begin = begin
        self.end = max(self.end, end)


def scan(stream: Stream, settings: ReaderSettings) -> Iterator[Event]:
    """Return all records from the stream's position on, in order, damage included.

    Memory is bounded by `max_record_bytes` and what one step of decoding gives.
    """
    return _Scanner(stream, settings).run()


def find_head(stream: Stream, end: int, settings: ReaderSettings) -> int | None:
    """Position of the first thing that looks like a record behind the stream's first byte and
    before `end`, or None. It may be part of another record's content."""
    return _Scanner(stream, settings).find_head(end)


class _Scanner:
    def __init__(self, stream: Stream, settings: ReaderSettings) -> None:
        self.stream = stream
        self.settings = settings
        self._no_record = _Barren()
        self._no_header_end = _Barren()
        self._doubtful = 0  # a record above the limit that begins before it is not followed

    def run(self) -> Iterator[Event]:
        stream = self.stream
        position = stream.base
        while True:
            after = position
            position = self._skip_blank(position)
            stream.drop(position)
            if stream.breaks and stream.breaks[0][0] <= position:
                yield stream.take_break()
            elif position >= stream.end and stream.ended:
                return
            elif self._is_settled(position) and stream.stops_at(position, after):
                return
            else:
                event, position = self._record(position, after)
                yield event

    def find_head(self, end: int) -> int | None:
        """As the function of this name."""
        stream = self.stream
        looked, step = stream.base, 2 * _OVERLAP
        while looked < end:
            reached = stream.fill(min(end, looked + step))
            found = self._find_record(looked, reached)
            if found is not None or reached < looked + step:
                return found
            looked = reached - _OVERLAP
            stream.drop(looked)
            step = min(2 * step, _STEP)
        return None

    def _is_settled(self, position: int) -> bool:
        """Return whether nothing that was found out before `position` matters from there on."""
        ends = self._doubtful, self._no_record.end, self._no_header_end.end
        return max(ends) <= position

    def _skip_blank(self, position: int) -> int:
        """First position from here on that is no line end or padding, or a break or the end."""
        stream = self.stream
        while True:
            reached = stream.reach(position + 1)
            if reached <= position:
                return position
            found = _PADDING.match(stream.buffer, position - stream.base, reached - stream.base)
            position = stream.base + found.end() if found else position
            if position < reached:
                return position
            stream.drop(position)

    def _record(self, position: int, after: int) -> tuple[Event, int]:
        stream = self.stream
        head = self._head(position)
        if head is None:
            return self._garbage(position, after)
        offset = stream.claim(position, after)
        body = position + head.size
        if head.length is not None and head.length > self.settings.max_record_bytes:
            reached = stream.fill(body + self.settings.max_record_bytes)
            if reached >= body + self.settings.max_record_bytes:
                return self._giant(head, position, offset)
        extent = self._extent(head, body)
        record = Record(head, stream.buffer, body - stream.base, extent.end - stream.base)
        event = to_event(record, offset, extent.problem, self.settings)
        if extent.at_break and not isinstance(event, Skipped):
            stream.breaks.popleft()  # reported with the record
        return event, extent.next

    def _head(self, position: int) -> RecordHead | None:
        """Return the header at `position`, or None if there is no complete header."""
        stream = self.stream
        longest = position + _HEADER
        want = position + _NEAR
        while True:
            reached = stream.fill(min(want, longest))
            end = min(reached, want, longest)
            at = position - stream.base
            if may_begin_warc(stream.buffer, at, end - stream.base):
                begin = self._no_header_end.behind(position + 1)
                found = header_end(stream.buffer, begin - stream.base, end - stream.base)
                if found:
                    return parse_warc(stream.buffer, at, found)
                self._no_header_end.add(begin, end - _LINE)
            else:
                head = parse_arc(stream.buffer, at, end - stream.base)
                if head or stream.buffer.find(b"\n", at, end - stream.base) >= 0:
                    return head
            if reached < want or want >= longest:
                return None
            want += want - position

    def _extent(self, head: RecordHead, body: int) -> _Extent:
        """Return where the record's block ends and what is wrong with that."""
        stream = self.stream
        want = body + (head.length or 0)
        reached = stream.fill(want + 5)  # the blank lines, and whether the member is sound
        if reached >= want and self._plausible(head, want):
            problem = None
            if head.length is None:
                problem = Problem(f"{head.archive}.bad_length", "the length is missing", False)
            extent = _Extent(want, want, problem)
        else:
            extent = self._mend(head, body, want)
        stream.fill(extent.next + _NEAR)
        if stream.breaks and stream.breaks[0][0] <= self._behind_blank(extent.next):
            broken = stream.breaks[0][1]
            if extent.problem is None and broken.offset != stream.member_of(extent.end - 1):
                return extent  # it is the next member that breaks, before its first byte
            cut = extent.problem.cut if extent.problem else False
            detail = extent.problem.detail if extent.problem and cut else broken.detail
            problem = Problem(broken.reason, detail, cut)
            return extent._replace(problem=problem, at_break=True)
        return extent

    def _behind_blank(self, position: int) -> int:
        stream = self.stream
        at = position - stream.base
        found = _LINE_ENDS.match(stream.buffer, at, at + _NEAR)
        return stream.base + found.end() if found else position

    def _plausible(self, head: RecordHead, want: int) -> bool:
        """Return whether a record can end at `want`, which has been read."""
        stream = self.stream
        at = want - stream.base
        if head.archive == "warc" and stream.buffer.startswith(b"\r\n\r\n", at):
            return True
        reached = stream.fill(want + _NEAR)
        behind = self._behind_blank(want)
        if behind >= min(reached, want + _NEAR) or any(stream.member_starts(want, behind + 1)):
            return True
        at = behind - stream.base
        if stream.buffer[at : max(at, reached - stream.base)][:5].upper() == b"WARC/":
            return True
        line_before = at > 0 and stream.buffer[at - 1] in b"\r\n"
        return line_before and parse_arc(stream.buffer, at, reached - stream.base) is not None

    def _mend(self, head: RecordHead, body: int, want: int) -> _Extent:
        """Return the extent of a record whose length is wrong or whose end is missing."""
        stream = self.stream
        reached = stream.fill(want)
        length = f"{head.archive}.bad_length"
        found = self._find_record(body - 1, min(want, reached))
        if found is not None:
            problem = Problem(length, "the next record begins before this one's end", True)
            return _Extent(self._without_blank(body, found), found, problem)
        if reached < want:
            broken = stream.breaks[0][1] if stream.breaks else None
            there = f"{reached - body} of {want - body} bytes are there"
            problem = Problem(
                broken.reason if broken else f"{head.archive}.truncated",
                f"{broken.detail}; {there}" if broken else there,
                True,
            )
            return _Extent(reached, reached, problem)
        closing = (b"\n\n",) if head.archive == "warc" else (b"\n", b"\r\n")
        if stream.buffer.startswith(closing, want - stream.base):
            return _Extent(want, want, None)  # the next record's beginning is broken, not this end
        longest = body + self.settings.max_record_bytes
        problem = Problem(length, "the record goes on behind its end", False, longer=True)
        looked = want - 1
        while True:
            reached = min(stream.fill(looked + _STEP), longest)
            found = self._find_record(looked, reached)
            if found is not None:
                return _Extent(self._without_blank(want, found), found, problem)
            if stream.fill(looked + _STEP) < looked + _STEP:
                return _Extent(self._without_blank(want, reached), reached, problem)
            if reached >= longest:
                return _Extent(want, want, problem)
            looked = max(looked, reached - _OVERLAP)

    def _without_blank(self, begin: int, end: int) -> int:
        """`end` moved before the two line ends that close a record."""
        data = self.stream.buffer
        base = self.stream.base
        for line_end in b"\n\r\n\r":
            if end > begin and data[end - 1 - base] == line_end:
                end -= 1
        return end

    def _find_record(self, begin: int, end: int) -> int | None:
        """First position in (begin, end) where a record begins."""
        begin += 1
        looked = begin = max(begin, self._no_record.behind(begin))
        size = _WINDOW
        while looked < end or size < _PROOF:
            looked = min(end, begin + size)
            found = self._record_before(begin, looked, looked + min(size, _PROOF))
            if found is not None:
                return found
            size *= 4
        self._no_record.add(begin, end - _OVERLAP)
        return None

    def _record_before(self, begin: int, end: int, known: int) -> int | None:
        """First position in [begin, end) where a record begins, by lines up to `known`."""
        stream = self.stream
        known = min(stream.fill(known), known)
        base = stream.base
        starts = (
            start
            for start in stream.member_starts(begin, end)
            if RECORD.match(stream.buffer, start - base, min(start + _PROOF, known) - base)
        )
        member = next(starts, None)
        found = find_record(
            stream.buffer, max(0, begin - base), max(0, end - base), max(0, known - base)
        )
        if found is None:
            return member
        return base + found if member is None else min(member, base + found)

    def _garbage(self, position: int, after: int) -> tuple[Event, int]:
        """Return bytes that begin no record as damage, up to the next record, break or end."""
        stream = self.stream
        offset = stream.claim(position, after)
        known = stream.fill(position + max(_NEAR, KEEP_RAW_BYTES))
        begin = position - stream.base
        raw = bytes(stream.buffer[begin : begin + KEEP_RAW_BYTES])
        warc = may_begin_warc(stream.buffer, begin, known - stream.base)
        looked = position
        while True:
            reached = stream.fill(looked + _STEP)
            found = self._find_record(looked, reached)
            if found is not None or reached < looked + _STEP:
                break
            looked = reached - _OVERLAP
            stream.drop(looked)
        end = reached if found is None else found
        reason, detail = "warc.garbage", f"{end - position} bytes that belong to no record"
        if warc:
            reason, detail = "warc.bad_header", "a header that doesn't end"
            if found is None and stream.breaks:
                _, (_, reason, detail) = stream.breaks.popleft()
            elif found is None and end - position <= _HEADER:
                reason, detail = "warc.truncated", "the file ends inside a header"
        return Damage(offset, reason, detail, None, raw), end

    def _giant(self, head: RecordHead, position: int, offset: int) -> tuple[Event, int]:
        """Handle a record above the limit: skip it, unless its length covers other records.

        Others may lie in it as well: what follows its end tells. But that asks to read to its end,
        and to go back if the length is wrong. After such a record, others are read to the next
        record only, until as much again has been passed: however many there are, the file is
        read a few times at most.
        """
        stream = self.stream
        settings = self.settings
        body = position + head.size
        want = body + (head.length or 0)
        begin = body - stream.base
        known = min(_STEP, settings.max_record_bytes)
        record = Record(head, stream.buffer, begin, begin + known)
        skip = skip_reason(record, settings)
        detail = f"{head.length} bytes, over {settings.most}"
        large = record.damage(offset, "record.too_large", detail)
        own = stream.mark(position)
        inside: Mark | None = None
        looked = body - 1
        while True:
            reached = stream.fill(min(want, looked + _STEP))
            if inside is None:
                found = self._find_record(looked, min(reached, want))
                inside = None if found is None else stream.mark(found)
            if reached >= want or reached < looked + _STEP:
                break
            if inside and position < self._doubtful:
                break
            looked = reached - _OVERLAP
            if looked > body + settings.max_record_bytes:
                stream.drop(looked)
        if reached >= want:
            stream.fill(want + 5)
            if self._plausible(head, want):
                return Skipped(skip) if skip else large, want
        if inside is None:
            return large, min(reached, want)
        following = inside.position
        small = following - body <= settings.max_record_bytes
        if (position if small else following) < stream.base:
            self._doubtful = 2 * reached - position
            stream.restart(own if small else inside)
            stream.fill(following)
        detail = "the next record begins before this one's end"
        problem = Problem(f"{head.archive}.bad_length", detail, True)
        if small:
            end = self._without_blank(body, following) - stream.base
            begin = body - stream.base
            record = Record(head, stream.buffer, begin, end)
            return to_event(record, offset, problem, settings), following
        return replace(large, reason=problem.reason, detail=detail), following
