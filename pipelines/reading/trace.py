"""The trace index of a run: built from its documents, queried for where a passage occurs.

It consists of two tables (`curation.trace.postings`) in a run's folder `trace`: from fingerprints
of texts to documents, and from document ids to rows of the token index. Both are built from the
files in the manifests; any other set of files makes the index stale.
"""

from __future__ import annotations

import contextlib
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.arrow import text_buffers
from curation.config import settings_of_run
from curation.errors import InputError
from curation.hashing import hash_spans
from curation.hosts import host_of
from curation.stages import find
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer
from curation.trace.postings import (
    GRAM,
    GUARANTEED,
    Passage,
    Shape,
    Span,
    all_fingerprints,
    bucket_bytes,
    bucket_of,
    fingerprints,
    look_up,
    shape_of,
)
from pipelines.run_folder import TRACE
from pipelines.storage.files import SCRATCH, Folder, fingerprint
from pipelines.storage.manifest import read_manifest, shard_name
from pipelines.storage.shards import open_parquet, read_batches, row_groups

_VERSION = 1
_FACTS = "index.json"
_TEXTS, _SPANS = "texts", "spans"
#: Kinds of files whose texts are indexed.
_KINDS = ("documents", "removed", "edits")
#: Approximate bytes of a bucket's records while it is sorted, and the most buckets.
_BUCKET_BYTES, _MOST_BUCKET_BITS = 64 << 20, 12
#: Bytes of a (hash, number) pair, and of the pairs buffered in memory.
_PAIR_BYTES, _WAITING_BYTES = 16, 64 << 20
#: Approximate bytes of text per fingerprint, and per byte of a file.
_TEXT_BYTES, _UNPACKED = 20, 3
#: Bytes of text between progress messages.
_TELL_BYTES = 100 << 20
#: Candidates read at a time, and most bytes of row groups cached for a query.
_AT_ONCE, _MOST_READ = 64, 1 << 30
_SEED = np.uint64(0)
_IDENTITY = ("id", "url", "date", "language", "source", "rights")
_VERDICT = ("reason", "value", "value_text", "threshold", "kept_id")
_FACT_COLUMNS = (*_IDENTITY, "stage", *_VERDICT)

Tell = Callable[[str], None]


class Part(NamedTuple):
    """A file whose rows are numbered."""

    stage: str
    file: str
    rows: int
    bytes: int
    sha256: str

    @property
    def kind(self) -> str:
        return self.file.split("/", 1)[0]


def _parts(folder: Folder, stages: Sequence[str]) -> tuple[list[Part], list[Part]]:
    """Return the files with kept, removed and cut texts, and the token indexes.

    Named mixes draw from the same documents, so their tokens are found by the documents' ids.
    """
    chain = [stage for stage in stages if "/" not in stage]
    last = next((stage for stage in reversed(chain) if not find(stage).is_sink), "")
    texts, spans = list[Part](), list[Part]()
    for stage in stages:
        for name, facts in sorted(read_manifest(folder / stage)["files"].items()):
            part = Part(stage, name, facts["rows"], facts["bytes"], facts["sha256"])
            if find(stage).is_sink and part.kind == "index" and name.endswith(".parquet"):
                spans.append(part)
            elif stage in chain and part.kind in _KINDS and part.rows:
                if part.kind != "documents" or stage == last:
                    texts.append(part)
    return texts, spans


def _key(parts: Sequence[Sequence[Part]]) -> str:
    return fingerprint([_VERSION, GRAM, GUARANTEED, [list(map(list, some)) for some in parts]])


