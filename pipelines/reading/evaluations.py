"""Measure evaluation sets in the documents of a run or of any corpus.

No stage is rerun and no document is written: the documents of the given stages, or the files of
any corpus, are read once and compared with the evaluation sets of a recipe.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from curation.decontaminate.catalog import items_of
from curation.decontaminate.decontaminate_settings import DecontaminationSettings
from curation.decontaminate.dialects import DIALECTS, Dialect
from curation.decontaminate.judge import FOUND, input_of
from curation.decontaminate.overlap import OVERLAP, overlap
from curation.errors import ConfigError, InputError
from curation.extract.safe import text_of
from curation.readers.discover import discover
from curation.readers.documents import ROWS, batched, document_row
from curation.readers.read import read
from curation.readers.records import Event, Page
from curation.readers.settings import ReaderSettings
from curation.recipe import Recipe
from curation.schema import DOCUMENTS
from curation.stages import find
from pipelines.decontaminate import evals_key, load
from pipelines.engine.stage import Shard, stage_inputs
from pipelines.run_folder import load_run
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest

STAGE = "decontaminate"
_COLUMNS = pa.schema([DOCUMENTS.field(name) for name in ("id", "text", "source")])
#: Counter of compared documents.
READ = "documents"
_SHOWN = 5  # most reasons


@dataclass(frozen=True)
class _Check:
    """Compares the documents of one file with the evaluation sets."""

    settings: DecontaminationSettings
    key: str
    readers: ReaderSettings
    dialect: str | None = None

    def __call__(self, part: Shard | tuple[str, str]) -> tuple[pa.Table, Counter[str]]:
        """Return the matches, and counts: `documents` compared, and unread records by reason."""
        counts: Counter[str] = Counter()
        found = [self._found(batch) for batch in self._batches(part, counts)]
        return pa.Table.from_batches(found, FOUND), counts

    def _found(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.dialect is None:
            return load(self.key, self.settings).apply(batch).found
        dialect = _dialect(self.dialect, self.settings.model_dump_json(round_trip=True))
        rows = [
            {"id": batch["id"][i].as_py(), "input": input_of(batch, i), "part": "question"}
            | {"set": dialect.items[match.item].set, "item": dialect.items[match.item].id}
            | {"action": "mark", "score": match.score}
            for i, text in enumerate(batch["text"].to_pylist())
            for match in dialect.find(text or "")
        ]
        return pa.RecordBatch.from_pylist(rows, FOUND)

    def _batches(
        self, part: Shard | tuple[str, str], counts: Counter[str]
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(part, Shard):
            for batch in part.batches(_COLUMNS.names):
                counts[READ] += batch.num_rows
                yield batch
            return
        path, name = part
        pages = _texts(read(path, self.readers, name), counts)
        rows = (document_row(name, page, text_of(page))[0] for page in pages)
        for some in batched(rows, ROWS):
            yield pa.RecordBatch.from_pylist(some, _COLUMNS)


@functools.lru_cache(maxsize=1)
def _dialect(name: str, settings: str) -> Dialect:
    read = DecontaminationSettings.model_validate_json(settings)
    return DIALECTS[name](items_of(read.evals))


def _texts(events: Iterator[Event], counts: Counter[str]) -> Iterator[Page]:
    """Yield the texts of a file; count everything else by reason."""
    for event in events:
        if isinstance(event, Page) and event.kind == "text":
            counts[READ] += 1
            yield event
        else:
            counts["html" if isinstance(event, Page) else event.reason] += 1


def contamination(
    recipe: Recipe,
    run: str | None,
    inputs: Sequence[str] = (),
    stages: Sequence[str] = (),
    dialect: str | None = None,
    workers: int = 0,
) -> tuple[pa.Table, Counter[str]]:
    """Compare documents with the evaluation sets of a recipe.

    Args:
        run: a finished run; or else
        inputs: files or folders of any corpus.
        stages: of the run; default: the last one with documents.
        dialect: a published way to find items, of `DIALECTS`.
        workers: processes.

    Returns a table of OVERLAP by stage, and counts: `documents` compared, and unread records by
    reason. Raises ConfigError for an unknown stage, InputError where nothing was compared.
    """
    settings = recipe.settings(STAGE)
    assert isinstance(settings, DecontaminationSettings)
    key = evals_key(settings)
    judge = load(key, settings)
    check = _Check(settings, key, recipe.readers, dialect)
    counts: Counter[str] = Counter()
    whole = np.ones(judge.items.num_rows, np.bool_)  # a dialect does not say what it can't find
    detectable = whole if dialect else judge.detectable()
    parts_that_act = ("question",) if dialect else settings.parts
    tables = [
        overlap(name, judge.items, detectable, found, FOUND, parts_that_act)
        for name, parts in _parts(run, inputs, stages, recipe.readers)
        for found in [_all(check, parts, workers, counts)]
    ]
    if not counts[READ]:
        raise InputError(f"{run or inputs[0]}: no text in it{unread(counts)}")
    return pa.concat_tables(tables) if tables else OVERLAP.empty_table(), counts


def unread(counts: Counter[str]) -> str:
    """Describe what was not compared, with a hint about pages."""
    reasons = {reason: n for reason, n in counts.most_common() if reason != READ}
    if not reasons:
        return ""
    shown = ", ".join(f"{reason} {n:,}" for reason, n in list(reasons.items())[:_SHOWN])
    hint = "; pages have no text before `curate extract`" if "html" in reasons else ""
    return f"; {sum(reasons.values()):,} records were not ({shown}{hint})"


def _parts(
    run: str | None, inputs: Sequence[str], stages: Sequence[str], readers: ReaderSettings
) -> Iterator[tuple[str, Sequence[Shard | tuple[str, str]]]]:
    """Return what to read, by stage; a corpus without stages is `input`."""
    if not run:
        yield "input", _of_corpus(inputs, readers)
        return
    folder, complete = load_run(run)
    complete = [s for s in complete if not find(s).is_sink]
    for name in stages or complete[-1:]:
        if name not in complete:
            raise ConfigError(f"--stages: {name}: {folder.shown} has: {', '.join(complete)}")
        yield name, stage_inputs([(folder / name).url])


def _of_corpus(paths: Sequence[str], readers: ReaderSettings) -> Sequence[Shard | tuple[str, str]]:
    if all(read_manifest(Folder(path)) for path in paths):
        return stage_inputs(paths)
    return [(file.path, file.name) for file in discover(paths, suffixes=readers.formats)]


def _all(
    check: _Check,
    parts: Sequence[Shard | tuple[str, str]],
    processes: int,
    counts: Counter[str],
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of all files in file order, whichever process read them."""
    with contextlib.ExitStack() as stack:
        apply: Any = map
        if processes >= 2 and len(parts) >= 2:
            spawn = multiprocessing.get_context("spawn")
            apply = stack.enter_context(ProcessPoolExecutor(processes, mp_context=spawn)).map
        for table, read_here in apply(check, parts):
            counts.update(read_here)
            yield from table.to_batches()
