"""Export formats: JSON lines, Parquet, Hugging Face datasets, WebDataset.

A writer is a context manager that yields a function of batches. Each writes one file, whole or not
at all, with the same bytes every time.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import math
import tarfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, BinaryIO, cast

import pyarrow as pa
import zstandard

from pipelines.storage.files import FileRecord, Folder
from pipelines.storage.shards import TableWriter

#: Compression levels of zstd (as in a run's Parquet files) and gzip.
_ZSTD_LEVEL, _GZIP_LEVEL = 3, 6


class Written:
    """A file being written: takes batches, counts rows, and has its record once closed."""

    def __init__(self, write: Callable[[pa.RecordBatch], None]) -> None:
        self._write = write
        self.rows = 0
        self.record = FileRecord(0, 0, "")

    def write(self, batch: pa.RecordBatch) -> None:
        self._write(batch)
        self.rows += batch.num_rows


Opener = Callable[[Folder, str, pa.Schema, int], AbstractContextManager[Written]]


@dataclass(frozen=True)
class Format:
    """A format: its file names, and a writer of folder, name, schema and number of first row."""

    suffix: str
    open: Opener
    folder: str = ""  # of the data files
    card: bool = False  # whether a README.md tells Hugging Face where the splits are


@contextlib.contextmanager
def _table(folder: Folder, name: str, schema: pa.Schema, first: int) -> Iterator[Written]:
    writer = TableWriter(folder, name, schema)
    with writer:
        written = Written(writer.write)
        yield written
    written.record = writer.record


def _json_lines(compress: Callable[[BinaryIO], AbstractContextManager[Any]]) -> Opener:
    @contextlib.contextmanager
    def opened(folder: Folder, name: str, schema: pa.Schema, first: int) -> Iterator[Written]:
        with folder.create(name) as sink:
            with compress(cast(BinaryIO, sink)) as stream:
                written = Written(lambda batch: stream.write(_lines(batch)) and None)
                yield written
            record = sink.record(written.rows)
        written.record = record

    return opened


def _lines(batch: pa.RecordBatch) -> bytes:
    return "".join(f"{json_of(row)}\n" for row in batch.to_pylist()).encode()


def json_of(row: dict[str, Any]) -> str:
    """Return a row as one line of JSON.
    Dates are ISO 8601, bytes base64; NaN, which JSON lacks, is null.
    """
    return json.dumps(_plain(row), ensure_ascii=False, separators=(",", ":"), default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value


def _zstd(file: BinaryIO) -> AbstractContextManager[Any]:
    return zstandard.ZstdCompressor(_ZSTD_LEVEL).stream_writer(file, closefd=False)


def _gzip(file: BinaryIO) -> AbstractContextManager[Any]:
    return gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)


@contextlib.contextmanager
def _web_dataset(folder: Folder, name: str, schema: pa.Schema, first: int) -> Iterator[Written]:
    """Two members per document, `<key>.txt` and `<key>.json`; keys count rows of the split."""
    with folder.create(name) as sink:
        with tarfile.open(
            fileobj=cast(BinaryIO, sink), mode="w|", format=tarfile.USTAR_FORMAT
        ) as archive:

            def write(batch: pa.RecordBatch) -> None:
                for place, row in enumerate(batch.to_pylist(), first + written.rows):
                    if "text" in row:
                        _add(archive, f"{place:012d}.txt", (row.pop("text") or "").encode())
                    _add(archive, f"{place:012d}.json", json_of(row).encode())

            written = Written(write)
            yield written
        record = sink.record(written.rows)
    written.record = record


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)  # mode 0644, owner 0, time 0
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


FORMATS = {
    "jsonl": Format(".jsonl", _json_lines(lambda file: contextlib.nullcontext(file))),
    "jsonl.gz": Format(".jsonl.gz", _json_lines(_gzip)),
    "jsonl.zst": Format(".jsonl.zst", _json_lines(_zstd)),
    "parquet": Format(".parquet", _table),
    "hf": Format(".parquet", _table, "data/", card=True),
    "webdataset": Format(".tar", _web_dataset),
}


def dataset_card(splits: list[str]) -> bytes:
    """Return the README.md that tells `datasets.load_dataset` the files of each split."""
    files = "".join(f"  - split: {s}\n    path: data/{s}-*.parquet\n" for s in splits)
    return f"---\nconfigs:\n- config_name: default\n  data_files:\n{files}---\n".encode()
