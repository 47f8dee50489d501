"""Stage `extract`: archives, pages and tables in; Parquet shards of documents out.

Each input file gives one shard; several small ones share a shard, a large one gives one per range.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from curation.columns import PAGE_COLUMNS
from curation.credentials import without_userinfo
from curation.extract.extract_settings import ExtractSettings
from curation.extract.extraction import Extraction
from curation.extract.safe import Failed, Refused, begin_page, extract_page, wrong_length
from curation.readers.documents import Others, Row, document_row, documents_batch, joined
from curation.readers.raw import RawFile
from curation.readers.records import Damage, Page, Skipped
from curation.readers.settings import KEEP_RAW_BYTES, ReaderSettings
from curation.schema import EXTRACTED, MENDED, SET_ASIDE, Verdicts
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import ShardWriter
from pipelines.extract.reading import FileReader, GuardedReader
from pipelines.extract.sources import (
    KNOWN_INPUTS,
    SourceShard,
    as_planned,
    content_fingerprints,
    noted,
    part_hashes,
    run_until_ranges_fit,
    source_shards,
    split_files,
    tasks_of,
)
from pipelines.runners.guard import Crash, Guard, is_guarded
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.files import Folder
from pipelines.storage.shards import Tally

if TYPE_CHECKING:  # loads compiled kernels, which a complete run does not need
    from curation.rights.sites import SiteIndex

_BATCH_PAGES = 256
_BATCH_CHARACTERS = 8 << 20
#: Most records, and bytes of pages, that are begun before the first of them is extracted.
GROUP_RECORDS, GROUP_BYTES = 64, 4 << 20
#: CPU seconds for a page of an engine or PDFium: only what would not end takes a tenth of it.
_MOST_SECONDS = 300


class _PositionUnknownError(Exception):
    """A range's offsets depend on the content before it, which has not been measured yet."""


@dataclass
class PageBatch:
    """Rows being collected, each with its other columns and a verdict."""

    rows: list[Row] = field(default_factory=list)
    own: list[Row] = field(default_factory=list)
    refused: list[Refused | None] = field(default_factory=list)
    characters: int = 0
    fetched: int = field(default_factory=lambda: RawFile.fetched)
    noticed: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row, own: Row, refused: Refused | None = None) -> None:
        self.rows.append(row)
        self.own.append(own)
        self.refused.append(refused)
        self.characters += len(row["text"])

    @property
    def full(self) -> bool:
        return len(self.rows) >= _BATCH_PAGES or self.characters >= _BATCH_CHARACTERS

    def verdicts(self) -> Verdicts:
        rows = [(r.reason, r.value, r.threshold) if r else (None,) * 3 for r in self.refused]
        columns = zip(*rows, strict=True) if rows else ([], [], [])
        kinds = pa.string(), pa.float64(), pa.float64()
        return Verdicts(*(pa.array(c, k) for c, k in zip(columns, kinds, strict=True)))


@dataclass
class PagesBeside:
    """Rows of the further tables; that of repaired records exists only if it has rows."""

    set_aside: list[dict[str, Any]] = field(default_factory=list)
    mended: list[dict[str, Any]] = field(default_factory=list)

    def take(self, name: str, record: Record, tally: Tally) -> None:
        """Count a record of a file, and keep what could not be read."""
        tally.add("records")
        if isinstance(record, Skipped):
            tally.add(f"skipped.{record.reason}")
        elif isinstance(record, Damage):
            tally.add("set_aside")
            tally.add(f"set_aside.{record.reason}")
            self.set_aside.append(damaged_row(name, record))
        elif record.mended:
            tally.add(f"mended.{record.mended}")

    @property
    def full(self) -> bool:
        return len(self.set_aside) + len(self.mended) >= _BATCH_PAGES

    def write(self, writer: ShardWriter) -> None:
        batch = pa.RecordBatch.from_pylist(self.set_aside, SET_ASIDE)
        writer.write_to("set_aside", batch)
        if self.mended:
            writer.write_to("mended", pa.RecordBatch.from_pylist(self.mended, MENDED))
        self.set_aside, self.mended = [], []


