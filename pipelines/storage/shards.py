"""Shards of documents: Parquet files read and written batch by batch, in bounded memory."""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation import stores
from curation.errors import InputError
from curation.schema import conformed
from curation.stages import counted_columns
from pipelines.storage.damage import DamagedError, check_content, damaged, is_damage
from pipelines.storage.files import FileRecord, Folder, HashingSink
from pipelines.storage.manifest import files_of, read_manifest

#: Most documents of a batch, and most bytes of one with several documents. A stage's memory is a
#: few batches, for any size of shard, plus a few times the largest document.
BATCH_ROWS = 512
BATCH_BYTES = 8 << 20
#: A row group is written once it has this many rows or bytes at the end of 512 rows of input,
#: however these were divided into batches, and earlier if it reaches the most bytes. A document of
#: more than BATCH_BYTES gets its own group, so that it can be read alone.
_GROUP_ROWS = 4096
_GROUP_BYTES = 16 << 20
_MOST_GROUP_BYTES = 24 << 20
#: Zeros that end a number's fraction.
_ZEROS = r"\.0*$|(\.\d*[1-9])0+$"
#: Columns of pages and their texts.
_LONG = ("text", "html")


@contextlib.contextmanager
def open_parquet(folder: Folder, name: str, sha256: str | None = None) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. Raises FileNotFoundError, OSError and ArrowInvalid.

    With `sha256`, the file is hashed first (an object is copied here) and DamagedError is raised if
    the hash differs.

    Arrow opens local files itself: with a Python file object its threads might still hold the GIL
    when the interpreter exits, which occasionally aborts a finished process.
    """
    with contextlib.ExitStack() as stack:
        if not folder.is_local:
            source = stack.enter_context(
                folder.open(name) if sha256 is None else _copy(folder, name, sha256)
            )
        else:
            if sha256 is not None:
                check_content(folder, name, sha256)
            source = stack.enter_context(pa.OSFile(folder.path(name)))
        yield stack.enter_context(pq.ParquetFile(source, page_checksum_verification=True))


@contextlib.contextmanager
def _copy(folder: Folder, name: str, sha256: str) -> Iterator[BinaryIO]:
    """Copy an object to a temporary file, hashing it on the way."""
    with tempfile.SpooledTemporaryFile(stores.PART_BYTES) as spool:
        sink = HashingSink(cast(BinaryIO, spool))
        with folder.open(name) as file:
            shutil.copyfileobj(file, sink, 1 << 20)
        if sink.record(0).sha256 != sha256:
            raise damaged(folder, name, "not the bytes that were written")
        spool.seek(0)
        yield cast(BinaryIO, spool)


def read_batches(
    folder: Folder, name: str, columns: Sequence[str] | None = None, sha256: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a Parquet file in order, with document columns cast to their types.

    No batch crosses a multiple of BATCH_ROWS, or has more than BATCH_BYTES and several rows.
    `sha256`: see `open_parquet`. Raises InputError with the file's name for an invalid value,
    DamagedError if the file is missing or damaged.
    """
    row = 0
    try:
        with open_parquet(folder, name, sha256) as parquet:
            for batch in _cut(_pieces(parquet, columns)):
                _check_present(batch, row)
                row += batch.num_rows
                batch = conformed(batch)
                yield batch
                del batch  # free a large one before the next is read; here and below
    except DamagedError:
        raise
    except FileNotFoundError:
        raise damaged(folder, name, "no such file") from None
    except (pa.ArrowInvalid, OSError, InputError) as error:
        if is_damage(error):
            raise damaged(folder, name, str(error)) from error
        raise InputError(f"{folder.url}/{name}: {error}") from error


