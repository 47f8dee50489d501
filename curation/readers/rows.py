"""Files read row by row: CSV, JSON arrays of objects, documents, dumps, and custom formats.

CSV is divided by commas, semicolons, tabs or `|`, whichever its first line has, the first of them
if it has several; with a byte order mark it may be in UTF-16, as spreadsheets write it.

A custom format is a function of an open binary file that yields mappings, with the columns of
other tables (`readers.text_columns` and so on).
"""

import codecs
import csv
import functools
import importlib
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any, NamedTuple

import pyarrow as pa

from curation.errors import StoreError, raising, told
from curation.judging import opened
from curation.readers import tables
from curation.readers.charset import decode_text, is_binary, is_of_a_format, mostly_utf8
from curation.readers.formats import Packing
from curation.readers.raw import HEAD, RawFile
from curation.readers.records import Damage, Event, Fault, Page, Row, Skipped
from curation.readers.settings import CustomFormat, ReaderSettings
from curation.readers.suffixes import JSON_LINES, OFFICE, without_compression
from curation.text.surrogates import everywhere, well_formed

#: Bytes that aren't UTF-8, as Python shows what it decodes with `surrogateescape`.
_ESCAPED = re.compile(r"\\udc[89a-f]")

Rows = Callable[[IO[bytes]], Iterator[Row]]

_PROLOGUE = re.compile(rb"\s*(?:<[?!][^>]*>\s*)*")
_CHUNK = 1 << 16  # characters
#: Objects that are not each on a line of their own.
_OVER_LINES = re.compile(rb'\[\s*[\[{\]]|\{\s*\n\s*["}]')
_LINE_FEED = re.compile(r"\s*+[^\r\n]*+\r?\n")  # which ends the first line, alone or behind CR

#: Separators that a file of this suffix may have.
_SEPARATORS = {".csv": ",;\t|", ".tsv": "\t"}


class Format(NamedTuple):
    """A format that is read row by row."""

    name: str  # in reasons
    rows: Rows
    mime: str = ""  # of a document whose HTML was made from it; all of that is content
    #: Types of further columns, where these are known without reading the rows.
    columns: Mapping[str, pa.DataType] | None = None
    is_mended: bool = False  # whether rows behind a break of a compressed file are whole


def format_of_rows(raw: RawFile, name: str, settings: ReaderSettings) -> Format | None:
    """Return a file's format by its suffix, for XML by its beginning; None for other files."""
    plain = re.sub(r"\.xml-p\d+p\d+$", ".xml", without_compression(name))  # as parts of dumps are
    for suffix, custom in settings.formats.items():
        if plain.endswith(suffix.lower()):
            return Format("format", _custom(custom))
    longest = settings.max_record_bytes
    if not plain.endswith(_SUFFIXES):
        return None
    stream = Packing.of(raw, name).stream()
    stream.fill(HEAD)
    head = bytes(stream.buffer[:HEAD])
    # A table may hold any characters, also few and odd ones.
    is_table = plain[-4:] in _SEPARATORS
    other = is_of_a_format(head) if is_table else plain.endswith(".tex") and is_binary(head)
    if other or not (head or stream.breaks):
        return None  # another format under this name, or nothing
    start = _PROLOGUE.sub(b"", head.removeprefix(codecs.BOM_UTF8), count=1)
    is_array = plain.endswith(".json") and start.startswith(b"[")
    if is_array or (plain.endswith(JSON_LINES) and _OVER_LINES.match(start)):
        return Format("json", json_rows(longest))
    if separators := _SEPARATORS.get(plain[-4:]):
        return Format("csv", csv_rows(separators, longest))
    for module, mime, suffixes, beginning in _DOCUMENTS:
        if plain.endswith(suffixes) and start.startswith(beginning):
            made = importlib.import_module(f"curation.readers.{module}")  # few runs read it
            rows = functools.partial(made.rows, longest=longest)
            return Format(module, rows, mime, getattr(made, "COLUMNS", {}), True)
    return None


#: Modules that read documents: their MIME type, suffixes, and how they begin.
_DOCUMENTS = (
    ("office", "application/vnd.oasis.opendocument.text", OFFICE, b""),
    ("mailbox", "application/mbox", (".mbox",), b""),
    ("latex", "", (".tex",), b""),
    ("mediawiki", "application/mediawiki", (".xml",), b"<mediawiki"),
    ("stackexchange", "application/stackexchange", (".xml",), b"<posts"),
)
_SUFFIXES = (*JSON_LINES, *_SEPARATORS, *OFFICE, ".mbox", ".tex", ".xml")