@dataclass(frozen=True)
class ExtractShards:
    """Read the input files of a shard and extract every page."""

    settings_key: str
    extract: ExtractSettings
    readers: ReaderSettings
    name: ClassVar[str] = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: SourceShard = task.payload
        planned, readers = dict(task.inputs), self._readers(shard)
        try:
            result = self._shard(shard, self._records(shard, readers, planned), folder, progress)
        except _PositionUnknownError:
            # To compute positions the driver only needs the size of the content.
            readers = self._readers(shard)
            with as_planned(readers[0].path, planned[readers[0].name], shard.part):
                for _ in readers[0]:
                    pass
            result = Result()
        return replace(result, noted=noted(readers[0].reading)) if shard.part else result

    def _shard(
        self,
        shard: SourceShard,
        found: Iterator[tuple[str, Record]],
        folder: Folder,
        progress: Progress,
    ) -> Result:
        """Write the documents of a shard, and the other records of its input."""
        tally = Tally()
        # The tables' columns besides those of documents; for a range, those of its rows.
        others = joined([r.others() for r in self._readers(shard)], taken=PAGE_COLUMNS)
        with ShardWriter(folder, shard.name, "extract", tally) as writer:
            judge = JudgePages(self.extract, self.readers, self.settings_key)
            batch, beside = PageBatch(), PagesBeside()
            for records in _grouped(found):
                answers = iter(judge.answers([r for _, r in records if isinstance(r, Page)]))
                for name, record in records:
                    beside.take(name, record, tally)
                    if isinstance(record, Page):
                        judge.add(name, record, next(answers), batch, beside)
                    if batch.full:
                        self._write(batch, others, writer, tally, progress)
                        batch = PageBatch()
                    if beside.full:
                        beside.write(writer)
            self._write(batch, others, writer, tally, progress)
            beside.write(writer)
        return Result(writer.files, tally.counts())

    def _records(
        self, shard: SourceShard, readers: Sequence[FileReader], planned: dict[str, str]
    ) -> Iterator[tuple[str, Record]]:
        for reader in readers:
            checked = as_planned(reader.path, planned[reader.name], shard.part)
            with contextlib.nullcontext() if reader.name in shard.records else checked:
                for record in reader:
                    if reader.lacks_position:
                        raise _PositionUnknownError
                    yield reader.name, record

    def _readers(self, shard: SourceShard) -> list[FileReader]:
        kind = GuardedReader if is_guarded() else FileReader
        part: tuple[Any, ...] = (shard.part.span, shard.part.begin) if shard.part else ()
        return [
            kind(path, name, self.readers, *((shard.records.get(name),) if shard.records else part))
            for path, name in shard.files
        ]

    def _write(
        self,
        batch: PageBatch,
        others: Others,
        writer: ShardWriter,
        tally: Tally,
        progress: Progress,
    ) -> None:
        documents = documents_batch(batch.rows, batch.own, others, EXTRACTED)
        tally.add_in(documents)
        for what, pages in batch.noticed.items():
            tally.add(what, pages)
        kept = writer.write(documents, batch.verdicts())
        progress(len(batch.rows), kept, RawFile.fetched - batch.fetched)


@dataclass(frozen=True)
class JudgePages:
    """Turns pages into documents, or into verdicts that say why not."""

    extract: ExtractSettings
    readers: ReaderSettings
    key: str  # fingerprint of settings and sites' files

    def answers(self, pages: list[Page]) -> list[Answer]:
        """Extract each page. Third-party engines and PDFium always run in a guarded process."""
        low, high = self.extract.http_status
        wanted = [p.status is None or low <= p.status <= high for p in pages]
        given = [p for p, is_wanted in zip(pages, wanted, strict=True) if is_wanted]
        groups = [[p for p in given if self._is_limited(p) == limited] for limited in (0, 1)]
        found = [iter(self._group(group, limited)) for limited, group in enumerate(groups)]
        each = zip(pages, wanted, strict=True)
        return [next(found[self._is_limited(p)]) if is_wanted else None for p, is_wanted in each]

    def _is_limited(self, page: Page) -> bool:
        return page.kind == "pdf" or self.extract.engine != "curation"

    def _group(self, pages: list[Page], limited: int) -> Sequence[Answer]:
        if not pages or not (limited or is_guarded()):
            return self._answers(pages)
        without = [replace(page, fields=None) for page in pages]
        return guarded(self.extract, bool(limited)).map(without)

    def _answers(self, pages: list[Page]) -> list[Answer]:
        """Return the same in this process, each step for all pages."""
        begun = [begin_page(self.extract, page) for page in pages]
        return [extract_page(self.extract, *each) for each in zip(pages, begun, strict=True)]

    def add(
        self, name: str, page: Page, answer: Answer, batch: PageBatch, beside: PagesBeside
    ) -> None:
        """Add a page to the batch, and its notes to the further tables."""
        row, own = document_row(name, page)
        from curation.extract.safe import page_columns  # here and below: compiled kernels
        from curation.rights.signals import is_malformed

        found = answer if isinstance(answer, Extraction) else None
        row |= page_columns(page, found, self._sites())
        signals = (row["rights"] or {}).get("signals", ())
        broken = (s["kind"] for s in signals if is_malformed(s["kind"], s["value"]))
        batch.noticed.update(f"malformed.{kind}" for kind in broken)
        if page.mended:
            beside.mended.append(mended_row(row, page))
        if answer is None:
            low, high = self.extract.http_status
            status = page.status or 0
            limit = low if status < low else high
            batch.add(row, own, Refused("http.status", status, limit))
        elif isinstance(answer, Refused):
            batch.add(row, own, answer)
        elif isinstance(answer, Failed | Crash):
            failed = "pdf.error" if page.kind == "pdf" else "extract.error"
            reason = answer.reason("extract") if isinstance(answer, Crash) else failed
            beside.set_aside.append(_failed(row, page, reason, answer.detail))
            batch.add(row, own, Refused(reason))
        else:
            self._extracted(row, own, answer, batch)

    def _sites(self) -> SiteIndex | None:
        """Return what files of sites say; None if there are none."""
        settings = self.extract.rights
        if not settings.files:
            return None
        from pipelines.extract.sites import load_sites  # compiled kernels

        return load_sites(self.key, settings, self.readers)

    def _extracted(self, row: Row, own: Row, answer: Extraction, batch: PageBatch) -> None:
        row["text"], row["title"] = answer.text, row["title"] or answer.title
        if answer.page_starts is not None:
            own["page_starts"] = answer.page_starts
        if answer.repaired:
            batch.noticed[f"repaired.{answer.repaired}"] += 1
        batch.add(row, own, wrong_length(len(answer.text), self.extract))


