"""Stage `dedup-substrings`: cut passages that stand in another place, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
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
    GAP,
    Copy,
    answer,
    choose_cuts,
    copies,
    cut_passages,
    evidence,
    grown,
    passages,
    ranks,
    windows,
)
from curation.schema import edits_of, with_column
from pipelines.dedup.duplicates import AUDIT, OfShard, OverRanges, numbered_tasks, range_tasks
from pipelines.dedup.indexes import kept_shards
from pipelines.dedup.losses import loss_passes, losses_of
from pipelines.engine.documents import answers, noted, over_documents, set_aside_by
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.transform import Outcome, Transform, TransformShards, shard_tasks
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
        columns = [name for name in ("text", "date") if name in shard.schema().names]
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
    width: int  # bytes of a window
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
            some = pa.RecordBatch.from_pydict(copies(part, self.width))
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
_INT = pa.int64()
_WINDOWS = pa.schema({"key": _KEY, "rank": _KEY, "number": _KEY, "start": _INT})
_COPIES = {"start": _INT, "end": _INT, "kept_id": pa.string(), "original": _KEY, "shift": _INT}
_SPANS = pa.schema({"key": _KEY} | _COPIES)
#: How often originals are asked, and then what goes there itself is asked for of theirs: what is
#: found no later stays.
_TURNS = 4

#: Passages, with the number of the document.
_Found = list[tuple[int, Copy]]
#: Rows of documents of a batch that were sent, with its ids, and the text of each.
_Sent = Iterable[tuple[pa.RecordBatch, list[bytes]]]


@dataclass(frozen=True)
class _OverTexts(OfShard):
    """A step over documents with rows that others sent."""

    def over(
        self, task: Task, folder: Folder, function: Any, rows: Any, *more: Any
    ) -> tuple[list[Any], dict[int, str]]:
        """Return answers of a function of rows and batches of the documents' texts."""
        index, shard = task.payload
        known = set_aside_by(folder, ChooseWindows.name, shard.name)
        called = partial(function, rows, index << 32, *more)
        return answers(over_documents(_STAGE, shard, called, ["id", "text"], known=known))


