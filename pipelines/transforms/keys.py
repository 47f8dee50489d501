"""The element of all transforms, `(ShardKey, RecordBatch)`, and how it travels."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pyarrow as pa
from apache_beam import coders

from pipelines.storage.exchange import decoded, encoded

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
