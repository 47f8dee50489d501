"""Tables in and out: convert lists, Arrow, pandas and polars to Arrow, and results back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import large_strings, storable, stored
from curation.errors import InputError
from curation.language.codes import labelled
from curation.schema import check_quality, fits, with_column

#: Default names of text columns.
TEXT_COLUMNS = ("text", "content")


@dataclass(frozen=True)
class Given:
    """A caller's data as Arrow, with the original to make results of the same kind."""

    table: pa.Table
    original: Any  # a pandas or polars frame or series; else the table

    def taken(self, rows: npt.NDArray[np.int64], columns: Mapping[str, pa.Array]) -> Any:
        """Return these rows of the original, with columns [rows] replaced or added."""
        kind = _library(self.original)
        if kind == "pandas":
            frame = _frame(self.original).iloc[rows].copy()
            for name, values in columns.items():
                frame[name] = values.to_pandas().to_numpy()
            return frame
        if kind == "polars":
            import polars

            frame = _frame(self.original)[rows]
            return frame.with_columns(
                polars.Series(name, polars.from_arrow(values)) for name, values in columns.items()
            )
        table = self.table.take(pa.array(rows))
        for name, values in columns.items():
            table = with_column(table, name, values)
        return table

    def result(self, columns: Mapping[str, pa.Array]) -> Any:
        """Return a table of other columns for the same rows."""
        table = pa.table(dict(columns))
        kind = _library(self.original)
        if kind == "pandas":
            return table.to_pandas().set_index(self.original.index)
        if kind == "polars":
            import polars

            return polars.from_arrow(table)
        return table

    def column(self, name: str, values: pa.Array) -> Any:
        """Return one value per row."""
        kind = _library(self.original)
        if kind == "arrow":
            return values
        return self.result({name: values})[name]


def as_given(data: Any) -> Given:
    """Return a caller's table or texts as Arrow.

    `data` is a list or array of texts (column `text`), a list of dictionaries, a dictionary of
    columns, a pandas or polars frame or series, or anything Arrow reads. Raises TypeError for
    anything else, such as a single string.
    """
    kind = _library(data)
    if kind == "pandas":
        return Given(_takeable(pa.Table.from_pandas(_frame(data), preserve_index=False)), data)
    if kind == "polars":
        data = data.collect() if hasattr(data, "collect") else data
        return Given(_takeable(_frame(data).to_arrow()), data)
    table = _takeable(_from_arrow(data))
    return Given(table, table)


def _takeable(table: pa.Table) -> pa.Table:
    """Return a table with plain columns in place of views and runs: Arrow can't take their rows."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        try:
            column.slice(0, 0).take(pa.array([], pa.int64()))
        except pa.ArrowNotImplementedError:
            plain = stored(column.combine_chunks(), storable(column.type))
            table = table.set_column(place, name, plain)
    return table


def _library(data: Any) -> str:
    """Return the library of the data's class: pandas, polars, or else arrow."""
    module = type(data).__module__.partition(".")[0]
    return module if module in ("pandas", "polars") else "arrow"


def _frame(data: Any) -> Any:
    """Return a frame; a series becomes one with the column `text`."""
    return data.to_frame("text") if type(data).__name__ == "Series" else data


def _from_arrow(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.Array | pa.ChunkedArray | str | bytes):
        return pa.table({"text": large_strings(data)})
    if hasattr(data, "__arrow_c_stream__") or isinstance(data, Mapping):
        return pa.table(data)
    if not isinstance(data, Sequence | np.ndarray):
        raise TypeError(f"expected a table or a sequence of texts, not {type(data).__name__}")
    rows = list(data)
    if rows and all(isinstance(row, Mapping) for row in rows):
        return pa.Table.from_pylist(rows)
    return pa.table({"text": large_strings(rows)})


def first_column(table: pa.Table, names: Sequence[str]) -> str | None:
    """Return the first of these names that is a column of the table."""
    return next((name for name in names if name in table.column_names), None)


def combined(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array. Raises InputError where several have the name."""
    if table.column_names.count(name) > 1:
        raise InputError(f"the table has several columns {name!r}")
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def texts_of(table: pa.Table, names: Sequence[str] = TEXT_COLUMNS) -> pa.Array:
    """Return the texts of a table: large_string, nulls stay.

    Raises InputError if none of the names is a column, or the column has no strings.
    """
    name = first_column(table, names)
    if name is None:
        raise InputError(
            f"the table has no column {' or '.join(names)}, but {', '.join(table.column_names)}"
        )
    column = combined(table, name)
    if not fits("text", column.type):
        raise InputError(f"column {name!r} is {column.type}, not strings")
    return stored(column, pa.large_string())


def known(table: pa.Table, name: str) -> pa.Array | None:
    """Return a column of documents that the caller may have given: `language`, `quality`, ...

    None if it is missing or can't be read as that column. Languages are given by their labels,
    whatever codes the caller uses.
    """
    if name not in table.column_names:
        return None
    column = combined(table, name)
    if not fits(name, column.type) or pa.types.is_null(column.type):
        return None
    if name == "quality":
        check_quality(column)
    return labelled(column) if name == "language" else column
