"""Stage `tokenize`: packed token shards for Megatron-Core, and where each token comes from.

All documents, as often as they are drawn, go into one seeded order over the whole data set: a map
step encodes a shard and sorts its copies by a 64-bit key of document and seed; each output shard is
one range of keys, read from every run. Only one shard of tokens is in memory at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import InputError
from curation.stages.tokenize import VOCABULARY
from curation.tokenize.settings import TokenizeSettings
from curation.tokenize.shard import (
    DOCUMENT_INDEX,
    ENCODED,
    ShardStats,
    encoded_rows,
    write_rows,
)
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.engine.documents import column_names, nothing, over_documents
from pipelines.engine.duplicates import files_of, output_fingerprint, scratch
from pipelines.engine.exchange import concatenated, key_ranges, read_range, write_run
from pipelines.engine.files import FileRecord, Folder
from pipelines.engine.manifest import read_manifest
from pipelines.engine.shards import TableWriter, Tally, add_counts, open_parquet
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.tasks import Progress, Result, Task
from pipelines.engine.transform import ShardWriter, shard_tasks
from pipelines.mix import saved_tokens
from pipelines.token_formats import write_formats

_STAGE = "tokenize"
_COLUMNS = ["id", "url", "source", "repeats"]
_RUNS = "encoded"


@dataclass(frozen=True)
class EncodeShards:
    """Map: the copies of a shard's documents with their tokens, sorted by place in the data set."""

    settings_key: str
    settings: TokenizeSettings
    saved: dict[str, str]  # SHA-256 of the files of token ids that the mix left
    name: str = "encode"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        tally = Tally()
        columns = [c for c in _COLUMNS if c in column_names(shard)]
        saved = (shard, self.saved[saved_tokens(shard)]) if self.saved else None
        encode = Encode(self.settings, saved)
        rows = []
        with ShardWriter(folder, shard.name, _STAGE, tally) as writer:
            for part in over_documents(_STAGE, shard, encode, [*columns, "text"], nothing):
                kept, encoded = part.answer
                tally.add_in(part.batch)
                tally.add_kept(kept)
                rows.append(encoded)
                if part.reason is not None:
                    writer.write_lost(part.batch, part.batch.schema, part.reason)
                progress(part.batch.num_rows, kept.num_rows)
        table = concatenated(rows, ENCODED)
        name = scratch(_RUNS, shard.name)
        record = write_run(folder, name, "key", {n: table.column(n) for n in ENCODED.names})
        tally.add("tokens", len(table.column("tokens").flatten()))
        tally.add("tokens", table.num_rows * self.settings.marks)
        return Result({name: record, **writer.files}, tally.counts())


