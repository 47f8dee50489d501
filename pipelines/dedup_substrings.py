"""Stage `dedup-substrings`: cut passages that stand in another place, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import text_buffers
from curation.dedup.audit import SHOWN, SOURCES, losses_by_source, losses_noted, most_frequent
from curation.dedup.dedup_settings import DocumentDedupSettings, SubstringDedupSettings, defaults
from curation.dedup.substrings import (
    Copy,
    Cutting,
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
from pipelines.dedup.indexes import kept_shards
from pipelines.engine.documents import answers, column_names, noted, over_documents, set_aside_by
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.transform import (
    Outcome,
    Transform,
    TransformShards,
    batches_beside,
    shard_tasks,
)
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Task, records_of
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
#: Folder of the audit: bytes that the documents of each language and host had and lost, by batch.
_AUDIT = "audit"
#: Key in a commit record's counts for the most frequent passages.
_OFTEN = "frequent"


@dataclass(frozen=True)
class ChooseWindows:
    """Map: write the chosen windows of a shard, by hash."""

    settings_key: str
    settings: SubstringDedupSettings
    earlier: int  # shards of earlier runs, the first: their copies stay
    name: str = "windows"
    sends = ("windows",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, shard = task.payload
        columns = [name for name in ("text", "date") if name in column_names(shard)]
        parts = over_documents(_STAGE, shard, partial(self.windows, index), columns)
        found, aside = answers(parts, progress)
        name = scratch("windows", shard.name)
        return Result({name: write_run(folder, name, "key", concatenated(found))}, noted(aside))

    def windows(self, index: int, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the chosen windows of a batch: `key`, `rank`, `number` and `start`."""
        found = windows(batch.column("text"), self.settings.min_bytes)
        numbers = document_numbers(index, batch.num_rows, first_row)
        rank = ranks(batch, "first" if index < self.earlier else self.settings.keep)
        columns = {
            "key": found.keys,
            "rank": rank[found.documents],
            "number": numbers[found.documents],
            "start": found.starts,
        }
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class FindCopies(OverRanges):
    """Reduce: find the windows in a range of hashes that have an original elsewhere."""

    settings_key: str
    shards: tuple[str, ...]
    earlier: int
    name: str = "copies"
    sends = ("copies",)

    def runs(self) -> list[str]:
        return [scratch("windows", s) for s in self.shards]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows = read_key_range(folder, "windows", self.shards, *task.payload)
        found = pa.RecordBatch.from_pydict(copies(rows if rows is not None else _NO_WINDOWS))
        found = found.filter(pc.greater_equal(found["key"], self.earlier << 32))
        name = scratch("copies", task.name)
        return Result({name: write_run(folder, name, "key", found)})


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
    offsets, data = text_buffers(batch.column("text"))
    texts = {row: data[offsets[row] : offsets[row + 1]].tobytes() for row in set(own)}
    ids = batch.column("id").take(pa.array(own, pa.int64()))
    some = with_column(rows.slice(low, high - low), "id", ids)
    return function(some, [texts[row] for row in own])


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
        grown, claims, often = zip(*parts, strict=True)
        files = {found: write_run(folder, found, "key", concatenated(grown))}
        files[claimed] = write_columns(folder, claimed, concatenated(claims))
        return Result(files, noted(aside) | {_OFTEN: most_frequent(chain.from_iterable(often))})


def _checked(
    rows: pa.RecordBatch, texts: Sequence[bytes]
) -> tuple[pa.RecordBatch, pa.RecordBatch, list[dict[str, Any]]]:
    """Return the copies of documents' passages, what is claimed, and the most frequent ones."""
    found, claims, kept = list[tuple[int, int, int]](), list[tuple[int, int, int]](), list[str]()
    names = ("id", "key", "low", "high", "number", "start", "size", "at", *_EVIDENCE)
    asked = zip(*(rows.column(n).to_pylist() for n in names), strict=True)
    frequent: dict[tuple[int, int, int], dict[str, Any]] = {}
    for text, one in zip(texts, asked, strict=True):
        name, key, low, high, number, start, size, at, *proof = one
        longer = grown(text, at, size, proof)
        if longer is not None:
            found.append((number, start - longer[0], start + size + longer[1]))
            claims.append((key, max(0, low - longer[0]), high + longer[1]))
            kept.append(name)
            passage = text[at - longer[0] : at + size + longer[1]]
            shown = passage[:SHOWN].decode(errors="ignore")
            nothing = {"passage": shown, "kept_id": name, "bytes": len(passage), "copies": 0}
            frequent.setdefault((key, at, size), nothing)["copies"] += 1
    return _spans(found, kept), _spans(claims), most_frequent(frequent.values())


