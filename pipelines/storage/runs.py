"""Files of Arrow batches that can be partly read, by key, from a disk or an object store.

The schema's metadata, at the head of the file, has the length and a hash of each batch, and a hash
of the head itself, so that a read returns what was written or raises an error naming the file. A
run, sorted by a uint64 key, is cut into small batches, whose first keys are in the head, too. So
reading a range of keys takes two requests to an object store for a file of any length (its head,
and the batches of the range), and one for a short file. On local disks files are memory-mapped.
"""

from __future__ import annotations

import base64
import io
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from pipelines.storage.damage import damaged, is_damage
from pipelines.storage.files import FileRecord, Folder

#: Approximate bytes of a run's batch: a range of keys rarely needs more from one run.
_BATCH_BYTES = 64 << 10
#: Fewest rows of a batch: wide rows are few, and every batch costs some microseconds.
_BATCH_ROWS = 1024
#: Bytes of the first request for a file: enough for the index of a 100 MB run, or a small file.
_HEAD_BYTES = 64 << 10
#: Approximate bytes per request when a run is read from start to end.
_PIECE_BYTES = 8 << 20
#: Concurrent requests of one reader: a response takes tens of milliseconds.
_READERS = 16

#: Keys in the schema's metadata.
_FIRST_KEYS, _LENGTHS, _HASHES, _HEAD = b"first_keys", b"batch_bytes", b"batch_xxh3", b"head_xxh3"
#: An Arrow file begins with padded magic bytes, followed by the schema message.
_MAGIC = 8


