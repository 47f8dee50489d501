"""Map: the documents of a shard that have a neighbour anywhere, sorted by their group.

A group is a component of the candidate graph. Its members come together in one task of the next
step, each with what decides who stays, and with what its similarity to others is measured by: the
set of its shingles, or its signature. Of documents with the same text in a shard, one carries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from curation.dedup.keys import within
from curation.dedup.settings import DocumentDedupSettings
from curation.dedup.sorting import sort_pairs
from curation.dedup.verify import shingle_sets
from curation.errors import InputError
from curation.hashing import mix64
from pipelines.dedup_documents.indexes import Place
from pipelines.dedup_documents.sign import Sign, text_hashes
from pipelines.engine.documents import noted, over_documents, set_aside_by
from pipelines.engine.duplicates import scratch
from pipelines.engine.exchange import (
    UInt64,
    concatenated,
    numbers_of_shard,
    read_range,
    row_of,
    write_run,
)
from pipelines.engine.files import FileRecord, Folder
from pipelines.engine.tasks import Progress, Result, Task

_STAGE = "dedup-documents"
MEMBERS = ("date", "length", "id_hash", "exact", "exact_low", "quality", "source_rank", "id")


@dataclass(frozen=True)
class Members:
    """One task per shard, of the input and of the indexes."""

    settings_key: str
    settings: DocumentDedupSettings
    labels: tuple[str, ...]  # names of runs
    candidates: tuple[str, ...]
    name: str = "members"

    def runs(self) -> list[str]:
        return [scratch("labels", n) for n in self.labels] + [
            scratch("candidates", n) for n in self.candidates
        ]

    def key_range(self, task: Task) -> tuple[int, int]:
        return numbers_of_shard(task.payload.index)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        place = task.payload
        numbers, labels = _of_shard(folder, "labels", self.labels, place.index, "label")
        keys = mix64(labels)
        facts = place.facts(folder)
        rows = row_of(numbers)
        own = facts.take(pa.array(rows))
        columns: dict[str, Any] = {"key": keys, "number": numbers}
        columns |= {n: own.column(n) for n in MEMBERS}
        columns["text"] = text_hashes(self.settings, own)
        columns["priority"] = np.full(len(keys), place.priority)
        name = scratch("members", place.name)
        files = {name: write_run(folder, name, "key", columns)}
        files |= self._pairs(folder, place, numbers, keys)
        aside: dict[int, str] = {}
        files |= self._sets(folder, place, own, rows, keys, columns["text"], aside)
        return Result(files, noted(aside))

    def _pairs(
        self, folder: Folder, place: Place, numbers: UInt64, keys: UInt64
    ) -> dict[str, FileRecord]:
        """Candidate pairs whose smaller document is of this shard."""
        first, second = _of_shard(folder, "candidates", self.candidates, place.index, "b")
        first, second = sort_pairs(first, second)
        new = np.ones(len(first), bool)
        new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        first, second = first[new], second[new]
        groups = keys[np.searchsorted(numbers, first)]
        name = scratch("pairs", place.name)
        return {name: write_run(folder, name, "key", {"key": groups, "a": first, "b": second})}

    def _sets(
        self,
        folder: Folder,
        place: Place,
        own: pa.RecordBatch,
        rows: Any,
        keys: UInt64,
        texts: UInt64,
        aside: dict[int, str],
    ) -> dict[str, FileRecord]:
        """What similarity is measured by, once per text and group."""
        _, first = np.unique(within(texts, keys), return_index=True)
        first.sort()
        if not self.settings.minhash.enabled:
            first = first[:0]
        if self.settings.verify.method == "jaccard":
            data = self._shingles(folder, place, rows[first], aside)
        elif self.settings.minhash.enabled:
            data = own.column("signature").take(pa.array(first)).cast(pa.binary())
            data = data.cast(pa.large_binary())
        else:
            data = pa.array([], pa.large_binary())
        name = scratch("sets", place.name)
        columns = {"key": keys[first], "text": texts[first], "data": data}
        return {name: write_run(folder, name, "key", columns)}

    def _shingles(self, folder: Folder, place: Place, rows: Any, aside: dict[int, str]) -> pa.Array:
        """Shingle sets of the given rows of a shard, read from its text."""
        if not len(rows):
            return pa.array([], pa.large_binary())
        parts = []
        try:
            function = partial(self._shingle_sets, rows)
            known = set_aside_by(folder, Sign.name, place.name)
            for part in over_documents(_STAGE, place.shard, function, ["text"], known=known):
                parts.append(part.answer)
                aside |= part.aside
        except InputError as error:
            if place.index_file is None:
                raise
            raise InputError(
                f"{error}: verification by jaccard reads the texts that an index was made of; "
                "with dedup-documents.verify.method=signature it doesn't"
            ) from error
        return pa.concat_arrays(parts)

    def _shingle_sets(self, rows: Any, batch: pa.RecordBatch, first_row: int) -> pa.Array:
        low, high = np.searchsorted(rows, [first_row, first_row + batch.num_rows])
        if low == high:
            return pa.array([], pa.large_binary())
        texts = batch.column("text").take(pa.array(rows[low:high] - first_row))
        sets = shingle_sets(texts, self.settings.minhash, self.settings.verify.normalization)
        offsets = sets.offsets * sets.hashes.itemsize
        data = [None, pa.py_buffer(offsets), pa.py_buffer(sets.hashes)]
        return pa.Array.from_buffers(pa.large_binary(), len(texts), data)


def _of_shard(
    folder: Folder, kind: str, names: Sequence[str], index: int, column: str
) -> tuple[UInt64, UInt64]:
    """Numbers of a shard's documents in runs sorted by number, and another column."""
    low, high = numbers_of_shard(index)
    batches = list(read_range(folder, [scratch(kind, n) for n in names], "key", low, high))
    if not batches:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    batch = concatenated(batches)
    return sort_pairs(batch.column("key").to_numpy(), batch.column(column).to_numpy())
