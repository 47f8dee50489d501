"""`curate contamination`: measure evaluation sets in a finished run or any corpus.

No stage is rerun and no document is written: the documents of the given stages, or the files of
any corpus, are read once and compared with the evaluation sets of a recipe.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curation.decontaminate.catalog import items_of
from curation.decontaminate.decontaminate_settings import DecontaminationSettings
from curation.decontaminate.dialects import DIALECTS, Dialect
from curation.decontaminate.judge import FOUND, input_of
from curation.decontaminate.overlap import OVERLAP, latex, markdown, overlap, summary
from curation.errors import ConfigError, InputError
from curation.extract.texts import text_of
from curation.readers import Event, Page, ReaderSettings, discover, read
from curation.readers.documents import ROWS, batched, document_row
from curation.recipe import load as load_recipe
from curation.schema import DOCUMENTS
from curation.stages import find
from pipelines.commands.options import add_dry_run, add_json, add_set, end_dry_run, workers
from pipelines.decontaminate import evals_key, load
from pipelines.engine.stage import Shard, stage_inputs
from pipelines.run_folder import load_run
from pipelines.runners.compilation import compile_kernels
from pipelines.runners.progress import open_display
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest
from pipelines.terminal import say, say_json, tell

_STAGE = "decontaminate"
_COLUMNS = pa.schema([DOCUMENTS.field(name) for name in ("id", "text", "source")])
_FILES = "contamination"
#: Counter of compared documents, and the number of reasons shown for the others.
_READ, _SHOWN = "documents", 5


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", metavar="DIR", help="a finished run")
    what.add_argument("--input", nargs="+", metavar="PATH", help="files or folders of any corpus")
    parser.add_argument(
        "--stages", metavar="A,B", help="stages of the run (default: the last with documents)"
    )
    parser.add_argument(
        "--recipe", required=True, help="recipe whose decontaminate.evals names the sets"
    )
    add_set(parser, "the recipe", "decontaminate.threshold=0.9")
    parser.add_argument(
        "--dialect", choices=DIALECTS, help="find items in a published way, for comparison"
    )
    parser.add_argument("--workers", type=workers, default=os.cpu_count(), metavar="N")
    parser.add_argument(
        "--output", required=True, metavar="DIR", help=f"gets {_FILES}.parquet, .md and .tex"
    )
    add_json(parser)
    add_dry_run(parser)
    parser.set_defaults(command=contamination)


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
                counts[_READ] += batch.num_rows
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
            counts[_READ] += 1
            yield event
        else:
            counts["html" if isinstance(event, Page) else event.reason] += 1


def contamination(options: argparse.Namespace) -> int:
    """Compare documents with the sets; write the tables and print the shares."""
    recipe = load_recipe(options.recipe, options.assignments)
    settings = recipe.settings(_STAGE)
    assert isinstance(settings, DecontaminationSettings)
    key = evals_key(settings)
    folder = Folder(options.output)
    end_dry_run(options, *(folder / f"{_FILES}.{kind}" for kind in ("parquet", "md", "tex")))
    if options.workers and not options.dialect:
        with open_display("auto") as display:
            compile_kernels([_STAGE], options.workers, display.compiling)
    judge = load(key, settings)
    check = _Check(settings, key, recipe.readers, options.dialect)
    counts: Counter[str] = Counter()
    whole = np.ones(judge.items.num_rows, np.bool_)  # a dialect does not say what it can't find
    detectable = whole if options.dialect else judge.detectable()
    parts_that_act = ("question",) if options.dialect else settings.parts
    tables = [
        overlap(name, judge.items, detectable, found, FOUND, parts_that_act)
        for name, parts in _parts(options, recipe.readers)
        for found in [_all(check, parts, options.workers, counts)]
    ]
    if not counts[_READ]:
        raise InputError(f"{options.run or options.input[0]}: no text in it{_unread(counts)}")
    rows = pa.concat_tables(tables) if tables else OVERLAP.empty_table()
    shares = summary(rows)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    folder.write_bytes(f"{_FILES}.parquet", sink.getvalue().to_pybytes())
    folder.write_bytes(f"{_FILES}.md", markdown(shares).encode())
    folder.write_bytes(f"{_FILES}.tex", latex(shares).encode())
    if options.json:
        say_json(shares)
    else:
        say(markdown(shares), end="")
    tell(f"{counts[_READ]:,} documents compared{_unread(counts)}")
    return 0


def _unread(counts: Counter[str]) -> str:
    """Describe what was not compared, with a hint about pages."""
    reasons = {reason: n for reason, n in counts.most_common() if reason != _READ}
    if not reasons:
        return ""
    shown = ", ".join(f"{reason} {n:,}" for reason, n in list(reasons.items())[:_SHOWN])
    hint = "; pages have no text before `curate extract`" if "html" in reasons else ""
    return f"; {sum(reasons.values()):,} records were not ({shown}{hint})"


def _parts(
    options: argparse.Namespace, readers: ReaderSettings
) -> Iterator[tuple[str, Sequence[Shard | tuple[str, str]]]]:
    """Return what to read, by stage; a corpus without stages is `input`."""
    if not options.run:
        yield "input", _of_corpus(options.input, readers)
        return
    folder, stages = load_run(options.run)
    stages = [s for s in stages if not find(s).is_sink]
    wanted = options.stages.split(",") if options.stages else stages[-1:]
    for name in wanted:
        if name not in stages:
            raise ConfigError(f"--stages: {name}: {folder.shown} has: {', '.join(stages)}")
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
