"""One large file read by several readers, each its own range of bytes.

A range owns the records that begin in it. Where the first of them begins is certain only to a
reader that comes from before: bytes inside a record may look like a record, and damage may end
anywhere. So a reader begins at the first place that looks right, and says where it began and where
the next range has to begin. `misread` compares these: a range that did not begin where the one
before it ended is read again from there. What comes out is what one reader of the whole file gives,
for any bytes; a wrong guess costs time only.

A reader can begin at any record of a file that is not compressed, and at a member that a record is
the first thing in. What it doesn't know there of the bytes before it are the three numbers of a
`Checkpoint`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from curation.readers import tables
from curation.readers.formats import Packing, Reader, format_of, reader_of
from curation.readers.members import Effort, find_record_member, is_one_member
from curation.readers.raw import RawFile
from curation.readers.read import blank_file
from curation.readers.records import Event
from curation.readers.rows import format_of_rows
from curation.readers.scan import find_head, scan
from curation.readers.settings import ReaderSettings
from curation.readers.stream import Stop, Stream
from curation.stores import is_url, reads_ranges

_FIRST_MEMBER = 16 << 20  # bytes; a file whose first member is longer counts as one stream
_LINES = 1 << 16  # bytes read at once to find a line's end


@dataclass(frozen=True)
class Span:
    """Bytes [start, end) of a file of `size` bytes."""

    start: int
    end: int
    size: int


@dataclass(frozen=True)
class Checkpoint:
    """A place between two records where a reader can begin as if it had read all before."""

    offset: int  # in the file, of a record or of a member
    position: int | None  # bytes of decompressed content before it; None where that is unknown
    effort: int  # spent on damage before it, see `members.Effort`


@dataclass(frozen=True)
class Reading:
    """What a reader of one range reports besides the events."""

    begin: Checkpoint | None  # None where nothing seems to begin in the range
    end: int  # offset where the next range begins; of the file's end behind the last record
    length: int  # bytes of decompressed content read, 0 if not compressed
    effort: int  # spent on damage
    room: int | None  # how much more may have been spent before; None for any amount
    counted: bool  # whether offsets were given that depend on the position


BEGINNING = Checkpoint(0, 0, 0)


def spans(size: int, most: int) -> list[Span]:
    """Divide a file into as few ranges of at most `most` bytes as it takes, of about equal size."""
    count = max(1, -(-size // most))
    bounds = [size * k // count for k in range(count + 1)]
    return [Span(*pair, size) for pair in pairwise(bounds)]


def why_whole(path: str, name: str, settings: ReaderSettings) -> str:
    """Return briefly why a file needs a single reader; empty if it can be read by ranges.

    Looks at the beginning of the file only, at 16 MiB of it at most. Raises InputError when the
    file can't be read.
    """
    with RawFile.open(path) as raw:
        if format_of_rows(raw, name, settings) is not None:
            return "rows that are read one after the other"
        if is_url(path) and not reads_ranges(path):
            return "no range requests"
        kind = format_of(raw, name)
        if kind == "parquet":
            return "" if tables.row_groups(raw) > 1 else "one row group"
        if kind != "stream":
            return "one ZIP package" if kind == "zip" else "one Arrow stream"
        packing = Packing.of(raw, name)
        reader = reader_of(packing.stream(), settings, name)
        if reader is tables.read_jsonl:
            return f"lines compressed with {packing.compression}" if packing.compression else ""
        if reader is not scan:
            return "one page" if reader else "no known format"
        bound = min(_FIRST_MEMBER, settings.split_bytes)
        if packing.compression and is_one_member(raw, packing.codec, bound):
            return f"one {packing.compression} stream"
        return ""


class RangeReader:
    """Reads the events of one range; `reading` says afterwards which these were.

    `begin` is where the range's first record truly begins; without it, that is guessed once
    iteration begins.
    Iterating raises InputError as `read` does.
    """

    reading: Reading

    def __init__(
        self,
        path: str,
        name: str,
        settings: ReaderSettings,
        span: Span,
        begin: Checkpoint | None = None,
    ) -> None:
        self._path, self._name, self._settings, self._span = path, name, settings, span
        self.begin = BEGINNING if span.start == 0 else begin
        self._stream: Stream | None = None

    @property
    def lacks_position(self) -> bool:
        """Whether an offset was given that is wrong, since the position is unknown."""
        begin, stream = self.begin, self._stream
        return bool(stream and stream.counted and begin and begin.position is None)

    def __iter__(self) -> Iterator[Event]:
        begin, span = self.begin, self._span
        if begin and begin.offset and begin.offset >= span.end:
            self.reading = Reading(begin, begin.offset, 0, 0, None, False)
            return
        with RawFile.open(self._path) as raw:
            if format_of(raw, self._name) == "parquet":
                yield from self._row_groups(raw)
                return
            packing = Packing.of(raw, self._name)
            reader = reader_of(packing.stream(), self._settings, self._name)
            if reader is None:
                raise ValueError(f"{self._path}: a format that can't be read by ranges")
            if begin is None:
                found = _likely_begin(packing, reader, span, self._settings)
                begin = None if found is None else Checkpoint(found, None, 0)
            self.begin = begin
            if begin is None:
                self.reading = Reading(None, span.end, 0, 0, None, False)
            else:
                yield from self._from(begin, packing, reader)

    def _row_groups(self, raw: RawFile) -> Iterator[Event]:
        """Footers say where row groups begin: nothing is guessed."""
        span = self._span
        last = span.end == span.size
        bounds = (span.start, tables.EVERYTHING if last else span.end)
        yield from tables.read_parquet(raw, self._settings, bounds)
        self.reading = Reading(Checkpoint(span.start, 0, 0), span.end, 0, 0, None, False)

    def _from(self, begin: Checkpoint, packing: Packing, reader: Reader) -> Iterator[Event]:
        effort = Effort(begin.effort)
        stream = self._stream = packing.stream(begin.offset, begin.position or 0, effort)
        first, blank = stream.base, not begin.offset
        stream.limit = None if blank else self._span.end
        for event in reader(stream, self._settings):
            # A file without any event is damage as a whole, so no reader ends before the first.
            stream.limit, blank = self._span.end, False
            yield event
        if blank:
            yield blank_file(packing.raw.head)
        stop, size = stream.stop, self._span.size
        if stop is None:
            stop = Stop(size, stream.end, effort.spent)
        length = stop.position - first if packing.compression else 0
        spent = stop.spent - begin.effort if packing.compression else 0
        self.reading = Reading(begin, stop.offset, length, spent, effort.room, stream.counted)


def _likely_begin(
    packing: Packing, reader: Reader, span: Span, settings: ReaderSettings
) -> int | None:
    """Offset of the first record of a range as far as its own bytes tell; None for none."""
    if packing.compression:
        return find_record_member(packing.raw, packing.codec, span.start, span.end)
    if reader is tables.read_jsonl:
        return _line_start(packing.raw, span)
    # From the byte before, so that nothing is believed only because the stream begins with it.
    return find_head(packing.stream(span.start - 1), span.end, settings)


def _line_start(raw: RawFile, span: Span) -> int | None:
    """Offset of the first line that begins in a range, by the line ends."""
    at = span.start - 1
    while at < span.end - 1 and (data := raw.fetch(at, _LINES)):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1 if at + found + 1 < span.end else None
        at += len(data)
    return None


class Rest(NamedTuple):
    """What is left of a file, or of a range, behind a record that can't be read."""

    offset: int  # of the record
    span: Span | str | None  # None: nothing that can be read without what is before it
    begin: Checkpoint | None
    end: int  # where the next range begins, if nothing is left of this one


