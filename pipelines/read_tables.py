"""Stage `read-tables`: turn tables into Parquet shards of documents, keeping their columns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from curation.extract.safe import text_of
from curation.language.language_settings import LanguageSettings
from curation.readers.documents import (
    ROWS,
    Others,
    Row,
    document_row,
    documents_batch,
    joined,
    others_of,
)
from curation.readers.raw import RawFile
from curation.readers.read import read
from curation.readers.records import Damage, Page, Skipped, drawn
from curation.readers.settings import ReaderSettings
from curation.schema import Verdicts
from curation.stages.read_tables import LANGUAGES, TableSettings
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import ShardWriter
from pipelines.extract import PageBatch, PagesBeside, mended_row
from pipelines.extract.sources import (
    KNOWN_INPUTS,
    SourceShard,
    as_planned,
    content_fingerprints,
    source_shards,
    tasks_of,
)
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.files import Folder
from pipelines.storage.shards import Tally

_WHOLE = 1 << 62


@dataclass(frozen=True)
class ReadTables:
    """Read the tables of a shard twice: for their column types, then for the rows."""

    settings_key: str
    settings: TableSettings
    readers: ReaderSettings
    languages: LanguageSettings | None = None  # with which those of documents are added
    name: ClassVar[str] = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: SourceShard = task.payload
        tally = Tally()
        kinds = [others_of(path, name, self.readers) for path, name in shard.files]
        others = joined(kinds, self.settings.columns, self.settings.kept_beside or ())
        batch, beside = PageBatch(), PagesBeside()
        with ShardWriter(folder, shard.name, "read-tables", tally) as writer:
            for name, row in self._rows(shard, dict(task.inputs)):
                beside.take(name, row[0] if isinstance(row, tuple) else row, tally)
                if isinstance(row, tuple):
                    page, document, own = row
                    if page.mended:
                        beside.mended.append(mended_row(document, page))
                    batch.add(document, own)
                if beside.full:
                    beside.write(writer)
                if len(batch.rows) == ROWS:
                    self._write(batch, others, writer, tally, progress)
                    batch = PageBatch()
            self._write(batch, others, writer, tally, progress)
            if beside.set_aside or beside.mended:
                beside.write(writer)
        return Result(writer.files, tally.counts())

    def _rows(
        self, shard: SourceShard, planned: dict[str, str]
    ) -> Iterator[tuple[str, tuple[Page, Row, Row] | Damage | Skipped]]:
        for path, name in shard.files:
            with as_planned(path, planned[name]):
                for event in drawn(read(path, self.readers, name), self.readers.sample, name):
                    if isinstance(event, Page) and event.kind == "text":
                        yield name, (event, *document_row(name, event, text_of(event)))
                    elif isinstance(event, Page):
                        detail = "a page, not a text: `extract` makes texts of pages"
                        place = event.offset, "table.page", detail, event.url or None, b""
                        yield name, Damage(*place)
                    else:
                        yield name, event

    def _write(
        self,
        rows: PageBatch,
        others: Others,
        writer: ShardWriter,
        tally: Tally,
        progress: Progress,
    ) -> None:
        batch = documents_batch(rows.rows, rows.own, others)
        if self.languages is not None:
            from curation.language.identifier import with_language  # compiled kernels

            batch = with_language(batch, self.languages)
        tally.add_in(batch)
        empty = np.array([not row["text"].strip() for row in rows.rows], bool)
        kept = writer.write(batch, Verdicts.where(empty, "table.empty_text"))
        progress(len(rows.rows), kept, RawFile.fetched - rows.fetched)


def source_tasks(run: StageRun, hashes: Mapping[str, str]) -> list[Task]:
    """Return a task for each shard; `hashes` are the fingerprints of the tables by name."""
    return tasks_of(source_shards(run.files, (), _WHOLE), hashes)


def run(run: StageRun) -> dict[str, Any]:
    """Read every table."""
    hashes = content_fingerprints(run.files, run.folder, _WHOLE)
    named = [(name, hashes[name]) for name in sorted(hashes)]
    if manifest := run.complete(named):
        return manifest
    known = run.folder.read_own_json(KNOWN_INPUTS)
    run.begin()
    tasks = source_tasks(run, hashes)
    languages = run.also.get(LANGUAGES)
    run.run(ReadTables(run.settings_key, run.settings, run.also["readers"], languages), tasks)
    return run.finish(tasks, named, timings=known)
