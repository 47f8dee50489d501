"""Documents that end the process which works on them, for tests; a module, for child processes.

`abort in STAGE` in a text (or URL) ends it as a crash in native code does, `kill in STAGE` as the
kernel does where memory runs out; `starve in STAGE` raises MemoryError.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import pipelines.extract
from curation.extract.extract_settings import ExtractSettings
from curation.extract.safe import extract_page
from curation.readers.records import Page
from curation.schema import Verdicts, with_column
from pipelines.dedup.duplicates import ApplyVerdicts
from pipelines.engine import documents
from pipelines.engine.transform import Outcome, Transform
from pipelines.extract import reading
from pipelines.runners import local

KINDS = {"abort": "crash", "kill": "memory", "starve": "memory"}


def swallow(stage: str, text: str, spares: bool = False) -> None:
    """What the mark says. With `spares`, processes that aren't guarded only run out of memory."""
    kind = next((k for k in KINDS if f"{k} in {stage}" in text), None)
    if kind is None:
        return
    if kind == "starve" or (spares and not multiprocessing.current_process().daemon):
        raise MemoryError("no more")
    os.kill(os.getpid(), signal.SIGABRT if kind == "abort" else signal.SIGKILL)


@dataclass
class Deadly:
    """A stage's function that marked documents of the stage are deadly to."""

    function: Callable[[pa.RecordBatch, int], Any]
    stage: str
    spares: bool

    def __call__(self, batch: pa.RecordBatch, row: int) -> Any:
        place = "text" if "text" in batch.schema.names else "url"
        for text in batch.column(place).to_pylist():
            swallow(self.stage, text, self.spares)
        return self.function(batch, row)


def deadly_page(spares: bool, settings: ExtractSettings, page: Page, *begun: Any) -> Any:
    """An extractor that marked pages are deadly to."""
    swallow("extract", page.content.decode("latin-1"), spares)
    return extract_page(settings, page, *begun)


_READ, _RANGE, _ANSWER = reading.read, reading.RangeReader, reading._answer
_RECORDS = reading.read_records


def deadly_events(events: Iterable[Any]) -> Iterator[Any]:
    """A reader that marked records are deadly to."""
    for event in events:
        if isinstance(event, Page):
            swallow("reading", event.content.decode("latin-1"), spares=True)
        yield event


class DeadlyRange(_RANGE):
    """The same, of a range."""

    def __iter__(self) -> Iterator[Any]:
        return deadly_events(super().__iter__())


def deadly_read(*arguments: Any) -> Iterator[Any]:
    """In place of `read`."""
    return deadly_events(_READ(*arguments))


def deadly_records(*arguments: Any) -> Iterator[Any]:
    """In place of `read_records`."""
    return deadly_events(_RECORDS(*arguments))


def deadly_answer(question: Any) -> Any:
    """In place of `reading._answer`, in its process."""
    reading.read, reading.RangeReader = deadly_read, DeadlyRange  # type: ignore[misc]
    reading.read_records = deadly_records
    return _ANSWER(question)


_PARTS = documents._Parts


def deadly_parts(spares: bool, stage: str, function: Any, *others: Any) -> Any:
    """In place of `documents._Parts`. To apply verdicts is deadly to nobody: it reads no text."""
    if not isinstance(getattr(function, "transform", None), ApplyVerdicts):
        function = Deadly(function, stage, spares)
    return _PARTS(stage, function, *others)


_start_worker = local._start_worker


def start_deadly_worker(*arguments: Any) -> None:
    """In place of `local._start_worker`."""
    documents._Parts = functools.partial(deadly_parts, False)  # type: ignore[assignment, misc]
    pipelines.extract.extract_page = functools.partial(deadly_page, False)
    _start_worker(*arguments)


@dataclass(frozen=True)
class Delicate(Transform):
    """A transform that counts letters, and that marked documents of a stage `toy` are deadly to."""

    def apply(self, batch: pa.RecordBatch, first_row: int) -> Outcome:
        texts = batch.column("text").to_pylist()
        for text in texts:
            swallow("toy", text, spares=True)
        batch = with_column(batch, "letters", pa.array(map(len, texts), pa.int64()))
        return Outcome(batch, Verdicts.keep_all(batch.num_rows))
