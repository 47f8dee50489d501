"""Shards: listed, read batch by batch, written.

The element of all transforms, `(ShardKey, RecordBatch)`, and how it travels.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam import PCollection, coders

from curation.errors import InputError
from curation.schema import conformed
from pipelines.engine.stage import Shard, stage_inputs
from pipelines.storage.exchange import decoded, encoded
from pipelines.storage.files import SCRATCH, Folder
from pipelines.storage.shards import BATCH_ROWS, TableWriter, open_parquet, read_batches

_ROW = struct.Struct(">Q")


@dataclass(frozen=True, order=True)
class ShardKey:
    """Where a batch comes from: the name of its shard, and the place of its first row there.

    Keys of one data set differ, and say in which order the batches were read, whatever order they
    arrive in. A batch keeps its key through all transforms, also when it loses rows, so the rows of
    a later batch of the shard still have greater places.

    Examples:
        >>> sorted([ShardKey("b", 0), ShardKey("a", 512), ShardKey("a", 0)])[1]
        ShardKey(shard='a', row=512)
    """

    shard: str
    row: int


#: Type hint of the elements. Without it Beam pickles batches, and a slice travels with its parent.
Keyed = tuple[ShardKey, pa.RecordBatch]


class ShardKeyCoder(coders.Coder):
    """Eight bytes of row, big-endian, then the shard's name in UTF-8.

    Examples:
        >>> coder = ShardKeyCoder()
        >>> coder.decode(coder.encode(ShardKey("crawl-00001", 512)))
        ShardKey(shard='crawl-00001', row=512)
    """

    def encode(self, value: ShardKey) -> bytes:
        return _ROW.pack(value.row) + value.shard.encode()

    def decode(self, encoded: bytes) -> ShardKey:
        return ShardKey(encoded[_ROW.size :].decode(), *_ROW.unpack_from(encoded))

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return ShardKey


class RecordBatchCoder(coders.Coder):
    """An Arrow IPC stream of one batch, schema included.

    Examples:
        >>> batch = pa.RecordBatch.from_pydict({"id": ["a", "b", "c"]})
        >>> coder = RecordBatchCoder()
        >>> coder.decode(coder.encode(batch.slice(1, 1))).to_pydict()
        {'id': ['b']}
    """

    def encode(self, value: pa.RecordBatch) -> bytes:
        return encoded(value)

    def decode(self, data: bytes) -> pa.RecordBatch:
        return decoded(data)

    def is_deterministic(self) -> bool:
        return False  # equal values may have different buffers

    def to_type_hint(self) -> type:
        return pa.RecordBatch  # type: ignore[no-any-return]

    def estimate_size(self, value: pa.RecordBatch) -> int:
        return int(value.nbytes)


coders.registry.register_coder(ShardKey, ShardKeyCoder)
coders.registry.register_coder(pa.RecordBatch, RecordBatchCoder)


_PARTS = f"{SCRATCH}/parts"


@dataclass
class ReadShards(beam.PTransform):
    """List shards of documents at the root of a pipeline: gives a `Shard` for each file.

    Args:
        paths: a path, or several: stage folders of a run, Parquet files of documents, folders of
            these, or globs; local or URLs of fsspec. Files outside a stage folder are hashed.

    Raises InputError where nothing is found, ConfigError for two shards of one name.
    """

    paths: str | Sequence[str]

    def expand(self, begin: Any) -> PCollection[Shard]:
        paths = [self.paths] if isinstance(self.paths, str) else list(self.paths)
        return begin | "Shards" >> beam.Create(stage_inputs(paths)).with_output_types(Shard)


@dataclass
class Batches(beam.PTransform):
    """Read shards: gives `(ShardKey, RecordBatch)`, at most 512 rows and 8 MB to a batch.

    A shard is read by one worker. An empty one gives one empty batch, so that none gets lost.

    Args:
        kind: `documents`, or another kind of file that the stage wrote for each shard, such as
            `removed` or `edits`.
        columns: those to be read; all if not given.

    Examples:
        >>> import apache_beam as beam, tempfile
        >>> from curation.schema import DOCUMENTS
        >>> from pipelines.transforms import Batches, ReadShards, ShardKey, WriteShards
        >>> rows = [{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}]
        >>> batch = pa.RecordBatch.from_pylist(rows, DOCUMENTS)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...         made = pipeline | beam.Create([(ShardKey("s", 0), batch)])
        ...         read = made | WriteShards(folder) | Batches(columns=["id"])
        ...         _ = read | beam.Map(lambda e: print(e[0], e[1]["id"].to_pylist()))
        ShardKey(shard='s', row=0) ['a', 'b']
    """

    kind: str = "documents"
    columns: Sequence[str] | None = None

    def expand(self, shards: PCollection[Shard]) -> PCollection[Keyed]:
        columns = None if self.columns is None else tuple(self.columns)
        read = beam.ParDo(_Read(self.kind, columns)).with_output_types(Keyed)
        return shards | "Spread" >> beam.Reshuffle() | "Read" >> read


@dataclass
class _Read(beam.DoFn):
    kind: str
    columns: tuple[str, ...] | None

    def process(self, shard: Shard) -> Iterator[Keyed]:
        own = self.kind == "documents"
        file = shard.file if own else f"{self.kind}/{shard.name}.parquet"
        row = 0
        for batch in read_batches(
            shard.folder, file, self.columns, shard.fingerprint if own else None
        ):
            yield ShardKey(shard.name, row), batch
            row += batch.num_rows
        if not row:
            with open_parquet(shard.folder, file) as parquet:
                batch = pa.RecordBatch.from_pylist([], schema=parquet.schema_arrow)
            batch = conformed(batch if self.columns is None else batch.select(list(self.columns)))
            yield ShardKey(shard.name, 0), batch


@dataclass
class ReadDocuments(beam.PTransform):
    """Read documents: `ReadShards` and `Batches`."""

    paths: str | Sequence[str]
    columns: Sequence[str] | None = None

    def expand(self, begin: Any) -> PCollection[Keyed]:
        return begin | ReadShards(self.paths) | Batches(columns=self.columns)


@dataclass
class WriteShards(beam.PTransform):
    """Write each shard to `<folder>/<shard>.parquet`; gives its `Shard`.

    The bytes depend on the documents and their keys alone, not on how the runner cut and moved
    them. No text is shuffled: workers write the batches to `<folder>/.work`, and when those of a
    shard are complete, one worker lays them end to end, in the order of their keys. Workers must
    see the same folder. Each batch needs a key of its own: InputError says where two share one.

    Existing files in the folder are kept unless they have the same names. A failed pipeline leaves
    `.work`, which the next one removes.

    Args:
        folder: local or a URL of fsspec.

    Examples:
        >>> import apache_beam as beam, tempfile
        >>> from pipelines.transforms import ShardKey, WriteShards
        >>> first, second = (pa.RecordBatch.from_pydict({"id": [name]}) for name in "ab")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...         batches = [(ShardKey("s", 1), second), (ShardKey("s", 0), first)]
        ...         written = pipeline | beam.Create(batches) | WriteShards(folder)
        ...         _ = written | beam.Map(lambda shard: print(shard.file, shard.rows))
        s.parquet 2
    """

    folder: str

    def expand(self, documents: PCollection[Keyed]) -> PCollection[Shard]:
        folder = Folder(self.folder).url  # workers may have another working directory
        write = beam.ParDo(_WritePart(folder)).with_output_types(tuple[str, int])
        merge = beam.ParDo(_Merge(folder)).with_output_types(Shard)
        written = documents | "WriteParts" >> write | "ByShard" >> beam.GroupByKey() | merge
        # Remove all at the end: a repeated merge must find its parts.
        done = written | "Written" >> beam.combiners.Count.Globally()
        _ = done | "Clear" >> beam.Map(_clear, folder)
        return written


#: The name under which the toolkit's first version had it.
WriteDocuments = WriteShards


def _part(shard: str, row: int) -> str:
    return f"{_PARTS}/{shard}/{row:012d}.arrow"


@dataclass
class _WritePart(beam.DoFn):
    folder: str

    def process(self, element: Keyed) -> Iterator[tuple[str, int]]:
        key, batch = element
        folder = Folder(self.folder, sync=False)
        folder.write_bytes(_part(key.shard, key.row), encoded(batch))
        yield key.shard, key.row


@dataclass
class _Merge(beam.DoFn):
    folder: str

    def process(self, element: tuple[str, Iterable[int]]) -> Iterator[Shard]:
        shard, rows = element[0], sorted(element[1])
        if len(set(rows)) < len(rows):
            twice = next(a for a, b in pairwise(rows) if a == b)
            raise InputError(f"two batches at row {twice} of shard {shard!r}")
        folder, name = Folder(self.folder), f"{shard}.parquet"
        schema = self._read(folder, shard, rows[0]).schema
        try:
            with TableWriter(folder, name, schema) as writer:
                for row, following in zip(rows, [*rows[1:], 0], strict=True):
                    batch = self._read(folder, shard, row)
                    writer.write(batch, whole=following % BATCH_ROWS == 0)
        except pa.ArrowInvalid as error:
            raise InputError(f"{folder.url_of(name)}: {error}") from error
        record = writer.record
        yield Shard(shard, folder, name, record.sha256, record.rows, record.bytes)

    def _read(self, folder: Folder, shard: str, row: int) -> pa.RecordBatch:
        return decoded(folder.read_bytes(_part(shard, row)))


def _clear(written: int, folder: str) -> None:
    Folder(folder).remove(SCRATCH)
