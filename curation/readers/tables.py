"""Read documents from JSON lines, Parquet and Arrow files."""

import codecs
import collections
import contextlib
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.arrow import as_bytes, is_sound, storable, stored
from curation.readers.charset import decode_text, is_binary, mostly_utf8
from curation.readers.headers import any_date, clean_url
from curation.readers.raw import RawFile
from curation.readers.records import Damage, Event, Page, binary
from curation.readers.settings import KEEP_RAW_BYTES, PDF, ReaderSettings
from curation.readers.stream import Stream
from curation.schema import SET_ASIDE
from curation.text.surrogates import everywhere, well_formed

#: Bytes at the beginning of a file that tell its encoding.
SAMPLE = 1 << 20
_AGREEING = 8  # lines of a file
_OfFile = Callable[[], str]  # its encoding
_ROWS = 256  # rows of a Parquet file turned to pages at once
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # an escape in JSON, of half a character
#: Between objects: also the mark in front of a file that stood alone.
SEPARATION = re.compile("[ \t\r\n,\ufeff]*")
_BLANK = b" \t\r\n\v\f\0\x1e"  # around a line: also zeros of a power failure, and RFC 7464's mark
#: MIME types by the kind of a page.
MIMES = {"html": "text/html", "text": "text/plain", "pdf": PDF}
_FIELDS = ("id", "title")  # further columns that are read as Python values
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second
_DEEPEST = 410  # values within each other; Python's stack has room for some hundred
#: The years that Python's dates have, 1 to 9999, as seconds since 1970: [first, end).
_YEARS = (-62_135_596_800, 253_402_300_800)


def read_jsonl(stream: Stream, settings: ReaderSettings) -> Iterator[Event]:
    """Yield one page per line. Empty lines are skipped; a line that is not an object is damage."""
    position, members = stream.base, Members()
    of_file = functools.cache(lambda: encoding_of_lines(stream.beginning(SAMPLE)))
    while True:
        if stream.breaks and stream.breaks[0][0] <= position:
            yield stream.take_break()
            continue
        if stream.stops_at(position, position):
            return
        end = _line_end(stream, position, settings.max_record_bytes)
        if end is None:
            offset = stream.claim(position, position)
            raw = bytes(stream.buffer[:KEEP_RAW_BYTES])
            detail = f"a line of over {settings.most}"
            yield Damage(offset, "record.too_large", detail, None, raw)
            position = _skip_line(stream, position)
            continue
        if end == position and stream.ended:
            return
        line = bytes(stream.buffer[position - stream.base : end - stream.base])
        for at, row, told in _objects(line, members, of_file):
            offset = stream.claim(position + at, position + at)
            event: Event = Damage(offset, "jsonl.bad_json", told, None, b"")
            if row is not None:
                event = row_event(row, offset, settings, "jsonl", told)
            if isinstance(event, Damage):
                cut = row is None and stream.breaks and stream.breaks[0][0] <= end
                why = stream.breaks.popleft()[1] if cut else event
                raw = line[at : at + KEEP_RAW_BYTES].strip(_BLANK)
                event = Damage(offset, why.reason, why.detail, event.url, raw)
            yield event
        position = end
        stream.drop(position)


def _line_end(stream: Stream, position: int, longest: int) -> int | None:
    """Position behind the line that begins at `position`; None when it is too long."""
    looked, size = position, 1 << 16
    while True:
        size = min(size, longest)
        reached = stream.fill(position + size)
        found = stream.buffer.find(b"\n", looked - stream.base, reached - stream.base)
        if found >= 0:
            return stream.base + found + 1
        if reached < position + size:
            return reached
        if size == longest:
            return None
        looked, size = reached, 2 * size


def _skip_line(stream: Stream, position: int) -> int:
    while True:
        reached = stream.reach(position + 1)
        found = stream.buffer.find(b"\n", position - stream.base, reached - stream.base)
        position = reached if found < 0 else stream.base + found + 1
        stream.drop(position)
        if found >= 0 or stream.fill(position + 1) <= position:
            return position


def _is_deep(value: Any) -> bool:
    inner = [value]
    for _ in range(_DEEPEST):
        outer = [v for v in inner if isinstance(v, dict | list)]
        inner = [one for v in outer for one in (v.values() if isinstance(v, dict) else v)]
    return bool(inner)


