"""Read supervised fastText models (.bin, and .ftz with product quantisation) into flat arrays.

The format is that of fastText 0.2 to 0.9, versions 11 and 12 of its files: arguments, dictionary,
input matrix, output matrix, little-endian throughout. A quantised input is expanded to float32
rows (product quantisation after Jegou et al. 2011, as in Joulin et al., FastText.zip, 2016).
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError

PREFIX = "__label__"

Loss = Literal["hs", "ns", "softmax", "ova"]

_MAGIC = 793712314
_VERSIONS = (11, 12)
_LOSSES: dict[int, Loss] = {1: "hs", 2: "ns", 3: "softmax", 4: "ova"}
_SUPERVISED = 3
_ARGUMENTS = struct.Struct("<12id")
_HEAD = struct.Struct("<3i2q")
_ENTRY = struct.Struct("<qb")
_CENTROIDS = 256

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FastTextFile:
    """Contents of a model file: w words, l labels, d dimensions."""

    labels: tuple[str, ...]  # [l] without their prefix
    counts: npt.NDArray[np.int64]  # [l] training examples of each label
    words: tuple[bytes, ...]  # [w]
    rows: Floats  # [w + n-gram rows, d]
    outputs: Floats  # [l, d]; with loss `hs` rows are inner nodes of the tree, the last unused
    loss: Loss
    min_n: int
    max_n: int
    word_ngrams: int
    buckets: int
    pruned: npt.NDArray[np.int32] | None  # [buckets] row of each n-gram bucket or -1; None: all


def read_fasttext(path: Path, name: str) -> FastTextFile:
    """Read a model file. Raises ConfigError, in one line with `name`, when it is none."""
    with _cursor(path, name) as cursor:
        return _read(cursor, name)


def read_labels(path: Path, name: str) -> tuple[str, ...]:
    """Read the labels of a model file, not its matrices. Raises ConfigError as `read_fasttext`."""
    with _cursor(path, name) as cursor:
        return _dictionary(cursor, _header(cursor, name), name).labels


@contextlib.contextmanager
def _cursor(path: Path, name: str) -> Iterator[_Cursor]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield _Cursor(data)
    except (OSError, ValueError, struct.error, IndexError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: not a fastText model: {error}") from None


class _Cursor:
    """Reads one value after the other."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        values = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return values

    def one(self, code: str) -> int:
        return self.unpack(struct.Struct("<" + code))[0]

    def string(self) -> bytes:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ValueError("it is cut off")
        found = self._data[self._at : end]
        self._at = end + 1
        return found

    def array(self, kind: type[np.generic], count: int) -> npt.NDArray:
        size = np.dtype(kind).itemsize * count
        if count < 0 or self._at + size > len(self._data):
            raise ValueError("it is cut off")
        found = np.frombuffer(self._data, kind, count, self._at).copy()
        self._at += size
        return found


class _Header(NamedTuple):
    loss: Loss
    min_n: int
    max_n: int
    word_ngrams: int
    buckets: int


def _header(cursor: _Cursor, name: str) -> _Header:
    magic, version = cursor.unpack(struct.Struct("<2i"))
    if magic != _MAGIC or version not in _VERSIONS:
        raise ValueError("it does not begin like one")
    *_, word_ngrams, loss, kind, buckets, min_n, max_n, _, _ = cursor.unpack(_ARGUMENTS)
    if kind != _SUPERVISED or loss not in _LOSSES:
        raise ConfigError(f"{name}: not a supervised fastText model")
    if version == _VERSIONS[0]:
        max_n = 0  # supervised models of version 11 have no character n-grams
    return _Header(_LOSSES[loss], min_n, max_n, word_ngrams, buckets)


class _Dictionary(NamedTuple):
    labels: tuple[str, ...]
    counts: list[int]
    words: list[bytes]
    pruned: npt.NDArray[np.int32] | None