def rest_of(
    path: str,
    name: str,
    settings: ReaderSettings,
    span: Span | None,
    start: int,
    last: int | None,
    events: int,
) -> Rest:
    """Find where reading can go on behind a record on which a reader of a file, or range, dies.

    It is `events` events behind the one at the offset `last`, or, where that is None, behind the
    one at `start`. Only heads of records are looked at.
    """
    at = start if last is None else last
    with RawFile.open(path) as raw:
        whole = span or Span(0, raw.size, raw.size)
        nothing = Rest(at, None, None, raw.size)
        kind = format_of(raw, name)
        if format_of_rows(raw, name, settings) is not None or kind not in ("parquet", "stream"):
            return nothing
        if kind == "parquet":
            row, found = tables.next_row_group(raw, start, last)
        else:
            packing = Packing.of(raw, name)
            reader = reader_of(packing.stream(), settings, name)
            lines = reader is tables.read_jsonl and not packing.compression
            if at < 0 or reader is None or not (reader is scan or lines):
                return nothing
            found = at
            for _ in range(events + 1):
                if found is None:
                    return nothing
                row = found
                found = _likely_begin(packing, reader, Span(row + 1, raw.size, raw.size), settings)
        if found is None or found >= whole.end:
            # A range of Parquet owns the row groups that begin in it, and ends where it ends.
            end = whole.end if kind == "parquet" else raw.size if found is None else found
            return Rest(row, None, None, end)
        return Rest(row, Span(found, whole.end, raw.size), Checkpoint(found, None, 0), found)


def misread(parts: Sequence[Span], readings: Sequence[Reading]) -> dict[int, Checkpoint]:
    """Return which ranges of a file must be read again, by number, and where they truly begin.

    Ask again afterwards: once nothing is left, the events of all ranges, one after the other, are
    those of the file. Each time the first range that is wrong becomes right for good.
    """
    again: dict[int, Checkpoint] = {}
    at = BEGINNING
    for number, (span, one) in enumerate(zip(parts, readings, strict=True)):
        if at.offset >= span.end:  # the last record before it reaches over all of it
            if one.begin is not None and one.begin.offset < span.end:
                again[number] = at
            continue
        if one.begin is None or not _began_at(at, one.begin.offset, one.begin.effort, one.room):
            again[number] = at
            break
        if one.counted and one.begin.position != at.position:
            again[number] = at  # where it ended is right all the same
        at = Checkpoint(one.end, (at.position or 0) + one.length, at.effort + one.effort)
    return again


def _began_at(at: Checkpoint, offset: int, effort: int, room: int | None) -> bool:
    """Return whether what was read from an offset is what is read from a checkpoint, but for
    positions."""
    return at.offset == offset and (room is None or 0 <= at.effort - effort <= room)
