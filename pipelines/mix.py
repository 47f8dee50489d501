"""Stage `mix`: draw documents so that domains have the recipe's shares of a token budget.

Each named mix of a corpus is a run of this stage in its own folder, `mix/<name>`. All share the
counts, which stay in the scratch folder of `mix` until the unnamed mix is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.columns import LABEL_COLUMNS
from curation.errors import ConfigError
from curation.mix.columns import NARROW, grouped, narrow
from curation.mix.draw import draw
from curation.mix.levels import plan_tables
from curation.mix.mix_settings import Mixture
from curation.mix.mix_table import advice, lacking
from curation.mix.plan import MixPlan
from curation.mix.repeats import varieties
from curation.schema import PLACES
from curation.tokenize.shard import DELIMITED, delimited
from curation.tokenize.tokenize_settings import EncodeSettings
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.engine.documents import noted, over_documents
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.transform import Applied, Outcome, Transform, TransformShards, shard_tasks
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Task, read_record
from pipelines.storage.damage import check_content
from pipelines.storage.exchange import concatenated, read_columns, scratch, write_columns
from pipelines.storage.files import SCRATCH, Folder, fingerprint
from pipelines.storage.manifest import read_manifest

#: Columns that drawing needs, where documents have them.
COLUMNS = ["id", "text", "source", "date", *LABEL_COLUMNS, "quality"]
COLUMNS += ["cluster_size", "minhash_cluster_size", "rights"]
_PLAN = f"{SCRATCH}/data/plan.json"
#: Folder for the token ids of a mix's documents, in the order of `documents`.
TOKENS = "tokens"
_LITTLE = np.dtype("<u4")


@dataclass(frozen=True)
class CountTokens:
    """Map: the narrow columns of every document needed for drawing, and its token ids."""

    settings_key: str
    tokenize: EncodeSettings
    sources: tuple[str, ...]
    views: tuple[str, ...] = ()
    name: str = "tokens"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        batches: list[pa.RecordBatch] = []
        aside: dict[int, str] = {}
        with folder.create(_ids_name(shard.name)) as ids:
            for part in over_documents("mix", shard, self.narrow, [*COLUMNS, *self.views]):
                rows, tokens = part.answer
                ids.write(tokens.astype(_LITTLE, copy=False).view(np.uint8))
                batches.append(rows)
                aside |= part.aside
                progress(part.batch.num_rows, part.batch.num_rows)
        table = concatenated(batches, NARROW)
        name = scratch("narrow", shard.name)
        files = {name: write_columns(folder, name, table.select(NARROW.names))}
        files[_ids_name(shard.name)] = ids.record(table.num_rows)
        return Result(files, noted(aside))

    def narrow(
        self, batch: pa.RecordBatch, first_row: int
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.uint32]]:
        """Return columns NARROW of documents, and their token ids end to end."""
        tokenizer = load_tokenizer(self.tokenize.tokenizer)
        tokens, offsets = tokenizer.encode_batch(batch.column("text"))
        counts = np.diff(offsets) + self.tokenize.marks
        return narrow(batch, counts, self.sources, varieties(tokens, offsets), self.views), tokens


def _ids_name(shard: str) -> str:
    return f"{SCRATCH}/data/ids/{shard}.u32"


@dataclass(frozen=True)
class PlanMix:
    """One task: plan each domain's token budget and the levels to which documents are drawn."""

    settings_key: str
    settings: Mixture
    counts: Folder
    name: str = "plan"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shards: Sequence[str] = task.payload
        tables = [read_columns(self.counts, scratch("narrow", s)) for s in shards]
        plan = plan_tables(tables, self.settings)
        record = folder.write_own_json(_PLAN, plan.as_dict())
        return Result({_PLAN: record})


