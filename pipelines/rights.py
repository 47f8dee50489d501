"""Stage `rights`: remove documents by the rights signals of their page and site.

With `follow`, copies of documents that a policy forbids go, too. Behind `dedup-documents`, each is
one that was kept, and the forbidden document is among those removed in its favour. These name the
kept one by its id: the ids meet in a range of their keys, and what the policy says of the removed
goes to the shard of the kept, which alone is read with its text.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from curation.dedup.keys import half_keys
from curation.errors import InputError
from curation.rights.policy import COPIES, FOUND, Policy, found_table, verdicts_of
from curation.rights.rights_settings import RightsSettings
from curation.stages import find
from pipelines.dedup.duplicates import (
    OfShard,
    OverRanges,
    numbered_tasks,
    range_tasks,
    read_key_range,
)
from pipelines.engine.documents import answers, over_documents
from pipelines.engine.stage import Shard, StageRun, removed_shards
from pipelines.engine.transform import (
    Applied,
    Outcome,
    Transform,
    TransformShards,
    run_transform,
    shard_tasks,
)
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import (
    concatenated,
    document_numbers,
    read_columns,
    run_of,
    scratch,
    write_columns,
)
from pipelines.storage.files import Folder

_STAGE = "rights"
_BESIDE = {find(_STAGE).beside: FOUND}
#: Bytes of a row of keys, and of what is said of a removed document.
_KEY_BYTES, _COPY_BYTES = 16, 2048


@dataclass(frozen=True)
class ApplyRights(Transform):
    """The policy as a transform; the signals that removed documents go to a table of their own."""

    settings: RightsSettings

    def open(self, shard: str, folder: Folder) -> Applied:
        name = scratch("found", shard)
        copies = read_columns(folder, name) if self.settings.follow else None  # COPIES
        return partial(self._judge, Policy(self.settings, copies))

    def _judge(self, policy: Policy, batch: pa.RecordBatch, first_row: int) -> Outcome:
        batch, rulings, conflicts = policy.judge(batch)
        found = found_table(batch.column("id"), rulings)
        verdicts = verdicts_of(rulings, (self.settings.follow or {}).get("near"))
        extra = Counter({"conflicts": conflicts.total()}) + conflicts
        return Outcome(batch, verdicts, extra=extra, beside={find(_STAGE).beside: found})


@dataclass(frozen=True)
class KeysOfKept:
    """Map: write the keys of the ids of a shard's documents, with their numbers."""

    settings_key: str
    name: str = "kept"
    sends = ("kept",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        parts, _ = answers(over_documents(_STAGE, shard, _keys, ["id"]), progress)
        keys = np.concatenate(parts)
        rows = {"key": keys, "number": document_numbers(index, len(keys))}
        return Result(run_of(folder, "kept", shard.name, rows))


def _keys(batch: pa.RecordBatch, first_row: int) -> Any:
    return half_keys(batch.column("id"))


@dataclass(frozen=True)
class ListCopies:
    """Map: of documents removed as copies, write what the policy says, by the kept one's key."""

    settings_key: str
    settings: RightsSettings
    name: str = "copies"
    sends = ("copies",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        policy, names = Policy(self.settings), shard.schema().names
        columns = [n for n in COPIES.names if n in names]
        rows = concatenated([policy.copies(batch) for batch in shard.batches(columns)], COPIES)
        rows = rows.append_column("key", pa.array(half_keys(rows.column("kept_id"))))
        return Result(run_of(folder, "copies", shard.name, rows))


@dataclass(frozen=True)
class MatchCopies(OverRanges):
    """Reduce: find the numbers of the kept documents in a range of keys."""

    settings_key: str
    shards: tuple[str, ...]
    removed: tuple[str, ...]
    name: str = "matches"
    sends = ("matches",)

    def runs(self) -> list[str]:
        kept = [scratch("kept", s) for s in self.shards]
        return [*kept, *(scratch("copies", s) for s in self.removed)]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high = task.payload
        kept = read_key_range(folder, "kept", self.shards, low, high)
        copies = read_key_range(folder, "copies", self.removed, low, high)
        rows = pa.RecordBatch.from_pylist([], _MATCHES)
        if kept is not None and copies is not None:
            keys, numbers = (kept.column(n).to_numpy() for n in ("key", "number"))
            order, wanted = np.argsort(keys, kind="stable"), copies.column("key").to_numpy()
            at = np.searchsorted(keys[order], wanted).clip(max=len(keys) - 1)
            found = pa.array(numbers[order][at]), pa.array(keys[order][at] == wanted)
            place = copies.schema.get_field_index("key")
            rows = copies.set_column(place, "key", found[0]).filter(found[1])
        return Result(run_of(folder, "matches", task.name, rows))


_MATCHES = COPIES.append(pa.field("key", pa.uint64()))


@dataclass(frozen=True)
class CopiesOfShard(OfShard):
    """For each shard, write what is said of the documents removed in favour of its own."""

    name: str = "found"
    gathers: ClassVar[str] = "matches"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows = self.rows(task, folder)
        rows = pa.RecordBatch.from_pylist([], _MATCHES) if rows is None else rows
        order = [("kept_id", "ascending"), ("id", "ascending")]
        name = scratch("found", task.name)
        return Result({name: write_columns(folder, name, rows.sort_by(order))})


def run(run: StageRun) -> dict[str, Any]:
    """Judge every document, and with `follow` those that are copies of others."""
    apply = ApplyRights(run.settings)
    if not run.settings.follow:
        return run_transform(run, apply, beside=_BESIDE)
    removed = removed_shards(find(_STAGE).looks_back(run.settings), run.inputs)
    if run.inputs and not removed:
        raise InputError(
            f"{run.inputs[0].folder.shown}: rights.follow needs the documents that dedup-documents "
            "removed, and its folder is not there: run both in one run, in this order"
        )
    run.begin()
    size = _KEY_BYTES * run.documents + _COPY_BYTES * sum(shard.rows for shard in removed)
    ranges = range_tasks(size)
    kept = numbered_tasks(run.inputs)
    keys, copies = KeysOfKept(run.settings_key), ListCopies(run.settings_key, run.settings)
    names = tuple(s.name for s in run.inputs), tuple(s.name for s in removed)
    matches = MatchCopies(run.settings_key, *names)
    found = CopiesOfShard(run.settings_key, tuple(r.name for r in ranges))
    shards = TransformShards(_STAGE, run.settings_key, apply, beside=_BESIDE, measures=run.measures)
    run.chain(
        [
            Pass(keys, kept),
            Pass(copies, shard_tasks(removed)),
            Pass(matches, ranges, after=(keys.name, copies.name)),
            Pass(found, kept, after=(matches.name,)),
            Pass(shards, shard_tasks(run.inputs), beside=found.name),
        ]
    )
    return run.finish(shard_tasks(run.inputs), run.compared)