def _with_texts(
    rows: Any, number: int, key: str, function: Any, batch: pa.RecordBatch, first_row: int
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
            return Result(run_of(folder, "claims", task.name, {"key": np.zeros(0, np.uint64)}))
        found = pa.RecordBatch.from_pydict(passages(rows, self.width))
        claims = partial(_claims, self.width + GAP)
        parts, aside = self.over(task, folder, _with_texts, [found], "number", claims)
        claims = concatenated(chain.from_iterable(parts))
        return Result(run_of(folder, "claims", task.name, claims), noted(aside))


_EVIDENCE = ("digest", "left", "right")


def _claims(beside: int, sent: _Sent) -> list[pa.RecordBatch]:
    """Return passages of documents with the evidence for them.

    A repeat that goes on for more bytes than `beside` has another window there.
    """
    claims = []
    for rows, texts in sent:
        asked = rows.select(["start", "size"]).to_pylist()
        shown = zip(texts, asked, strict=True)
        proofs = zip(*(evidence(text, **one, beside=beside) for text, one in shown), strict=True)
        claim = rows.select(["key", "number", "start", "size", "at"])
        for name, values in zip(_EVIDENCE, proofs, strict=True):
            claim = with_column(claim, name, pa.array(values, pa.binary()))
        claims.append(claim)
    return claims


@dataclass(frozen=True)
class CheckOriginals(_OverTexts):
    """For each shard, grow the copies of originals in it that are the same.

    A shard may have the originals of most copies of a corpus: its rows are never joined as a whole.
    """

    name: str = "originals"
    gathers: ClassVar[str] = "claims"
    sends: ClassVar[tuple[str, ...]] = ("found",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        rows = list(read_range(folder, self.runs(), "key", *self.key_range(task)))
        parts, aside = [_checked(())], dict[int, str]()
        if rows:
            parts, aside = self.over(task, folder, _with_texts, rows, "key", _checked)
        grown, often = zip(*parts, strict=True)
        files = run_of(folder, "found", task.name, concatenated(chain.from_iterable(grown)))
        return Result(files, noted(aside) | {_OFTEN: most_frequent(chain.from_iterable(often))})


def _checked(sent: _Sent) -> tuple[list[pa.RecordBatch], list[dict[str, Any]]]:
    """Return the copies of documents' passages, and the most frequent ones."""
    copied = [_spans([])]
    names = ("id", "key", "number", "start", "size", "at", *_EVIDENCE)
    frequent: dict[tuple[int, int, int], dict[str, Any]] = {}
    for rows, texts in sent:
        found = _Found()
        asked = zip(*(rows.column(n).to_pylist() for n in names), strict=True)
        for text, one in zip(texts, asked, strict=True):
            name, key, number, start, size, at, *proof = one
            longer = grown(text, at, size, proof)
            if longer is not None:
                edges = start - longer[0], start + size + longer[1]
                found.append((number, Copy(*edges, name, key, at - start)))
                passage = text[at - longer[0] : at + size + longer[1]]
                shown = passage[:SHOWN].decode(errors="ignore")
                nothing = {"passage": shown, "kept_id": name, "bytes": len(passage), "copies": 0}
                frequent.setdefault((key, at, size), nothing)["copies"] += 1
        copied.append(_spans(found))
    return copied, most_frequent(frequent.values())


def _spans(spans: _Found) -> pa.RecordBatch:
    """Return passages by document."""
    rows = [(key, *one) for key, one in spans]
    columns = [pa.array([row[i] for row in rows], _SPANS.types[i]) for i in range(len(_SPANS))]
    return pa.RecordBatch.from_arrays(columns, schema=_SPANS)


@dataclass(frozen=True)
class ChooseCuts(_OverTexts):
    """For each shard, write what its documents would lose, and ask whether the originals stand."""

    settings: SubstringDedupSettings | None = None
    name: str = "cuts"
    gathers: ClassVar[str] = "found"
    sends: ClassVar[tuple[str, ...]] = ("asked-0",)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        parts, aside = list[_Found](), dict[int, str]()
        if found := _by_document(_sent_to(self, task, folder)):
            parts, aside = self.over(task, folder, _losses, found, self.settings)
        cuts, own = list(chain.from_iterable(parts)), scratch("cuts", task.name)
        asked = [(one.original, one.there(number)) for number, one in cuts]
        files = {own: write_columns(folder, own, _spans(cuts))}
        return Result(files | run_of(folder, "asked-0", task.name, _spans(asked)), noted(aside))


def _losses(
    found: dict[int, list[Copy]],
    number: int,
    settings: SubstringDedupSettings,
    batch: pa.RecordBatch,
    first_row: int,
) -> _Found:
    first = number + first_row
    cuts = choose_cuts(batch.column("text"), _in_batch(found, first, batch.num_rows), settings)
    return [(first + row, one) for row, own in cuts.items() for one in own]


@dataclass(frozen=True)
class AskOriginals(OfShard):
    """For each shard, say what of its passages stands, and ask further for what goes itself."""

    earlier: int
    name: str
    sends: tuple[str, str]  # answers, and what is asked further
    gathers: ClassVar[str] = ""

    def runs(self) -> list[str]:
        return [scratch(self.name, s) for s in self.senders]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        index, own = task.payload[0], scratch("cuts", task.name)
        cuts = _by_document(read_columns(folder, own)) if index >= self.earlier else {}
        given, more, here = [_spans([])], [_spans([])], set[int]()
        # A shard may have the originals of most copies of a corpus: they are never all objects.
        for asked in _blocks(read_range(folder, self.runs(), "key", *self.key_range(task))):
            parts, others = _Found(), _Found()
            for number, one in _passages(asked):
                stands, further = answer(one, number, cuts.get(number, []))
                parts += [(one.original, part) for part in stands]
                others += further
                here |= {number for _ in stands}
            given.append(_spans(parts))
            more.append(_spans(others))
        # An empty one tells a document that it has an original.
        given.append(_spans([(number, Copy(0, 0, "")) for number in sorted(here)]))
        files = run_of(folder, self.sends[0], task.name, concatenated(given))
        return Result(files | run_of(folder, self.sends[1], task.name, concatenated(more)))


@dataclass(frozen=True)
class GatherCuts(OfShard):
    """For each shard, write what is cut, and which documents have originals."""

    kinds: tuple[str, ...] = ()
    name: str = "parts"
    gathers: ClassVar[str] = ""
    sends: ClassVar[tuple[str, ...]] = ()

    def runs(self) -> list[str]:
        return [scratch(kind, s) for kind in self.kinds for s in self.senders]

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        parts = scratch("parts", task.name)
        return Result({parts: write_columns(folder, parts, _sent_to(self, task, folder))})


def _sent_to(step: OfShard, task: Task, folder: Folder) -> pa.RecordBatch:
    """Return the passages that others sent for the documents of a shard."""
    rows = read_range(folder, step.runs(), "key", *step.key_range(task))
    return concatenated(rows, _SPANS)


def _by_document(rows: pa.RecordBatch) -> dict[int, list[Copy]]:
    """Return passages by the number of the document."""
    found: dict[int, list[Copy]] = {}
    for number, one in _passages(rows):
        found.setdefault(number, []).append(one)
    return found


def _passages(rows: pa.RecordBatch) -> Iterator[tuple[int, Copy]]:
    for number, *one in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        yield number, Copy(*one)


def _in_batch(found: dict[int, list[Copy]], first: int, rows: int) -> dict[int, list[Copy]]:
    """Return the passages of as many documents from a number on, by row in their batch."""
    return {row: found[first + row] for row in range(rows) if first + row in found}


@dataclass(frozen=True)
class CutPassages(Transform):
    """The transform that cuts passages and removes documents left too short."""

    settings: SubstringDedupSettings
    cuts: dict[int, list[Copy]] = field(default_factory=dict)

    def open(self, shard: str, folder: Folder) -> CutPassages:
        cuts = _by_document(read_columns(folder, scratch("parts", shard)))
        return replace(self, cuts={number & 0xFFFFFFFF: own for number, own in cuts.items()})

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        found = _in_batch(self.cuts, first_row, batch.num_rows)
        done = cut_passages(batch.column("text"), found, self.settings)
        ids = batch.column("id")
        edits = edits_of(ids, done.rows, "substring.repeated", done.positions, done.cuts)
        edits = with_column(edits, "kept_id", pa.array(done.kept_ids, pa.string()))
        gone = pc.is_valid(done.verdicts.reason).to_numpy(zero_copy_only=False)
        lost = np.bincount(done.rows, done.sizes, batch.num_rows).astype(np.int64)
        lost = np.where(gone, np.diff(text_buffers(batch.column("text")).offsets), lost)
        extra = {"passages_cut": len(done.rows), "bytes_cut": int(done.sizes.sum())}
        out = with_column(batch, "text", done.texts)
        return Outcome(out, done.verdicts, edits, extra, {AUDIT: losses_by_source(batch, lost)})


def check_indexes(settings: SubstringDedupSettings) -> list[Shard]:
    """Return the shards of earlier runs in the settings. Raises ConfigError if one has none."""
    return kept_shards(settings.index.against, _STAGE)


def run(run: StageRun) -> dict[str, Any]:
    """Cut the passages of which a copy stands elsewhere, or in an earlier run."""
    settings: SubstringDedupSettings = run.settings
    earlier = check_indexes(settings)
    run.begin()
    key, shards, first = run.settings_key, [*earlier, *run.inputs], len(earlier)
    width = settings.min_bytes
    ranges, every = range_tasks(sum(s.bytes for s in shards)), numbered_tasks(shards)
    names, tasks = tuple(t.name for t in every), every[first:]
    choose, find = ChooseWindows(key, settings, first), FindCopies(key, names, first, width)
    claim = ClaimPassages(key, tuple(t.name for t in ranges), width)
    check, cut = CheckOriginals(key, names[first:]), ChooseCuts(key, names, settings)
    kinds = [(f"given-{i}", f"asked-{i + 1}") for i in range(_TURNS)]
    asks = [
        AskOriginals(key, names if i else names[first:], first, f"asked-{i}", sent)
        for i, sent in enumerate(kinds)
    ]
    gather = GatherCuts(key, names, tuple(given for given, _ in kinds))
    asked = tuple(ask.name for ask in asks)
    apply = TransformShards(
        *(run.stage, key, CutPassages(settings)),
        beside={AUDIT: SOURCES},
        counted=(run.folder, choose.name),
    )
    passes = [
        Pass(choose, every),
        Pass(find, ranges, after=(choose.name,)),
        Pass(claim, tasks, after=(find.name,)),
        Pass(check, every, after=(claim.name,)),
        Pass(cut, tasks, after=(check.name,)),
        *(Pass(ask, every, after=(*asked[:i], cut.name)) for i, ask in enumerate(asks)),
        Pass(gather, tasks, after=asked),
        Pass(apply, shard_tasks(run.inputs), beside=gather.name),
        *loss_passes(run, defaults(DocumentDedupSettings).alarms.lost_share, "bytes", gather.name),
    ]
    run.chain(passes)
    counts = [r["counts"] for r in records_of(run.folder, check, every)]
    often = chain.from_iterable(count.get(_OFTEN, ()) for count in counts)
    notes = {"most frequent passages cut": most_frequent(often)}
    notes |= losses_of(run, passes)
    return run.finish(shard_tasks(run.inputs), run.compared, {"notes": notes})