@dataclass(frozen=True)
class DrawDocuments(Transform):
    """The transform that draws: adds `tokens` and `repeats` (how often a document is used)."""

    counts: Folder
    marks: int

    def open(self, shard: str, folder: Folder) -> Applied:
        narrow = read_columns(self.counts, scratch("narrow", shard))
        ids, record = _ids_name(shard), f"{SCRATCH}/records/{CountTokens.name}/{shard}.json"
        written = read_record(self.counts, record)["files"][ids]
        check_content(self.counts, ids, written["sha256"])
        lengths = narrow.column("tokens").to_numpy() - self.marks
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return partial(self._draw, _read_plan(folder), narrow, (ids, starts))

    def _draw(
        self,
        plan: MixPlan,
        narrow: pa.RecordBatch,
        ids: tuple[str, npt.NDArray[np.int64]],
        batch: pa.RecordBatch,
        first_row: int,
    ) -> Outcome:
        """Draw documents; `ids`: file of all token ids, end to end, and where documents begin."""
        rows = narrow.slice(first_row, batch.num_rows)
        found = draw(rows, plan)
        batch = found.added_to(batch, rows.column("tokens"))
        used = rows.column("tokens").to_numpy() * found.repeats.astype(np.int64)
        extra: dict[str, int] = {}
        by = grouped(rows, plan.settings)
        for column, prefix in (("domain", "tokens_drawn"), ("source", "tokens_drawn_from")):
            table = pa.table({"key": by.column(column), "tokens": used})
            for row in table.group_by("key").aggregate([("tokens", "sum")]).to_pylist():
                extra[f"{prefix}.{row['key']}"] = row["tokens_sum"]
        starts = ids[1][first_row : first_row + batch.num_rows + 1]
        first, end = (starts[[0, -1]] * _LITTLE.itemsize).tolist()
        data = self.counts.read_bytes(ids[0], first, end) if end > first else b""
        kept = found.verdicts.kept.to_numpy(zero_copy_only=False)
        stream = delimited(np.frombuffer(data, _LITTLE), starts - starts[0], kept)
        tokens = pa.RecordBatch.from_arrays([pa.array(stream)], schema=DELIMITED)
        return Outcome(batch, found.verdicts, extra=extra, tables={TOKENS: tokens})


def saved_tokens(shard: Shard) -> str:
    """Return the file in which the mix saved the token ids of a shard."""
    return f"{TOKENS}/{shard.name}.parquet"


def phases_of(run: StageRun) -> list[dict[str, Any]]:
    """Return the phases of the mix that a stage reads. Raises ConfigError for several mixes."""
    folders = {shard.folder.url: shard.folder for shard in run.inputs}
    found = [read_manifest(folder).get("notes", {}).get("phases") for folder in folders.values()]
    phases = [phase for phase in found if phase]
    placed = any(PLACES in shard.schema().names for shard in run.inputs[:1])
    if len(folders) > 1 if phases else placed:
        raise ConfigError(
            f"{run.stage}: a mix with phases fixes the order of all documents: give its stage "
            "folder, and no other input"
        )
    return phases[0] if phases else []


def counts_folder(run: StageRun) -> Folder:
    """Return the folder of the counts that all mixes of a run share."""
    _, _, mix = run.stage.partition("/")
    return replace(run.folder, url=run.folder.url.removesuffix(f"/{mix}"))


def _passes(run: StageRun) -> list[Pass]:
    """Count the tokens of every document, once for all mixes; then plan."""
    tokenize: EncodeSettings = run.also["tokenize"]
    sources, views = run.settings.input_names, run.settings.views
    decides = [tokenize.bos, tokenize.eos, sources, views, run.facts]
    count = CountTokens(fingerprint(["tokens", decides]), tokenize, sources, views)
    counts = counts_folder(run)
    plan = PlanMix(run.settings_key, run.settings, counts)
    shards = [s.name for s in run.inputs]
    return [
        Pass(count, shard_tasks(run.inputs), counts),
        Pass(plan, [Task("all", (), 0, shards)], after=(count.name,)),
    ]


def plan(run: StageRun) -> MixPlan:
    """Count tokens and plan the mix, without drawing."""
    run.chain(_passes(run))
    return _read_plan(run.folder)


def _read_plan(folder: Folder) -> MixPlan:
    return MixPlan.from_dict(read_record(folder, _PLAN))


def run(run: StageRun) -> dict[str, Any]:
    """Count tokens, plan the mix, draw."""
    run.begin()
    counts = counts_folder(run)
    transform = DrawDocuments(counts, run.also["tokenize"].marks)
    counted = (counts, CountTokens.name)
    apply = TransformShards(run.stage, run.settings_key, transform, counted=counted)
    tasks = shard_tasks(run.inputs)
    run.chain([*_passes(run), Pass(apply, tasks, after=(PlanMix.name,))])
    mix = _read_plan(run.folder)
    notes = {
        "mix": mix.rows(),
        "inputs": mix.cell_rows(),
        "budget": mix.budget,
        "short": mix.as_dict()["short"],
        **({"phases": mix.phase_rows()} if mix.settings.phases else {}),
        "advice": advice(mix),
        **({"lacking": line} if (line := lacking(mix)) else {}),
    }
    return run.finish(tasks, run.read, {"notes": notes})
