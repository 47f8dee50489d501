"""Write packed sequences in other libraries' formats, using those libraries."""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import InputError
from curation.judging import opened
from curation.tokenize.megatron import read_index
from curation.tokenize.tokenize_settings import CustomFormat
from pipelines.storage.files import FileRecord, Folder

Files = dict[str, FileRecord]


def write_formats(formats: Sequence[str | CustomFormat], folder: Folder, shard: str) -> Files:
    """Write the sequences of `<shard>.bin` in further formats; return file records by name."""
    found: Files = {}
    if formats:
        rows = _rows(folder, shard)
        for name in formats:
            write = _own(name) if isinstance(name, CustomFormat) else _WRITERS[name]
            found |= write(rows, folder, shard)
    return found


def _rows(folder: Folder, shard: str) -> npt.NDArray[Any]:
    """Return the sequences [n, context_length] of a shard."""
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/index"
        with open(path, "wb") as file:
            file.write(folder.read_bytes(f"{shard}.idx"))
        index = read_index(path)
    flat = np.frombuffer(folder.read_bytes(f"{shard}.bin"), index.dtype)
    return flat.reshape(len(index.lengths), -1) if len(flat) else flat.reshape(0, 0)


def _own(own: CustomFormat) -> Callable[[npt.NDArray[Any], Folder, str], Files]:
    """Return the writer of a custom format: it writes any files to `<function>/<shard>/`."""
    function, place = opened(own.python, own.settings, positional=2), own.python.found.name

    def write(rows: npt.NDArray[Any], folder: Folder, shard: str) -> Files:
        found: Files = {}
        with tempfile.TemporaryDirectory() as scratch:
            try:
                function(rows, scratch)
            except Exception as error:
                where = f"tokenize.formats: {own.python}: shard {shard}"
                raise InputError(f"{where}: {type(error).__name__}: {error}") from error
            for path in sorted(p for p in Path(scratch).rglob("*") if p.is_file()):
                name = f"{place}/{shard}/{path.relative_to(scratch).as_posix()}"
                found[name] = _copy(str(path), folder, name, len(rows))
        return found

    return write


def _mds(rows: npt.NDArray[Any], folder: Folder, shard: str) -> Files:
    """MosaicML Streaming: `mds/<shard>/`, column `tokens`."""
    streaming = importlib.import_module("streaming")
    columns = {"tokens": f"ndarray:{rows.dtype}:{rows.shape[1]}"}
    with tempfile.TemporaryDirectory() as scratch:
        with streaming.MDSWriter(out=f"{scratch}/mds", columns=columns) as writer:
            for row in rows:
                writer.write({"tokens": row})
        files = {
            f"mds/{shard}/{name}": f"{scratch}/mds/{name}"
            for name in sorted(os.listdir(f"{scratch}/mds"))
        }
        return {name: _copy(path, folder, name, len(rows)) for name, path in files.items()}


def _huggingface(rows: npt.NDArray[Any], folder: Folder, shard: str) -> Files:
    """Hugging Face datasets: `huggingface/<shard>.parquet`, column `input_ids`."""
    datasets = importlib.import_module("datasets")
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * (rows.shape[1] if len(rows) else 0)
    ids = pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.reshape(-1)))
    name = f"huggingface/{shard}.parquet"
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/rows.parquet"
        datasets.Dataset(pa.table({"input_ids": ids})).to_parquet(path)
        return {name: _copy(path, folder, name, len(rows))}


def _copy(path: str, folder: Folder, name: str, rows: int) -> FileRecord:
    with open(path, "rb") as file, folder.create(name) as sink:
        shutil.copyfileobj(file, sink, 1 << 20)
    return sink.record(rows)


_WRITERS: dict[str, Callable[[npt.NDArray[Any], Folder, str], Files]] = {
    "mds": _mds,
    "huggingface": _huggingface,
}
