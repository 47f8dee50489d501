"""Shards of documents: Parquet files read and written batch by batch, in bounded memory."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.errors import InputError
from curation.schema import conformed
from pipelines.engine.files import FileRecord, Folder, HashingSink

#: Documents per batch. Memory of a stage is a few batches, whatever the shard's size.
BATCH_ROWS = 512
#: A row group is written when it has this many rows or bytes.
_GROUP_ROWS = 4096
_GROUP_BYTES = 16 << 20


@contextlib.contextmanager
def open_parquet(folder: Folder, name: str) -> Iterator[pq.ParquetFile]:
    """One Parquet file, open. Raises FileNotFoundError, OSError and ArrowInvalid.

    Arrow opens local files by itself: through a Python object its threads might still hold the
    interpreter's lock when the interpreter ends, which now and then aborts a process that is done.
    """
    local = folder.is_local
    with contextlib.ExitStack() as stack:
        file = pa.OSFile(folder.path(name)) if local else folder.open(name)
        yield stack.enter_context(pq.ParquetFile(stack.enter_context(file)))


def read_batches(
    folder: Folder, name: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches of one Parquet file, in order, with the columns of documents in their types.

    Raises InputError with the file's name when it is absent or broken, or a value is of no use.
    """
    row = 0
    try:
        with open_parquet(folder, name) as parquet:
            for batch in parquet.iter_batches(
                BATCH_ROWS, columns=None if columns is None else list(columns), use_threads=False
            ):
                _check_present(batch, row)
                yield conformed(batch)
                row += batch.num_rows
    except FileNotFoundError:
        raise InputError(f"{folder.url}/{name}: no such file") from None
    except (pa.ArrowInvalid, OSError, InputError) as error:
        raise InputError(f"{folder.url}/{name}: {error}") from error


def _check_present(batch: pa.RecordBatch, row: int) -> None:
    for name in ("id", "text"):
        if name in batch.schema.names and batch.column(name).null_count:
            place = row + pc.index(pc.is_null(batch.column(name)), True).as_py()
            raise InputError(f"row {place}: no {name!r}")


class TableWriter:
    """Writes record batches of one schema to a Parquet file, byte for byte the same every time."""

    def __init__(self, folder: Folder, name: str, schema: pa.Schema) -> None:
        self.name = name
        self._schema = schema
        self._stack = contextlib.ExitStack()
        self._sink: HashingSink = self._stack.enter_context(folder.create(name))
        self._writer = pq.ParquetWriter(
            self._sink, schema, compression="zstd", compression_level=3, write_page_index=False
        )
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
            self.rows += table.num_rows
            self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:  # where the last rows can't be written, nothing is left either
            self._flush()
            self._writer.close()

    @property
    def record(self) -> FileRecord:
        """Only after the writer was closed."""
        return self._sink.record(self.rows)


class Tally:
    """Counts of a shard: documents and characters, in, kept and removed by reason."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._removed: dict[str, Counter[str]] = {}
        self._groups: dict[str, dict[str, Counter[str]]] = {
            "language": {},
            "domain": {},
            "topic": {},
            "format": {},
            "path": {},
        }

    def add_in(self, batch: pa.RecordBatch) -> None:
        self._numbers["documents_in"] += batch.num_rows
        self._numbers["characters_in"] += characters(batch.column("text"))

    def add_kept(self, batch: pa.RecordBatch) -> None:
        self._numbers["documents"] += batch.num_rows
        self._numbers["characters"] += characters(batch.column("text"))
        for column, groups in self._groups.items():
            if batch.schema.get_field_index(column) >= 0 and batch.num_rows:
                _add_groups(groups, batch.column(column), batch)
        if batch.schema.get_field_index("tokens") >= 0:
            self._numbers["tokens"] += _tokens(batch)

    def add_removed(self, batch: pa.RecordBatch) -> None:
        self._numbers["documents_removed"] += batch.num_rows
        if batch.num_rows:
            _add_groups(self._removed, batch.column("reason"), batch)

    def add(self, name: str, amount: int = 1) -> None:
        """Count something else, such as skipped records or personal data by kind."""
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
    """Of all the texts together."""
    return pc.sum(pc.utf8_length(texts)).as_py() or 0


def _tokens(batch: pa.RecordBatch) -> int:
    """Tokens of the batch, counting a document as often as it is drawn."""
    tokens = batch.column("tokens")
    if batch.schema.get_field_index("repeats") >= 0:
        tokens = pc.multiply(tokens, batch.column("repeats").cast(pa.int64()))
    return pc.sum(tokens).as_py() or 0


def _add_groups(groups: dict[str, Counter[str]], column: pa.Array, batch: pa.RecordBatch) -> None:
    table = pa.table({"key": column, "length": pc.utf8_length(batch.column("text"))})
    sums = table.group_by("key").aggregate([("length", "sum"), ("length", "count")])
    for key, characters, rows in zip(
        sums["key"].to_pylist(),
        sums["length_sum"].to_pylist(),
        sums["length_count"].to_pylist(),
        strict=True,
    ):
        counter = groups.setdefault(str(key), Counter())
        counter["documents"] += rows
        counter["characters"] += characters or 0


def add_counts(into: dict[str, Any], counts: dict[str, Any]) -> None:
    """Sum nested counts in place."""
    for key, value in counts.items():
        if isinstance(value, dict):
            add_counts(into.setdefault(key, {}), value)
        else:
            into[key] = into.get(key, 0) + value