def build(folder: Folder, stages: Sequence[str], tell: Tell) -> dict[str, Any]:
    """Write the index if it is missing or stale; return its metadata."""
    place = folder / TRACE
    texts, spans = _parts(folder, stages)
    key = _key([texts, spans])
    facts = place.read_own_json(_FACTS)
    if facts.get("key") == key:
        return facts
    place.remove()
    rows = sum(part.rows for part in texts)
    expected = sum(part.bytes for part in texts) * _UNPACKED // _TEXT_BYTES
    with _Table(place, _TEXTS, expected, rows) as table:
        number = text_bytes = reported = 0
        for k, part in enumerate(texts):
            if text_bytes >= reported:
                tell(f"trace: {k:,} of {len(texts):,} files, {text_bytes / 1e6:,.0f} MB of text")
                reported = text_bytes + _TELL_BYTES
            for batch in read_batches(folder / part.stage, part.file, ["text"]):
                hashes, row = fingerprints(batch["text"])
                table.add(hashes, row + number)
                number += batch.num_rows
                text_bytes += _bytes_of(batch["text"])
    tokens = sum(part.rows for part in spans)
    with _Table(place, _SPANS, tokens, tokens) as ids:
        number = 0
        for part in spans:
            for batch in read_batches(folder / part.stage, part.file, ["id"]):
                ids.add(_id_hashes(batch["id"]), np.arange(number, number + batch.num_rows))
                number += batch.num_rows
    facts = {
        "key": key,
        "documents": rows,
        "text_bytes": text_bytes,
        "bytes": table.bytes + ids.bytes,
        _TEXTS: list(table.shape),
        _SPANS: list(ids.shape),
    }
    place.write_own_json(_FACTS, facts)
    place.remove(SCRATCH)
    share = facts["bytes"] / max(1, text_bytes)
    tell(f"trace: {facts['bytes']:,} bytes, {share:.1%} of the text of {rows:,} documents")
    return facts


def _bytes_of(texts: pa.Array) -> int:
    offsets, _ = text_buffers(texts)
    return int(offsets[-1] - offsets[0])


def _id_hashes(ids: pa.Array) -> npt.NDArray[np.uint64]:
    offsets, data = text_buffers(ids)
    found: npt.NDArray[np.uint64] = hash_spans(data, offsets[:-1], offsets[1:], _SEED)
    return found


