"""Files of Arrow batches that can be read in part, by key, from a disk or an object store.

A run, sorted by a uint64 key, is cut into small batches. The first key and the length of each stand
in the schema's metadata, at the head of the file. So a reader of one range of keys takes two
requests to an object store, however long the file: its head, and the batches that hold the range;
short files take one. On local disks files are memory-mapped.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import InputError
from pipelines.engine.files import FileRecord, Folder

#: A batch of a run has about this many bytes: a range of keys seldom needs more from one run.
_BATCH_BYTES = 64 << 10
#: But not fewer rows than this: wide rows are few, and every batch costs some microseconds.
_BATCH_ROWS = 1024
#: The head of a file is asked for with so many bytes. It holds the index of a 100 MB run, and all
#: of a small file.
_HEAD_BYTES = 64 << 10
#: A run that is read from start to end is asked for in pieces of about this many bytes.
_PIECE_BYTES = 8 << 20
#: Requests under way at a time for one reader: an answer takes tens of milliseconds.
_READERS = 16

#: Keys of the schema's metadata.
_FIRST_KEYS, _LENGTHS = b"first_keys", b"batch_bytes"
#: An Arrow file begins with its name, padded, then the schema's message.
_MAGIC = 8


def write_batches(
    folder: Folder, name: str, batch: pa.RecordBatch, key: str | None = None
) -> FileRecord:
    """Write an uncompressed Arrow file; with `key`, the uint64 column it is sorted by, as a run."""
    parts, schema = [batch], batch.schema.remove_metadata()
    if key is not None:
        rows = max(_BATCH_ROWS, _BATCH_BYTES * batch.num_rows // max(1, batch.nbytes))
        parts = [batch.slice(i, rows) for i in range(0, batch.num_rows, rows)]
        first = np.asarray(batch.column(key), np.uint64)[::rows]
        lengths = np.array([pa.ipc.get_record_batch_size(p) for p in parts], np.uint64)
        schema = schema.with_metadata({_FIRST_KEYS: _packed(first), _LENGTHS: _packed(lengths)})
    with folder.create(name) as sink, pa.ipc.new_file(sink, schema) as writer:
        for part in parts:
            writer.write_batch(part)
    return sink.record(batch.num_rows)


def _packed(numbers: npt.NDArray[np.uint64]) -> bytes:
    return base64.b64encode(numbers.astype("<u8").tobytes())


def _unpacked(text: bytes) -> npt.NDArray[np.uint64]:
    return np.frombuffer(base64.b64decode(text), "<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True)
class _Index:
    """Where the batches of a file lie; `first_keys` is None for one that is not a run."""

    schema: pa.Schema
    first_keys: npt.NDArray[np.uint64] | None
    starts: npt.NDArray[np.int64]  # [batches + 1], offsets in the file

    @classmethod
    def of(cls, schema: pa.Schema, start: int) -> _Index:
        metadata = schema.metadata or {}
        plain = schema.remove_metadata()
        if _FIRST_KEYS not in metadata:
            return cls(plain, None, np.array([start], np.int64))
        lengths = _unpacked(metadata[_LENGTHS]).astype(np.int64)
        starts = start + np.concatenate([[0], np.cumsum(lengths)])
        return cls(plain, _unpacked(metadata[_FIRST_KEYS]), starts)

    def between(self, low: int, high: int) -> tuple[int, int]:
        """First and end of the batches that may hold keys in [low, high]."""
        assert self.first_keys is not None
        # Rows that equal a batch's first key may end the batch before.
        first = int(np.searchsorted(self.first_keys, np.uint64(low), side="left")) - 1
        end = int(np.searchsorted(self.first_keys, np.uint64(high), side="right"))
        return max(0, first), end


def read_batches_of(folder: Folder, name: str) -> Iterator[pa.RecordBatch]:
    """All batches of a file, at least one, which may be empty. Runs are read piece by piece."""
    if folder.is_local:
        yield from _batches_of(pa.memory_map(folder.path(name)))
        return
    head, index = _fetched_head(folder, name)
    if index.first_keys is None or not len(index.first_keys):
        whole = len(head) < _HEAD_BYTES
        yield from _batches_of(pa.BufferReader(head if whole else folder.read_bytes(name)))
        return
    first, count = 0, len(index.first_keys)
    while first < count:
        end = int(np.searchsorted(index.starts, index.starts[first] + _PIECE_BYTES))
        end = min(max(end, first + 1), count)
        yield from _fetched(folder, name, head, index, first, end)
        first = end


def _batches_of(source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_file(source) as reader:
        if not reader.num_record_batches:
            yield pa.RecordBatch.from_pylist([], schema=reader.schema.remove_metadata())
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i).replace_schema_metadata(None)


def read_batches_between(
    folder: Folder, names: Sequence[str], low: int, high: int
) -> Iterator[pa.RecordBatch]:
    """The batches of every run, in order, that may hold keys in [low, high].

    From an object store several runs are read at a time; memory holds what these need.
    """
    if folder.is_local:
        for name in names:
            yield from _mapped_between(folder, name, low, high)
        return
    with ThreadPoolExecutor(_READERS) as pool:
        waiting: deque[Future[list[pa.RecordBatch]]] = deque()
        for name in names:
            waiting.append(pool.submit(_fetched_between, folder, name, low, high))
            if len(waiting) == 2 * _READERS:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _mapped_between(folder: Folder, name: str, low: int, high: int) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_file(pa.memory_map(folder.path(name))) as reader:
        index = _Index.of(reader.schema, 0)
        first, end = 0, reader.num_record_batches
        if index.first_keys is not None:
            first, end = index.between(low, high)
        for i in range(first, end):
            yield reader.get_batch(i).replace_schema_metadata(None)


def _fetched_between(folder: Folder, name: str, low: int, high: int) -> list[pa.RecordBatch]:
    head, index = _fetched_head(folder, name)
    if index.first_keys is None:
        return list(read_batches_of(folder, name))
    return _fetched(folder, name, head, index, *index.between(low, high))


def _fetched_head(folder: Folder, name: str) -> tuple[bytes, _Index]:
    """The first bytes of a file, with at least its schema, and the index in it."""
    head = folder.read_bytes(name, 0, _HEAD_BYTES)
    length = _MAGIC + 8 + int.from_bytes(head[_MAGIC + 4 : _MAGIC + 8], "little")
    if length > len(head):
        head += folder.read_bytes(name, len(head), length)
    try:
        return head, _Index.of(pa.ipc.read_schema(pa.py_buffer(head[_MAGIC:])), length)
    except (pa.ArrowInvalid, EOFError) as error:
        raise InputError(f"{folder.url}/{name}: {error}") from error


def _fetched(
    folder: Folder, name: str, head: bytes, index: _Index, first: int, end: int
) -> list[pa.RecordBatch]:
    """Batches `first` to before `end`, by one request for those that the head does not hold."""
    starts = index.starts[first : end + 1].tolist()
    data, offset = pa.py_buffer(head), 0
    if starts[-1] > len(head):
        data = pa.py_buffer(folder.read_bytes(name, starts[0], starts[-1]))
        offset = starts[0]
    if offset + data.size < starts[-1]:
        raise InputError(
            f"{folder.url}/{name}: ends at byte {offset + data.size}, not {starts[-1]}"
        )
    try:
        return [
            pa.ipc.read_record_batch(data.slice(a - offset, b - a), index.schema)
            for a, b in pairwise(starts)
        ]
    except pa.ArrowInvalid as error:
        raise InputError(f"{folder.url}/{name}: {error}") from error
