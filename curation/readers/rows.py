"""Files read row by row: CSV and custom formats.

A custom format is a function of an open binary file that yields mappings, with the columns of
other tables (`readers.text_columns` and so on).
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import zstandard

from curation.judging import opened
from curation.readers.raw import RawFile
from curation.readers.records import Damage, Event
from curation.readers.settings import CustomFormat, ReaderSettings
from curation.readers.tables import row_event

Rows = Callable[[IO[bytes]], Iterator[Mapping[str, Any]]]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def rows_of(name: str, settings: ReaderSettings) -> tuple[str, Rows] | None:
    """Return a file's format name for reasons, and its reader; None for other files."""
    plain = name.removesuffix(".gz").removesuffix(".zst")
    for suffix, custom in settings.formats.items():
        if plain.endswith(suffix):
            return "format", _custom(custom)
    separator = _SEPARATORS.get(plain[-4:].lower())
    return None if separator is None else ("csv", _csv(separator, settings.max_record_bytes))


def read_rows(
    raw: RawFile, name: str, settings: ReaderSettings, kind: str, rows: Rows
) -> Iterator[Event]:
    """Yield the rows as pages; `offset` is the row number. An error ends the file."""
    number = 0
    try:
        for number, row in enumerate(rows(_unpacked(raw, name))):
            yield row_event(dict(row), number, settings, kind)
    except Exception as error:
        detail = f"after {number:,} rows: {type(error).__name__}: {error}"
        yield Damage(number + 1, f"{kind}.corrupt", detail, None, b"")


def row_at(
    raw: RawFile, offset: int, name: str, settings: ReaderSettings, kind: str, rows: Rows
) -> Event | None:
    """Return the row of this number."""
    events = read_rows(raw, name, settings, kind, rows)
    return next((event for n, event in enumerate(events) if n == offset), None)


def _unpacked(raw: RawFile, name: str) -> IO[bytes]:
    raw.handle.seek(0)
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=raw.handle)  # type: ignore[return-value]
    if name.endswith(".zst"):
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw.handle))  # type: ignore[type-var,arg-type,return-value]
    return io.BufferedReader(raw.handle)  # type: ignore[type-var]


def _custom(custom: CustomFormat) -> Rows:
    function, name = opened(custom.python, custom.settings), custom.python.reference

    def rows(file: IO[bytes]) -> Iterator[Mapping[str, Any]]:
        try:
            for row in function(file):
                if not isinstance(row, Mapping):
                    raise TypeError(f"gave {type(row).__name__}, not a mapping of columns")
                yield row
        except (Exception, SystemExit) as error:
            raise RuntimeError(f"{name}: {type(error).__name__}: {error}") from error

    return rows


def _csv(separator: str, longest: int) -> Rows:
    def rows(file: IO[bytes]) -> Iterator[Mapping[str, Any]]:
        csv.field_size_limit(longest)
        text = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        for row in csv.DictReader(text, delimiter=separator):
            row.pop(None, None)  # type: ignore[call-overload]  # more cells than the head names
            yield {name: value for name, value in row.items() if value is not None}

    return rows
