"""Columns of a prepared run: one Parquet file each, written and read in parts."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

#: Rows of a row group, which is the most that a writer keeps.
GROUP = 1 << 18


class ColumnWriter:
    """Writes a column to a file of its own, in row groups of equal size."""

    def __init__(self, place: Path, name: str, kind: pa.DataType) -> None:
        self._schema = pa.schema([(name, kind)])
        is_key = kind == pa.uint64()
        self._writer = pq.ParquetWriter(
            place / f"{name}.parquet",
            self._schema,
            compression="zstd",
            use_dictionary=not (is_key or pa.types.is_large_string(kind)),
            column_encoding={name: "DELTA_BINARY_PACKED"} if is_key else None,  # ascending
            write_statistics=False,
        )
        self._waiting: list[pa.Array] = []
        self._rows = 0

    def write(self, part: pa.Array) -> None:
        """Append a part of any length."""
        first = 0
        while first < len(part):
            piece = part.slice(first, GROUP - self._rows)
            first += len(piece)
            self._waiting.append(piece)
            self._rows += len(piece)
            if self._rows == GROUP:
                self._flush()

    def _flush(self) -> None:
        if self._rows:
            whole = pa.concat_arrays(self._waiting)
            self._writer.write_table(pa.table([whole], self._schema), row_group_size=GROUP)
            self._waiting, self._rows = [], 0

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()


def write_column(place: Path, name: str, column: npt.NDArray[Any]) -> None:
    """Write a column that is in memory."""
    values = pa.array(column)
    with ColumnWriter(place, name, values.type) as writer:
        writer.write(values)


def readers(place: Path, name: str) -> list[Callable[[], pa.Array]]:
    """Return functions that each read a part of a column, in order."""
    path = place / f"{name}.parquet"

    def read(group: int) -> pa.Array:
        with pq.ParquetFile(path, memory_map=True) as parquet:
            return parquet.read_row_group(group, use_threads=False).column(0).combine_chunks()

    groups = pq.read_metadata(path).num_row_groups
    return [functools.partial(read, group) for group in range(groups)]


def read_column(place: Path, name: str) -> npt.NDArray[Any]:
    """Read a column of numbers, on all cores: Arrow would use one, and copy it."""
    path = place / f"{name}.parquet"
    metadata = pq.read_metadata(path)
    kind = pq.read_schema(path).field(name).type.to_pandas_dtype()
    column = np.empty(metadata.num_rows, kind)
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    ends = np.cumsum(sizes)

    def read(group: int, part: Callable[[], pa.Array]) -> None:
        column[ends[group] - sizes[group] : ends[group]] = part().to_numpy(zero_copy_only=False)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        apply = pool.map if len(column) > GROUP else map
        list(apply(read, range(len(sizes)), readers(place, name)))
    pa.default_memory_pool().release_unused()
    return column


def spans(size: int, most: int = 1 << 20) -> Iterator[slice]:
    """Parts of a long array, so that what is made of it on the way stays small."""
    for first in range(0, size, most):
        yield slice(first, min(first + most, size))
