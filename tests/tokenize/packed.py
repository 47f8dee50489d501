"""Documents in memory as one packed shard, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa

from curation.tokenize.shard import ENCODED, ShardStats, encoded_rows, write_rows
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer


def write_shard(
    batches: Iterable[pa.RecordBatch],
    settings: TokenizeSettings,
    bin_file: BinaryIO,
    idx_file: BinaryIO,
    threads: int = 1,
) -> tuple[pa.RecordBatch, ShardStats]:
    """Write documents as packed sequences; return the document index and figures.

    Batches hold `id`, `url`, `text`, `source` and may hold `repeats`, see `encoded_rows`. Documents
    come in the order of `document_keys`, whatever the order and size of the batches, as long as ids
    differ.
    """
    tokenizer = load_tokenizer(settings.tokenizer)
    rows = []
    for batch in batches:
        tokens, offsets = tokenizer.encode_batch(batch.column("text"), threads)
        rows.append(encoded_rows(batch, tokens, offsets, settings))
    table = pa.Table.from_batches(rows, ENCODED).sort_by("key").combine_chunks()
    (whole,) = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=ENCODED)]
    lists = whole.column("tokens")
    offsets, flat = lists.offsets.to_numpy(), lists.values.to_numpy()
    return write_rows(whole.drop_columns(["tokens"]), offsets, flat, settings, bin_file, idx_file)
