"""Arrow strings as flat buffers, so that kernels read bytes instead of Python strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.text.surrogates import well_formed

Texts: TypeAlias = Sequence[str] | pa.Array | pa.ChunkedArray


class TextBuffers(NamedTuple):
    """UTF-8 texts end to end: text i is `data[offsets[i]:offsets[i + 1]]`.

    A null text is empty.
    """

    offsets: npt.NDArray[np.int64]  # [n + 1]
    data: npt.NDArray[np.uint8]  # [bytes]

    def __len__(self) -> int:  # type: ignore[override]
        return len(self.offsets) - 1


def large_strings(texts: Texts) -> pa.Array:
    """Return one contiguous large_string array of Python strings or any Arrow string array.

    Lone surrogates, invalid in UTF-8, become U+FFFD. Raises TypeError for a single string.
    """
    if isinstance(texts, str | bytes):
        raise TypeError(
            "texts: expected a sequence of strings or an Arrow array, "
            f"not {type(texts).__name__} (put a single text into a list)"
        )
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
        if isinstance(texts, pa.ChunkedArray):  # no chunks or several
            texts = (
                pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())
            )
    if isinstance(texts, pa.Array):
        return texts if texts.type == pa.large_string() else texts.cast(pa.large_string())
    strings = list(texts)
    try:
        return pa.array(strings, pa.large_string())
    except UnicodeEncodeError:
        whole = [text if text is None else well_formed(text) for text in strings]
        return pa.array(whole, pa.large_string())


def text_buffers(texts: Texts) -> TextBuffers:
    """View texts as offsets and bytes without copying (nulls and slices are handled)."""
    array = large_strings(texts)
    if array.null_count:
        array = array.fill_null("")
    _, offsets_buffer, data_buffer = array.buffers()
    if offsets_buffer is None:
        return TextBuffers(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.zeros(0, np.uint8)
    return TextBuffers(offsets, data)


def repeated(counts: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return i `counts[i]` times, for each i, and 0, 1, ... within each: int64 [sum] each."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return owners, np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)


def from_buffers(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> pa.Array:
    """Return a large_string array over buffers; `data` must be valid UTF-8 at every offset."""
    offsets = np.ascontiguousarray(offsets, np.int64)
    data = np.ascontiguousarray(data, np.uint8)
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
    )