class _Table:
    """A table of postings being built: pairs wait in one temporary file per bucket."""

    def __init__(self, folder: Folder, name: str, expected: int, most: int) -> None:
        size = expected * _PAIR_BYTES
        self._bits = min(_MOST_BUCKET_BITS, max(0, (size // _BUCKET_BYTES).bit_length()))
        self._folder, self._name, self._most = folder, name, most
        self._keys: list[npt.NDArray[np.uint64]] = []
        self._numbers: list[npt.NDArray[np.uint64]] = []
        self._waiting = self._pairs = self.bytes = 0
        self._stack = contextlib.ExitStack()

    @property
    def shape(self) -> Shape:
        return shape_of(self._pairs, self._most, self._bits)

    def __enter__(self) -> _Table:
        self._room = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        return self

    def add(self, keys: npt.NDArray[np.uint64], numbers: npt.NDArray[np.int64]) -> None:
        """Add pairs."""
        self._keys.append(keys)
        self._numbers.append(numbers.astype(np.uint64))
        self._waiting += len(keys) * _PAIR_BYTES
        self._pairs += len(keys)
        if self._waiting >= _WAITING_BYTES:
            self._spill()

    def _spill(self) -> None:
        if not self._waiting:
            return
        keys, numbers = np.concatenate(self._keys), np.concatenate(self._numbers)
        buckets = bucket_of(keys, self._bits)
        order = np.argsort(buckets, kind="stable")
        pairs = np.stack([keys[order], numbers[order]], axis=1)
        ends = np.cumsum(np.bincount(buckets, minlength=1 << self._bits)).tolist()
        for bucket, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
            if first < last:
                with open(self._room / str(bucket), "ab") as file:
                    file.write(pairs[first:last].tobytes())
        self._keys, self._numbers, self._waiting = [], [], 0

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._stack:
            if kind is not None:
                return
            self._spill()
            for bucket in range(1 << self._bits):
                path = self._room / str(bucket)
                data = path.read_bytes() if path.exists() else b""
                pairs = np.frombuffer(data, np.uint64).reshape(-1, 2)
                content = bucket_bytes(pairs[:, 0], pairs[:, 1], self.shape)
                name = _bucket_file(self._name, bucket)
                self.bytes += self._folder.write_bytes(name, content).bytes
                path.unlink(missing_ok=True)


def _bucket_file(table: str, bucket: int) -> str:
    return f"{table}/{bucket:05}.bin"


@dataclass
class Found:
    """A document, or lines cut out of one, with spans of the passage."""

    row: dict[str, Any]
    part: Part
    spans: list[Span]
    sequences: list[dict[str, Any]] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Return what became of the document, why, and its spans with their texts."""
        row, text = self.row, self.row["text"].encode()
        facts = {name: row.get(name) for name in _IDENTITY if name in row}
        facts["host"] = host_of(row.get("url") or "") or None
        kept = "tokenised" if self.sequences else "kept"
        decision = {"edits": "cut", "removed": "removed"}.get(self.part.kind, kept)
        facts |= {"decision": decision, "stage": self.part.stage}
        facts |= {name: row[name] for name in _VERDICT if row.get(name) is not None}
        spans = [
            {"verbatim": s.verbatim, **s._asdict(), "text": text[s.start : s.end].decode()}
            for s in self.spans
        ]
        return facts | {"spans": spans, "sequences": self.sequences}


class Answer(NamedTuple):
    """The answer to a query."""

    found: list[Found]
    candidates: int  # documents that share a fingerprint with the passage
    read: int  # of these, how many were compared


class TraceIndex:
    """An open index of a run. Raises InputError if it does not match the run."""

    def __init__(self, folder: Folder, stages: Sequence[str]) -> None:
        self._folder = folder
        self._place = folder / TRACE
        self._texts, self._spans = _parts(folder, stages)
        self._facts = self._place.read_own_json(_FACTS)
        if self._facts.get("key") != _key([self._texts, self._spans]):
            raise InputError(f"{self._place.shown}: no index of this run; build it with --build")
        self._text_rows, self._fact_rows = _Rows(folder, self._texts), _Rows(folder, self._texts)
        self._span_rows = _Rows(folder, self._spans)

    def ask(self, text: str, limit: int) -> Answer:
        """Return up to `limit` documents with the largest parts of the passage.

        Raises ConfigError for a passage that is too short or too long.
        """
        passage = Passage(text)
        shared = self._candidates(text)
        found: list[Found] = []
        read, before = 0, self._text_rows.read_bytes
        for first in range(0, len(shared), _AT_ONCE):
            if len(found) >= limit:
                break
            for number in sorted(shared[first : first + _AT_ONCE]):
                if self._text_rows.read_bytes - before > _MOST_READ:
                    break
                read += 1
                part, row = self._text_rows.read(number, ["text"])
                spans = passage.spans(row["text"])
                if spans:  # few candidates have one: the other columns are read of these alone
                    _, facts = self._fact_rows.read(number, _FACT_COLUMNS)
                    found.append(Found(facts | row, part, spans))
        found.sort(key=lambda f: (-sum(span.words for span in f.spans), f.row["id"]))
        found = found[:limit]
        self._add_sequences(found)
        return Answer(found, len(shared), read)

    def _candidates(self, text: str) -> list[int]:
        """Return the numbers of texts that share fingerprints, those sharing most first."""
        counts: Counter[int] = Counter()
        shape = Shape(*self._facts[_TEXTS])
        for numbers in look_up(all_fingerprints(text), shape, self._reader(_TEXTS)):
            counts.update(numbers.tolist())
        return sorted(counts, key=lambda number: (-counts[number], number))

    def _reader(self, table: str) -> Callable[[Sequence[tuple[int, int, int]]], Sequence[bytes]]:
        def one(wanted: tuple[int, int, int]) -> bytes:
            bucket, start, end = wanted
            return self._place.read_bytes(_bucket_file(table, bucket), start, end)

        return lambda ranges: self._place.each(one, ranges)

    def _add_sequences(self, found: Sequence[Found]) -> None:
        """Add where each document's spans are in the token shards of all mixes."""
        if not self._spans:
            return
        hashes = _id_hashes(pa.array([f.row["id"] for f in found], pa.string()))
        numbers = look_up(hashes, Shape(*self._facts[_SPANS]), self._reader(_SPANS))
        for one, rows in zip(found, numbers, strict=True):
            places = [self._span_rows.read(number) for number in rows.tolist()]
            own = [(part, row) for part, row in places if row["id"] == one.row["id"]]
            if one.part.kind != "edits":  # cut lines are in no sequence
                one.sequences = list(self._touched(one, own))
            for _, row in own[:1]:
                one.row.setdefault("url", row.get("url"))

    def _touched(
        self, found: Found, places: Sequence[tuple[Part, dict[str, Any]]]
    ) -> Iterator[dict[str, Any]]:
        """Return the token spans that contain a part of the passage."""
        is_cut = any(row["document_offset"] for _, row in places)
        for part, row in places:
            if is_cut and not self._overlaps(part.stage, found, row):
                continue
            shard = shard_name(part.file)
            names = ("sequence", "start", "length", "document_offset", "repeat")
            yield {"stage": part.stage, "shard": shard} | {name: row[name] for name in names}

    def _overlaps(self, stage: str, found: Found, row: dict[str, Any]) -> bool:
        """Return whether a span of a document's tokens contains a part of the passage."""
        settings = settings_of_run(
            TokenizeSettings, read_manifest(self._folder / stage)["settings"]
        )
        ends = load_tokenizer(settings.tokenizer).token_ends(found.row["text"])
        first = row["document_offset"] - bool(settings.bos)
        last = min(first + row["length"], len(ends))
        start = int(ends[first - 1]) if first > 0 else 0
        end = int(ends[last - 1]) if last > 0 else 0
        return any(span.start < end and start < span.end for span in found.spans)


class _Rows:
    """Rows of several Parquet files, numbered across all of them."""

    def __init__(self, folder: Folder, parts: Sequence[Part]) -> None:
        self._folder, self._parts = folder, parts
        self._ends = list(accumulate(part.rows for part in parts))
        self._open: tuple[int, int, pa.Table] | None = None  # part, first row, group
        self.read_bytes = 0

    def read(
        self, number: int, columns: Sequence[str] | None = None
    ) -> tuple[Part, dict[str, Any]]:
        """Return the row of that number, and its file; columns that the file lacks are left out."""
        k = bisect_right(self._ends, number)
        row = number - (self._ends[k] - self._parts[k].rows)
        if self._open is None or not self._has(k, row):
            self._open = (k, *self._group(self._parts[k], row, columns))
        _, first, table = self._open
        return self._parts[k], table.slice(row - first, 1).to_pylist()[0]

    def _has(self, part: int, row: int) -> bool:
        assert self._open is not None
        known, first, table = self._open
        return known == part and first <= row < first + table.num_rows

    def _group(self, part: Part, row: int, columns: Sequence[str] | None) -> tuple[int, pa.Table]:
        """Return the row group with that row, and the number of its first row."""
        with open_parquet(self._folder / part.stage, part.file) as parquet:
            names = parquet.schema_arrow.names
            held = names if columns is None else [name for name in columns if name in names]
            for group, span in enumerate(row_groups(parquet)):
                if row in span:
                    table = parquet.read_row_group(group, held, use_threads=False)
                    self.read_bytes += table.nbytes
                    return span.start, table
        raise InputError(f"{part.stage}/{part.file}: no row {row}")