def write_batches(
    folder: Folder, name: str, batch: pa.RecordBatch, key: str | None = None
) -> FileRecord:
    """Write an uncompressed Arrow file; with `key`, the uint64 column it is sorted by, as a run."""
    parts, first = [batch], None
    if key is not None:
        rows = max(_BATCH_ROWS, _BATCH_BYTES * batch.num_rows // max(1, batch.nbytes))
        parts = [batch.slice(i, rows) for i in range(0, batch.num_rows, rows)]
        first = np.asarray(batch.column(key), np.uint64)[::rows]
    # one at a time: only the hashes are kept
    written = (part.serialize() for part in parts)
    pairs = [(data.size, xxhash.xxh3_64_intdigest(data)) for data in written]
    facts = np.array(pairs, np.uint64).reshape(-1, 2)
    index = {
        **({} if first is None else {_FIRST_KEYS: _packed(first)}),
        _LENGTHS: _packed(facts[:, 0]),
        _HASHES: _packed(facts[:, 1]),
    }
    plain = batch.schema.remove_metadata()
    schema = plain.with_metadata(index | {_HEAD: _head_hash(plain, index)})
    with (
        folder.create(name) as sink,
        io.BufferedWriter(sink, 1 << 20) as file,  # small batches are hashed by the megabyte
        pa.ipc.new_file(file, schema) as writer,
    ):
        for part in parts:
            writer.write_batch(part)
    return sink.record(batch.num_rows)


def _head_hash(plain: pa.Schema, index: dict[bytes, bytes]) -> bytes:
    parts = [plain.serialize().to_pybytes(), *(k + v for k, v in sorted(index.items()))]
    return xxhash.xxh3_64_hexdigest(b"".join(parts)).encode()


def _packed(numbers: npt.NDArray[np.uint64]) -> bytes:
    return base64.b64encode(numbers.astype("<u8").tobytes())


def _unpacked(text: bytes) -> npt.NDArray[np.uint64]:
    return np.frombuffer(base64.b64decode(text), "<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True)
class _Index:
    """Offsets of a file's batches; `first_keys` is None for a file that is not a run."""

    schema: pa.Schema
    first_keys: npt.NDArray[np.uint64] | None
    starts: npt.NDArray[np.int64]  # [batches + 1], offsets in the file
    hashes: npt.NDArray[np.uint64]  # [batches]

    @classmethod
    def of(cls, head: Any, length: int) -> _Index:
        """Read the index from a file's head. Raises ValueError, KeyError or EOFError."""
        schema = pa.ipc.read_schema(pa.py_buffer(head)[_MAGIC:])
        index, plain = dict(schema.metadata or {}), schema.remove_metadata()
        if index.pop(_HEAD, None) != _head_hash(plain, index):
            raise ValueError("its head is not what was written")
        starts = length + np.concatenate([[0], np.cumsum(_unpacked(index[_LENGTHS]))])
        first = _unpacked(index[_FIRST_KEYS]) if _FIRST_KEYS in index else None
        return cls(plain, first, starts.astype(np.int64), _unpacked(index[_HASHES]))

    def between(self, low: int, high: int) -> tuple[int, int]:
        """Return the range [first, end) of batches that may have keys in [low, high]."""
        if self.first_keys is None:
            return 0, len(self.hashes)
        # Rows equal to a batch's first key may be at the end of the batch before.
        first = int(np.searchsorted(self.first_keys, np.uint64(low), side="left")) - 1
        end = int(np.searchsorted(self.first_keys, np.uint64(high), side="right"))
        return max(0, first), end


@dataclass(frozen=True)
class _File:
    """An open file: `head` is its first bytes or, if memory-mapped, all of it."""

    folder: Folder
    name: str
    head: Any  # Arrow buffer
    whole: bool
    index: _Index

    @classmethod
    def open(cls, folder: Folder, name: str) -> _File:
        """Open a file. Raises DamagedError if it is missing or its head is damaged."""
        try:
            head = folder.mapped(name)
            whole = head is not None
            if not whole:
                head = pa.py_buffer(folder.read_bytes(name, 0, _HEAD_BYTES))
            length = _MAGIC + 8 + int.from_bytes(head[_MAGIC + 4 : _MAGIC + 8], "little")
            if length > head.size and not whole:
                more = folder.read_bytes(name, head.size, length)
                head = pa.py_buffer(head.to_pybytes() + more)
            return cls(folder, name, head, whole, _Index.of(head, length))
        except (OSError, pa.ArrowInvalid, ValueError, EOFError, KeyError) as error:
            if not is_damage(error):
                raise
            detail = "no such file" if isinstance(error, FileNotFoundError) else str(error)
            raise damaged(folder, name, detail) from error

    def batches(self, first: int, end: int) -> list[pa.RecordBatch]:
        """Return the batches [first, end), with one request for those not in the head.

        Raises DamagedError for a damaged batch.
        """
        starts = self.index.starts[first : end + 1].tolist()
        data, offset = self.head, 0
        if starts[-1] > data.size and not self.whole:
            data = pa.py_buffer(self.folder.read_bytes(self.name, starts[0], starts[-1]))
            offset = starts[0]
        if offset + data.size < starts[-1]:
            detail = f"ends at byte {offset + data.size}, not {starts[-1]}"
            raise damaged(self.folder, self.name, detail)
        parts = [data.slice(a - offset, b - a) for a, b in pairwise(starts)]
        for part, known in zip(parts, self.index.hashes[first:end].tolist(), strict=True):
            if xxhash.xxh3_64_intdigest(part) != known:
                raise damaged(self.folder, self.name, "not the bytes that were written")
        return [pa.ipc.read_record_batch(part, self.index.schema) for part in parts]


def read_batches_of(folder: Folder, name: str) -> Iterator[pa.RecordBatch]:
    """Yield all batches of a file piece by piece; at least one, which may be empty.

    Raises DamagedError where the file is not what was written.
    """
    file = _File.open(folder, name)
    first, count, starts = 0, len(file.index.hashes), file.index.starts
    if not count:
        yield pa.RecordBatch.from_pylist([], schema=file.index.schema)
    while first < count:
        end = int(np.searchsorted(starts, starts[first] + _PIECE_BYTES))
        end = min(max(end, first + 1), count)
        yield from file.batches(first, end)
        first = end


def read_batches_between(
    folder: Folder, names: Sequence[str], low: int, high: int
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of every run, in order, that may have keys in [low, high].

    From an object store several runs are read concurrently and buffered in memory. Raises
    DamagedError for a damaged file.
    """
    if folder.is_local:
        for name in names:
            yield from _between(folder, name, low, high)
        return
    with ThreadPoolExecutor(_READERS) as pool:
        waiting: deque[Future[list[pa.RecordBatch]]] = deque()
        for name in names:
            waiting.append(pool.submit(_between, folder, name, low, high))
            if len(waiting) == 2 * _READERS:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _between(folder: Folder, name: str, low: int, high: int) -> list[pa.RecordBatch]:
    file = _File.open(folder, name)
    return file.batches(*file.index.between(low, high))