def read_rows(raw: RawFile, name: str, settings: ReaderSettings, found: Format) -> Iterator[Event]:
    """Yield the rows as pages; `offset` is the row number. An error ends the file."""
    read, kind = 0, found.name
    try:
        for row in _rows(raw, name, found):
            if isinstance(row, Skipped):
                yield row
            elif isinstance(row, Damage):
                yield replace(row, offset=read)
            elif isinstance(row, Fault):
                yield Damage(read, f"{kind}.{row.reason}", row.detail, None, b"")
            else:
                row, told_of = row if isinstance(row, tuple) else (row, "")
                sound, mended = sound_row(row, kind)
                event = tables.row_event(sound, read, settings, kind, told_of or mended)
                if isinstance(event, Page) and event.kind == "html" and found.mime:
                    event = replace(event, mime=found.mime)
                yield event
            read += 1
        if not read and found.is_mended:
            yield Damage(0, f"{kind}.no_record", "no record in it, whole or broken", None, b"")
    except StoreError:
        raise
    except Exception as error:
        yield Damage(read, f"{kind}.corrupt", f"after {read:,} rows: {told(error)}", None, b"")


def sound_row(row: Mapping[str, Any], kind: str) -> tuple[dict[str, Any], str]:
    """Return a row with U+FFFD in place of halves of characters and bytes that are no UTF-8.

    And the reason if there are.
    """
    sound = everywhere(row, well_formed)
    reason = "" if sound == row else "bad_utf8" if _ESCAPED.search(repr(row)) else "lone_surrogate"
    return sound, reason and f"{kind}.{reason}"


class Content(io.RawIOBase):
    """The content of a file that may be compressed.

    `broken` gets what interrupts it, if the content is to go on behind that; else it ends with an
    error there.
    """

    def __init__(self, raw: RawFile, name: str, broken: list[Damage] | None = None) -> None:
        self._stream, self._broken = Packing.of(raw, name).stream(), broken

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        stream = self._stream
        stream.reach(stream.base + len(buffer))
        while stream.breaks and stream.breaks[0][0] <= stream.base:
            broken = stream.breaks.popleft()[1]
            if self._broken is None:
                raise EOFError(broken.detail)
            self._broken.append(Damage(0, broken.reason, broken.detail, None, b""))
            stream.reach(stream.base + 1)
        end = stream.breaks[0][0] if stream.breaks else stream.end
        data = bytes(stream.buffer[: min(len(buffer), end - stream.base)])
        stream.drop(stream.base + len(data))
        buffer[: len(data)] = data
        return len(data)


def _rows(raw: RawFile, name: str, found: Format) -> Iterator[Row]:
    """Yield rows, and before a row the breaks of the file up to it."""
    broken: list[Damage] = []
    file: Any = raw.handle  # at any place of it, as packages and own code may read
    if Packing.of(raw, name).compression:
        file = Content(raw, name, broken if found.is_mended else None)
    raw.fetch(0, 0)  # back to the beginning
    buffered = io.BufferedReader(file, _CHUNK if found.is_mended else tables.SAMPLE)
    for row in itertools.chain(found.rows(buffered), [None]):
        yield from broken
        broken.clear()
        if row is not None:
            yield row


def _custom(custom: CustomFormat) -> Rows:
    function, name = opened(custom.python, custom.settings), custom.python.reference

    def rows(file: IO[bytes]) -> Iterator[Mapping[str, Any]]:
        with raising(lambda error: RuntimeError(f"{name}: {told(error)}")):
            for row in function(file):
                if not isinstance(row, Mapping):
                    raise TypeError(f"gave {type(row).__name__}, not a mapping of columns")
                yield row

    return rows


#: How a table writes quotes: what makes its lines readable by `csv`, and options of that.
_Quotes = tuple[Callable[[str], str], dict[str, Any]]
_USUAL: _Quotes = (str, {})
_CR = "\udc0d"  # for a CR inside of a line, which `csv` refuses outside of quotes


