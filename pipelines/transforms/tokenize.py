"""Packed token shards for training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam import PCollection

from curation.tokenize.shard import ENCODED
from curation.tokenize.tokenize_settings import TokenizeSettings
from pipelines.storage.exchange import concatenated
from pipelines.storage.files import Folder
from pipelines.tokenize import Encode, token_ranges, write_tokens
from pipelines.transforms.judge import of_recipe
from pipelines.transforms.keys import Keyed, OfPart


class TokenShard(NamedTuple):
    """A shard of tokens that was written."""

    name: str  # of the files, without suffix
    sequences: int
    copies: int  # documents, counted as often as they repeat
    tokens: int
    padding: int


@dataclass
class Tokenize(beam.PTransform):
    """Encode documents, pack them and write Megatron-Core shards; gives a `TokenShard` for each.

    Needs `id`, `url`, `source`, `text`, and uses `repeats` where it is there. All copies go into
    one seeded order over the data set; files and bytes are those of `curate tokenize`.

    Shuffled: token ids (4 bytes each), id, URL and source of each copy: bringing documents into one
    order is what this does. One worker has a shard's tokens in memory.

    Args:
        folder: local or a URL of fsspec, the same for all workers.

    Examples:
        >>> import apache_beam as beam, tempfile
        >>> from curation.schema import DOCUMENTS
        >>> from pipelines.transforms import ShardKey, Tokenize
        >>> row = {"id": "a", "url": "", "text": "A few words.", "source": {"file": "f"}}
        >>> batch = pa.RecordBatch.from_pylist([row], DOCUMENTS)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...         documents = pipeline | beam.Create([(ShardKey("s", 0), batch)])
        ...         _ = documents | Tokenize(folder) | beam.Map(lambda s: print(s.name, s.tokens))
        tokens-00000-of-00001 6
    """

    folder: str
    settings: TokenizeSettings = field(default_factory=of_recipe("tokenize"))

    def expand(self, documents: PCollection[Keyed]) -> PCollection[TokenShard]:
        encode = beam.ParDo(_Encode(self.settings)).with_output_types(pa.RecordBatch)
        encoded = documents | "Encode" >> encode
        tokens = (
            encoded
            | "Tokens" >> beam.Map(_tokens, self.settings).with_output_types(int)
            | "Total" >> beam.CombineGlobally(sum)
        )
        side = beam.pvalue.AsSingleton(tokens)
        scatter = beam.ParDo(_ToShards(self.settings), side).with_output_types(OfPart)
        every = beam.ParDo(_EveryShard(self.settings)).with_output_types(OfPart)
        rows = (encoded | "ToShards" >> scatter, tokens | "EveryShard" >> every)
        write = beam.ParDo(_Write(self.folder, self.settings), side).with_output_types(TokenShard)
        shards = rows | "All" >> beam.Flatten() | "ByShard" >> beam.GroupByKey()
        return shards | "Write" >> write


#: Copies with the place of their batch, which decides between copies of equal keys.
_PLACED = ENCODED.append(pa.field("shard", pa.string())).append(pa.field("row", pa.int64()))


@dataclass
class _Encode(beam.DoFn):
    settings: TokenizeSettings

    def process(self, element: Keyed) -> Iterator[pa.RecordBatch]:
        key, batch = element
        _, rows = Encode(self.settings, None)(batch, key.row)
        rows = rows.append_column("shard", pa.array([key.shard] * rows.num_rows, pa.string()))
        yield rows.append_column("row", pa.array(np.full(rows.num_rows, key.row)))


def _tokens(rows: pa.RecordBatch, settings: TokenizeSettings) -> int:
    """Tokens of encoded copies, begin and end tokens included."""
    return len(rows.column("tokens").flatten()) + rows.num_rows * settings.marks


@dataclass
class _ToShards(beam.DoFn):
    settings: TokenizeSettings

    def process(self, rows: pa.RecordBatch, tokens: int) -> Iterator[OfPart]:
        lows = np.array([low for _, (low, _) in token_ranges(tokens, self.settings)], np.uint64)
        shards = np.searchsorted(lows, rows.column("key").to_numpy(), side="right") - 1
        for shard in np.unique(shards).tolist():
            yield shard, rows.filter(pa.array(shards == shard))


@dataclass
class _EveryShard(beam.DoFn):
    """An entry for each shard, so that empty ones are written, too."""

    settings: TokenizeSettings

    def process(self, tokens: int) -> Iterator[OfPart]:
        empty = pa.RecordBatch.from_pylist([], schema=_PLACED)
        for shard in range(len(token_ranges(tokens, self.settings))):
            yield shard, empty


@dataclass
class _Write(beam.DoFn):
    folder: str
    settings: TokenizeSettings

    def process(
        self, element: tuple[int, Iterable[pa.RecordBatch]], tokens: int
    ) -> Iterator[TokenShard]:
        name, _ = token_ranges(tokens, self.settings)[element[0]]
        rows = concatenated(list(element[1]), _PLACED)
        order = pc.sort_indices(rows, [(n, "ascending") for n in ("key", "shard", "row")])
        rows = rows.take(order).select(ENCODED.names)
        _, stats = write_tokens([rows], self.settings, Folder(self.folder), name)
        yield TokenShard(name, stats.sequences, stats.copies, stats.tokens, stats.padding)