class Members(json.JSONDecoder):
    """Decodes JSON. Members of one name, and outer ones without any, are renamed as columns are.

    `told` says which, of the last value; "" if none.
    """

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=self._object, strict=False)  # tabs in strings

    def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
        self.told = ""
        row, end = super().raw_decode(s, idx)
        if isinstance(row, dict) and s.count("[", idx, end) + s.count("{", idx, end) > _DEEPEST:
            if deep := [name for name, value in row.items() if _is_deep(value)]:
                row |= dict.fromkeys(deep)
                self.told = f"table.bad_column: {', '.join(deep)}: nested too deep"
        return self._renamed([*row.items()]) if isinstance(row, dict) and "" in row else row, end

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        return row if len(row) == len(pairs) else self._renamed(pairs)

    def _renamed(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        self.told = renamed(names)
        return dict(zip(distinct(names), (value for _, value in pairs), strict=True))


_Object = tuple[int, dict[str, Any] | None, str]


def _objects(line: bytes, members: Members, of_file: _OfFile) -> Iterator[_Object]:
    """Yield the objects of a line: the byte where each begins, its values, and what was mended.

    There are several where a file without a last line end was put in front of another; a line that
    is not UTF-8 has one. What is no object has no values and ends the line.
    """
    content = line.lstrip(_BLANK).removeprefix(codecs.BOM_UTF8)
    begin = len(line) - len(content)
    text, encoding = decoded(content.rstrip(_BLANK), of_file)
    end = place = 0
    while (at := SEPARATION.match(text, end).end()) < len(text):  # type: ignore[union-attr]
        begin += len(text[place:at].encode())
        start, place = begin if at else 0, at  # blanks in front of the first belong to it
        try:
            if encoding:
                row, end = members.decode(text), len(text)
            else:
                row, end = members.raw_decode(text, at)
            if not isinstance(row, dict):
                raise ValueError("not an object; JSONL has one on each line")
        except (ValueError, RecursionError) as error:
            yield start, None, "UTF-16; save it as UTF-8" if 0 in content[:4] else str(error)
            return
        mended = encoding and f"jsonl.bad_utf8: read as {encoding}"
        if _SURROGATE.search(text, at, end):
            sound = everywhere(row, well_formed)
            mended = mended or ("jsonl.lone_surrogate" if sound != row else "")
            row = sound
        yield start, row, members.told or mended


def decoded(line: bytes, of_file: _OfFile) -> tuple[str, str]:
    """Return the text of a line, and the encoding that it was read in; "" for sound UTF-8.

    Unless most of it is UTF-8, its encoding is the file's, if that has one.
    """
    try:
        return line.decode(), ""
    except UnicodeDecodeError:
        other = "" if mostly_utf8(line) else of_file()
        encoding = other or decode_text(line, None)[1]
        return line.decode(encoding, "replace"), encoding


def encoding_of_lines(start: bytes) -> str:
    """Return the encoding of the lines that are not UTF-8, by the first bytes of a file.

    "" if there are none, or if the longest don't agree, as of pages from everywhere: then each line
    is judged by itself.
    """
    lines = [line for line in start.splitlines()[:-1] if not mostly_utf8(line)]
    found = decode_text(b"\n".join(lines), None)[1] if lines else ""
    longest = sorted(lines, key=len)[-_AGREEING:]
    agreed = sum(decode_text(line, None)[1] == found for line in longest)
    return found if 2 * agreed > len(longest) else ""


def row_event(
    row: dict[str, Any], offset: int, settings: ReaderSettings, table: str, mended: str = ""
) -> Page | Damage:
    """Return a row as a page, or damage `<table>.no_text` if no text column has a string."""
    url_column = _stated(row, settings.url_columns)
    date_column = _stated(row, settings.date_columns)
    url, stated = row.get(url_column), row.get(date_column)
    url = clean_url(url) if isinstance(url, str) else ""
    date = any_date(stated)
    if stated is not None and str(stated).strip() and date is None and not mended:
        mended = f"{table}.bad_date: {date_column}: {str(stated)[:100]!r} is no date"
    reason, _, detail = mended.partition(": ")
    for columns, kind in ((settings.text_columns, "text"), (settings.html_columns, "html")):
        column = _first(row, columns)
        value = row.get(column)
        if isinstance(value, str):
            content = value.encode()
        elif isinstance(value, bytes):
            content = value
        else:
            continue
        if isinstance(value, bytes) and is_binary(value):
            return binary(offset, value, url, KEEP_RAW_BYTES)
        # An address that is no string stays a column: it may be a list or an object.
        used = {column, date_column, isinstance(row.get(url_column), str | None) and url_column}
        return Page(
            url=url,
            date=date,
            offset=offset,
            content=content,
            kind=kind,
            charset="utf-8" if isinstance(value, str) else None,
            mime=MIMES[kind],
            fields={name: value for name, value in row.items() if name not in used},
            mended=reason,
            detail=detail,
            normalize=settings.normalize_text or "none",
        )
    return Damage(offset, f"{table}.no_text", no_text(row, settings), url or None, b"")


def no_text(row: dict[str, Any], settings: ReaderSettings) -> str:
    """Return why a row has no text: the columns that it should be in, and those that there are."""
    present = {name: row[name] for name in settings.contents if name in row}
    if not present:
        there = ", ".join(map(str, row)) or "no column"
        return f"none of the columns {', '.join(settings.contents)}, but {there}"
    found = (f"{name} is {_kind_of(value)}" for name, value in present.items())
    return f"no text: {', '.join(found)}"


def _kind_of(value: Any) -> str:
    value = value.as_py() if isinstance(value, pa.Scalar) else value
    kinds = {type(None): "null", dict: "an object", list: "a list", bytes: "bytes"}
    return kinds.get(type(value), f"{type(value).__name__}")


def _first(row: dict[str, Any], columns: tuple[str, ...]) -> Any:
    """Return the first column with a value; None if there is none, as a name may be empty."""
    return next((name for name in columns if row.get(name) is not None), None)


def _stated(row: dict[str, Any], columns: tuple[str, ...]) -> Any:
    """As `_first`, but blanks, as CSV has them, and nulls count only if no column has a value."""
    filled = {n: row.get(n) for n in columns if not isinstance(row.get(n), str) or row[n].strip()}
    return _first(filled, columns) or next((n for n in columns if n in row), None)


def _dates(column: pa.Array) -> pa.Array:
    """Arrow's dates and timestamps as timestamps in microseconds, UTC; other columns as they are.

    Those without a zone are in UTC; more digits than microseconds are cut; years that Python's
    dates don't have become null.
    """
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms" if pa.types.is_date64(kind) else "s"))
    elif not pa.types.is_timestamp(kind):
        return column
    first, end = (year * _TICKS[column.type.unit] for year in _YEARS)
    ticks = column.cast(pa.int64())
    inside = pc.and_(
        pc.greater_equal(ticks, pa.scalar(max(first, -(2**63)), pa.int64())),
        pc.less(ticks, pa.scalar(min(end, 2**63 - 1), pa.int64())),
    )
    column = pc.if_else(inside, column, pa.scalar(None, column.type))
    target = pa.timestamp("us", "UTC")
    return pc.cast(column, options=pc.CastOptions(target, allow_time_truncate=True))


EVERYTHING = 1 << 62  # more bytes than any file has
#: An Arrow file is a stream behind these eight bytes, with a footer that only random access needs.
ARROW_MAGIC, ARROW_HEAD = b"ARROW1", 8

_Row = tuple[dict[str, Any], str]  # values, and what was mended


def _rows(batch: pa.RecordBatch, settings: ReaderSettings, first: bool = False) -> list[_Row]:
    """Return rows with document columns as Python values, and all others as Arrow's scalars.

    The first of a table says which columns were renamed.
    """
    names, read = distinct(batch.schema.names), _needed(batch.schema, settings)
    mended = [renamed(batch.schema.names) if first else "", *([""] * batch.num_rows)]
    columns = dict[str, Sequence[Any]]()
    for name, column in zip(names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            whole = is_sound(column.dictionary)
            column = stored(column, storable(column.type)) if whole else column.dictionary_decode()
        if name in settings.date_columns:
            column = _dates(column)
        if name in _FIELDS and column.type == pa.binary(16):  # UUIDs that aren't called so
            column = pa.ExtensionArray.from_storage(pa.uuid(), column)
        if not (sound := is_sound(column)):
            for i in (i for i in range(len(column)) if not is_sound(column.slice(i, 1))):
                mended[i] = mended[i] or "parquet.bad_utf8"
        if not sound and name in settings.contents:
            columns[name] = [*map(_utf8, column.view(as_bytes(column.type)).to_pylist())]
        else:
            column = stored(column, storable(column.type))
            columns[name] = column.to_pylist() if name in read else column
    rows = range(batch.num_rows)
    return [({n: column[i] for n, column in columns.items()}, mended[i]) for i in rows]


def _utf8(value: Any) -> Any:
    """Return a text; bytes if it is not UTF-8, whose encoding is detected later."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


#: Columns with another name that a message lists.
_SHOWN = 20


def distinct(names: Sequence[str]) -> list[str]:
    """Return names of columns, those that were there before with a number: `a`, `a_2`.

    A column without a name is `unnamed`.
    """
    taken, last = set(names), dict[str, int]()
    for name in (name or "unnamed" for name in names):
        new = name
        if name in last:  # goes on where it was: beginning again at 2 takes the square of as many
            numbers = itertools.count(last[name] + 1)
            last[name] = next(n for n in numbers if f"{name}_{n}" not in taken)
            new = f"{name}_{last[name]}"
        taken.add(new)
        last[new] = 1
    return list(last)


def renamed(names: Sequence[str]) -> str:
    """Return the reason, and which columns `distinct` gives other names; "" if none."""
    pairs = zip(names, distinct(names), strict=True)
    changed = [f"{old!r} read as {new!r}" for old, new in pairs if old != new]
    shown = changed[:_SHOWN] + ["..."] * (len(changed) > _SHOWN)
    return f"table.renamed_column: {', '.join(shown)}" if changed else ""


def _needed(schema: pa.Schema, settings: ReaderSettings) -> list[str]:
    """Return the columns of documents: no other one can be the reason that a row is lost."""
    if _is_set_aside(schema):
        return [name for name in SET_ASIDE.names if name in schema.names]
    wanted = (*settings.contents, *settings.url_columns, *settings.date_columns, *_FIELDS)
    return [name for name in schema.names if name in wanted]


def _is_set_aside(schema: pa.Schema) -> bool:
    return bool(schema.metadata and schema.metadata.get(b"curation") == b"set_aside")


def _set_aside_event(
    row: dict[str, Any], offset: int, settings: ReaderSettings, table: str, mended: str = ""
) -> Page | Damage:
    """Return a row of SET_ASIDE: the whole page that it holds, or the damage that it is."""
    kind = "html" if row["html"] is not None else "text"
    if row[kind] is None:
        return Damage(offset, row["reason"], row["detail"], row["url"], row["raw"] or b"")
    return Page(
        url=row["url"] or "",
        date=row["date"],
        offset=offset,
        content=row[kind],
        kind=kind,
        charset=row["charset"],
        mime=MIMES[kind],
        status=row.get("status"),
        fields={"id": row["id"]},
        mended=row["mended"] or mended,
        headers=tuple(row.get("headers") or ()),
    )


def _without_text(schema: pa.Schema, settings: ReaderSettings, kind: str) -> Damage | None:
    """Damage of a whole table that has no column of texts or pages."""
    if {*schema.names} & {*settings.contents}:
        return None
    return Damage(0, f"{kind}.no_text", no_text(dict.fromkeys(schema.names), settings), None, b"")


class _Limited:
    """A file of which no more is asked for than it has, whatever lengths its content claims.

    Behind `footer` it hides Arrow's schema, which Parquet has next to its own.
    """

    def __init__(self, raw: RawFile, footer: int = EVERYTHING) -> None:
        self._handle, self._size, self._footer = raw.handle, raw.size, footer

    def read(self, size: int = -1) -> bytes:
        at = self._handle.tell()
        left = max(0, self._size - at)
        data = self._handle.read(left if size < 0 else min(size, left))
        cut = max(0, self._footer - at)
        hidden = data[cut:].replace(b"ARROW:schema", b"arrow:schema")
        return data[:cut] + hidden if hidden else data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)


def open_parquet(raw: RawFile) -> tuple[pq.ParquetFile, pa.Schema]:
    """Return a Parquet file and its schema.

    pyarrow fails at a null in a fixed-size list, and at types that it lacks, such as the integers
    of 128 bits that Polars writes. If the file has one, it is opened as any other program sees it:
    with lists of any size, but without Arrow's own types, which the schema has.
    """
    schema = None
    with contextlib.suppress(pa.ArrowNotImplementedError):
        file = pq.ParquetFile(pa.PythonFile(_Limited(raw), mode="r"))
        schema = file.schema_arrow
        kinds = [str(kind) for kind in schema.types]
        if not any("fixed_size_list" in kind or "shape_tensor" in kind for kind in kinds):
            return file, schema
    raw.handle.seek(raw.size - 8)
    footer = raw.size - 8 - int.from_bytes(raw.handle.read(4), "little")
    file = pq.ParquetFile(pa.PythonFile(_Limited(raw, footer), mode="r"))
    return file, schema or file.schema_arrow


def read_parquet(
    raw: RawFile, settings: ReaderSettings, span: tuple[int, int] = (0, EVERYTHING)
) -> Iterator[Event]:
    """Yield one page per row, by row group; a row group that can't be read is damage at its first
    row.

    Of the row groups, only those are read that begin in `span`: a row group begins where its share
    of the file would if all were compressed alike.
    """
    start, end = span
    try:
        file, schema = open_parquet(raw)
    except (pa.ArrowException, OSError, ValueError) as error:
        if start == 0:
            yield Damage(0, "parquet.corrupt", str(error), None, raw.fetch(0, KEEP_RAW_BYTES))
        return
    if textless := _without_text(schema, settings, "parquet"):
        if start == 0:
            yield textless
        return
    first = 0
    for group, (rows, begin) in enumerate(_row_groups(file, raw.size)):
        if start <= begin < end:
            yield from _group_events((file, schema), group, (first, first), settings)
        first += rows


_Opened = tuple[pq.ParquetFile, pa.Schema]
_UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError)


def _group_events(
    opened: _Opened, group: int, rows: tuple[int, int], settings: ReaderSettings
) -> Iterator[Event]:
    """Yield the rows of a row group: its first row is `rows[0]`, the first wanted `rows[1]`.

    Without the columns that can't be read, which all but `_needed` may be.
    """
    (first, row), told, columns = rows, "", None
    to_event = _set_aside_event if _is_set_aside(opened[1]) else row_event
    for _ in range(2):
        try:
            for values, mended in _group_rows(opened, group, columns, row - first, settings):
                yield to_event(values, row, settings, "parquet", mended or told)
                row += 1
            return
        except _UNREADABLE as error:
            broken = str(error)
            columns = columns or _readable(opened, group, settings)
            lost = ", ".join(sorted({*opened[1].names} - {*columns}))
            told = lost and f"parquet.bad_column: {lost}: {broken}"
    last = first + opened[0].metadata.row_group(group).num_rows - 1
    yield Damage(row, "parquet.corrupt", f"rows {row} to {last}: {broken}", None, b"")


def _readable(opened: _Opened, group: int, settings: ReaderSettings) -> list[str]:
    """Return the columns of a row group that documents need or that can be read alone."""
    needed, found = _needed(opened[1], settings), list[str]()
    for name in dict.fromkeys(opened[1].names):
        with contextlib.suppress(*_UNREADABLE):
            if name not in needed:
                collections.deque(_group_rows(opened, group, [name], 0, settings), 0)
            found.append(name)
    return found


def _group_rows(
    opened: _Opened, group: int, columns: list[str] | None, skip: int, settings: ReaderSettings
) -> Iterator[_Row]:
    """Yield rows of a row group but for the first `skip`."""
    file, schema = opened
    started, fields = False, [f for f in schema if columns is None or f.name in columns]
    for batch in file.iter_batches(_ROWS, [group], columns, use_threads=False):
        if batch.schema.types != [field.type for field in fields]:
            parts = map(stored, batch.columns, (storable(field.type) for field in fields))
            batch = pa.RecordBatch.from_arrays([*parts], [field.name for field in fields])
        first = group == 0 and skip == 0 and not started
        yield from _rows(batch.slice(min(skip, batch.num_rows)), settings, first)
        skip, started = max(0, skip - batch.num_rows), True


def _row_groups(file: pq.ParquetFile, file_bytes: int) -> list[tuple[int, int]]:
    """Return rows of each row group, and about where in the file it begins."""
    # The metadata of columns tells where exactly; but pyarrow ends the process when one is damaged.
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    sizes = [max(1, group.total_byte_size) for group in groups]
    total = max(1, sum(sizes))  # a file may have no rows
    before = itertools.accumulate(sizes, initial=0)
    begins = [file_bytes * at // total for at in before]
    return [(group.num_rows, at) for group, at in zip(groups, begins, strict=False)]


def next_row_group(raw: RawFile, start: int, last: int | None) -> tuple[int, int | None]:
    """Return the row behind `last`, and about where in the file the group behind its own begins.

    Without `last`, the row is the first of those whose group begins at `start` or behind it.
    """
    first, row, own = 0, last + 1 if last is not None else -1, -1
    for rows, begin in _row_groups(open_parquet(raw)[0], raw.size):
        if own >= 0 and begin > own:
            return row, begin
        if own < 0 and rows and (first <= row < first + rows or (last is None and begin >= start)):
            row, own = max(row, first), begin
        first += rows
    return row, None


def row_groups(raw: RawFile) -> int:
    """Return the number of row groups of a Parquet file; 0 where its footer can't be read."""
    try:
        return int(open_parquet(raw)[0].num_row_groups)
    except (pa.ArrowException, OSError, ValueError):
        return 0


def parquet_row(raw: RawFile, row: int, settings: ReaderSettings) -> Event | None:
    """Return the page of one row; None after the last."""
    file, schema = open_parquet(raw)
    first = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if row < first + rows:
            return next(_group_events((file, schema), group, (first, row), settings))
        first += rows
    return None


def open_arrow(raw: RawFile) -> pa.RecordBatchReader:
    """Return the batches of an Arrow file, or of a stream as Hugging Face's `save_to_disk` writes.

    A file is read as the stream that is in it, whether it has its end or not; Polars writes files
    that have none in them.
    """
    file = pa.PythonFile(_Limited(raw), mode="r")
    is_file = raw.head.startswith(ARROW_MAGIC)
    raw.handle.seek(ARROW_HEAD if is_file else 0)
    try:
        return pa.ipc.open_stream(file)
    except (pa.ArrowException, OSError):
        if not is_file:
            raise
    if raw.fetch(raw.size - len(ARROW_MAGIC), len(ARROW_MAGIC)) != ARROW_MAGIC:
        raise pa.ArrowInvalid(f"cut off: {raw.size:,} bytes, without the end of an Arrow file")
    whole = pa.ipc.open_file(file)
    batches = map(whole.get_batch, range(whole.num_record_batches))
    return pa.RecordBatchReader.from_batches(whole.schema, batches)


def _wrong_buffers(batch: pa.RecordBatch) -> str:
    """Return where offsets lead out of a batch's buffers; "" if nowhere.

    Arrow trusts them and would read the process's memory. Strings are validated as bytes: text that
    isn't UTF-8 is mended later.
    """
    try:
        for column in (column for column in batch.columns if not is_sound(column)):
            column.view(as_bytes(column.type)).validate(full=True)
    except pa.ArrowException as error:
        return str(error)
    return ""


def read_arrow(raw: RawFile, settings: ReaderSettings) -> Iterator[Event]:
    """Yield one page per row.

    A batch with wrong offsets is damage at its first row, and so is the rest of a file that
    can't be read on.
    """
    row = 0
    try:
        file = open_arrow(raw)
        if textless := _without_text(file.schema, settings, "arrow"):
            yield textless
            return
        for batch in file:
            if wrong := _wrong_buffers(batch):
                detail = f"rows {row} to {row + batch.num_rows - 1}: {wrong}"
                yield Damage(row, "arrow.corrupt", detail, None, b"")
                row += batch.num_rows
                continue
            for start in range(0, batch.num_rows, _ROWS):
                for values, mended in _rows(batch.slice(start, _ROWS), settings, row == 0):
                    yield row_event(values, row, settings, "arrow", mended)
                    row += 1
    except (pa.ArrowException, OSError, ValueError) as error:
        yield Damage(row, "arrow.corrupt", f"from row {row}: {error}", None, b"")
