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


class FileReader:
    """Reads a file, or a range of it: as `read`, or as `RangeReader`."""

    def __init__(
        self,
        path: str,
        name: str,
        settings: ReaderSettings,
        span: Span | str | None = None,
        begin: Checkpoint | None = None,
    ) -> None:
        self._source = _Source(path, name, settings, span, begin)
        self._range = self._source.range()

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
        return self._source.others()

    def __iter__(self) -> Iterator[Event]:
        return self._source.events(self._range)


@dataclass(frozen=True)
class _Source:
    """A file, a range of it, or the records that an index names; `begin` as in `RangeReader`."""

    path: str
    name: str
    settings: ReaderSettings
    span: Span | str | None
    begin: Checkpoint | None

    @property
    def start(self) -> int:
        if self.begin is not None:
            return self.begin.offset
        return self.span.start if isinstance(self.span, Span) else 0

    def range(self) -> RangeReader | None:
        if not isinstance(self.span, Span):
            return None
        return RangeReader(self.path, self.name, self.settings, self.span, self.begin)

    def events(self, reader: RangeReader | None) -> Iterator[Event]:
        if isinstance(self.span, str):
            return read_records(self.path, self.name, self.settings, self.span)
        found = iter(reader) if reader else read(self.path, self.settings, self.name)
        return drawn(found, self.settings.sample, self.name)

    def others(self) -> dict[str, pa.DataType]:
        if isinstance(self.span, str):
            return {}
        return others_of(self.path, self.name, self.settings, self.range())


@dataclass(frozen=True)
class _Events:
    events: list[Event]
    ended: bool
    begin: Checkpoint | None
    reading: Reading | None  # of a range, at its end
    lacks_position: bool


@dataclass
class _Open:
    """What the process has open."""

    source: _Source
    reader: RangeReader | None
    events: Iterator[Event]
    at: int  # events read

    @classmethod
    def of(cls, source: _Source, at: int) -> _Open:
        reader = source.range()
        events = source.events(reader)
        for _ in itertools.islice(events, at):
            pass
        return cls(source, reader, events, at)


_open: _Open | None = None


def _more(source: _Source, first: int, most: int) -> _Events:
    """Return the events of a source from number `first` on."""
    global _open
    held, _open = _open, None  # nothing stays open after an error
    if held is None or held.source != source or held.at != first:
        held = _Open.of(source, first)
    events: list[Event] = []
    size = 0
    ended = True
    for event in held.events:
        events.append(_packed(event))
        size += len(event.content) if isinstance(event, Page) else 0
        if len(events) >= most or size >= _BYTES:
            ended = False
            break
    held.at += len(events)
    _open = None if ended else held
    reader = held.reader
    if reader is None:
        return _Events(events, ended, BEGINNING, None, False)
    reading = reader.reading if ended else None
    return _Events(events, ended, reader.begin, reading, reader.lacks_position)


def _rest(source: _Source, last: int | None, events: int, at: int) -> Rest:
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
        answer = _ask(_Source.others, self._source)
        return others_in(self._source.name, self) if isinstance(answer, Crash) else answer

    def __iter__(self) -> Iterator[Event]:
        source, begin = self._source, self._source.begin
        at, most, singly = 0, _EVENTS, 0
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
                source = replace(source, span=rest.span, begin=rest.begin)
                at, most, last, since = 0, _EVENTS, None, 0
                continue
            if answer.lacks_position and source is not self._source:
                detail = "what is behind a record that ended its reader can't be named without it"
                yield Damage(source.start, "crash.extract", detail, None, b"")
                return
            begin = begin or answer.begin
            self._lacks_position = answer.lacks_position
            for event in answer.events:
                since += 1
                if not isinstance(event, Skipped):
                    last, since = event.offset, 1
                yield _unpacked(event)
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


def _packed(event: Event) -> Event:
    """Return an event without Arrow's scalars, which can't be sent where a string is not UTF-8."""
    if not isinstance(event, Page) or not event.fields:
        return event
    fields = {
        name: pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value
        for name, value in event.fields.items()
    }
    return replace(event, fields=fields)


def _unpacked(event: Event) -> Event:
    if not isinstance(event, Page) or not event.fields:
        return event
    fields = {
        name: value[0] if isinstance(value, pa.Array) else value
        for name, value in event.fields.items()
    }
    return replace(event, fields=fields)