def _spans(spans: Sequence[tuple[int, int, int]], kept: Sequence[str] = ()) -> pa.RecordBatch:
    """Return spans by document, with the document that has the original of each."""
    numbers = np.array(spans, np.uint64).reshape(-1, 3).T
    columns = dict(zip(("key", "start", "end"), numbers, strict=True))
    names = pa.array(kept or [""] * len(spans), pa.string())
    return pa.RecordBatch.from_pydict(columns | {"kept_id": names})


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
        claims = {row: [(one.start, one.end) for one in some] for row, some in claimed.items()}
        done = cut_passages(batch.column("text"), found, claims, self.settings)
        edits = pa.RecordBatch.from_arrays(
            [
                batch.column("id").take(pa.array(done.rows)),
                pa.array(["substring.repeated"] * len(done.rows), pa.string()),
                pa.array(done.positions, pa.int64()),
                done.cuts,
                pa.array(done.kept_ids, pa.string()),
            ],
            schema=EDITS.append(pa.field("kept_id", pa.string())),
        )
        lost = losses_by_source(batch, _bytes_lost(batch, done))
        extra = {"passages_cut": len(done.rows), "bytes_cut": int(done.sizes.sum())}
        batch = with_column(batch, "text", done.texts)
        return Outcome(batch, done.verdicts, edits, extra, {_AUDIT: lost})


def _bytes_lost(batch: pa.RecordBatch, done: Cutting) -> npt.NDArray[np.int64]:
    lost = np.bincount(done.rows, done.sizes, batch.num_rows).astype(np.int64)
    gone = pc.is_valid(done.verdicts.reason).to_numpy(zero_copy_only=False)
    return np.where(gone, np.diff(text_buffers(batch.column("text")).offsets), lost)


def _between(table: pa.RecordBatch, first: int, end: int) -> dict[int, list[Copy]]:
    """Return the spans of a batch's documents, by row in the batch."""
    rows = row_of(table.column("key").to_numpy())
    low, high = np.searchsorted(rows, [first, end])
    own = [table.column(n)[low:high].to_pylist() for n in ("start", "end", "kept_id")]
    found: dict[int, list[Copy]] = {}
    for row, *span in zip((rows[low:high] - first).tolist(), *own, strict=True):
        found.setdefault(row, []).append(Copy(*span))
    return found


def check_indexes(settings: SubstringDedupSettings) -> list[Shard]:
    """Return the shards of earlier runs in the settings. Raises ConfigError if one has none."""
    return kept_shards(settings.index.against, _STAGE)


def run(run: StageRun) -> dict[str, Any]:
    """Cut the passages of which a copy stands elsewhere, or in an earlier run."""
    settings: SubstringDedupSettings = run.settings
    earlier = check_indexes(settings)
    run.begin()
    key, shards, first = run.settings_key, [*earlier, *run.inputs], len(earlier)
    ranges, every = range_tasks(sum(s.bytes for s in shards)), numbered_tasks(shards)
    names, tasks = tuple(t.name for t in every), every[first:]
    choose, find = ChooseWindows(key, settings, first), FindCopies(key, names, first)
    claim = ClaimPassages(key, tuple(t.name for t in ranges), settings.min_bytes)
    check, gather = CheckOriginals(key, names[first:]), GatherCuts(key, names)
    applied = (run.folder, choose.name)
    apply = TransformShards(
        *(run.stage, key, CutPassages(settings)),
        writes_edits=True,
        beside={_AUDIT: SOURCES},
        counted=applied,
    )
    passes = [
        Pass(choose, every),
        Pass(find, ranges, after=(choose.name,)),
        Pass(claim, tasks, after=(find.name,)),
        Pass(check, every, after=(claim.name,)),
        Pass(gather, tasks, after=(check.name,)),
        Pass(apply, shard_tasks(run.inputs), beside=gather.name),
    ]
    run.chain(passes)
    counts = [r["counts"] for r in records_of(run.folder, check, every)]
    often = chain.from_iterable(count.get(_OFTEN, ()) for count in counts)
    notes = {"most frequent passages cut": most_frequent(often)}
    share = defaults(DocumentDedupSettings).alarms.lost_share
    notes |= losses_noted(batches_beside(run, _AUDIT), share, "bytes")
    return run.finish(shard_tasks(run.inputs), run.compared, {"notes": notes})
