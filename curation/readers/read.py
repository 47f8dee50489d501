"""Any input file as pages: the format is found by content, the name is only a hint."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from curation.errors import InputError
from curation.readers import http, members, tables, wacz
from curation.readers.files import read_file
from curation.readers.headers import may_begin_warc, parse_arc
from curation.readers.members import Piece
from curation.readers.raw import RawFile
from curation.readers.records import Damage, Event, Page
from curation.readers.scan import scan
from curation.readers.settings import ReaderSettings
from curation.readers.stream import Stream

_HEAD = 1 << 13  # bytes that tell the format
_ARCHIVE_NAME = re.compile(r"\.(w?arc|wet|wat)(\.|$)")
_COMPRESSED_NAME = {
    ".gz": "gzip",
    ".lz4": "lz4",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".zst": "zstd",
    ".zstd": "zstd",
}


def read(path: str, settings: ReaderSettings, name: str | None = None) -> Iterator[Event]:
    """Everything in a file, in the order of the file.

    `path` is local, `builtin:` or any URL that fsspec knows; `name` is what HTML and text files
    are called in addresses (`InputFile.name`; the file's own name if not given).

    Raises InputError when the file is absent or can't be read at all, or is a table without any of
    the text columns. What is broken inside it, or is of no known format, comes as Damage.
    """
    with RawFile.open(path) as raw:
        yield from _read(raw, settings, name or PurePosixPath(path).name)


def read_at(path: str, offset: int, settings: ReaderSettings) -> Page:
    """The page at an offset that `read` gave. Raises InputError when there is none."""
    with RawFile.open(path) as raw:
        try:
            event = _event_at(raw, offset, settings, PurePosixPath(path).name)
        except (InputError, ValueError, OSError) as error:
            raise InputError(f"{path}: no page at {offset}: {error}") from error
    if isinstance(event, Page):
        return event
    detail = f": {event.reason}" if event else ""
    raise InputError(f"{path}: no page at {offset}{detail}")


def _read(raw: RawFile, settings: ReaderSettings, name: str) -> Iterator[Event]:
    head = raw.fetch(0, _HEAD)
    if head.startswith(b"PAR1"):
        yield from tables.read_parquet(raw, settings)
    elif head.startswith(b"PK\x03\x04"):
        yield from _read_wacz(raw, settings)
    else:
        yield from _read_stream(raw, settings, name, head)


def _read_stream(raw: RawFile, settings: ReaderSettings, name: str, head: bytes) -> Iterator[Event]:
    stream = _stream(raw, _compression(head, name), settings)
    reader = _reader(stream, settings, name)
    if reader is None:
        reason, detail = "file.unknown_format", "no archive, table, HTML or text"
        if not head:
            reason, detail = "file.empty", "the file is empty"
        yield Damage(0, reason, detail, None, head[: settings.keep_raw_bytes])
        return
    blank = True
    for event in reader(stream, settings):
        blank = False
        yield event
    if blank:
        detail = "the file holds nothing but blank lines"
        yield Damage(0, "file.empty", detail, None, head[: settings.keep_raw_bytes])


def _read_wacz(raw: RawFile, settings: ReaderSettings) -> Iterator[Event]:
    try:
        package = wacz.Package(raw)
    except InputError as error:
        yield Damage(0, "wacz.corrupt", str(error), None, raw.fetch(0, settings.keep_raw_bytes))
        return
    archives = package.archives
    if not archives:
        yield Damage(0, "wacz.no_archive", "a ZIP file without archives", None, b"")
    for number, info in enumerate(archives[: wacz.MOST_ARCHIVES]):
        at = wacz.pack(number, 0)
        try:
            with package.open(number) as inner:
                head = inner.fetch(0, _HEAD)
                name = PurePosixPath(info.filename).name
                for event in _read_stream(inner, settings, name, head):
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
    head = raw.fetch(0, _HEAD)
    if head.startswith(b"PAR1"):
        return tables.parquet_row(raw, offset, settings)
    if head.startswith(b"PK\x03\x04"):
        number, inner_offset = wacz.unpack(offset)
        package = wacz.Package(raw)
        with package.open(number) as inner:
            inner_name = PurePosixPath(package.archives[number].filename).name
            event = _streamed_at(inner, inner_offset, settings, inner_name, inner.fetch(0, _HEAD))
        return dataclasses.replace(event, offset=offset) if isinstance(event, Page) else event
    return _streamed_at(raw, offset, settings, name, head)


def _streamed_at(
    raw: RawFile, offset: int, settings: ReaderSettings, name: str, head: bytes
) -> Event | None:
    compression = _compression(head, name)
    reader = _reader(_stream(raw, compression, settings), settings, name)
    if reader is None:
        return None
    if offset >= 0:
        stream = _stream(raw, compression, settings, offset)
    else:
        stream = _stream(raw, compression, settings)
        while stream.skip_to(-offset) < -offset and not (stream.ended and not stream.breaks):
            if stream.breaks:
                stream.breaks.popleft()
    event = next(iter(reader(stream, settings)), None)
    if isinstance(event, Page | Damage) and event.offset != offset:
        return None
    return event


def _compression(head: bytes, name: str) -> str:
    """Name of the codec, empty for none; by content, by name where the content is damaged."""
    for codec in members.STREAM_CODECS:
        if head.startswith(codec.magic) and codec.header_fits(head):
            return codec.name
    if members.is_zstd(head):
        return "zstd"
    by_name = _COMPRESSED_NAME.get(PurePosixPath(name.lower()).suffix, "")
    magics = {codec.name: codec.magic for codec in members.STREAM_CODECS}
    if magics.get(by_name, members.ZSTD_MAGIC) in head:
        return by_name
    if members.RECORD.match(head) or head.lstrip().startswith(b"<"):
        return ""
    return "" if http.looks_like_text(head) else by_name


def _stream(raw: RawFile, compression: str, settings: ReaderSettings, offset: int = 0) -> Stream:
    pieces: Callable[[int], Iterator[Piece]]
    if not compression:
        pieces = functools.partial(members.plain_pieces, raw)
    elif compression == "zstd":
        dictionary = members.zstd_dictionary(raw)
        pieces = functools.partial(members.zstd_pieces, raw, settings.max_window_bytes, dictionary)
    else:
        codec = next(c for c in members.STREAM_CODECS if c.name == compression)
        pieces = functools.partial(members.stream_pieces, raw, codec)
    return Stream(pieces, bool(compression), offset)


_Reader = Callable[[Stream, ReaderSettings], Iterator[Event]]


def _reader(stream: Stream, settings: ReaderSettings, name: str) -> _Reader | None:
    """What reads the content of `stream`, which is at its beginning; None for an unknown format."""
    lower = name.lower()
    for suffix in _COMPRESSED_NAME:
        lower = lower.removesuffix(suffix)
    stream.fill(_HEAD)
    head = bytes(stream.buffer[:_HEAD])
    start = head.lstrip(b"\r\n\0")
    if may_begin_warc(start, 0) or parse_arc(start, 0, len(start)) or _ARCHIVE_NAME.search(lower):
        return scan if head or stream.breaks else None
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{") or lower.endswith((".jsonl", ".ndjson", ".json")):
        return tables.read_jsonl
    if not head:
        return scan if stream.breaks else None
    html = lower.endswith((".html", ".htm", ".xhtml"))
    if html or http.looks_like_html(head):
        return functools.partial(_file, name, True)
    if lower.endswith((".txt", ".text", ".md")):
        return functools.partial(_file, name, False)
    return None


def _file(name: str, html: bool, stream: Stream, settings: ReaderSettings) -> Iterator[Event]:
    return read_file(stream, name, html, settings)
