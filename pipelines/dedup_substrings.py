"""Stage `dedup-substrings`: cut passages that stand in another place, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import text_buffers
from curation.dedup.audit import SHOWN, SOURCES, losses_by_source, most_frequent
from curation.dedup.dedup_settings import DocumentDedupSettings, SubstringDedupSettings, defaults
from curation.dedup.substrings import (
    BLOCK,
    Copy,
    Spans,
    copies,
    cut_passages,
    evidence,
    grown,
    joined,
    passages,
    ranks,
    windows,
)
from curation.schema import edits_of, with_column
from pipelines.dedup.duplicates import (
    AUDIT,
    OfShard,
    OverRanges,
    numbered_tasks,
    range_tasks,
)
from pipelines.dedup.indexes import kept_shards
from pipelines.dedup.losses import loss_passes, losses_of
from pipelines.engine.documents import answers, column_names, noted, over_documents, set_aside_by
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.transform import (
    Outcome,
    Transform,
    TransformShards,
    shard_tasks,
)
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Progress, Result, Task, records_of
from pipelines.storage.exchange import (
    by_keys,
    concatenated,
    document_numbers,
    key_ranges,
    read_columns,
    read_range,
    row_of,
    rows_between,
    run_of,
    scratch,
    write_columns,
)
from pipelines.storage.files import Folder

_STAGE = "dedup-substrings"
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
        return Result(run_of(folder, "windows", shard.name, concatenated(found)), noted(aside))

    def windows(self, index: int, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the chosen windows of a batch: `key`, `rank`, `number` and `start`."""
        found = windows(batch.column("text"), self.settings.min_bytes)
        numbers = document_numbers(index, batch.num_rows, first_row)
        rank = ranks(batch, "first" if index < self.earlier else self.settings.keep)
        rank, numbers = rank[found.documents], numbers[found.documents]
        columns = {"key": found.keys, "rank": rank, "number": numbers, "start": found.starts}
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
        # Not in a list, which would hold all twice while they are sorted.
        return Result(run_of(folder, "copies", task.name, concatenated(self.found(task, folder))))

    def found(self, task: Task, folder: Folder) -> Iterator[pa.RecordBatch]:
        """Yield the copies among the windows, which are sorted in parts to bound the memory."""
        low, high = self.key_range(task)
        for part in _parts(list(read_range(folder, self.runs(), "key", low, high)), low, high):
            some = pa.RecordBatch.from_pydict(copies(part))
            yield some.filter(pc.greater_equal(some["key"], self.earlier << 32))


