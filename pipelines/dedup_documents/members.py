"""Map: write the documents of a shard that have a neighbour anywhere, sorted by group.

A group is a component of the candidate graph. Its members meet in one task of the next step, each
with the columns for choosing a survivor, and with the data for similarity: its shingle set or its
signature. Of a shard's documents with the same text, only one carries that data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from curation.dedup.candidates import shingle_sets
from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.dedup.facts import text_hashes
from curation.dedup.keys import sort_pairs, within
from curation.errors import InputError
from curation.hashing import mix64
from pipelines.dedup.duplicates import read_key_range
from pipelines.dedup.indexes import Place
from pipelines.dedup_documents.buckets import REFUSED, Sign
from pipelines.engine.documents import answers, noted, over_documents, set_aside_by
from pipelines.runners.tasks import Progress, Result, Task
from pipelines.storage.exchange import UInt64, numbers_of_shard, row_of, run_of, scratch
from pipelines.storage.files import Folder

_STAGE = "dedup-documents"
_NO_DATA = pa.array([], pa.large_binary())
MEMBERS = ("date", "length", "id_hash", "exact", "exact_low", "quality", "source_rank", "id")


@dataclass(frozen=True)
class Members:
    """One task per shard, of the input and of the indexes."""

    settings_key: str
    settings: DocumentDedupSettings
    labels: tuple[str, ...]  # names of runs
    candidates: tuple[str, ...]
    name: str = "members"
    sends = ("members", "pairs", "sets")

    def runs(self) -> list[str]:
        return [scratch("labels", n) for n in self.labels] + [
            scratch("candidates", n) for n in self.candidates
        ]

    def key_range(self, task: Task) -> tuple[int, int]:
        return numbers_of_shard(task.payload.index)

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        place: Place = task.payload
        numbers, labels = _of_shard(folder, "labels", self.labels, place.index, "label")
        keys, rows = mix64(labels), row_of(numbers)
        own = place.facts(folder).take(pa.array(rows))
        texts, priority = text_hashes(self.settings, own), np.full(len(keys), place.priority)
        if REFUSED in own.schema.names and place.index_file is None:
            priority += own.column(REFUSED).to_numpy(zero_copy_only=False)
        members = {"key": keys, "number": numbers, "text": texts, "priority": priority}
        members |= {n: own.column(n) for n in MEMBERS}
        aside: dict[int, str] = {}
        sets = self._sets(folder, place, own, rows, keys, texts, aside)
        files = run_of(folder, "members", place.name, members)
        files |= run_of(folder, "pairs", place.name, self._pairs(folder, place, numbers, keys))
        files |= run_of(folder, "sets", place.name, sets)
        return Result(files, noted(aside))

    def _pairs(
        self, folder: Folder, place: Place, numbers: UInt64, keys: UInt64
    ) -> dict[str, UInt64]:
        """Return the candidate pairs whose smaller document is in this shard, with their group."""
        first, second = _of_shard(folder, "candidates", self.candidates, place.index, "b")
        new = np.ones(len(first), bool)
        new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        first, second = first[new], second[new]
        return {"key": keys[np.searchsorted(numbers, first)], "a": first, "b": second}

    def _sets(
        self,
        folder: Folder,
        place: Place,
        own: pa.RecordBatch,
        rows: Any,
        keys: UInt64,
        texts: UInt64,
        aside: dict[int, str],
    ) -> dict[str, Any]:
        """Return the data for similarity, once per text and group."""
        _, first = np.unique(within(texts, keys), return_index=True)
        first = np.sort(first) if self.settings.minhash.enabled else first[:0]
        if not len(first):
            data = _NO_DATA
        elif self.settings.verify.method == "jaccard":
            data = self._shingles(folder, place, rows[first], aside)
        else:
            signatures = own.column("signature").take(pa.array(first))
            data = signatures.cast(pa.binary()).cast(pa.large_binary())
        return {"key": keys[first], "text": texts[first], "data": data}

    def _shingles(self, folder: Folder, place: Place, rows: Any, aside: dict[int, str]) -> pa.Array:
        """Return the shingle sets of the given rows of a shard, computed from its text."""
        try:
            function = partial(self._shingle_sets, rows)
            known = set_aside_by(folder, Sign.name, place.name)
            found = over_documents(_STAGE, place.shard, function, ["text"], known=known)
            parts, more = answers(found)
            aside |= more
        except InputError as error:
            if place.index_file is None:
                raise
            raise InputError(
                f"{error}: verification by jaccard reads the texts that an index was made of; "
                "with dedup-documents.verify.method=none it doesn't"
            ) from error
        return pa.concat_arrays(parts)

    def _shingle_sets(self, rows: Any, batch: pa.RecordBatch, first_row: int) -> pa.Array:
        low, high = np.searchsorted(rows, [first_row, first_row + batch.num_rows])
        if low == high:
            return _NO_DATA
        texts = batch.column("text").take(pa.array(rows[low:high] - first_row))
        sets = shingle_sets(texts, self.settings.minhash, self.settings.verify.normalization)
        offsets = sets.offsets * sets.hashes.itemsize
        data = [None, pa.py_buffer(offsets), pa.py_buffer(sets.hashes)]
        return pa.Array.from_buffers(pa.large_binary(), len(texts), data)


def _of_shard(
    folder: Folder, kind: str, names: Sequence[str], index: int, column: str
) -> tuple[UInt64, UInt64]:
    """Return the numbers of a shard's documents from runs sorted by number, and a column."""
    batch = read_key_range(folder, kind, names, *numbers_of_shard(index))
    if batch is None:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    return sort_pairs(batch.column("key").to_numpy(), batch.column(column).to_numpy())
