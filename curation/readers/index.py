"""Records of archives that a table names: Common Crawl's columnar index, or any with its columns.

A table with `warc_filename`, `warc_record_offset` and `warc_record_length` (and `url`) stands for
these records. They are read in the order of the archives, each once, those next to each other in
one request, and come out as a reader of the whole archives gives them. Archives are taken not to
change: what is known of them is what the index says.

`readers.index.where` is a condition on its columns, in the words of SQL's `WHERE`:

    url_host_tld = 'de' AND (content_languages LIKE 'deu%' OR content_languages IS NULL)

Comparisons of a column with values (`=`, `<>`, `!=`, `<`, `<=`, `>`, `>=`, `[NOT] LIKE`, `[NOT] IN
(...)`, `[NOT] BETWEEN`, `IS [NOT] NULL`), joined by `AND`, `OR`, `NOT` and parentheses. Values are
strings in single quotes, numbers, TRUE and FALSE. Names with other signs than letters, digits and
`_` are in double quotes. A comparison with null is neither true nor false, as in SQL.
"""

import functools
import heapq
import itertools
import json
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import xxhash

from curation import stores
from curation.errors import ConfigError, InputError
from curation.readers.discover import InputFile
from curation.readers.documents import batched
from curation.readers.formats import Packing, compression_of
from curation.readers.headers import clean_url
from curation.readers.raw import HEAD, RawFile
from curation.readers.read import read
from curation.readers.records import NOT_DRAWN, Damage, Event, Page, Skipped, is_drawn
from curation.readers.rows import Content
from curation.readers.scan import scan
from curation.readers.settings import KEEP_RAW_BYTES, ReaderSettings
from curation.readers.suffixes import without_compression
from curation.resources import resolve

_COLUMNS = pa.schema(
    {
        "warc_filename": pa.large_string(),
        "warc_record_offset": pa.int64(),
        "warc_record_length": pa.int64(),
        "url": pa.large_string(),
    }
)
_NEEDED = _COLUMNS.names[:3]
_NO_VALUE = {"warc_filename": "", "warc_record_offset": -1, "warc_record_length": 0, "url": ""}
_NO_NAME = "rows without warc_filename"
#: Bytes between two records that may be read with them, if they are no more than a tenth of these.
_GAP, _TENTH = 64 << 10, 10
#: Bytes of one request with several records, and requests under way at a time.
_REQUEST, _AT_ONCE = 4 << 20, 16


class _Row(NamedTuple):
    offset: int
    length: int
    url: str

    @property
    def end(self) -> int:
        return self.offset + self.length

    def damage(self, reason: str, detail: str, raw: bytes = b"") -> Damage:
        return Damage(self.offset, reason, detail, self.url or None, raw)


def is_index(path: str, name: str) -> bool:
    """Return whether a file is a table with the columns of an index; by them alone."""
    plain = without_compression(name)
    if not plain.endswith((".parquet", ".csv")):
        return False
    try:
        with RawFile.open(path) as raw:
            if plain.endswith(".parquet"):
                names = pq.read_schema(pa.PythonFile(raw.handle, mode="r")).names
            else:
                line = Content(raw, name).readline(HEAD).decode("utf-8-sig", "replace")
                names = [cell.strip(' "\r\n') for cell in line.split(",")]
    except (InputError, pa.ArrowException, OSError, EOFError, ValueError):
        return False  # its reader says what is wrong
    return set(_NEEDED) <= set(names)


def with_archives(files: Sequence[InputFile], settings: ReaderSettings) -> list[InputFile]:
    """Return the files, with archives in place of indexes: each with the records to read of it.

    Archives are named as in the index. Raises InputError where an index can't be read, or names an
    archive that is given, too, and ConfigError for a wrong `readers.index.where`.
    """
    found = [*stores.each(lambda file: is_index(file.path, file.name), files)]
    if not any(found):
        return [*files]
    tables = [_rows(file, settings) for file, yes in zip(files, found, strict=True) if yes]
    archives = [*_archives(pa.concat_tables(tables), resolve(settings.index["base"]))]
    others = [file for file, yes in zip(files, found, strict=True) if not yes]
    if twice := {file.name for file in others} & {file.name for file in archives}:
        raise InputError(f"{min(twice)}: given both as a file and by an index")
    if not archives and not others:
        condition = settings.index["where"]
        raise InputError(f"{files[0].path}: no record, with readers.index.where={condition!r}")
    return sorted([*others, *archives], key=lambda file: (file.name, file.path))


