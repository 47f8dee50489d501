"""Read a file or a range of it, where need be in a guarded process.

There, a record that kills its reader costs only itself. This is used in a task whose worker died.
The process reads on from event to event. Where it dies, the events of the last answer are read
again one by one; the one on which it dies again is damage, and reading goes on behind it: at the
next row group of a Parquet file, at the next record or member of a file that several readers could
share. Of any other file the rest is damage, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from curation.readers.documents import others_in, others_of
from curation.readers.index import read_records, records_behind
from curation.readers.ranges import BEGINNING, Checkpoint, RangeReader, Reading, Rest, Span, rest_of
from curation.readers.read import read
from curation.readers.records import Damage, Page, Skipped, drawn
from curation.readers.settings import ReaderSettings
from pipelines.runners.guard import Crash, Guard

_EVENTS = 64
_BYTES = 4 << 20

Event = Page | Damage | Skipped


@dataclass
class FileReader:
    """Reads a file, a range of it, or the records that an index names; `begin`: see RangeReader."""

    path: str
    name: str
    settings: ReaderSettings
    span: Span | str | None = None
    begin: Checkpoint | None = None

    def __post_init__(self) -> None:
        self._range: RangeReader | None = None  # being iterated

    def _new_range(self) -> RangeReader | None:
        if not isinstance(self.span, Span):
            return None
        return RangeReader(self.path, self.name, self.settings, self.span, self.begin)

    @property
    def start(self) -> int:
        if self.begin is not None:
            return self.begin.offset
        return self.span.start if isinstance(self.span, Span) else 0

    @property
    def reading(self) -> Reading:
        """Which events of the file these were; only of a range, after iterating."""
        assert self._range is not None
        return self._range.reading

    @property
    def lacks_position(self) -> bool:
        """As that of `RangeReader`."""
        return self._range is not None and self._range.lacks_position

    def others(self) -> dict[str, pa.DataType]:
        """Return the types of a table's further columns, see `others_of`."""
        if isinstance(self.span, str):
            return {}
        return others_of(self.path, self.name, self.settings, self._new_range())

    def __iter__(self) -> Iterator[Event]:
        if isinstance(self.span, str):
            return read_records(self.path, self.name, self.settings, self.span)
        self._range = self._new_range()
        found = self._range or read(self.path, self.settings, self.name)
        return drawn(iter(found), self.settings.sample, self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileReader, (self.path, self.name, self.settings, self.span, self.begin)


@dataclass(frozen=True)
class _Events:
    events: list[Event]
    ended: bool
    begin: Checkpoint | None
    reading: Reading | None  # of a range, at its end
    lacks_position: bool


#: What the process has open: a reader, how many events were read, and those to come.
_open: tuple[FileReader, int, Iterator[Event]] | None = None


def _more(source: FileReader, first: int, most: int) -> _Events:
    """Return the events of a source from number `first` on."""
    global _open
    held, _open = _open, None  # nothing stays open after an error
    if held is None or held[:2] != (source, first):
        held = source, first, itertools.islice(source, first, None)
    reader, _, following = held
    events: list[Event] = []
    size = 0
    ended = True
    for event in following:
        events.append(_changed(event, _packed))
        size += len(event.content) if isinstance(event, Page) else 0
        if len(events) >= most or size >= _BYTES:
            ended = False
            break
    _open = None if ended else (reader, first + len(events), following)
    if reader._range is None:
        return _Events(events, ended, BEGINNING, None, False)
    reading = reader.reading if ended else None
    return _Events(events, ended, reader._range.begin, reading, reader.lacks_position)


def _rest(source: FileReader, last: int | None, events: int, at: int) -> Rest:
    """Return what is left of a source behind a record, see `rest_of`; `at`: events in all."""
    if isinstance(source.span, str):
        offset, behind = records_behind(source.span, at)
        return Rest(offset, behind, None, 0)
    place = source.path, source.name, source.settings, source.span
    return rest_of(*place, source.start, last, events)


def _answer(question: tuple[Any, ...]) -> Any:
    function, *arguments = question
    return function(*arguments)


#: The guarded process of this worker.
_guard: Guard[Any, Any] = Guard(_answer)


def _ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in the guarded process."""
    (answer,) = _guard.map([(function, *arguments)], again=False)
    return answer


class GuardedReader(FileReader):
    """Reads in the guarded process."""

    _reading: Reading
    _lacks_position = False

    @property
    def reading(self) -> Reading:
        return self._reading

    @property
    def lacks_position(self) -> bool:
        return self._lacks_position

    def others(self) -> dict[str, pa.DataType]:
        """Return them as ever; where the process dies, those of the rows that can be read."""
        answer = _ask(FileReader.others, self)
        return others_in(self.name, self) if isinstance(answer, Crash) else answer

    def __iter__(self) -> Iterator[Event]:
        source: FileReader = self
        begin = self.begin
        place, at, most, singly = (self.path, self.name, self.settings), 0, _EVENTS, 0
        last, since = None, 0  # offset of the last event that has one, events from there on
        while True:
            answer = _ask(_more, source, at, most)
            if isinstance(answer, Crash):
                if most > 1:
                    most, singly = 1, at + _EVENTS
                    continue
                rest = _ask(_rest, source, last, since, at)
                if isinstance(rest, Crash):
                    end = source.span.end if isinstance(source.span, Span) else 0
                    rest = Rest(last or 0, None, None, end)
                yield _damage(answer, rest)
                if rest.span is None:
                    begin = begin or Checkpoint(source.start, None, 0)
                    self._reading = Reading(begin, rest.end, 0, 0, None, False)
                    return
                source = FileReader(*place, rest.span, rest.begin)
                at, most, last, since = 0, _EVENTS, None, 0
                continue
            if answer.lacks_position and source is not self:
                detail = "what is behind a record that ended its reader can't be named without it"
                yield Damage(source.start, "crash.extract", detail, None, b"")
                return
            begin = begin or answer.begin
            self._lacks_position = answer.lacks_position
            for event in answer.events:
                since += 1
                if not isinstance(event, Skipped):
                    last, since = event.offset, 1
                yield _changed(event, _unpacked)
            at += len(answer.events)
            if at >= singly:
                most = _EVENTS
            if answer.ended:
                if answer.reading is not None:
                    self._reading = replace(answer.reading, begin=begin)
                return


def _damage(crash: Crash, rest: Rest) -> Damage:
    behind = ", and what is behind it" if rest.span is None else ""
    detail = f"{crash.detail} while the record was read{behind}"
    return Damage(rest.offset, crash.reason("extract"), detail, None, b"")


def _changed(event: Event, change: Callable[[Any], Any]) -> Event:
    if not isinstance(event, Page) or not event.fields:
        return event
    return replace(event, fields={name: change(value) for name, value in event.fields.items()})


def _packed(value: Any) -> Any:
    """Return a scalar of Arrow's, which can't be sent where it is not UTF-8, as an array."""
    return pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value


def _unpacked(value: Any) -> Any:
    return value[0] if isinstance(value, pa.Array) else value
