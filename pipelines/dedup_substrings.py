"""Stage `dedup-substrings`: cut passages that stand in another place, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.dedup_settings import SubstringDedupSettings
from curation.dedup.substrings import (
    Spans,
    copies,
    cut_passages,
    evidence,
    grown,
    passages,
    ranks,
    windows,
)
from curation.schema import EDITS, with_column
from pipelines.dedup.duplicates import (
    OfShard,
    OverRanges,
    numbered_tasks,
    range_tasks,
    read_key_range,
)
from pipelines.engine.documents import answers, column_names, noted, over_documents, set_aside_by
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import Outcome, Transform, TransformShards, shard_tasks
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import (
    concatenated,
    document_numbers,
    read_columns,
    row_of,
    scratch,
    write_columns,
    write_run,
)
from pipelines.storage.files import Folder

_STAGE = "dedup-substrings"


@dataclass(frozen=True)
class ChooseWindows:
    """Map: write the chosen windows of a shard, by hash."""

    settings_key: str
    settings: SubstringDedupSettings
    name: str = "windows"
    sends = ("windows",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        columns = [name for name in ("id", "text", "date") if name in column_names(shard)]
        parts = over_documents(_STAGE, shard, partial(self.windows, index), columns)
        found, aside = answers(parts, progress)
        name = scratch("windows", shard.name)
        return Result({name: write_run(folder, name, "key", concatenated(found))}, noted(aside))

    def windows(self, index: int, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the chosen windows of a batch: `key`, `rank`, `number` and `start`."""
        found = windows(batch.column("text"), self.settings.min_bytes)
        numbers = document_numbers(index, batch.num_rows, first_row)
        columns = {
            "key": found.keys,
            "rank": ranks(batch, self.settings.keep)[found.documents],
            "number": numbers[found.documents],
            "start": found.starts,
        }
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class FindCopies(OverRanges):
    """Reduce: find the windows in a range of hashes that have an original elsewhere."""

    settings_key: str
    shards: tuple[str, ...]
    name: str = "copies"
    sends = ("copies",)

    def runs(self) -> list[str]:
        return [scratch("windows", s) for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows = read_key_range(folder, "windows", self.shards, *task.payload)
        columns = copies(rows if rows is not None else _NO_WINDOWS)
        name = scratch("copies", task.name)
        return Result({name: write_run(folder, name, "key", columns)})


_WINDOW = ("key", "rank", "number", "start")
_NONE = np.zeros(0, np.uint64)
_NO_WINDOWS = pa.RecordBatch.from_pydict(dict.fromkeys(_WINDOW, _NONE))


@dataclass(frozen=True)
class _OverTexts(OfShard):
    """A step over documents with rows that others sent."""

    def over(
        self, task: Task, folder: Folder, rows: pa.RecordBatch, numbers: pa.Array, function: Any
    ) -> tuple[list[Any], dict[int, str]]:
        """Return answers of `function` for rows, ascending by document, with the texts."""
        shard = task.payload[1]
        known = set_aside_by(folder, ChooseWindows.name, shard.name)
        called = partial(_with_texts, function, rows, row_of(numbers.to_numpy()))
        return answers(over_documents(_STAGE, shard, called, ["id", "text"], known=known))


def _with_texts(
    function: Any, rows: pa.RecordBatch, places: Any, batch: pa.RecordBatch, first_row: int
) -> Any:
    low, high = np.searchsorted(places, [first_row, first_row + batch.num_rows])
    own = (places[low:high] - first_row).tolist()
    texts = {row: batch.column("text")[row].as_py().encode() for row in set(own)}
    return function(rows.slice(low, high - low), [texts[row] for row in own])


@dataclass(frozen=True)
class ClaimPassages(_OverTexts):
    """For each shard, join windows into passages, and claim them from their originals."""

    width: int = 0  # bytes of a window
    name: str = "claims"
    gathers: ClassVar[str] = "copies"
    sends: ClassVar[tuple[str, ...]] = ("claims",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows, name = self.rows(task, folder), scratch("claims", task.name)
        if rows is None:
            return Result({name: write_run(folder, name, "key", {"key": _NONE})})
        found = pa.RecordBatch.from_pydict(passages(rows, self.width))
        parts, aside = self.over(task, folder, found, found.column("number"), _claims)
        return Result({name: write_run(folder, name, "key", concatenated(parts))}, noted(aside))


_EVIDENCE = ("digest", "left", "right")


def _claims(rows: pa.RecordBatch, texts: Sequence[bytes]) -> pa.RecordBatch:
    """Return passages of documents with the evidence for them."""
    asked = rows.select(["start", "size", "before", "after"]).to_pylist()
    found = [evidence(text, **one) for text, one in zip(texts, asked, strict=True)]
    columns = {n: rows.column(n) for n in ("key", "low", "high", "number", "start", "size", "at")}
    for i, name in enumerate(_EVIDENCE):
        columns[name] = pa.array([one[i] for one in found], pa.binary())
    return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class CheckOriginals(_OverTexts):
    """For each shard, grow the copies of originals in it that are the same, and note the claims."""

    name: str = "originals"
    gathers: ClassVar[str] = "claims"
    sends: ClassVar[tuple[str, ...]] = ("found",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows, found = self.rows(task, folder), scratch("found", task.name)
        claimed, none = scratch("claimed", task.name), {"key": _NONE}
        if rows is None:
            files = {found: write_run(folder, found, "key", none)}
            return Result(files | {claimed: write_columns(folder, claimed, none)})
        rows = rows.take(pa.array(np.argsort(rows.column("key").to_numpy(), kind="stable")))
        parts, aside = self.over(task, folder, rows, rows.column("key"), _checked)
        grown, claims = zip(*parts, strict=True)
        files = {found: write_run(folder, found, "key", concatenated(grown))}
        files[claimed] = write_columns(folder, claimed, concatenated(claims))
        return Result(files, noted(aside))


def _checked(rows: pa.RecordBatch, texts: Sequence[bytes]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the copies of documents' passages, and what is claimed."""
    found, claims = list[tuple[int, int, int]](), list[tuple[int, int, int]]()
    names = ("key", "low", "high", "number", "start", "size", "at", *_EVIDENCE)
    asked = zip(*(rows.column(n).to_pylist() for n in names), strict=True)
    for text, one in zip(texts, asked, strict=True):
        key, low, high, number, start, size, at, *shown = one
        longer = grown(text, at, size, shown)
        if longer is not None:
            found.append((number, start - longer[0], start + size + longer[1]))
            claims.append((key, max(0, low - longer[0]), high + longer[1]))
    return _spans(found), _spans(claims)


def _spans(spans: Sequence[tuple[int, int, int]]) -> pa.RecordBatch:
    columns = np.array(spans, np.uint64).reshape(-1, 3).T
    return pa.RecordBatch.from_pydict(dict(zip(("key", "start", "end"), columns, strict=True)))


@dataclass(frozen=True)
class GatherCuts(OfShard):
    """For each shard, write what may be cut and what is claimed, by document."""

    name: str = "cuts"
    gathers: ClassVar[str] = "found"
    sends: ClassVar[tuple[str, ...]] = ()

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        claimed = read_columns(folder, scratch("claimed", task.name))
        files = {}
        for kind, rows in (("cuts", self.rows(task, folder)), ("stays", claimed)):
            name = scratch(kind, task.name)
            rows = rows if rows is not None and rows.num_rows else _spans([])
            names = ("end", "start", "key")
            order = np.lexsort([rows.column(n).to_numpy() for n in names])
            files[name] = write_columns(folder, name, rows.take(pa.array(order)))
        return Result(files)


@dataclass(frozen=True)
class CutPassages(Transform):
    """The transform that cuts passages and removes documents left too short."""

    settings: SubstringDedupSettings
    cuts: pa.RecordBatch | None = None
    claimed: pa.RecordBatch | None = None

    def open(self, shard: str, folder: Folder) -> CutPassages:
        cuts, stays = (read_columns(folder, scratch(name, shard)) for name in ("cuts", "stays"))
        return replace(self, cuts=cuts, claimed=stays)

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        assert self.cuts is not None and self.claimed is not None
        rows = first_row, first_row + batch.num_rows
        found, claimed = (_between(table, *rows) for table in (self.cuts, self.claimed))
        done = cut_passages(batch.column("text"), found, claimed, self.settings)
        edits = pa.RecordBatch.from_arrays(
            [
                batch.column("id").take(pa.array(done.rows)),
                pa.array(["substring.repeated"] * len(done.rows), pa.string()),
                pa.array(done.positions, pa.int64()),
                done.cuts,
            ],
            schema=EDITS,
        )
        sizes = pc.sum(pc.binary_length(done.cuts)).as_py() or 0
        extra = {"passages_cut": len(done.rows), "bytes_cut": sizes}
        return Outcome(with_column(batch, "text", done.texts), done.verdicts, edits, extra)


def _between(table: pa.RecordBatch, first: int, end: int) -> dict[int, Spans]:
    """Return the spans of a batch's documents, by row in the batch."""
    rows = row_of(table.column("key").to_numpy())
    low, high = np.searchsorted(rows, [first, end])
    own = [table.column(n)[low:high].to_pylist() for n in ("start", "end")]
    found: dict[int, Spans] = {}
    for row, *span in zip((rows[low:high] - first).tolist(), *own, strict=True):
        found.setdefault(row, []).append((span[0], span[1]))
    return found


def run(run: StageRun) -> dict[str, Any]:
    """Cut the passages of which a copy stands elsewhere."""
    settings: SubstringDedupSettings = run.settings
    run.begin()
    key, shards = run.settings_key, tuple(s.name for s in run.inputs)
    ranges, tasks = range_tasks(sum(s.bytes for s in run.inputs)), numbered_tasks(run.inputs)
    choose = ChooseWindows(key, settings)
    find = FindCopies(key, shards)
    claim = ClaimPassages(key, tuple(t.name for t in ranges), settings.min_bytes)
    check, gather = CheckOriginals(key, shards), GatherCuts(key, shards)
    applied = (run.folder, choose.name)
    apply = TransformShards(
        run.stage, key, CutPassages(settings), writes_edits=True, counted=applied
    )
    passes = [
        Pass(choose, tasks),
        Pass(find, ranges, after=(choose.name,)),
        Pass(claim, tasks, after=(find.name,)),
        Pass(check, tasks, after=(claim.name,)),
        Pass(gather, tasks, after=(check.name,)),
        Pass(apply, shard_tasks(run.inputs), beside=gather.name),
    ]
    run.chain(passes)
    return run.finish(shard_tasks(run.inputs), run.compared)
