"""Token ids of documents in one flat column, each document closed by a mark.

A list per document would cost Parquet's writer several times the ids in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ids = npt.NDArray[np.uint32]

DELIMITED = pa.schema([pa.field("ids", pa.uint32(), nullable=False)])
#: Ends a document; no vocabulary has so many tokens.
END = np.uint32(0xFFFFFFFF)


def delimited(tokens: Ids, offsets: npt.NDArray[np.int64], kept: npt.NDArray[np.bool_]) -> Ids:
    """The kept documents' tokens, END after each. `offsets` [documents + 1] begin at 0."""
    lengths = np.diff(offsets)
    if not kept.all():
        tokens, lengths = tokens[np.repeat(kept, lengths)], lengths[kept]
    out = np.full(len(tokens) + len(lengths), END, np.uint32)
    ends = np.cumsum(lengths + 1) - 1
    for document, (end, length) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
        out[end - length : end] = tokens[end - length - document : end - document]
    return out


class Documents:
    """Documents read one after the other from chunks of delimited ids."""

    def __init__(self, chunks: Iterator[Ids]) -> None:
        self._chunks, self._rest = chunks, np.zeros(0, np.uint32)

    def next(self, documents: int) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Ids of the next documents, end to end, and int64 bounds: [documents found + 1]."""
        parts: list[Ids] = []
        bounds, size = [np.zeros(1, np.int64)], 0
        while documents:
            if not len(self._rest):
                self._rest = next(self._chunks, self._rest)
                if not len(self._rest):
                    break
            ends = np.flatnonzero(self._rest == END)[:documents]
            documents -= len(ends)
            stop = len(self._rest) if documents else int(ends[-1]) + 1
            bounds.append(size + ends - np.arange(len(ends)))
            part, self._rest = self._rest[:stop], self._rest[stop:]
            parts.append(part[part != END])
            size += len(parts[-1])
        return np.concatenate([np.zeros(0, np.uint32), *parts]), np.concatenate(bounds)
