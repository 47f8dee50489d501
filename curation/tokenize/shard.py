"""Documents to packed sequences: encode them, bring them into order, pack and write them.

Token ids of documents in one flat column, each document closed by a mark.

A list per document would cost Parquet's writer several times the ids in memory.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, as_json, plain, repeated, text_buffers
from curation.errors import InputError
from curation.hashing import hash_spans, mix64
from curation.schema import MADE, PLACES, RIGHTS, SOURCE, column_of, taken
from curation.tokenize.megatron import IndexedWriter, token_dtype
from curation.tokenize.pack import Marks, Spans, Tokens, best_fit, fill, together
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import AnyTokenizer, load_tokenizer

#: What is known of a copy of a document.
_ABOUT = [
    ("repeat", pa.int32()),  # which copy of the document, from 0
    ("id", pa.string()),
    ("cluster", pa.string()),  # of documents that are almost alike; null: not known
    ("source", SOURCE),
    ("url", pa.string()),
    ("rights", RIGHTS),  # null where the documents have none
    ("own", pa.string()),  # columns that came with the document's table: JSON, or null
]
#: One row per run of a document's tokens in a sequence, in order of sequence and start.
DOCUMENT_INDEX = pa.schema(
    [
        ("sequence", pa.int64()),  # number within the shard
        ("start", pa.int32()),  # first token within the sequence
        ("length", pa.int32()),  # tokens
        ("document_offset", pa.int64()),  # first token within the document
        *_ABOUT,
    ]
)

#: One row per copy of a document, on its way to its place in the data set.
ENCODED = pa.schema(
    [
        ("key", pa.uint64()),  # place in the order of all documents
        ("tokens", pa.large_list(pa.uint32())),  # without begin and end tokens
        *_ABOUT,
    ]
)

#: Columns of documents that name a cluster, the second as datatrove does: -1 for none.
CLUSTERS = ("cluster_id", "minhash_cluster_id")
#: Columns of documents from which these are made.
INDEXED = ("id", "url", "source", "rights", "repeats", PLACES, *CLUSTERS)

_BLOCK_BYTES = 1 << 20  # of rows written at a time
_ID_SEED = np.uint64(0)


@dataclass(frozen=True)
class ShardStats:
    """What went into a shard. Tokens include begin and end tokens, not padding."""

    documents: int  # whose first copy is here
    copies: int  # documents counted as often as they repeat
    tokens: int
    sequences: int
    padding: int
    cut_documents: int  # copies that lie in more than one sequence
    copies_together: int  # copies in a sequence that has another one of their document or cluster

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def document_keys(ids: Texts, times: npt.NDArray[np.int32], seed: int) -> npt.NDArray[np.uint64]:
    """Sort key of every copy of the documents, of which there are `times`: uint64 [copies].

    The first is at a place that id and seed decide, the others evenly behind it, so that copies are
    as far apart as the order allows, also from its end to its beginning.
    """
    buffers = text_buffers(ids)
    hashes = hash_spans(buffers.data, buffers.offsets[:-1], buffers.offsets[1:], _ID_SEED)
    first = mix64(hashes ^ mix64(mix64(np.array([seed], np.uint64))))
    documents, copies = repeated(times)
    count = times[documents].astype(np.uint64)
    between = np.uint64(np.iinfo(np.uint64).max) // count
    return first[documents] // count + copies.astype(np.uint64) * between


def encoded_rows(
    batch: pa.RecordBatch,
    tokens: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    settings: TokenizeSettings,
) -> pa.RecordBatch:
    """Return rows of `ENCODED`, one per copy of a document that is drawn.

    `batch` has `id`, `url`, `source` and may have `repeats` (int32: how often a document is drawn;
    0 leaves it out), `places` (list<uint64>: the keys of its copies), and columns of the table that
    it came from (`own_columns`). Tokens of
    document i are `tokens[offsets[i]:offsets[i + 1]]`.
    """
    column = batch.column("repeats") if batch.schema.get_field_index("repeats") >= 0 else None
    if column is None:
        times = np.ones(batch.num_rows, np.int32)
    else:
        given = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        times = np.nan_to_num(np.minimum(given, 1 << 30)).astype(np.int32)
        if (times != given).any() or (times < 0).any():
            raise InputError("column `repeats` has a null, negative, broken or huge value")
    documents, copies = repeated(times)
    about = with_rights(batch).select(["id", "source", "url", "rights"])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(tokens))
    for n, v in (("cluster", clusters(batch)), ("own", _own(batch, settings)), ("tokens", lists)):
        about = about.append_column(n, v)
    about = about if np.all(times == 1) else taken(about, documents)
    placed = batch.schema.get_field_index(PLACES) >= 0
    if placed and len(batch.column(PLACES).flatten()) != len(documents):
        raise InputError(f"column `{PLACES}` has not as many places as `repeats` has copies")
    columns = {
        "key": batch.column(PLACES).flatten()
        if placed
        else pa.array(document_keys(batch.column("id"), times, settings.seed)),
        "repeat": pa.array(copies, pa.int32()),
        **{name: about.column(name) for name in about.schema.names},
    }
    return pa.RecordBatch.from_arrays(
        [columns[f.name].cast(f.type) for f in ENCODED], schema=ENCODED
    )


def with_rights(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with a column `rights`, of nulls where it has none."""
    if batch.schema.get_field_index("rights") >= 0:
        return batch
    return batch.append_column("rights", pa.nulls(batch.num_rows, RIGHTS))