def _parts(rows: list[pa.RecordBatch], low: int, high: int) -> Iterator[pa.RecordBatch]:
    """Yield windows with keys in [low, high] in parts, which have whole blocks of each key."""
    count = min(1 + sum(batch.nbytes for batch in rows) // _PART_BYTES, high - low + 1)
    if count > 1:
        ranges = key_ranges(count, high - low + 1)
        for part, (first, last) in zip(by_keys(rows, "key", low, high, count), ranges, strict=True):
            yield from _parts(part, low + first, low + last)
        return
    windows = pa.Table.from_batches(rows, _WINDOWS)
    count = max(1, windows.num_rows)
    most = _PART_BLOCKS * BLOCK if low == high else count
    for start in range(0, count, most):
        yield concatenated(windows.slice(start, most).to_batches(), _WINDOWS)


#: Bytes of windows that are sorted at once: those of a range of keys may be many times as many,
#: and those of one key are as many as a passage has copies.
_PART_BYTES, _PART_BLOCKS = 64 << 20, 16
#: Rows of documents that are looked at together.
_BLOCK_ROWS = 1 << 12
_KEY = pa.uint64()
_WINDOWS = pa.schema([("key", _KEY), ("rank", _KEY), ("number", _KEY), ("start", pa.int64())])
_NONE = np.zeros(0, np.uint64)


#: Rows of documents of a batch that were sent, with its ids, and the text of each.
_Sent = Iterable[tuple[pa.RecordBatch, list[bytes]]]


@dataclass(frozen=True)
class _OverTexts(OfShard):
    """A step over documents with rows that others sent."""

    def over(
        self, task: Task, folder: Folder, rows: Sequence[pa.RecordBatch], key: str, function: Any
    ) -> tuple[list[Any], dict[int, str]]:
        """Return answers of `function` for rows, batches sorted by document, with the texts."""
        index, shard = task.payload
        known = set_aside_by(folder, ChooseWindows.name, shard.name)
        called = partial(_with_texts, function, rows, key, index << 32)
        return answers(over_documents(_STAGE, shard, called, ["id", "text"], known=known))


def _with_texts(
    function: Any, rows: Any, key: str, number: int, batch: pa.RecordBatch, first_row: int
) -> Any:
    offsets, data = text_buffers(batch.column("text"))
    low, texts = number + first_row, dict[int, bytes]()

    def sent() -> _Sent:
        for some in _blocks(rows_between(rows, key, low, low + batch.num_rows - 1)):
            own = (row_of(some.column(key).to_numpy()) - first_row).tolist()
            for row in set(own) - texts.keys():
                texts[row] = data[offsets[row] : offsets[row + 1]].tobytes()
            ids = batch.column("id").take(pa.array(own, pa.int64()))
            yield with_column(some, "id", ids), [texts[row] for row in own]

    return function(sent())


def _blocks(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join parts to batches of some thousand rows: a thousand senders have a few rows each."""
    held, rows = list[pa.RecordBatch](), 0
    for part in parts:
        held.append(part)
        rows += part.num_rows
        if rows >= _BLOCK_ROWS:
            yield concatenated(held)
            held, rows = [], 0
    if held:
        yield concatenated(held)


@dataclass(frozen=True)
class ClaimPassages(_OverTexts):
    """For each shard, join windows into passages, and claim them from their originals."""

    width: int = 0  # bytes of a window
    name: str = "claims"
    gathers: ClassVar[str] = "copies"
    sends: ClassVar[tuple[str, ...]] = ("claims",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows = self.rows(task, folder)
        if rows is None:
            return Result(run_of(folder, "claims", task.name, {"key": _NONE}))
        found = pa.RecordBatch.from_pydict(passages(rows, self.width))
        parts, aside = self.over(task, folder, [found], "number", _claims)
        claims = concatenated(chain.from_iterable(parts))
        return Result(run_of(folder, "claims", task.name, claims), noted(aside))


_EVIDENCE = ("digest", "left", "right")


def _claims(sent: _Sent) -> list[pa.RecordBatch]:
    """Return passages of documents with the evidence for them."""
    claims = []
    for rows, texts in sent:
        asked = rows.select(["start", "size", "before", "after"]).to_pylist()
        found = [evidence(text, **one) for text, one in zip(texts, asked, strict=True)]
        claim = rows.select(["key", "low", "high", "number", "start", "size", "at"])
        for i, name in enumerate(_EVIDENCE):
            claim = with_column(claim, name, pa.array([one[i] for one in found], pa.binary()))
        claims.append(claim)
    return claims


@dataclass(frozen=True)
class CheckOriginals(_OverTexts):
    """For each shard, grow the copies of originals in it that are the same, and note the claims.

    A shard may have the originals of most copies of a corpus: its rows are never joined as a whole.
    """

    name: str = "originals"
    gathers: ClassVar[str] = "claims"
    sends: ClassVar[tuple[str, ...]] = ("found",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows = list(read_range(folder, self.runs(), "key", *self.key_range(task)))
        nothing = ([_checked(())], dict[int, str]())
        parts, aside = self.over(task, folder, rows, "key", _checked) if rows else nothing
        grown, claims, often = zip(*parts, strict=True)
        files = run_of(folder, "found", task.name, concatenated(chain.from_iterable(grown)))
        claimed = scratch("claimed", task.name)
        files[claimed] = write_columns(folder, claimed, concatenated(claims))
        return Result(files, noted(aside) | {_OFTEN: most_frequent(chain.from_iterable(often))})


def _checked(
    sent: _Sent,
) -> tuple[list[pa.RecordBatch], pa.RecordBatch, list[dict[str, Any]]]:
    """Return the copies of documents' passages, what is claimed, and the most frequent ones."""
    copied, claims = [_spans([])], dict[int, Spans]()
    names = ("id", "key", "low", "high", "number", "start", "size", "at", *_EVIDENCE)
    frequent: dict[tuple[int, int, int], dict[str, Any]] = {}
    for rows, texts in sent:
        found, kept = list[tuple[int, int, int]](), list[str]()
        more = defaultdict[int, Spans](list)
        asked = zip(*(rows.column(n).to_pylist() for n in names), strict=True)
        for text, one in zip(texts, asked, strict=True):
            name, key, low, high, number, start, size, at, *proof = one
            longer = grown(text, at, size, proof)
            if longer is not None:
                found.append((number, start - longer[0], start + size + longer[1]))
                more[key].append((max(0, low - longer[0]), high + longer[1]))
                kept.append(name)
                passage = text[at - longer[0] : at + size + longer[1]]
                shown = passage[:SHOWN].decode(errors="ignore")
                nothing = {"passage": shown, "kept_id": name, "bytes": len(passage), "copies": 0}
                frequent.setdefault((key, at, size), nothing)["copies"] += 1
        copied.append(_spans(found, kept))
        claims |= {key: joined(claims.get(key, []) + spans) for key, spans in more.items()}
    claimed = _spans([(key, *span) for key, spans in claims.items() for span in spans])
    return copied, claimed, most_frequent(frequent.values())


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
            rows = rows or _spans([])
            order = np.lexsort([rows.column(n).to_numpy() for n in ("end", "start", "key")])
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
        ids = batch.column("id")
        edits = edits_of(ids, done.rows, "substring.repeated", done.positions, done.cuts)
        edits = with_column(edits, "kept_id", pa.array(done.kept_ids, pa.string()))
        gone = pc.is_valid(done.verdicts.reason).to_numpy(zero_copy_only=False)
        lost = np.bincount(done.rows, done.sizes, batch.num_rows).astype(np.int64)
        lost = np.where(gone, np.diff(text_buffers(batch.column("text")).offsets), lost)
        extra = {"passages_cut": len(done.rows), "bytes_cut": int(done.sizes.sum())}
        out = with_column(batch, "text", done.texts)
        return Outcome(out, done.verdicts, edits, extra, {AUDIT: losses_by_source(batch, lost)})


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
    apply = TransformShards(
        *(run.stage, key, CutPassages(settings)),
        beside={AUDIT: SOURCES},
        counted=(run.folder, choose.name),
    )
    share = defaults(DocumentDedupSettings).alarms.lost_share
    passes = [
        Pass(choose, every),
        Pass(find, ranges, after=(choose.name,)),
        Pass(claim, tasks, after=(find.name,)),
        Pass(check, every, after=(claim.name,)),
        Pass(gather, tasks, after=(check.name,)),
        Pass(apply, shard_tasks(run.inputs), beside=gather.name),
        *loss_passes(run, share, "bytes", gather.name),
    ]
    run.chain(passes)
    counts = [r["counts"] for r in records_of(run.folder, check, every)]
    often = chain.from_iterable(count.get(_OFTEN, ()) for count in counts)
    notes = {"most frequent passages cut": most_frequent(often)}
    notes |= losses_of(run, passes)
    return run.finish(shard_tasks(run.inputs), run.compared, {"notes": notes})