def _dictionary(cursor: _Cursor, header: _Header, name: str) -> _Dictionary:
    size, word_count, _, _, prune_size = cursor.unpack(_HEAD)
    words: list[bytes] = []
    labels: list[str] = []
    counts: list[int] = []
    for _ in range(size):
        text = cursor.string()
        count, is_label = cursor.unpack(_ENTRY)
        if is_label:
            labels.append(text.decode())
            counts.append(count)
        else:
            words.append(text)
    if len(words) != word_count or not labels:
        raise ValueError("its dictionary is broken")
    if not all(label.startswith(PREFIX) for label in labels):
        raise ConfigError(f"{name}: not a supervised fastText model: its labels lack {PREFIX}")
    pruned = None
    if prune_size >= 0:
        pairs = cursor.array(np.int32, 2 * prune_size).reshape(-1, 2)
        pruned = np.full(max(header.buckets, 1), -1, np.int32)
        pruned[pairs[:, 0]] = pairs[:, 1]
    return _Dictionary(tuple(n.removeprefix(PREFIX) for n in labels), counts, words, pruned)


def _read(cursor: _Cursor, name: str) -> FastTextFile:
    header = _header(cursor, name)
    found = _dictionary(cursor, header, name)
    quantised = bool(cursor.one("b"))
    rows = _quantised(cursor) if quantised else _dense(cursor)
    quantised_output = bool(cursor.one("b"))
    outputs = _quantised(cursor) if quantised and quantised_output else _dense(cursor)
    # -1, an n-gram without a row, becomes 0, and other negative numbers become large ones.
    last = header.buckets if found.pruned is None else (found.pruned.view(np.uint32) + 1).max()
    fits = len(outputs) == len(found.labels) and rows.shape[1] == outputs.shape[1]
    if not fits or len(rows) < len(found.words) + int(last):
        raise ValueError("its matrices do not fit")
    return FastTextFile(
        labels=found.labels,
        counts=np.array(found.counts, np.int64),
        words=tuple(found.words),
        rows=rows,
        outputs=outputs,
        loss=header.loss,
        min_n=header.min_n,
        max_n=header.max_n,
        word_ngrams=header.word_ngrams,
        buckets=header.buckets,
        pruned=found.pruned,
    )


def _dense(cursor: _Cursor) -> Floats:
    rows, columns = cursor.unpack(struct.Struct("<2q"))
    return cursor.array(np.float32, rows * columns).reshape(rows, columns)


def _quantised(cursor: _Cursor) -> Floats:
    """Rows of a product-quantised matrix: centroids by code, times the row's norm."""
    with_norm = bool(cursor.one("b"))
    rows, columns = cursor.unpack(struct.Struct("<2q"))
    codes = cursor.array(np.uint8, cursor.one("i"))
    decoded = _decode(codes, rows, *_quantiser(cursor))
    if decoded.shape != (rows, columns):
        raise ValueError("its quantised matrix does not fit")
    if with_norm:
        decoded *= _decode(cursor.array(np.uint8, rows), rows, *_quantiser(cursor))
    return decoded


def _quantiser(cursor: _Cursor) -> tuple[int, int, Floats]:
    """Dimensions, dimensions of one part, and the centroids of the parts end to end."""
    dimensions, _, part, _ = cursor.unpack(struct.Struct("<4i"))
    return dimensions, part, cursor.array(np.float32, dimensions * _CENTROIDS)


def _decode(
    codes: npt.NDArray[np.uint8], rows: int, dimensions: int, part: int, centroids: Floats
) -> Floats:
    codes = codes.reshape(rows, -1)
    decoded = np.empty((rows, dimensions), np.float32)
    for k in range(codes.shape[1]):
        begin, end = k * part, min((k + 1) * part, dimensions)
        table = centroids[begin * _CENTROIDS : end * _CENTROIDS].reshape(_CENTROIDS, end - begin)
        decoded[:, begin:end] = table[codes[:, k]]
    return decoded