def clusters(batch: pa.RecordBatch) -> pa.Array:
    """Return the name of each document's cluster, from a column of `CLUSTERS`; null: none."""
    name = next((name for name in CLUSTERS if name in batch.schema.names), "")
    names = column_of(batch, name).cast(pa.string())
    return pc.if_else(pc.is_in(names, pa.array(["", "-1"])), None, names)


def alike(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return number the rows of ENCODED or DOCUMENT_INDEX by cluster, or document: int64 [rows]."""
    names = pc.coalesce(rows.column("cluster"), rows.column("id")).dictionary_encode()
    return names.indices.to_numpy().astype(np.int64)


def own_columns(names: Iterable[str], settings: TokenizeSettings) -> list[str]:
    """Return those columns of documents that the document index has as `own`.

    Without `index_columns` all that the toolkit doesn't add; with them any, such as `quality`.
    """
    wanted = settings.index_columns
    if wanted is None:
        return [name for name in names if name not in MADE]
    return [name for name in names if name in wanted and name not in (*INDEXED, "text")]


def _own(batch: pa.RecordBatch, settings: TokenizeSettings) -> pa.Array:
    """Return a table's own columns as JSON, row for row."""
    names = own_columns(batch.schema.names, settings)
    if not names:
        return pa.nulls(batch.num_rows, pa.string())
    columns = {name: batch.column(name) for name in names}
    rows = ({n: plain(c[i]) for n, c in columns.items()} for i in range(batch.num_rows))
    return pa.array([as_json(row) for row in rows], pa.string())


def write_rows(
    encoded: pa.RecordBatch,
    offsets: npt.NDArray[np.int64],
    tokens: npt.NDArray[np.uint32],
    settings: TokenizeSettings,
    bin_file: BinaryIO,
    idx_file: BinaryIO,
    after_block: Callable[[], object] = lambda: None,
) -> tuple[pa.RecordBatch, ShardStats]:
    """Pack and write rows of `ENCODED` in the order of their keys.

    Every sequence has `context_length` tokens; what packing leaves is padding. Tokens of row i are
    `tokens[offsets[i]:offsets[i + 1]]`, read a block of sequences at a time; `after_block` is
    called after each. The rows themselves need no column of tokens.
    """
    tokenizer = load_tokenizer(settings.tokenizer)
    order = np.argsort(encoded.column("key").to_numpy(), kind="stable")
    flat = Tokens(tokens, offsets[:-1][order], np.diff(offsets)[order])
    lengths = flat.counts + settings.marks
    groups = alike(encoded)[order]
    spans = best_fit(lengths, settings.context_length, groups)
    writer = IndexedWriter(bin_file, token_dtype(tokenizer.vocab_size))
    for rows in _blocks(spans, flat, tokenizer, settings):
        writer.write(rows)
        after_block()
    writer.finish(idx_file)
    index = _index(spans, encoded, order[spans.documents])
    tokens_written = int(lengths.sum())
    first_copies = encoded.column("repeat").to_numpy() == 0
    stats = ShardStats(
        documents=int(first_copies.sum()),
        copies=encoded.num_rows,
        tokens=tokens_written,
        sequences=spans.sequence_count,
        padding=spans.sequence_count * settings.context_length - tokens_written,
        cut_documents=int((np.bincount(spans.documents) > 1).sum()),
        copies_together=len(together(spans.sequences, groups[spans.documents])),
    )
    return index, stats


def _blocks(
    spans: Spans, tokens: Tokens, tokenizer: AnyTokenizer, settings: TokenizeSettings
) -> Iterator[npt.NDArray]:
    """Sequences [n, context_length], some at a time, so that not all are in memory."""
    dtype = token_dtype(tokenizer.vocab_size)
    begin, end = tokenizer.bos if settings.bos else -1, tokenizer.eos if settings.eos else -1
    marks = Marks(begin, end, tokenizer.pad)
    step = max(1, _BLOCK_BYTES // (settings.context_length * dtype.itemsize))
    for first in range(0, spans.sequence_count, step):
        last = min(first + step, spans.sequence_count)
        a, b = np.searchsorted(spans.sequences, [first, last])
        rows = np.empty((last - first, settings.context_length), dtype)
        fill(rows, first, Spans(*(column[a:b] for column in spans)), tokens, marks)
        yield rows


def _index(spans: Spans, encoded: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Return the document index of the spans; `rows` are the spans' places in `encoded`."""
    take = pa.array(rows)
    columns = {
        "sequence": pa.array(spans.sequences),
        "start": pa.array(spans.starts.astype(np.int32)),
        "length": pa.array(spans.lengths.astype(np.int32)),
        "document_offset": pa.array(spans.offsets),
        **{name: encoded.column(name).take(take) for name, _ in _ABOUT},
    }
    return pa.RecordBatch.from_arrays(
        [columns[field.name] for field in DOCUMENT_INDEX], schema=DOCUMENT_INDEX
    )


Ids = npt.NDArray[np.uint32]

DELIMITED = pa.schema([pa.field("ids", pa.uint32(), nullable=False)])
#: Ends a document; no vocabulary has so many tokens.
END = np.uint32(0xFFFFFFFF)


def delimited(tokens: Ids, offsets: npt.NDArray[np.int64], kept: npt.NDArray[np.bool_]) -> Ids:
    """Return the kept documents' tokens, END after each. `offsets` [documents + 1] begin at 0."""
    lengths = np.diff(offsets)
    if not kept.all():
        tokens, lengths = tokens[np.repeat(kept, lengths)], lengths[kept]
    return np.insert(tokens, np.cumsum(lengths), END)


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