def read_kinds(
    place: Folder, kinds: Sequence[str], columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all files of these kinds in a stage; see `read_batches`."""
    for name, file in files_of(read_manifest(place), *kinds).items():
        if file["rows"]:
            yield from read_batches(place, name, columns)


def own_ids(place: Folder, wanted: Collection[str]) -> dict[str, str]:
    """Return the documents to which their tables gave one of these numbers, by id."""
    found = dict[str, str]()
    numbers = {re.sub(_ZEROS, r"\1", n): n for n in wanted if re.match(r"-?[\d.]+(e|$)", n)}
    keys = pa.array(sorted(numbers), pa.string())
    for batch in read_kinds(place, ["documents", "removed"] if numbers else [], ["id", "own_id"]):
        kind = batch["own_id"].type if batch.num_columns == 2 else pa.null()
        if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
            own = pc.replace_substring_regex(batch["own_id"].cast(pa.string()), _ZEROS, r"\1")
            pairs = pa.table([batch["id"], own], ["id", "own"]).filter(pc.is_in(own, keys))
            found |= {row["id"]: numbers[row["own"]] for row in pairs.to_pylist()}
    return found


def read_rows(
    folder: Folder, name: str, rows: Sequence[int], columns: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield numbers and values of these rows (ascending) of a Parquet file.

    Only their row groups are read; columns that the file lacks are left out.
    """
    if not rows:
        return
    with open_parquet(folder, name) as parquet:
        held = [n for n in parquet.schema_arrow.names if columns is None or n in columns]
        for group, span in enumerate(row_groups(parquet)):
            here = [row for row in rows if span.start <= row < span.stop]
            if here:
                # Not as one table: to get its memory from the system costs as much as to read it.
                found = parquet.iter_batches(BATCH_ROWS, [group], held, use_threads=False)
                table = pa.Table.from_batches(list(found))
                for row in here:
                    yield row, table.slice(row - span.start, 1).to_pylist()[0]


def row_groups(parquet: pq.ParquetFile) -> Iterator[range]:
    """Yield the numbers of the rows of each row group."""
    first = 0
    for group in range(parquet.num_row_groups):
        end = first + parquet.metadata.row_group(group).num_rows
        yield range(first, end)
        first = end


def _pieces(parquet: pq.ParquetFile, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield rows in pieces that end at multiples of BATCH_ROWS, small where documents are large.

    The rows of a group are assumed to be of similar size, as in groups that we wrote.
    """
    wanted = None if columns is None else list(columns)
    row = 0
    for group in range(parquet.num_row_groups):
        facts = parquet.metadata.row_group(group)
        share = BATCH_BYTES * facts.num_rows // max(1, facts.total_byte_size)
        rows = max(1, min(BATCH_ROWS, share))
        pieces = parquet.iter_batches(rows, [group], wanted, use_threads=False)
        if facts.num_rows <= rows:  # so that the reader releases its pages
            pieces = _emptied(list(pieces))
        for piece in pieces:
            if is_large(piece):
                pa.default_memory_pool().release_unused()
            first = min(piece.num_rows, -row % BATCH_ROWS)
            row += piece.num_rows
            if 0 < first < piece.num_rows:
                yield piece.slice(0, first)
                piece = piece.slice(first)
            yield piece
            del piece


def _emptied(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while batches:
        yield batches.pop(0)


def _cut(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small pieces and halve large ones."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for piece in pieces:
        if waiting and size + piece.nbytes > BATCH_BYTES:
            yield from _joined(waiting)
            size = 0
        waiting.append(piece)
        rows += piece.num_rows
        size += piece.nbytes
        del piece
        if rows % BATCH_ROWS == 0 or size > BATCH_BYTES:
            yield from _joined(waiting)
            size = 0
    if waiting:
        yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join and empty a list of batches; yield the result, halved while it is too large."""
    batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    batches.clear()
    return _halved([batch])


def _halved(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while batches:
        batch = batches.pop()
        if batch.num_rows < 2 or batch.nbytes <= BATCH_BYTES:
            yield batch
        else:
            middle = batch.num_rows // 2
            batches += [batch.slice(middle), batch.slice(0, middle)]
        del batch


def is_large(batch: pa.RecordBatch) -> bool:
    """Return whether the batch is a single document of more than BATCH_BYTES."""
    return batch.num_rows == 1 and batch.nbytes > BATCH_BYTES


def _check_present(batch: pa.RecordBatch, row: int) -> None:
    for name in ("id", "text"):
        if name in batch.schema.names and batch.column(name).null_count:
            place = row + pc.index(pc.is_null(batch.column(name)), True).as_py()
            raise InputError(f"row {place}: no {name!r}")


@functools.lru_cache(maxsize=64)
def _with_statistics(schema: pa.Schema) -> list[str]:
    """Return the columns with minimum and maximum statistics: all but long texts.

    For a long text Parquet's writer would keep four copies and then omit the statistics.
    """
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    columns = pq.ParquetFile(sink.getvalue()).schema
    paths = [columns.column(i).path for i in range(len(columns))]
    return [path for path in paths if path not in _LONG]


class TableWriter:
    """Writes record batches of one schema to a Parquet file, deterministically to the byte."""

    def __init__(self, folder: Folder, name: str, schema: pa.Schema) -> None:
        self.name = name
        self._schema = schema
        self._stack = contextlib.ExitStack()
        self._sink: HashingSink = self._stack.enter_context(folder.create(name))
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            compression_level=3,
            use_dictionary=False,  # zstd finds what repeats; to look for it twice only costs
            write_page_index=False,
            write_page_checksum=True,
            write_statistics=_with_statistics(schema),
        )
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        self.rows = 0

    def write(self, batch: pa.RecordBatch, whole: bool = True) -> None:
        """Write rows. Without `whole`, more of the same 512 rows of input follow."""
        parts = [batch]
        if batch.nbytes > BATCH_BYTES and any(is_large(p) for p in _halved([batch])):
            parts = list(_halved([batch]))
        for part in parts:
            large = is_large(part)
            if large:
                self._flush()
                pa.default_memory_pool().release_unused()
            self._add(part)
            full = self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES
            if large or (whole and full) or self._waiting_bytes >= _MOST_GROUP_BYTES:
                self._flush()

    def _add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._waiting.append(batch)
            self._waiting_rows += batch.num_rows
            self._waiting_bytes += batch.nbytes

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
            self.rows += table.num_rows
            self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *others: Any) -> None:
        if kind is not None:
            self._sink.abandon()
            self._stack.__exit__(kind, *others)
            return
        with self._stack:  # if the last rows can't be written, no file is left either
            try:
                self._flush()
                self._writer.close()
            except BaseException:
                self._sink.abandon()
                raise

    @property
    def record(self) -> FileRecord:
        """Record of the file; only valid after closing."""
        return self._sink.record(self.rows)


class Tally:
    """Counts of a shard: documents and characters, in, kept and removed by reason."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._removed: dict[str, Counter[str]] = {}
        self._groups: dict[str, dict[str, Counter[str]]] = {c: {} for c in counted_columns()}

    def add_in(self, batch: pa.RecordBatch) -> None:
        self._numbers["documents_in"] += batch.num_rows
        self._numbers["characters_in"] += characters(batch.column("text"))

    def add_kept(self, batch: pa.RecordBatch) -> None:
        lengths = pc.utf8_length(batch.column("text"))
        self._numbers["documents"] += batch.num_rows
        self._numbers["characters"] += pc.sum(lengths).as_py() or 0
        for column, groups in self._groups.items():
            if batch.schema.get_field_index(column) >= 0 and batch.num_rows:
                _add_groups(groups, batch.column(column), lengths)
        if batch.schema.get_field_index("tokens") >= 0:
            tokens = batch.column("tokens")
            self._numbers["distinct_tokens"] += pc.sum(tokens).as_py() or 0
            if batch.schema.get_field_index("repeats") >= 0:
                tokens = pc.multiply(tokens, batch.column("repeats").cast(pa.int64()))
            self._numbers["tokens"] += pc.sum(tokens).as_py() or 0

    def add_removed(self, batch: pa.RecordBatch) -> None:
        self._numbers["documents_removed"] += batch.num_rows
        if batch.num_rows:
            lengths = pc.utf8_length(batch.column("text"))
            _add_groups(self._removed, batch.column("reason"), lengths)

    def add(self, name: str, amount: int = 1) -> None:
        """Count anything else, such as skipped records or personal data by kind."""
        self._numbers[name] += amount

    def counts(self) -> dict[str, Any]:
        numbers = {"documents_in": 0, "documents": 0, "documents_removed": 0, **self._numbers}
        result: dict[str, Any] = dict(sorted(numbers.items()))
        result["removed"] = {k: dict(v) for k, v in sorted(self._removed.items())}
        for column, groups in self._groups.items():
            if groups:
                result[column] = {k: dict(v) for k, v in sorted(groups.items())}
        return result


def characters(texts: pa.Array) -> int:
    """Return the total number of characters of the texts."""
    return pc.sum(pc.utf8_length(texts)).as_py() or 0


def _add_groups(groups: dict[str, Counter[str]], keys: pa.Array, lengths: pa.Array) -> None:
    encoded = pc.dictionary_encode(keys.cast(pa.string()), null_encoding="encode")
    codes, names = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
    sizes = np.bincount(codes, lengths.to_numpy(), len(names))  # exact: below 2 ** 53
    for key, size, rows in zip(names, sizes, np.bincount(codes), strict=True):
        counter = groups.setdefault(str(key), Counter())
        counter["documents"] += int(rows)
        counter["characters"] += int(size)


def add_counts(into: dict[str, Any], counts: dict[str, Any]) -> None:
    """Sum nested counts in place."""
    for key, value in counts.items():
        if isinstance(value, dict):
            add_counts(into.setdefault(key, {}), value)
        else:
            into[key] = into.get(key, 0) + value