Record = Page | Damage | Skipped
Answer = Extraction | Refused | Failed | Crash | None  # None: extraction was skipped


@functools.lru_cache(maxsize=2)
def guarded(
    settings: ExtractSettings, limited: bool = True
) -> Guard[Page, Extraction | Refused | Failed]:
    """Return the guarded process of this worker, `limited` for code that is not our own."""
    limits = (settings.max_engine_memory, _MOST_SECONDS) if limited else ()
    return Guard(functools.partial(extract_page, settings), *limits)


def _grouped(records: Iterator[tuple[str, Record]]) -> Iterator[list[tuple[str, Record]]]:
    """Group records, bounded by number and size, so that engines get pages in batches."""
    group: list[tuple[str, Record]] = []
    size = 0
    for name, record in records:
        group.append((name, record))
        size += len(record.content) if isinstance(record, Page) else 0
        if len(group) >= GROUP_RECORDS or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    yield group


def damaged_row(name: str, record: Damage) -> dict[str, Any]:
    return {
        "url": without_userinfo(record.url) if record.url else record.url,
        "raw": record.raw,
        "reason": record.reason,
        "detail": record.detail,
        "source": {"file": name, "offset": record.offset},
    }


def _failed(row: dict[str, Any], page: Page, reason: str, detail: str) -> dict[str, Any]:
    return {
        **{name: row[name] for name in ("id", "url", "date", "source")},
        **(
            {"raw": page.content[:KEEP_RAW_BYTES]}
            if page.kind == "pdf"
            else {page.kind: page.content}
        ),
        "charset": page.charset,
        "mended": page.mended or None,
        "status": page.status,
        "headers": page.headers,
        "reason": reason,
        "detail": detail,
    }


def mended_row(row: dict[str, Any], page: Page) -> dict[str, Any]:
    named = {name: row[name] for name in ("id", "url", "source")}
    return {**named, "reason": page.mended, "detail": page.detail}


def source_tasks(run: StageRun, hashes: Mapping[str, str]) -> list[Task]:
    """Return a task for each shard; `hashes` are the fingerprints of the input files by name."""
    readers: ReaderSettings = run.also["readers"]
    parts = part_hashes(run.folder, readers.split_bytes)
    shards = source_shards(run.files, split_files(run, readers), readers.split_bytes, parts)
    return tasks_of(shards, hashes)


def run(run: StageRun) -> dict[str, Any]:
    """Extract every input file."""
    readers: ReaderSettings = run.also["readers"]
    hashes = content_fingerprints(run.files, run.folder, readers.split_bytes)
    named = [(name, hashes[name]) for name in sorted(hashes)]
    if manifest := run.complete(named):
        return manifest
    known = run.folder.read_own_json(KNOWN_INPUTS)
    tasks = source_tasks(run, hashes)
    notes: dict[str, Any] = {"passed over": run.passed_over} if run.passed_over else {}
    if run.settings.rights.files:
        from pipelines.extract.sites import load_sites  # compiled kernels

        sites = load_sites(run.settings_key, run.settings.rights, readers)
        notes["files of sites"] = sites.counts
    run.begin()
    step = ExtractShards(run.settings_key, run.settings, readers)
    run_until_ranges_fit(run, step, tasks)
    return run.finish(tasks, named, {"notes": notes} if notes else None, timings=known)
