"""Stage `tokenize`: packed token shards for Megatron-Core, and where each token comes from.

All documents, as often as they are drawn, go into one seeded order over the whole data set: a map
step encodes a shard and sorts its copies by a 64-bit key of document and seed; each output shard is
one range of keys, read from every run. Only one shard of tokens is in memory at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.errors import InputError
from curation.tokenize.settings import TokenizeSettings
from curation.tokenize.shard import DOCUMENT_INDEX, ENCODED, encoded_rows, write_rows
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.engine.duplicates import files_of, output_fingerprint, scratch
from pipelines.engine.exchange import concatenated, key_ranges, read_range, write_run
from pipelines.engine.files import Folder
from pipelines.engine.own import MANIFEST
from pipelines.engine.shards import TableWriter, Tally, add_counts, read_batches
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.tasks import Progress, Result, Task
from pipelines.engine.transform import column_names, shard_tasks
from pipelines.facts import VOCABULARY
from pipelines.mix import saved_tokens
from pipelines.token_formats import write_formats

_COLUMNS = ["id", "url", "source", "repeats"]
_RUNS = "encoded"


@dataclass(frozen=True)
class EncodeShards:
    """Map: the copies of a shard's documents with their tokens, sorted by place in the data set."""

    settings_key: str
    settings: TokenizeSettings
    saved: bool  # whether the mix left token ids of this tokenizer
    name: str = "encode"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        tally = Tally()
        columns = [c for c in _COLUMNS if c in column_names(shard)]
        ids = SavedTokens(shard) if self.saved else None
        rows = [pa.RecordBatch.from_pylist([], schema=ENCODED)]
        for batch in read_batches(shard.folder, shard.file, [*columns, "text"]):
            tally.add_in(batch)
            kept, tokens, offsets = self._encode(batch, ids)
            tally.add_kept(kept)
            rows.append(encoded_rows(kept, tokens, offsets, self.settings))
            progress(batch.num_rows, kept.num_rows)
        table = concatenated(rows, ENCODED)
        name = scratch(_RUNS, shard.name)
        record = write_run(folder, name, "key", {n: table.column(n) for n in ENCODED.names})
        tally.add("tokens", len(table.column("tokens").flatten()))
        tally.add("tokens", table.num_rows * self.settings.marks)
        return Result({name: record}, tally.counts())

    def _encode(
        self, batch: pa.RecordBatch, ids: SavedTokens | None
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """The documents of a batch that are wanted at all, their tokens end to end, and offsets."""
        if ids is not None:
            return batch, *ids.next(batch.num_rows)
        if batch.schema.get_field_index("repeats") >= 0:
            batch = batch.filter(pc.greater(batch.column("repeats"), 0))
        return batch, *load_tokenizer(self.settings.tokenizer).encode_batch(batch.column("text"))


class SavedTokens:
    """Token ids that the mix saved, document after document."""

    def __init__(self, shard: Shard) -> None:
        with shard.folder.open(saved_tokens(shard)) as file:
            lists = pq.read_table(file, use_threads=False).column("ids")
        chunks = [pa.array([], pa.large_list(pa.uint32())), *lists.chunks]
        whole = pa.concat_arrays([c.cast(pa.large_list(pa.uint32())) for c in chunks])
        self._ids, self._offsets = whole.values.to_numpy(), whole.offsets.to_numpy()
        self._row = 0

    def next(self, rows: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Tokens of the next documents, end to end, and int64 offsets [rows + 1]."""
        offsets = self._offsets[self._row : self._row + rows + 1]
        if len(offsets) != rows + 1:
            raise InputError("the mix saved tokens for fewer documents than it drew")
        self._row += rows
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
        index_name = f"index/{task.name}.parquet"
        with (
            folder.create(f"{task.name}.bin") as tokens,
            folder.create(f"{task.name}.idx") as sequences,
        ):
            index, stats = write_rows(
                rows, self.settings, cast(BinaryIO, tokens), cast(BinaryIO, sequences)
            )
        with TableWriter(folder, index_name, DOCUMENT_INDEX) as writer:
            writer.write(index)
        progress(stats.copies, stats.copies)
        files = write_formats(self.settings.formats, folder, task.name) | {
            f"{task.name}.bin": tokens.record(stats.sequences),
            f"{task.name}.idx": sequences.record(stats.sequences),
            index_name: writer.record,
        }
        known = ("documents", "tokens")  # counted where they were encoded
        return Result(files, {k: v for k, v in stats.as_dict().items() if k not in known})


def has_saved_tokens(run: StageRun) -> bool:
    """Whether every input shard comes with token ids of this run's tokenizer."""
    folders = {shard.folder.url: shard.folder for shard in run.inputs}
    for folder in folders.values():
        models = folder.read_json(MANIFEST).get("models", {}) if folder.exists(MANIFEST) else {}
        if models.get(VOCABULARY) != run.facts["models"][VOCABULARY]:
            return False
    return all(shard.folder.exists(saved_tokens(shard)) for shard in run.inputs)


def run(run: StageRun) -> dict[str, Any]:
    """Write token shards of every document that the mix drew (or of all, without a mix)."""
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    encode = EncodeShards(run.settings_key, run.settings, has_saved_tokens(run))
    encode_tasks = shard_tasks(run.inputs)
    run.run(encode, encode_tasks)
    records = files_of(run.folder, encode, encode_tasks)
    counts: dict[str, Any] = {}
    for record in records:
        add_counts(counts, record["counts"])

    runs = tuple(scratch(_RUNS, s.name) for s in run.inputs)
    ranges = key_ranges(max(1, -(-counts["tokens"] // run.settings.shard_tokens)))
    source = output_fingerprint(records)
    tasks = [
        Task(
            f"tokens-{i:05d}-of-{len(ranges):05d}",
            (("runs", source), ("range", f"{low:016x}-{high:016x}")),
            4 * counts["tokens"] // len(ranges),
            (low, high, runs),
        )
        for i, (low, high) in enumerate(ranges)
    ]
    run.run(PackShards(run.settings_key, run.settings), tasks)
    return run.finish(tasks, inputs, counts=counts)
