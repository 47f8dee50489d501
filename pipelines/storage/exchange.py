"""The narrow exchange: shards exchange fixed-width columns as sorted files, never text.

A map task writes one run: rows sorted by a uint64 key. A reduce task reads a range of keys from
every run. The number of ranges is free, because no result depends on it; a range bounds memory.
"""

import contextlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import stable_order
from curation.schema import taken
from pipelines.storage.files import SCRATCH, FileRecord, Folder, HashingSink, LocalFolder
from pipelines.storage.runs import read_batches_between, read_batches_of, write_batches

UInt64 = npt.NDArray[np.uint64]

#: Approximate bytes read by a reduce task; sorting needs a few times as much memory.
RANGE_BYTES = 128 << 20
#: Most ranges, as each one costs time in every run; beyond that (8 TB), ranges grow instead.
MOST_RANGES = 65536

_ROW_MASK = np.uint64((1 << 32) - 1)


def scratch(kind: str, name: str) -> str:
    """Return the path of a file that only the stage itself reads."""
    return f"{SCRATCH}/data/{kind}/{name}.arrow"


def kind_of(name: str) -> str:
    """Return the kind of a file from its `scratch` path; empty for others."""
    kind, _, file = name.removeprefix(f"{SCRATCH}/data/").partition("/")
    return kind if file and name.startswith(f"{SCRATCH}/data/") else ""


def document_numbers(shard: int, rows: int, first: int = 0) -> UInt64:
    """Return document numbers within a stage: shard index in the high half, row in the low."""
    start = np.uint64((shard << 32) | first)
    return start + np.arange(rows, dtype=np.uint64)


def numbers_of_shard(shard: int) -> tuple[int, int]:
    """Return the lowest and highest number that a document of a shard can have."""
    return shard << 32, (shard << 32) | 0xFFFFFFFF


def row_of(numbers: UInt64) -> npt.NDArray[np.int64]:
    return (numbers & _ROW_MASK).astype(np.int64)


def write_columns(
    folder: Folder, name: str, columns: pa.RecordBatch | Mapping[str, Any]
) -> FileRecord:
    """Write a batch, or NumPy or Arrow arrays of one length, as one uncompressed Arrow batch."""
    return write_batches(folder, name, _batch(columns))


def write_run(
    folder: Folder, name: str, key: str, columns: pa.RecordBatch | Mapping[str, Any]
) -> FileRecord:
    """As `write_columns`, sorted by the uint64 column `key`; equal keys keep their order."""
    batch = _batch(columns)
    order = stable_order(batch.column(key).to_numpy())
    if not np.array_equal(order, np.arange(len(order))):
        batch = taken(batch, order)
    return write_batches(folder, name, batch, key)


def run_of(
    folder: Folder, kind: str, task: str, columns: pa.RecordBatch | Mapping[str, Any]
) -> dict[str, FileRecord]:
    """Write a task's run of a kind, sorted by `key`, and return its record by its name."""
    name = scratch(kind, task)
    return {name: write_run(folder, name, "key", columns)}


def _batch(columns: pa.RecordBatch | Mapping[str, Any]) -> pa.RecordBatch:
    if isinstance(columns, pa.RecordBatch):
        return columns
    return pa.RecordBatch.from_pydict(dict(columns))


def read_columns(folder: Folder, name: str) -> pa.RecordBatch:
    """Return all rows of a file; memory-mapped on local disks, so only what is used is read."""
    return concatenated(read_batches_of(folder, name))


def key_ranges(count: int, keys: int = 1 << 64) -> list[tuple[int, int]]:
    """Divide the key space into `count` equal ranges [low, high], both ends inclusive."""
    edges = [i * keys // count for i in range(count + 1)]
    return [(edges[i], edges[i + 1] - 1) for i in range(count)]


def encoded(batch: pa.RecordBatch) -> bytes:
    """Encode a batch as an Arrow IPC stream, schema included."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decoded(data: bytes) -> pa.RecordBatch:
    """Return the batch that was `encoded`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


@dataclass(frozen=True)
class ExchangeFolder(Folder):
    """The folder of a task whose rows travel by GroupByKey; see `with_rows`.

    Args:
        rows: the task's range of the runs, by name; None if it reads runs from files.
        unwritten: kinds of files that it writes only to memory.
    """

    rows: Mapping[str, Sequence[pa.RecordBatch]] | None = field(default=None, compare=False)
    unwritten: tuple[str, ...] = ()
    _written: dict[str, Any] = field(default_factory=dict, compare=False)

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[HashingSink]:
        if kind_of(name) not in self.unwritten:
            with super().create(name) as sink:
                yield sink
            return
        file = io.BytesIO()
        yield HashingSink(file)
        self._written[name] = pa.py_buffer(file.getbuffer())

    def mapped(self, name: str) -> Any:
        found = self._written.get(name)
        return super().mapped(name) if found is None else found


class _LocalExchangeFolder(ExchangeFolder, LocalFolder):
    """As ExchangeFolder, on local disks."""


def with_rows(
    folder: Folder, rows: Mapping[str, Sequence[pa.RecordBatch]] | None, unwritten: tuple[str, ...]
) -> ExchangeFolder:
    """Return the folder with a task's gathered rows, and kinds of files kept in memory."""
    kind = _LocalExchangeFolder if folder.is_local else ExchangeFolder
    return kind(folder.url, folder.sync, rows, unwritten)


def read_range(
    folder: Folder, names: Sequence[str], key: str, low: int, high: int
) -> Iterator[pa.RecordBatch]:
    """Yield from every run, in the given order, the rows with key in [low, high]."""
    found = (
        (batch for name in names for batch in folder.rows.get(name, ()))
        if isinstance(folder, ExchangeFolder) and folder.rows is not None
        else read_batches_between(folder, names, low, high)
    )
    yield from rows_between(found, key, low, high)


def rows_between(
    batches: Iterable[pa.RecordBatch], key: str, low: int, high: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted batches with key in [low, high]."""
    for batch in batches:
        keys = batch.column(key).to_numpy()
        start = int(np.searchsorted(keys, np.uint64(low), side="left"))
        end = int(np.searchsorted(keys, np.uint64(high), side="right"))
        if end > start:
            yield batch.slice(start, end - start)


def by_keys(
    batches: Sequence[pa.RecordBatch], key: str, low: int, high: int, count: int
) -> list[list[pa.RecordBatch]]:
    """Divide sorted batches with keys in [low, high] into `count` equal ranges of keys."""
    edges = [low + start for start, _ in key_ranges(count, high - low + 1)[1:]]
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
    for batch in batches:
        cuts = np.searchsorted(batch.column(key).to_numpy(), np.array(edges, np.uint64)).tolist()
        for part, (start, end) in zip(parts, pairwise([0, *cuts, batch.num_rows]), strict=True):
            if start < end:
                part.append(batch.slice(start, end - start))
    return parts


def concatenated(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema | None = None
) -> pa.RecordBatch:
    """Concatenate batches into one."""
    table = pa.Table.from_batches(list(batches), schema)
    return pa.RecordBatch.from_arrays(
        [c.combine_chunks() if c.num_chunks != 1 else c.chunk(0) for c in table.columns],
        schema=table.schema,
    )
