"""Stage `mix`: draw documents so that domains have the recipe's shares of a token budget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.keys import string_keys
from curation.mix import NARROW, MixPlan, MixSettings, draw, plan_tables
from curation.schema import with_column
from curation.tokenize.settings import TokenizeSettings
from curation.tokenize.shard import count_tokens
from pipelines.engine.duplicates import files_of, output_fingerprint, scratch
from pipelines.engine.exchange import concatenated, read_columns, write_columns
from pipelines.engine.files import SCRATCH, Folder
from pipelines.engine.shards import read_batches
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.tasks import Progress, Result, Task
from pipelines.engine.transform import Outcome, TransformShards, column_names, shard_tasks

_COLUMNS = ["id", "text", "domain", "topic", "quality"]
_PLAN = f"{SCRATCH}/data/plan.json"
#: Name of the one input that a run has; recipes with several named inputs weigh them by name.
_SOURCE = "documents"


@dataclass(frozen=True)
class CountTokens:
    """Map: the narrow columns of every document that the draw looks at."""

    settings_key: str
    tokenize: TokenizeSettings
    name: str = "tokens"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        present = column_names(shard)
        batches = [_EMPTY]
        for batch in read_batches(shard.folder, shard.file, [c for c in _COLUMNS if c in present]):
            batches.append(self._narrow(batch))
            progress(batch.num_rows, batch.num_rows)
        table = concatenated(batches, NARROW)
        name = scratch("narrow", shard.name)
        columns = {n: table.column(n) for n in NARROW.names}
        return Result({name: write_columns(folder, name, columns)})

    def _narrow(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = batch.num_rows
        columns = {
            "id_hash": pa.array(string_keys(batch.column("id"))[:, 0]),
            "source": pa.array([_SOURCE] * rows, pa.string()),
            "tokens": pa.array(count_tokens(batch.column("text"), self.tokenize), pa.int64()),
        }
        for name in ("domain", "topic", "quality"):
            kind = NARROW.field(name).type
            known = name in batch.schema.names
            columns[name] = batch.column(name).cast(kind) if known else pa.nulls(rows, kind)
        return pa.RecordBatch.from_arrays([columns[n] for n in NARROW.names], schema=NARROW)


_EMPTY = pa.RecordBatch.from_pylist([], schema=NARROW)


@dataclass(frozen=True)
class PlanMix:
    """One task: the token budget of each domain and the keys at which draws end."""

    settings_key: str
    settings: MixSettings
    name: str = "plan"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shards: Sequence[str] = task.payload
        tables = [read_columns(folder, scratch("narrow", s)) for s in shards]
        plan = plan_tables(tables, self.settings)
        record = folder.write_bytes(_PLAN, json.dumps(plan.as_dict(), sort_keys=True).encode())
        return Result({_PLAN: record})


@dataclass(frozen=True)
class DrawDocuments:
    """The transform that draws: adds `tokens` and `repeats` (how often a document is used)."""

    plan: MixPlan | None = None
    narrow: pa.RecordBatch | None = None

    def open(self, shard: str, folder: Folder) -> DrawDocuments:
        plan = MixPlan.from_dict(folder.read_json(_PLAN))
        return replace(self, plan=plan, narrow=read_columns(folder, scratch("narrow", shard)))

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        assert self.plan is not None and self.narrow is not None
        narrow = self.narrow.slice(first_row, batch.num_rows)
        drawn = draw(narrow, self.plan)
        batch = with_column(batch, "tokens", narrow.column("tokens"))
        batch = with_column(batch, "repeats", pa.array(drawn.repeats, pa.int32()))
        used = pc.multiply(batch.column("tokens"), batch.column("repeats").cast(pa.int64()))
        domains = batch.column("domain").to_pylist()
        extra: dict[str, int] = {}
        for domain, tokens in zip(domains, used.to_pylist(), strict=True):
            extra[f"tokens_drawn.{domain}"] = extra.get(f"tokens_drawn.{domain}", 0) + tokens
        return Outcome(batch, drawn.verdicts, extra=extra)


def run(run: StageRun) -> dict[str, Any]:
    """Count tokens, plan the mix, draw."""
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    count = CountTokens(run.settings_key, run.also["tokenize"])
    count_tasks = shard_tasks(run.inputs)
    run.run(count, count_tasks)
    narrow = output_fingerprint(files_of(run.folder, count, count_tasks))

    plan = PlanMix(run.settings_key, run.settings)
    plan_task = Task("all", (("narrow", narrow),), 0, [s.name for s in run.inputs])
    run.run(plan, [plan_task])

    found = output_fingerprint(files_of(run.folder, plan, [plan_task]))
    apply = TransformShards(run.stage, run.settings_key, DrawDocuments())
    tasks = shard_tasks(run.inputs, {s.name: found for s in run.inputs})
    run.run(apply, tasks)
    mix = MixPlan.from_dict(run.folder.read_json(_PLAN))
    notes = {"mix": mix.rows(), "budget": mix.budget, "short": mix.as_dict()["short"]}
    return run.finish(tasks, inputs, {"notes": notes})