class _Lines(Iterator[str]):
    """Lines of a text. Raises ValueError where those of a row are longer than allowed together."""

    def __init__(self, text: io.TextIOBase, longest: int, quotes: _Quotes = _USUAL) -> None:
        self._text, self._longest, self.quotes = text, longest, quotes
        self.begin_row()

    def begin_row(self) -> None:
        """Count characters, and keep lines, from here on."""
        self._left, self.row = self._longest, list[str]()

    def __next__(self) -> str:
        line = self._text.readline(self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            raise ValueError(f"a row of over {self._longest} characters (readers.max_record_bytes)")
        if not line:
            raise StopIteration
        self.row.append(line.rstrip("\r\n"))
        return self.quotes[0](self.row[-1].replace("\r", _CR) + line[len(self.row[-1]) :])


def csv_rows(separators: str, longest: int) -> Rows:
    def rows(file: IO[bytes]) -> Iterator[Row]:
        csv.field_size_limit(longest)
        start = file.peek(tables.SAMPLE)  # type: ignore[attr-defined]
        wide = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        code = ("utf-16", "replace") if wide else ("utf-8-sig", "surrogateescape")
        sample = start.decode(*code)
        newline = "\n" if _LINE_FEED.match(sample) else ""  # else CR ends lines, too
        text = io.TextIOWrapper(file, *code, newline=newline)
        of_file = functools.cache(lambda: tables.encoding_of_lines(start))
        lines = _Lines(text, longest)
        head = next((line for line in lines if line.strip()), "")
        separator = next((s for s in separators if s in head), separators[0])
        if head.startswith("sep="):  # Excel's own line, in front of the names
            head = next(lines, "")
        begun = io.StringIO(sample[sample.find(head) :], newline=newline)
        lines.quotes = _quotes_of(begun, separator, len(start) == tables.SAMPLE)
        whole = itertools.chain([lines.quotes[0](head)], lines)
        header = next(csv.reader(whole, delimiter=separator, **lines.quotes[1]), [])
        header = [name.strip() for name in header]  # as in `id, text`
        names, changed = tables.distinct(header), tables.renamed(header)
        for cells in _cells(lines, separator):
            if isinstance(cells, Fault):
                yield cells
            elif any(cells[len(names) :]):  # a separator in a text without quotes, most likely
                yield Fault("more_fields", f"{len(cells)} fields, the first line has {len(names)}")
            elif cells:
                content = [cell.encode("utf-8", "surrogateescape") for cell in cells]
                if encoding := tables.decoded(b",".join(content), of_file)[1]:
                    cells = [cell.decode(encoding, "replace") for cell in content]
                    changed = changed or f"csv.bad_utf8: read as {encoding}"
                yield dict(zip(names, cells, strict=False)), changed  # either may be longer
                changed = ""

    return rows


def _quotes_of(begun: io.StringIO, separator: str, is_cut: bool) -> _Quotes:
    """Return how a table writes quotes, if the usual way doesn't fit its beginning, and that does.

    It fits if all rows are sound and have as many fields. Backslashes beside doubled quotes don't.
    """
    s, sample = re.escape(separator), begun.getvalue()
    dialects = [_USUAL]
    if not re.search(rf'[^{s}\r\n"\\]""', sample):
        # As Spark writes them; a backslash before anything else is text.
        escaped = functools.partial(re.compile(r'(\\["\\])|(\\)').sub, r"\1\2\2")
        dialects.append((escaped, {"escapechar": "\\"}))
    blanks = rf'([^{s}"\r\n]"(?:"")*|(?:^|{s})[ \t]*"")[ \t]+(?=[{s}\r\n]|$)'
    without = functools.partial(re.compile(blanks).sub, r"\1")
    dialects.append((without, {"skipinitialspace": True}))
    for quotes in dialects:
        begun.seek(0)
        lines = _Lines(begun, len(sample), quotes)
        rows = [row for row in _cells(lines, separator) if row]
        widths = {len(row) if isinstance(row, list) else 0 for row in rows[: len(rows) - is_cut]}
        if len(widths) == 1 and 0 not in widths:
            return quotes
    return _USUAL


def _cells(lines: _Lines, separator: str) -> Iterator[list[str] | Fault]:
    """Yield the fields of each row.

    Rows of TSV whose quotes don't fit are lines as they are: there quotes may be just that.
    """
    table = csv.reader(lines, delimiter=separator, strict=True, **lines.quotes[1])
    while True:
        lines.begin_row()
        try:
            yield [cell.replace(_CR, "\r") for cell in next(table)]
        except StopIteration:
            return
        except csv.Error as error:
            if separator == "\t":
                yield from (line.split("\t") for line in lines.row if line)
            else:
                reason = "open_quote" if "end of data" in str(error) else "bad_quote"
                yield Fault(reason, f"{error}: {lines.row[0][:40]!r}")


def json_rows(longest: int) -> Rows:
    """Objects, in arrays or not, over any lines, each of `longest` characters at most."""
    decoder = tables.Members()
    large = ValueError(f"an object of over {longest} characters (readers.max_record_bytes)")

    def rows(file: IO[bytes]) -> Iterator[Row]:
        start = file.peek(tables.SAMPLE).rstrip(bytes(range(128, 256)))  # type: ignore[attr-defined]
        other = "" if mostly_utf8(start) else decode_text(start, None)[1]
        told = other and f"json.bad_utf8: read as {other}"
        errors = "replace" if other else "surrogateescape"
        text = io.TextIOWrapper(file, other or "utf-8-sig", errors=errors)
        window, at, ended, first = "", 0, False, True
        while True:
            at = tables.SEPARATION.match(window, at).end()  # type: ignore[union-attr]
            if window[at : at + 1] == ("[" if first else "]"):
                at, first = at + 1, not first
                continue
            try:
                row, end = decoder.raw_decode(window, at)
            except (ValueError, RecursionError) as error:
                window, at = window[at:], 0
                if first and ended and not window:
                    return
                if len(window) > longest:
                    raise large from None
                if ended:
                    raise ValueError(str(error) if window else "the array does not end") from None
                more = text.read(max(_CHUNK, len(window)))
                window, ended = window + more, not more
                continue
            if not isinstance(row, dict):
                yield Fault("no_object", f"{str(row)[:20]!r} is not an object")
            elif end - at > longest:
                yield Fault("too_large", str(large))
            else:
                yield row, decoder.told or ("" if window[at:end].isascii() else told)
            at = end

    return rows
