"""Read any input file as pages."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import PurePosixPath

from curation.errors import InputError
from curation.readers import tables, wacz
from curation.readers.formats import Packing, format_of, reader_of
from curation.readers.raw import RawFile
from curation.readers.records import Damage, Event, Page
from curation.readers.rows import format_of_rows, read_rows
from curation.readers.settings import KEEP_RAW_BYTES, PDF_MAGIC, ReaderSettings

_UNREAD = {PDF_MAGIC: "PDF, which is read with readers.pdf=true", b"7z\xbc\xaf": "7z: unpack it"}


def read(path: str, settings: ReaderSettings, name: str | None = None) -> Iterator[Event]:
    """Yield everything in a file, in file order.

    `path` is local, `builtin:` or any URL that fsspec knows; `name` is what HTML and text files
    are called in addresses (`InputFile.name`; the file's own name if not given).

    Raises InputError when the file is absent or can't be read at all. What is broken inside it, is
    of no known format, or is a table without any of the text columns, comes as Damage.
    """
    called = name or PurePosixPath(path).name
    with RawFile.open(path) as raw:
        if found := format_of_rows(raw, called, settings):
            yield from read_rows(raw, called, settings, found)
        else:
            yield from _read(raw, settings, called)


def read_at(path: str, offset: int, settings: ReaderSettings) -> Page:
    """Return the page at an offset given by `read`. Raises InputError if there is none."""
    with RawFile.open(path) as raw:
        try:
            name = PurePosixPath(path).name
            if found := format_of_rows(raw, name, settings):
                rows = read_rows(raw, name, settings, found)
                event = next(itertools.islice(rows, offset, None), None)
            else:
                event = _event_at(raw, offset, settings, name)
        except (InputError, ValueError, OSError) as error:
            raise InputError(f"{path}: no page at {offset}: {error}") from error
    if isinstance(event, Page):
        return event
    detail = f": {event.reason}" if event else ""
    raise InputError(f"{path}: no page at {offset}{detail}")


def _read(raw: RawFile, settings: ReaderSettings, name: str) -> Iterator[Event]:
    kind = format_of(raw, name)
    if kind == "parquet":
        yield from tables.read_parquet(raw, settings)
    elif kind == "arrow":
        yield from tables.read_arrow(raw, settings)
    elif kind == "zip":
        yield from _read_wacz(raw, settings)
    else:
        yield from _read_stream(raw, settings, name)


def _read_stream(raw: RawFile, settings: ReaderSettings, name: str) -> Iterator[Event]:
    stream = Packing.of(raw, name).stream()
    reader = reader_of(stream, settings, name)
    if reader is None:
        reason, detail = "file.unknown_format", "no archive, table, HTML or text"
        for magic, told in _UNREAD.items():
            detail = told if raw.head.startswith(magic) else detail
        if not raw.head:
            reason, detail = "file.empty", "the file is empty"
        yield Damage(0, reason, detail, None, raw.head[:KEEP_RAW_BYTES])
        return
    events = reader(stream, settings)
    yield next(events, None) or blank_file(raw.head)
    yield from events


def blank_file(head: bytes) -> Damage:
    """Return the damage for a file without any record or line."""
    return Damage(0, "file.empty", "the file has only blank lines", None, head[:KEEP_RAW_BYTES])


def _read_wacz(raw: RawFile, settings: ReaderSettings) -> Iterator[Event]:
    try:
        package = wacz.Package(raw)
    except InputError as error:
        yield Damage(0, "wacz.corrupt", str(error), None, raw.fetch(0, KEEP_RAW_BYTES))
        return
    archives = package.archives
    if not archives:
        yield Damage(0, "wacz.no_archive", "a ZIP file without archives", None, b"")
    for number, info in enumerate(archives[: wacz.MOST_ARCHIVES]):
        at = wacz.pack(number, 0)
        try:
            with package.open(number) as inner:
                name = PurePosixPath(info.filename).name
                for event in _read_stream(inner, settings, name):
                    if isinstance(event, Page | Damage):
                        at = wacz.pack(number, event.offset)
                        event = dataclasses.replace(event, offset=at)
                    yield event
        except InputError as error:
            yield Damage(at, "wacz.corrupt", f"{info.filename}: {error}", None, b"")
    left = len(archives) - wacz.MOST_ARCHIVES
    if left > 0:
        detail = f"{left} archives behind the first {wacz.MOST_ARCHIVES}"
        yield Damage(0, "wacz.too_many_archives", detail, None, b"")


def _event_at(raw: RawFile, offset: int, settings: ReaderSettings, name: str) -> Event | None:
    kind = format_of(raw, name)
    if kind == "parquet":
        return tables.parquet_row(raw, offset, settings)
    if kind == "arrow":
        return next(itertools.islice(tables.read_arrow(raw, settings), offset, None), None)
    if kind == "zip":
        number, inner_offset = wacz.unpack(offset)
        package = wacz.Package(raw)
        with package.open(number) as inner:
            inner_name = PurePosixPath(package.archives[number].filename).name
            event = _streamed_at(inner, inner_offset, settings, inner_name)
        return dataclasses.replace(event, offset=offset) if isinstance(event, Page) else event
    return _streamed_at(raw, offset, settings, name)


def _streamed_at(raw: RawFile, offset: int, settings: ReaderSettings, name: str) -> Event | None:
    packing = Packing.of(raw, name)
    reader = reader_of(packing.stream(), settings, name)
    if reader is None:
        return None
    if offset >= 0:
        stream = packing.stream(offset)
    else:
        stream = packing.stream()
        while stream.skip_to(-offset) < -offset and not (stream.ended and not stream.breaks):
            if stream.breaks:
                stream.breaks.popleft()
    event = next(iter(reader(stream, settings)), None)
    if isinstance(event, Page | Damage) and event.offset != offset:
        return None
    return event