def _rows(file: InputFile, settings: ReaderSettings) -> pa.Table:
    """Return the rows of an index to which `readers.index.where` applies."""
    condition = settings.index["where"]
    where = parse_where(condition) if condition.strip() else None
    try:
        with RawFile.open(file.path) as raw:
            if without_compression(file.name).endswith(".csv"):
                table = pyarrow.csv.read_csv(Content(raw, file.name))
                table = table if where is None else table.filter(where)
            else:
                handle = pa.PythonFile(raw.handle, mode="r")
                names = [n for n in pq.read_schema(handle).names if n in _COLUMNS.names]
                handle.seek(0)
                table = pq.read_table(handle, columns=names, filters=where)
            if "url" not in table.column_names:
                table = table.append_column("url", pa.nulls(len(table), pa.large_string()))
            return table.select(_COLUMNS.names).cast(_COLUMNS)
    except (pa.ArrowException, OSError, EOFError, ValueError, TypeError) as error:
        told = f" (readers.index.where={condition!r})" if condition else ""
        raise InputError(f"{file.path}: the index can't be read{told}: {error}") from error


def _archives(table: pa.Table, base: str) -> Iterator[InputFile]:
    filled = [table[name].fill_null(value) for name, value in _NO_VALUE.items()]
    order = dict.fromkeys(_COLUMNS.names, "ascending") | {"warc_record_length": "descending"}
    table = pa.table(filled, schema=_COLUMNS).sort_by([*order.items()])
    each = (
        row
        for batch in table.to_batches(1 << 16)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for name, rows in itertools.groupby(each, key=lambda row: row[0]):
        first = [next(same)[1:] for _, same in itertools.groupby(rows, key=lambda row: row[1])]
        records = json.dumps(first)
        size = sum(max(0, length) for _, length, _ in first)
        version = f"records={xxhash.xxh3_128_hexdigest(records.encode())}"
        path = f"{base.rstrip('/')}/{name}"
        yield InputFile(path, name or _NO_NAME, size, version, records)


def draw(files: Sequence[InputFile], most: int, seed: int) -> list[InputFile]:
    """Return the archives with `most` of the records that an index names, drawn at random.

    The draw depends on their places and the seed alone: one of more has those of one of fewer.
    Raises InputError for a file that is no archive of an index.
    """
    if other := next((file.path for file in files if not file.records), None):
        raise InputError(f"{other}: no index: it lacks one of {', '.join(_NEEDED)}")
    rows = ((file, row) for file in files for row in json.loads(file.records))

    def rank(one: tuple[InputFile, list[Any]]) -> int:
        return xxhash.xxh3_64_intdigest(f"{seed}\0{one[0].name}\0{one[1][0]}".encode())

    drawn = sorted(heapq.nsmallest(most, rows, rank), key=lambda one: (one[0].name, one[1][0]))
    return [
        replace(file, records=json.dumps([row for _, row in group]))
        for file, group in itertools.groupby(drawn, key=lambda one: one[0])
    ]


def as_table(files: Iterable[InputFile]) -> pa.Table:
    """Return the records of archives as an index."""
    rows = [(file.name, *row) for file in files for row in json.loads(file.records)]
    return pa.table([*zip(*rows, strict=True)] or [()] * len(_COLUMNS), schema=_COLUMNS)


def records_behind(records: str, number: int) -> tuple[int, str]:
    """Return the offset of the record of a number, and the records behind it."""
    rows = json.loads(records)
    return rows[number][0], json.dumps(rows[number + 1 :])


def read_index(path: str, settings: ReaderSettings) -> Iterator[Event]:
    """Yield the events of the records that an index names; of any other file, its own."""
    for file in with_archives([InputFile(path, path.rpartition("/")[2], 0)], settings):
        if file.records:
            yield from read_records(file.path, file.name, settings, file.records)
        else:
            yield from read(path, settings)


def read_records(path: str, name: str, settings: ReaderSettings, records: str) -> Iterator[Event]:
    """Yield one event for each record of an archive, in their order.

    Those that aren't drawn (`readers.sample`) are not fetched. Raises StoreError as stores do.
    """
    rows = [_Row(*row) for row in json.loads(records)]
    events = [_unread(row, name, settings) for row in rows]
    wanted = [row for row, event in zip(rows, events, strict=True) if event is None]
    read_ones = _events(path, name, settings, wanted)
    for event in events:
        yield event or next(read_ones)


def _unread(row: _Row, name: str, settings: ReaderSettings) -> Event | None:
    """Return the event of a row whose record is not read."""
    if name == _NO_NAME or ".." in name.split("/") or name.startswith("/"):
        return row.damage("index.bad_row", "no file below readers.index.base")
    if row.offset < 0 or row.length <= 0:
        return row.damage("index.bad_row", "no offset or no length")
    if row.length > settings.max_record_bytes:
        return row.damage("record.too_large", f"{row.length} bytes, over {settings.most}")
    key = clean_url(row.url) or f"{name}:{row.offset}"
    return None if is_drawn(key, settings.sample) else Skipped(NOT_DRAWN)


def _events(
    path: str, name: str, settings: ReaderSettings, rows: Sequence[_Row]
) -> Iterator[Event]:
    for some in batched(_runs(rows), _AT_ONCE):
        for run, data in zip(some, stores.each(functools.partial(_data, path), some), strict=True):
            for row in run:
                yield _event(path, name, row, (run[0].offset, data), settings)


def _runs(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Divide rows into those of one request."""
    run: list[_Row] = []
    end = wanted = beside = 0
    for row in rows:
        gap = max(0, row.offset - end)
        few = gap <= _GAP and _TENTH * (beside + gap) <= wanted
        if run and not (few and row.end - run[0].offset <= _REQUEST):
            yield run
            run, wanted, beside, gap = [], 0, 0, 0
        run.append(row)
        beside += gap if len(run) > 1 else 0
        end, wanted = max(end, row.end), wanted + row.length
    if run:
        yield run


def _data(path: str, run: Sequence[_Row]) -> bytes | None:
    """Return the bytes from the first record to behind the last; None where there is no file."""
    try:
        data = stores.fetch(path, run[0].offset, max(row.end for row in run))
    except FileNotFoundError:
        return None
    RawFile.fetched += len(data)
    return data


def _event(
    path: str, name: str, row: _Row, read: tuple[int, bytes | None], settings: ReaderSettings
) -> Event:
    start, data = read
    if data is None:
        return row.damage("index.no_file", f"{path}: no such file")
    raw = _Record(path, row.offset, data[row.offset - start : row.end - start])
    if raw.size < row.end:
        place = f"bytes {row.offset} to {row.end}"
        return row.damage("index.beyond_end", f"{place} are beyond the end of the file")
    head = raw.fetch(row.offset, HEAD)
    stream = Packing(raw, compression_of(head, name)).stream(row.offset)
    event = next(scan(stream, settings), None)
    if event is None or (isinstance(event, Page) and event.offset != row.offset):
        return row.damage("index.no_record", "no record begins here", head[:KEEP_RAW_BYTES])
    if isinstance(event, Page) and row.url and event.url != clean_url(row.url):
        detail = f"the record of {event.url}"
        return row.damage("index.other_url", detail, head[:KEEP_RAW_BYTES])
    return replace(event, offset=row.offset) if isinstance(event, Damage) else event


class _Record(RawFile):
    """The bytes of a record at their place in its archive, which ends behind them."""

    def __init__(self, path: str, offset: int, data: bytes) -> None:
        super().__init__(None, path)
        self._start, self._data, self.size = offset, data, offset + len(data)

    def fetch(self, offset: int, size: int) -> bytes:
        """As that of a file. Only what all records need, a dictionary, is before this one."""
        if offset < self._start:
            return _before(self.name, offset, size)
        return self._data[offset - self._start :][:size]


@functools.lru_cache(maxsize=4)
def _before(path: str, offset: int, size: int) -> bytes:
    return stores.fetch(path, offset, offset + size)


_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^']|'')*')|(?P<number>[-+]?\d+(?:\.\d+)?)"""
    r"""|(?P<name>"[^"]+"|[^\W\d]\w*)|(?P<sign><>|!=|<=|>=|[=<>(),])|(?P<end>$))"""
)
_COMPARISONS = {"=": operator.eq, "<>": operator.ne, "!=": operator.ne, "<": operator.lt}
_COMPARISONS |= {"<=": operator.le, ">": operator.gt, ">=": operator.ge}
#: Parentheses and `NOT` inside each other, at most.
_DEEPEST = 50


def parse_where(condition: str) -> pc.Expression:
    """Return the condition as an expression of Arrow. Raises ConfigError, naming the place."""
    parser = _Parser(condition)
    found = parser.either(0)
    if parser.kind != "end":
        raise parser.unexpected("AND, OR or the end")
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.step()

    def step(self) -> str:
        """Go to the next token; return the text of the one that is left."""
        left = getattr(self, "token", "")
        found = _TOKEN.match(self._text, self._at)
        self._begin = self._at
        if found is None:
            raise self.unexpected("a column, a value or a sign")
        self.kind = found.lastgroup or "end"
        self.token = found[self.kind]
        self._begin, self._at = found.start(self.kind), found.end()
        return left

    def unexpected(self, wanted: str) -> ConfigError:
        place = f"at character {self._begin + 1}, {self._text[self._begin :][:20]!r}"
        return ConfigError(f"readers.index.where: {place}: expected {wanted}")

    def took(self, *words: str) -> bool:
        """Go over the next token if it is one of these words or signs."""
        if self.kind not in ("name", "sign") or self.token.upper() not in words:
            return False
        self.step()
        return True

    def take(self, word: str) -> None:
        if not self.took(word):
            raise self.unexpected(word)

    def either(self, depth: int) -> pc.Expression:
        found = self._both(depth)
        while self.took("OR"):
            found = found | self._both(depth)
        return found

    def _both(self, depth: int) -> pc.Expression:
        found = self._one(depth)
        while self.took("AND"):
            found = found & self._one(depth)
        return found

    def _one(self, depth: int) -> pc.Expression:
        if depth > _DEEPEST:
            raise self.unexpected(f"no more than {_DEEPEST} parentheses")
        if self.took("NOT"):
            return ~self._one(depth + 1)
        if self.took("("):
            found = self.either(depth + 1)
            self.take(")")
            return found
        if self.kind != "name":
            raise self.unexpected("a column")
        return self._about(pc.field(self.step().strip('"')))

    def _about(self, column: pc.Expression) -> pc.Expression:
        """Return what is said of a column."""
        if self.took("IS"):
            negated = self.took("NOT")
            self.take("NULL")
            return column.is_valid() if negated else column.is_null()
        if self.token in _COMPARISONS:
            return _COMPARISONS[self.step()](column, self._value())
        negated = self.took("NOT")
        if self.took("LIKE"):
            if self.kind != "string":
                raise self.unexpected("a string")
            found = pc.match_like(column, self._value())
        elif self.took("BETWEEN"):
            least = self._value()
            self.take("AND")
            found = (column >= least) & (column <= self._value())
        elif self.took("IN"):
            among = column.isin(self._values())
            found = pc.if_else(column.is_valid(), among, pa.scalar(None, pa.bool_()))
        else:
            raise self.unexpected("a comparison, LIKE, IN, BETWEEN or IS NULL")
        return ~found if negated else found

    def _values(self) -> list[Any]:
        self.take("(")
        found = [self._value()]
        while self.took(","):
            found.append(self._value())
        self.take(")")
        return found

    def _value(self) -> Any:
        if self.kind == "string":
            return self.step()[1:-1].replace("''", "'")
        if self.kind == "number":
            number = self.step()
            return float(number) if "." in number else int(number)
        for word in ("TRUE", "FALSE"):
            if self.took(word):
                return word == "TRUE"
        raise self.unexpected("a value")
