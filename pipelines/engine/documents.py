"""Apply a function to a shard's documents, batch by batch; set aside those that crash it.

Every step that reads documents goes through `over_documents`. Normally it calls the function here.
In a task retried after its worker died (`guard.guarding`) it calls it in a guarded process: when a
batch crashes that process, its documents are tried one by one, those that crash it again are set
aside, and the others are processed as if these were not there. Only that batch is computed twice,
and the output depends on the documents alone, not on when a worker died.
"""

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from curation.errors import WorkerError
from curation.schema import conformed, with_column
from pipelines.engine.stage import Shard
from pipelines.runners.guard import Crash, Guard, is_guarded
from pipelines.runners.tasks import Progress, no_progress
from pipelines.storage.exchange import decoded, encoded
from pipelines.storage.files import SCRATCH, Folder
from pipelines.storage.shards import BATCH_ROWS

Answer = TypeVar("Answer")
#: A picklable function of a batch and the number of its first row in the shard.
Function = Callable[[pa.RecordBatch, int], Answer]

#: Key in a commit record's counts for the rows that a step set aside.
_ASIDE = "set aside"


@dataclass(frozen=True)
class Part(Generic[Answer]):
    """A part of a shard with the function's answer.

    With a `reason` it is one document that is removed for that reason; the answer is then that for
    its placeholder.
    """

    batch: pa.RecordBatch
    first_row: int
    answer: Answer
    reason: str | None = None

    @property
    def aside(self) -> dict[int, str]:
        """The row and reason, if this document is set aside; else empty."""
        return {} if self.reason is None else {self.first_row: self.reason}

    @property
    def ends_batch(self) -> bool:
        """Whether the next part begins a batch of its own."""
        return (self.first_row + self.batch.num_rows) % BATCH_ROWS == 0


def blank(document: pa.RecordBatch) -> pa.RecordBatch:
    """Return a placeholder for a document: it keeps the row but resembles no other document."""
    for name in ("text", "url"):
        if name in document.schema.names:
            empty = pa.array([""] * document.num_rows, document.schema.field(name).type)
            document = with_column(document, name, empty)
    return document


def nothing(document: pa.RecordBatch) -> pa.RecordBatch:
    """Return an empty batch with the same columns."""
    return document.slice(0, 0)


def over_documents(
    stage: str,
    shard: Shard,
    function: Function[Answer],
    columns: Sequence[str] | None = None,
    stand_in: Callable[[pa.RecordBatch], pa.RecordBatch] = blank,
    known: Mapping[int, str] | None = None,
) -> Iterator[Part[Answer]]:
    """Yield the function's answers for all documents of a shard, in order.

    Args:
        stage: part of the reasons for which documents are set aside.
        columns: columns to read, where there are such; all if not given.
        stand_in: makes the placeholder that the function gets for a document that is set aside.
        known: rows already set aside, with the reason.
    """
    parts = _Parts(stage, function, stand_in, is_guarded())
    row = 0
    for batch in shard.batches(columns):
        end = row + batch.num_rows
        aside = {r - row: reason for r, reason in (known or {}).items() if row <= r < end}
        found = parts.of(batch, row, aside)
        del batch  # the parts own the batch, and free it with the last of them
        yield from found
        row = end
    if not row:
        wanted = [f for f in shard.schema() if columns is None or f.name in columns]
        batch = conformed(pa.RecordBatch.from_pylist([], schema=pa.schema(wanted)))
        yield Part(batch, 0, function(batch, 0))


def answers(
    parts: Iterable[Part[Answer]], progress: Progress = no_progress
) -> tuple[list[Answer], dict[int, str]]:
    """Return all answers of a shard, and the rows set aside, with the reason."""
    found: list[Answer] = []
    aside: dict[int, str] = {}
    for part in parts:
        found.append(part.answer)
        aside |= part.aside
        progress(part.batch.num_rows, part.batch.num_rows)
    return found, aside


@dataclass(frozen=True)
class _Parts(Generic[Answer]):
    stage: str
    function: Function[Answer]
    stand_in: Callable[[pa.RecordBatch], pa.RecordBatch]
    guarded: bool

    def of(
        self, batch: pa.RecordBatch, row: int, aside: Mapping[int, str]
    ) -> Iterator[Part[Answer]]:
        """Yield the parts of a batch: documents set aside, and the runs between them."""
        if not aside:
            return self._sound(batch, row)
        return self._divided(batch, row, aside)

    def _divided(
        self, batch: pa.RecordBatch, row: int, aside: Mapping[int, str]
    ) -> Iterator[Part[Answer]]:
        start = 0
        for place in (*sorted(aside), batch.num_rows):
            if place > start:
                yield from self._sound(batch.slice(start, place - start), row + start)
            if place < batch.num_rows:
                document = batch.slice(place, 1)
                answer = self._call(self.stand_in(document), row + place)
                if isinstance(answer, Crash):
                    raise WorkerError(f"row {row + place}: {answer.detail}")
                yield Part(document, row + place, answer, aside[place])
            start = place + 1

    def _sound(self, batch: pa.RecordBatch, row: int) -> Iterator[Part[Answer]]:
        answer = self._call(batch, row)
        if isinstance(answer, Crash):
            found = self._culprits(batch, row)
            if found:
                yield from self.of(batch, row, found)
                return
            answer = self._call(batch, row)  # the first crash may have been chance
        if isinstance(answer, Crash):
            raise WorkerError(
                f"rows {row} to {row + batch.num_rows - 1} together, but none of them alone: "
                f"{answer.detail}"
            )
        part = Part(batch, row, answer)
        del batch, answer
        yield part

    def _call(self, batch: pa.RecordBatch, row: int) -> Answer | Crash:
        if not self.guarded:
            return self.function(batch, row)
        return self._guarded([batch], row)[0]

    def _culprits(self, batch: pa.RecordBatch, row: int) -> dict[int, str]:
        """Return the documents that crash a process on their own: position and reason."""
        singly = [batch.slice(i, 1) for i in range(batch.num_rows)]
        answers = self._guarded(singly, row)
        return {i: a.reason(self.stage) for i, a in enumerate(answers) if isinstance(a, Crash)}

    def _guarded(self, batches: Sequence[pa.RecordBatch], row: int) -> list[Answer | Crash]:
        function, items = pickle.dumps(self.function), []
        for batch in batches:
            items.append((function, encoded(batch), row))
            row += batch.num_rows
        return _guard.map(items, again=False)


def _apply(item: tuple[bytes, bytes, int]) -> Any:
    """Run in the guarded process: return a function's answer."""
    function, data, row = item
    return _load(function)(decoded(data), row)


@functools.lru_cache(maxsize=1)  # open a shard's models and lists once
def _load(function: bytes) -> Function[Any]:
    return pickle.loads(function)  # type: ignore[no-any-return]  # by this process's parent


#: The guarded process of this worker.
_guard: Guard[tuple[bytes, bytes, int], Any] = Guard(_apply)


def noted(aside: Mapping[int, str]) -> dict[str, Any]:
    """Return the rows that a step set aside, as an entry of its counts."""
    return {_ASIDE: {str(row): reason for row, reason in aside.items()}} if aside else {}


def set_aside_by(folder: Folder, step: str, shard: str) -> dict[int, str]:
    """Return the rows of a shard that an earlier step set aside, with the reason."""
    record = folder.read_own_json(f"{SCRATCH}/records/{step}/{shard}.json")
    return {int(row): reason for row, reason in record.get("counts", {}).get(_ASIDE, {}).items()}
