"""Tokenise the documents of one shard: count, encode, order, pack and write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, text_buffers
from curation.errors import InputError
from curation.hashing import hash_spans, mix64
from curation.schema import SOURCE
from curation.tokenize.megatron import IndexedWriter, token_dtype
from curation.tokenize.pack import Spans, best_fit, concatenate, fill
from curation.tokenize.settings import TokenizeSettings
from curation.tokenize.tokenizer import Tokenizer, load_tokenizer

#: One row per run of a document's tokens in a sequence, in order of sequence and start.
DOCUMENT_INDEX = pa.schema(
    [
        ("sequence", pa.int64()),  # number within the shard
        ("start", pa.int32()),  # first token within the sequence
        ("length", pa.int32()),  # tokens
        ("document_offset", pa.int64()),  # first token within the document
        ("repeat", pa.int32()),  # which copy of the document, from 0
        ("id", pa.string()),
        ("source", SOURCE),
        ("url", pa.string()),
    ]
)

_BLOCK_BYTES = 8 << 20  # of rows written at a time
_ID_SEED = np.uint64(0)


@dataclass(frozen=True)
class ShardStats:
    """What went into a shard. Tokens include begin and end tokens, not padding."""

    documents: int
    copies: int  # documents counted as often as they repeat
    tokens: int
    sequences: int
    padding: int
    cut_documents: int  # copies that lie in more than one sequence

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def count_tokens(
    texts: Texts, settings: TokenizeSettings, threads: int = 1
) -> npt.NDArray[np.int64]:
    """Tokens that each document will take in a shard, begin and end tokens included: int64 [n]."""
    _, offsets = load_tokenizer(settings.tokenizer).encode_batch(texts, threads)
    return np.diff(offsets) + int(settings.bos) + int(settings.eos)


def document_keys(ids: Texts, repeats: npt.NDArray[np.int32], seed: int) -> npt.NDArray[np.uint64]:
    """Sort key of a copy of a document (its number in `repeats`): uint64 [n], from id and seed."""
    buffers = text_buffers(ids)
    hashes = hash_spans(buffers.data, buffers.offsets[:-1], buffers.offsets[1:], _ID_SEED)
    salt = mix64(mix64(np.array([seed], np.uint64)) + repeats.astype(np.uint64))
    return mix64(hashes ^ salt)


def _drawn(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, npt.NDArray[np.int32]]:
    """The documents of a batch that are wanted at all, and how often."""
    if batch.schema.get_field_index("repeats") < 0:
        return batch, np.ones(batch.num_rows, np.int32)
    column = batch.column("repeats")
    if column.null_count or (batch.num_rows and pc.min(column).as_py() < 0):
        raise InputError("column `repeats` has a null or negative value")
    wanted = batch.filter(pc.greater(column, 0))
    return wanted, wanted.column("repeats").to_numpy(zero_copy_only=False).astype(np.int32)


def write_shard(
    batches: Iterable[pa.RecordBatch],
    settings: TokenizeSettings,
    bin_file: BinaryIO,
    idx_file: BinaryIO,
    threads: int = 1,
) -> tuple[pa.RecordBatch, ShardStats]:
    """Write the documents of a shard as packed sequences; return the document index and figures.

    Batches hold `id`, `url`, `text`, `source` and may hold `repeats` (int32: how often a document
    is drawn; 0 leaves it out). Documents come in the order of `document_keys`, whatever the order
    and size of the batches, as long as ids differ. Every sequence has `context_length` tokens; what
    packing leaves is padding. Memory: the shard's ids at four bytes each, and its metadata.
    """
    tokenizer = load_tokenizer(settings.tokenizer)
    ids: list[npt.NDArray[np.uint32]] = []
    counts: list[npt.NDArray[np.int64]] = []
    repeats: list[npt.NDArray[np.int32]] = []
    metadata: list[pa.RecordBatch] = []
    for batch in batches:
        wanted, times = _drawn(batch)
        tokens, offsets = tokenizer.encode_batch(wanted.column("text"), threads)
        ids.append(tokens)
        counts.append(np.diff(offsets))
        repeats.append(times)
        metadata.append(wanted.select(["id", "source", "url"]))
    flat = np.concatenate([np.zeros(0, np.uint32), *ids])
    ids.clear()
    token_counts = np.concatenate([np.zeros(0, np.int64), *counts])
    times = np.concatenate([np.zeros(0, np.int32), *repeats])
    schema = pa.schema([(n, DOCUMENT_INDEX.field(n).type) for n in ("id", "source", "url")])
    about = pa.Table.from_batches([b.cast(schema) for b in metadata], schema).combine_chunks()

    documents = np.repeat(np.arange(len(times)), times)
    copies = (np.arange(len(documents)) - np.repeat(np.cumsum(times) - times, times)).astype(
        np.int32
    )
    names = about.column("id").combine_chunks().take(pa.array(documents))
    order = np.argsort(document_keys(names, copies, settings.seed), kind="stable")
    documents, copies = documents[order], copies[order]

    lengths = token_counts[documents] + int(settings.bos) + int(settings.eos)
    pack = best_fit if settings.packing == "best_fit" else concatenate
    spans = pack(lengths, settings.context_length)
    token_starts = np.cumsum(token_counts) - token_counts
    where = documents[spans.documents]
    _write_rows(
        spans,
        token_starts[where],
        token_counts[where],
        flat,
        tokenizer,
        settings,
        bin_file,
        idx_file,
    )
    index = _index(spans, copies, about.take(pa.array(where)))
    tokens_written = int(lengths.sum())
    stats = ShardStats(
        documents=len(times),
        copies=len(documents),
        tokens=tokens_written,
        sequences=spans.sequence_count,
        padding=spans.sequence_count * settings.context_length - tokens_written,
        cut_documents=int((np.bincount(spans.documents) > 1).sum()),
    )
    return index, stats


def _write_rows(
    spans: Spans,
    token_starts: npt.NDArray[np.int64],
    token_counts: npt.NDArray[np.int64],
    tokens: npt.NDArray[np.uint32],
    tokenizer: Tokenizer,
    settings: TokenizeSettings,
    bin_file: BinaryIO,
    idx_file: BinaryIO,
) -> None:
    """Write the sequences block by block, then the index."""
    dtype = token_dtype(tokenizer.vocab_size)
    writer = IndexedWriter(bin_file, dtype)
    step = max(1, _BLOCK_BYTES // (settings.context_length * dtype.itemsize))
    for first in range(0, spans.sequence_count, step):
        last = min(first + step, spans.sequence_count)
        a, b = np.searchsorted(spans.sequences, [first, last])
        rows = np.empty((last - first, settings.context_length), dtype)
        fill(
            rows,
            first,
            spans.sequences[a:b],
            spans.starts[a:b],
            spans.lengths[a:b],
            spans.offsets[a:b],
            token_starts[a:b],
            token_counts[a:b],
            tokens,
            tokenizer.bos if settings.bos else -1,
            tokenizer.eos if settings.eos else -1,
            tokenizer.pad,
        )
        writer.write(rows)
    writer.finish(idx_file)


def _index(spans: Spans, copies: npt.NDArray[np.int32], about: pa.Table) -> pa.RecordBatch:
    """The document index of the spans; `about` has one row per span."""
    columns = {
        "sequence": pa.array(spans.sequences),
        "start": pa.array(spans.starts.astype(np.int32)),
        "length": pa.array(spans.lengths.astype(np.int32)),
        "document_offset": pa.array(spans.offsets),
        "repeat": pa.array(copies[spans.documents]),
    }
    for name in ("id", "source", "url"):
        column = about.column(name).combine_chunks()
        columns[name] = pa.concat_arrays(column.chunks) if hasattr(column, "chunks") else column
    return pa.RecordBatch.from_arrays(
        [columns[field.name] for field in DOCUMENT_INDEX], schema=DOCUMENT_INDEX
    )
