"""Stage `tokenize`: packed token shards for Megatron-Core, and where each token comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc

from curation.tokenize.settings import TokenizeSettings
from curation.tokenize.shard import DOCUMENT_INDEX, write_shard
from pipelines.engine.files import Folder
from pipelines.engine.shards import TableWriter, Tally, read_batches
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.tasks import Progress, Result, Task
from pipelines.engine.transform import column_names, shard_tasks

_COLUMNS = ["id", "url", "text", "source", "repeats"]


@dataclass(frozen=True)
class TokenizeShards:
    """Encode, order, pack and write the documents of a shard."""

    settings_key: str
    settings: TokenizeSettings
    name: str = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        tally = Tally()
        index_name = f"index/{shard.name}.parquet"
        with (
            folder.create(f"{shard.name}.bin") as tokens,
            folder.create(f"{shard.name}.idx") as sequences,
        ):
            batches = self._batches(shard, tally, progress)
            index, stats = write_shard(
                batches, self.settings, cast(BinaryIO, tokens), cast(BinaryIO, sequences)
            )
        with TableWriter(folder, index_name, DOCUMENT_INDEX) as writer:
            writer.write(index)
        for name, number in stats.as_dict().items():
            if name != "documents":
                tally.add(name, number)
        files = {
            f"{shard.name}.bin": tokens.record(stats.sequences),
            f"{shard.name}.idx": sequences.record(stats.sequences),
            index_name: writer.record,
        }
        return Result(files, tally.counts())

    def _batches(self, shard: Shard, tally: Tally, progress: Progress) -> Iterator[pa.RecordBatch]:
        present = column_names(shard)
        for batch in read_batches(shard.folder, shard.file, [c for c in _COLUMNS if c in present]):
            tally.add_in(batch)
            kept = batch
            if "repeats" in present:
                kept = batch.filter(pc.greater(batch.column("repeats"), 0))
            tally.add_kept(kept)
            progress(batch.num_rows, kept.num_rows)
            yield kept


def run(run: StageRun) -> dict[str, Any]:
    """Write token shards of every document that the mix drew (or of all, without a mix)."""
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    step = TokenizeShards(run.settings_key, run.settings)
    tasks = shard_tasks(run.inputs)
    run.run(step, tasks)
    return run.finish(tasks, inputs)
