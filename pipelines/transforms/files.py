"""Documents in Parquet files: read batch by batch, written shard by shard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam import PCollection

from curation.errors import ConfigError, InputError
from curation.readers import discover
from curation.schema import conformed
from pipelines.storage.exchange import decoded, encoded
from pipelines.storage.files import SCRATCH, Folder
from pipelines.storage.manifest import MANIFEST, documents_of, read_manifest
from pipelines.storage.shards import BATCH_ROWS, TableWriter, open_parquet, read_batches
from pipelines.transforms.keys import Keyed, ShardKey

_PARTS = f"{SCRATCH}/parts"


class _File(NamedTuple):
    shard: str
    folder: str
    name: str
    sha256: str | None


@dataclass
class ReadDocuments(beam.PTransform):
    """Read Parquet documents: at the root of a pipeline, gives `(ShardKey, RecordBatch)`.

    Files are listed when the pipeline is built and read by the workers, each by one, in batches of
    at most 512 rows and 8 MB. An empty file gives one empty batch, so that no shard gets lost.

    Args:
        paths: a path, or several: stage folders of a run (with a manifest, whose hashes are
            compared), Parquet files, folders of these, or globs; local or URLs of fsspec. The
            shard's name is the file's without `.parquet`.
        columns: those to be read; all if not given.

    Raises InputError where nothing is found, ConfigError for two shards of one name.

    Examples:
        >>> import apache_beam as beam, pyarrow.parquet as pq, tempfile
        >>> from pipelines.transforms import ReadDocuments
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pq.write_table(pa.table({"id": ["a", "b"]}), f"{folder}/part-0.parquet")
        ...     with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...         documents = pipeline | ReadDocuments(f"{folder}/*.parquet")
        ...         _ = documents | beam.Map(lambda e: print(e[0], e[1].num_rows))
        ShardKey(shard='part-0', row=0) 2
    """

    paths: str | Sequence[str]
    columns: Sequence[str] | None = None

    def expand(self, begin: Any) -> PCollection[Keyed]:
        paths = [self.paths] if isinstance(self.paths, str) else list(self.paths)
        files = sorted(file for path in paths for file in _files(path))
        twice = [name for name, n in Counter(file.shard for file in files).items() if n > 1]
        if twice:
            names = ", ".join(sorted(twice)[:3])
            raise ConfigError(f"two inputs have a shard of the same name: {names}")
        columns = None if self.columns is None else tuple(self.columns)
        read = beam.ParDo(_Read(columns)).with_output_types(Keyed)
        return begin | "Files" >> beam.Create([tuple(file) for file in files]) | "Read" >> read


def _files(path: str) -> list[_File]:
    folder = Folder(path)
    if manifest := read_manifest(folder):
        documents = documents_of(manifest)
        return [_File(n, folder.url, f"documents/{n}.parquet", sha256) for n, sha256 in documents]
    if folder.exists("documents"):
        raise InputError(
            f"{path}: no {MANIFEST}, so no complete stage; files can be named, as in "
            f"{path.rstrip('/')}/documents/*.parquet"
        )
    found = [f.path for f in discover([path]) if f.path.endswith(".parquet")]
    if not found:
        raise InputError(f"{path}: no Parquet file")
    named = [file.rpartition("/") for file in found]
    return [_File(n.removesuffix(".parquet"), base or "/", n, None) for base, _, n in named]


@dataclass
class _Read(beam.DoFn):
    columns: tuple[str, ...] | None

    def process(self, element: tuple[str, str, str, str | None]) -> Iterator[Keyed]:
        shard, url, name, sha256 = element
        folder, row = Folder(url), 0
        for batch in read_batches(folder, name, self.columns, sha256):
            yield ShardKey(shard, row), batch
            row += batch.num_rows
        if not row:
            yield ShardKey(shard, 0), self._nothing(folder, name)

    def _nothing(self, folder: Folder, name: str) -> pa.RecordBatch:
        with open_parquet(folder, name) as parquet:
            batch = pa.RecordBatch.from_pylist([], schema=parquet.schema_arrow)
        return conformed(batch if self.columns is None else batch.select(list(self.columns)))


class WrittenShard(NamedTuple):
    """A written file."""

    name: str  # in the folder
    rows: int
    bytes: int
    sha256: str


@dataclass
class WriteDocuments(beam.PTransform):
    """Write each shard to `<folder>/<shard>.parquet`; gives a `WrittenShard` per file.

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
        >>> from pipelines.transforms import ShardKey, WriteDocuments
        >>> first, second = (pa.RecordBatch.from_pydict({"id": [name]}) for name in "ab")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...         batches = [(ShardKey("s", 1), second), (ShardKey("s", 0), first)]
        ...         written = pipeline | beam.Create(batches) | WriteDocuments(folder)
        ...         _ = written | beam.Map(lambda shard: print(shard.name, shard.rows))
        s.parquet 2
    """

    folder: str

    def expand(self, documents: PCollection[Keyed]) -> PCollection[WrittenShard]:
        write = beam.ParDo(_WritePart(self.folder)).with_output_types(tuple[str, int])
        merge = beam.ParDo(_Merge(self.folder)).with_output_types(WrittenShard)
        written = documents | "WriteParts" >> write | "ByShard" >> beam.GroupByKey() | merge
        # Remove all at the end: a repeated merge must find its parts.
        done = written | "Written" >> beam.combiners.Count.Globally()
        _ = done | "Clear" >> beam.Map(_clear, self.folder)
        return written


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

    def process(self, element: tuple[str, Iterable[int]]) -> Iterator[WrittenShard]:
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
        yield WrittenShard(name, record.rows, record.bytes, record.sha256)

    def _read(self, folder: Folder, shard: str, row: int) -> pa.RecordBatch:
        return decoded(folder.read_bytes(_part(shard, row)))


def _clear(written: int, folder: str) -> None:
    Folder(folder).remove(SCRATCH)