@dataclass
class Encode:
    """As a function of batches: the documents that are wanted at all, and their copies."""

    settings: TokenizeSettings
    saved: tuple[Shard, str] | None  # with token ids that the mix left, and their file's SHA-256

    def __call__(
        self, batch: pa.RecordBatch, first_row: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        if self.saved is not None:
            tokens, offsets = self._ids.of(first_row, batch.num_rows)
        else:
            if batch.schema.get_field_index("repeats") >= 0:
                batch = batch.filter(pc.greater(batch.column("repeats"), 0))
            tokenizer = load_tokenizer(self.settings.tokenizer)
            tokens, offsets = tokenizer.encode_batch(batch.column("text"))
        return batch, encoded_rows(batch, tokens, offsets, self.settings)

    @cached_property
    def _ids(self) -> SavedTokens:
        assert self.saved is not None
        return SavedTokens(*self.saved)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_ids"}


class SavedTokens:
    """Token ids that the mix saved, document after document."""

    def __init__(self, shard: Shard, sha256: str) -> None:
        with open_parquet(shard.folder, saved_tokens(shard), sha256) as file:
            lists = file.read(use_threads=False).column("ids")
        chunks = [pa.array([], pa.large_list(pa.uint32())), *lists.chunks]
        whole = pa.concat_arrays([c.cast(pa.large_list(pa.uint32())) for c in chunks])
        self._ids, self._offsets = whole.values.to_numpy(), whole.offsets.to_numpy()

    def of(self, first_row: int, rows: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Tokens of some documents, end to end, and int64 offsets [rows + 1]."""
        offsets = self._offsets[first_row : first_row + rows + 1]
        if len(offsets) != rows + 1:
            raise InputError("the mix saved tokens for fewer documents than it drew")
        return self._ids[offsets[0] : offsets[-1]], offsets - offsets[0]


@dataclass(frozen=True)
class PackShards:
    """Reduce: one range of the order over the whole data set, packed and written."""

    settings_key: str
    settings: TokenizeSettings
    name: str = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high, runs = task.payload
        empty = pa.RecordBatch.from_pylist([], schema=ENCODED)
        rows = concatenated([empty, *read_range(folder, runs, "key", low, high)], ENCODED)
        files, stats = write_tokens(rows, self.settings, folder, task.name)
        progress(stats.copies, stats.copies)
        known = ("documents", "tokens")  # counted where they were encoded
        return Result(files, {k: v for k, v in stats.as_dict().items() if k not in known})


def write_tokens(
    rows: pa.RecordBatch, settings: TokenizeSettings, folder: Folder, name: str
) -> tuple[dict[str, FileRecord], ShardStats]:
    """Pack rows of ENCODED and write one shard of tokens; its files' records by name."""
    index_name = f"index/{name}.parquet"
    with folder.create(f"{name}.bin") as tokens, folder.create(f"{name}.idx") as sequences:
        index, stats = write_rows(rows, settings, cast(BinaryIO, tokens), cast(BinaryIO, sequences))
    with TableWriter(folder, index_name, DOCUMENT_INDEX) as writer:
        writer.write(index)
    files = write_formats(settings.formats, folder, name) | {
        f"{name}.bin": tokens.record(stats.sequences),
        f"{name}.idx": sequences.record(stats.sequences),
        index_name: writer.record,
    }
    return files, stats


def token_ranges(tokens: int, settings: TokenizeSettings) -> list[tuple[str, tuple[int, int]]]:
    """Name and range of keys of each shard that so many tokens fill."""
    ranges = key_ranges(max(1, -(-tokens // settings.shard_tokens)))
    return [(f"tokens-{i:05d}-of-{len(ranges):05d}", r) for i, r in enumerate(ranges)]


def tokens_saved(run: StageRun) -> dict[str, str]:
    """Where every input shard comes with token ids of this run's tokenizer: their files' hashes.

    Names are those of `saved_tokens`.
    """
    folders = {shard.folder.url: shard.folder for shard in run.inputs}
    found: dict[str, str] = {}
    for folder in folders.values():
        manifest = read_manifest(folder)
        if manifest.get("models", {}).get(VOCABULARY) == run.facts["models"][VOCABULARY]:
            found |= {name: file["sha256"] for name, file in manifest["files"].items()}
    wanted = [saved_tokens(shard) for shard in run.inputs]
    return {name: found[name] for name in wanted} if found.keys() >= set(wanted) else {}


def run(run: StageRun) -> dict[str, Any]:
    """Write token shards of every document that the mix drew (or of all, without a mix)."""
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    encode = EncodeShards(run.settings_key, run.settings, tokens_saved(run))
    encode_tasks = shard_tasks(run.inputs)
    run.run(encode, encode_tasks)
    records = files_of(run.folder, encode, encode_tasks)
    counts: dict[str, Any] = {}
    for record in records:
        add_counts(counts, record["counts"])

    runs = tuple(scratch(_RUNS, s.name) for s in run.inputs)
    ranges = token_ranges(counts["tokens"], run.settings)
    source = output_fingerprint(records)
    tasks = [
        Task(
            name,
            (("runs", source), ("range", f"{low:016x}-{high:016x}")),
            4 * counts["tokens"] // len(ranges),
            (low, high, runs),
        )
        for name, (low, high) in ranges
    ]
    run.run(PackShards(run.settings_key, run.settings), tasks)
    removed = [{n: f for n, f in r["files"].items() if n.startswith("removed/")} for r in records]
    return run.finish(tasks, inputs, counts=counts, also=[{"files": files} for files in removed])
