"""Megatron-Core's indexed dataset: tokens in `.bin`, offsets of sequences in `.idx`.

Layout of `.idx`, little-endian: magic, version (uint64), dtype code (uint8), number of sequences
and of document bounds (uint64 each), tokens per sequence (int32), byte offset per sequence (int64),
document bounds as sequence numbers (int64). After Megatron-LM,
megatron/core/datasets/indexed_dataset.py. Here every sequence is a document of its own.

The format has no uint32: ids below 2^31 are the same bytes as int32, so that is what is declared.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from curation.errors import InputError

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
_HEADER = struct.Struct("<9sQBQQ")
_CODES: dict[np.dtype, int] = {np.dtype(np.int32): 4, np.dtype(np.uint16): 8}
_DTYPES: dict[int, np.dtype] = {code: dtype for dtype, code in _CODES.items()}


def token_dtype(vocab_size: int) -> np.dtype:
    """uint16 where every id fits it, else int32."""
    return np.dtype(np.uint16) if vocab_size <= 1 << 16 else np.dtype(np.int32)


class IndexedWriter:
    """Streams sequences into a `.bin`; `finish` writes the `.idx`.

    The caller opens both files, and renames them into place once done.
    """

    def __init__(self, bin_file: BinaryIO, dtype: np.dtype) -> None:
        self._bin = bin_file
        self._dtype = np.dtype(dtype)
        self._lengths: list[npt.NDArray[np.int32]] = []

    def write(self, rows: npt.NDArray) -> None:
        """Append sequences [n, tokens] of this writer's dtype."""
        little = self._dtype.newbyteorder("<")
        self._bin.write(np.ascontiguousarray(rows, little).tobytes())
        self._lengths.append(np.full(rows.shape[0], rows.shape[1], np.int32))

    def finish(self, idx_file: BinaryIO) -> None:
        """Write the index of everything appended."""
        lengths = np.concatenate([np.zeros(0, np.int32), *self._lengths])
        pointers = np.zeros(len(lengths), np.int64)
        np.cumsum(lengths[:-1].astype(np.int64) * self._dtype.itemsize, out=pointers[1:])
        bounds = np.arange(len(lengths) + 1, dtype=np.int64)
        code = _CODES[self._dtype]
        idx_file.write(_HEADER.pack(MAGIC, VERSION, code, len(lengths), len(bounds)))
        for array, dtype in ((lengths, "<i4"), (pointers, "<i8"), (bounds, "<i8")):
            idx_file.write(array.astype(dtype).tobytes())


@dataclass(frozen=True)
class Index:
    """Content of an `.idx` file."""

    dtype: np.dtype
    lengths: npt.NDArray[np.int32]  # [sequences] tokens
    pointers: npt.NDArray[np.int64]  # [sequences] byte offsets in the `.bin`
    documents: npt.NDArray[np.int64]  # [documents + 1] sequence numbers


def read_index(path: str | Path) -> Index:
    """Read an `.idx` file. Raises InputError where it is not one or is cut short."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read the index: {error.strerror}") from None
    if len(data) < _HEADER.size:
        raise InputError(f"{path}: {len(data)} bytes are too few for a Megatron index")
    magic, version, code, sequences, bounds = _HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise InputError(f"{path}: not a Megatron index of version {VERSION}")
    if code not in _DTYPES:
        raise InputError(f"{path}: token type {code} is not one of {sorted(_DTYPES)}")
    expected = _HEADER.size + sequences * 12 + bounds * 8
    if len(data) != expected:
        raise InputError(f"{path}: {len(data)} bytes, but its header asks for {expected}")
    at = _HEADER.size
    lengths = np.frombuffer(data, "<i4", sequences, at)
    pointers = np.frombuffer(data, "<i8", sequences, at + 4 * sequences)
    documents = np.frombuffer(data, "<i8", bounds, at + 12 * sequences)
    return Index(_DTYPES[code], lengths, pointers, documents)
