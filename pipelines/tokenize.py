"""Stage `tokenize`: packed token shards for Megatron-Core, and where each token comes from.

All documents, as often as they are drawn, go into one seeded order over the whole data set: a map
step encodes a shard and sorts its copies by a 64-bit key of document and seed; each output shard is
one range of keys, read from every run. Memory holds a part of a shard's tokens at a time: a map
task writes several runs where a shard has many, and a reduce task has its tokens in a file.

Formats of the user's own are written from the packed sequences.
"""

from __future__ import annotations

import mmap
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError, InputError
from curation.judging import opened
from curation.mix.schedule import place_key
from curation.stages.tokenize import VOCABULARY
from curation.tokenize.megatron import token_dtype
from curation.tokenize.shard import (
    DOCUMENT_INDEX,
    ENCODED,
    INDEXED,
    Documents,
    encoded_rows,
    own_columns,
    write_rows,
)
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.engine.documents import nothing, over_documents
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.transform import ShardWriter, shard_tasks
from pipelines.mix import phases_of, saved_tokens
from pipelines.runners.tasks import Progress, Result, Task, output_fingerprint, records_of
from pipelines.storage.exchange import concatenated, key_ranges, read_range, scratch, write_run
from pipelines.storage.files import FileRecord, Folder, room_for
from pipelines.storage.manifest import read_manifest
from pipelines.storage.shards import (
    BATCH_ROWS,
    TableWriter,
    Tally,
    add_counts,
    is_large,
    open_parquet,
)

Files = dict[str, FileRecord]


def write_formats(settings: TokenizeSettings, folder: Folder, shard: str) -> Files:
    """Write the sequences of `<shard>.bin` in custom formats; return file records by name.

    Each writes any files, to `<function>/<shard>/`.
    """
    if not settings.formats:
        return {}
    found, dtype = Files(), token_dtype(load_tokenizer(settings.tokenizer).vocab_size)
    flat = np.frombuffer(folder.read_bytes(f"{shard}.bin"), dtype)
    rows = flat.reshape(-1, settings.context_length)
    for own in settings.formats:
        function = opened(own.python, own.settings, positional=2)
        with tempfile.TemporaryDirectory() as scratch:
            try:
                function(rows, scratch)
            except Exception as error:
                where = f"tokenize.formats: {own.python}: shard {shard}"
                raise InputError(f"{where}: {type(error).__name__}: {error}") from error
            for path in sorted(p for p in Path(scratch).rglob("*") if p.is_file()):
                inside = path.relative_to(scratch).as_posix()
                name = f"{own.python.found.name}/{shard}/{inside}"
                found[name] = folder.add(name, str(path), len(rows))
    return found


_STAGE = "tokenize"
_RUNS = "encoded"
_LITTLE = np.dtype("<u4")
#: Of saved token ids in memory.
_CHUNK_IDS = 1 << 20
#: A run is written when it has this many bytes.
_RUN_BYTES = 32 << 20
#: In which readers shuffle, where documents repeat: copies stay most of an epoch apart.
_BLOCKS = 16


@dataclass(frozen=True)
class EncodeShards:
    """Map: encode the copies of a shard's documents, sorted by place in the data set."""

    settings_key: str
    settings: TokenizeSettings
    saved: dict[str, str]  # SHA-256 of the token id files saved by the mix
    name: str = "encode"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        shard: Shard = task.payload
        tally = Tally()
        present = shard.schema().names
        columns = [c for c in present if c in INDEXED] + own_columns(present, self.settings)
        saved = (shard, self.saved[saved_tokens(shard)]) if self.saved else None
        encode = Encode(self.settings, saved)
        runs = _Runs(folder, shard.name)
        with ShardWriter(folder, shard.name, _STAGE, tally) as writer:
            for part in over_documents(_STAGE, shard, encode, [*columns, "text"], nothing):
                kept, encoded = part.answer
                tally.add_in(part.batch)
                tally.add_kept(kept)
                sizes = pc.list_value_length(encoded.column("tokens")).to_numpy()
                copies = encoded.column("repeat").to_numpy()
                for name, rows in (("tokens", copies >= 0), ("distinct_tokens", copies == 0)):
                    tally.add(name, int((sizes[rows] + self.settings.marks).sum()))
                if part.reason is not None:
                    writer.write_lost(part.batch, part.batch.schema, part.reason)
                progress(part.batch.num_rows, kept.num_rows)
                del part, kept  # free a large document before its tokens are written
                runs.add(encoded)
        runs.write()
        return Result({**runs.files, **writer.files}, tally.counts())


@dataclass
class _Runs:
    """Collects rows of `ENCODED` into runs of limited size, a large document in its own run."""

    folder: Folder
    shard: str
    files: dict[str, FileRecord] = field(default_factory=dict)

    _rows: list[pa.RecordBatch] = field(default_factory=list)
    _bytes: int = 0

    def add(self, rows: pa.RecordBatch) -> None:
        large = is_large(rows)
        if large and self._rows:
            self.write()
        self._rows.append(rows)
        self._bytes += rows.nbytes
        del rows
        if large or self._bytes >= _RUN_BYTES:
            self.write()

    def write(self) -> None:
        """Write the waiting rows; write an empty run only if there is no other."""
        if not self._rows and self.files:
            return
        table = concatenated(self._rows, ENCODED)
        self._rows, self._bytes = [], 0
        number = f"~{len(self.files):05d}" if self.files else ""
        name = scratch(_RUNS, f"{self.shard}{number}")
        self.files[name] = write_run(self.folder, name, "key", table.select(ENCODED.names))


@dataclass
class Encode:
    """The encoder as a function of batches: copies of the documents that are drawn."""

    settings: TokenizeSettings
    saved: tuple[Shard, str] | None  # shard with the mix's token ids, and their file's SHA-256

    def __call__(
        self, batch: pa.RecordBatch, first_row: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        if self.saved is not None:
            tokens, offsets = self._ids.of(first_row, batch.num_rows)
        else:
            if batch.schema.get_field_index("repeats") >= 0:
                batch = batch.filter(pc.fill_null(pc.not_equal(batch["repeats"], 0), True))
            tokenizer = load_tokenizer(self.settings.tokenizer)
            tokens, offsets = tokenizer.encode_batch(batch.column("text"))
        return batch, encoded_rows(batch, tokens, offsets, self.settings)

    @cached_property
    def _ids(self) -> SavedTokens:
        assert self.saved is not None
        return SavedTokens(*self.saved)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_ids"}


class SavedTokens:
    """Token ids that the mix saved, read in the order of the documents."""

    def __init__(self, shard: Shard, sha256: str) -> None:
        self._shard, self._sha256 = shard, sha256
        self._documents, self._row = Documents(self._chunks()), 0

    def of(self, first_row: int, rows: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the tokens of some documents, end to end, and int64 offsets [rows + 1]."""
        if first_row < self._row:
            self._documents, self._row = Documents(self._chunks()), 0
        while self._row < first_row:  # a guarded process may begin anywhere
            self._next(min(BATCH_ROWS, first_row - self._row))
        return self._next(rows)

    def _next(self, rows: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        tokens, offsets = self._documents.next(rows)
        if len(offsets) != rows + 1:
            raise InputError("the mix saved tokens for fewer documents than it drew")
        self._row += rows
        return tokens, offsets

    def _chunks(self) -> Iterator[npt.NDArray[np.uint32]]:
        name = saved_tokens(self._shard)
        with open_parquet(self._shard.folder, name, self._sha256) as file:
            for batch in file.iter_batches(_CHUNK_IDS, use_threads=False):
                yield batch.column("ids").to_numpy()


@dataclass(frozen=True)
class PackShards:
    """Reduce: one range of the order over the whole data set, packed and written."""

    settings_key: str
    settings: TokenizeSettings
    name: str = "shards"

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result:
        low, high, runs = task.payload
        name, index_name = task.name, f"index/{task.name}.parquet"
        with (
            _spooled(read_range(folder, runs, "key", low, high)) as rows,
            folder.create(f"{name}.bin") as tokens,
            folder.create(f"{name}.idx") as sequences,
        ):
            sinks = cast(BinaryIO, tokens), cast(BinaryIO, sequences)
            index, stats = write_rows(
                rows.about, rows.offsets, rows.tokens, self.settings, *sinks, rows.forget
            )
        with TableWriter(folder, index_name, DOCUMENT_INDEX) as writer:
            writer.write(index)
        files = write_formats(self.settings, folder, name) | {
            f"{name}.bin": tokens.record(stats.sequences),
            f"{name}.idx": sequences.record(stats.sequences),
            index_name: writer.record,
        }
        progress(stats.copies, stats.copies)
        known = ("documents", "tokens")  # counted when they were encoded
        return Result(files, {k: v for k, v in stats.as_dict().items() if k not in known})


def token_ranges(
    tokens: int, settings: TokenizeSettings, phases: Sequence[dict[str, Any]] = ()
) -> list[tuple[str, tuple[int, int]]]:
    """Return name and key range of each output shard for this many tokens.

    No shard has documents of two phases (`MixPlan.phase_rows`).
    """
    ends = [(place_key(p["start"]), place_key(p["end"]), p["kept"]) for p in phases]
    ranges = [
        (low + a, low + b)
        for low, high, kept in ends or [(0, 1 << 64, tokens)]
        for a, b in key_ranges(max(1, -(-kept // settings.shard_tokens)), high - low)
    ]
    return [(f"tokens-{i:05d}-of-{len(ranges):05d}", r) for i, r in enumerate(ranges)]


def _schedule(
    phases: Sequence[dict[str, Any]], names: Sequence[tuple[str, tuple[int, int]]]
) -> list[dict[str, Any]]:
    """Return notes for readers of the shards: the phases, each with its shards."""
    lows = [place_key(phase["start"]) for phase in phases]
    found = [phase | {"shards": []} for phase in phases]
    for name, (low, _) in names:
        found[bisect_right(lows, low) - 1]["shards"].append(name)
    return found


class _Spooled(NamedTuple):
    """Rows of `ENCODED` whose tokens lie in a file."""

    about: pa.RecordBatch  # without tokens
    offsets: npt.NDArray[np.int64]  # [rows + 1]
    tokens: npt.NDArray[np.uint32]
    forget: Callable[[], object]  # release the tokens already read from memory


@contextmanager
def _spooled(batches: Iterable[pa.RecordBatch]) -> Iterator[_Spooled]:
    """Spool the tokens of rows, end to end, to a temporary file."""
    narrow = pa.schema([f for f in ENCODED if f.name != "tokens"])
    about, lengths = [], [np.zeros(1, np.int64)]
    with room_for(tempfile.gettempdir()), tempfile.TemporaryFile() as file:
        for batch in batches:
            ids = batch.column("tokens").flatten().to_numpy()
            file.write(np.ascontiguousarray(ids, _LITTLE).data)
            lengths.append(pc.list_value_length(batch.column("tokens")).to_numpy())
            every = np.arange(batch.num_rows)  # a copy, as the batch is part of a mapped run
            about.append(batch.select(narrow.names).take(pa.array(every)))
            del batch
        file.flush()
        offsets = np.cumsum(np.concatenate(lengths))
        rows = concatenated(about, narrow)
        if not offsets[-1]:
            yield _Spooled(rows, offsets, np.zeros(0, np.uint32), lambda: None)
            return
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        forget = partial(mapped.madvise, mmap.MADV_DONTNEED)
        yield _Spooled(rows, offsets, np.frombuffer(mapped, _LITTLE), forget)


def tokens_saved(run: StageRun) -> dict[str, str]:
    """Return hashes of the saved token ids, if every input shard has some of this tokenizer.

    Names are those of `saved_tokens`.
    """
    folders = {shard.folder.url: shard.folder for shard in run.inputs}
    found: dict[str, str] = {}
    for folder in folders.values():
        manifest = read_manifest(folder)
        if manifest.get("models", {}).get(VOCABULARY) == run.facts["models"][VOCABULARY]:
            found |= {name: file["sha256"] for name, file in manifest["files"].items()}
    wanted = [saved_tokens(shard) for shard in run.inputs]
    return {name: found[name] for name in wanted} if found.keys() >= set(wanted) else {}


def run(run: StageRun) -> dict[str, Any]:
    """Write token shards of every document that the mix drew (or of all, without a mix)."""
    asked, known = set(run.settings.index_columns or ()), set[str]()
    for shard in run.inputs:
        if asked <= known:
            break  # mostly after the first
        known.update(shard.schema().names)
    if unknown := sorted(asked - known):
        there = ", ".join(sorted(known))
        raise ConfigError(f"tokenize.index_columns: no column {unknown[0]!r}; there are {there}")
    run.begin()
    encode = EncodeShards(run.settings_key, run.settings, tokens_saved(run))
    encode_tasks = shard_tasks(run.inputs)
    run.run(encode, encode_tasks)
    records = records_of(run.folder, encode, encode_tasks)
    counts: dict[str, Any] = {}
    for record in records:
        add_counts(counts, record["counts"])

    wanted = scratch(_RUNS, "").removesuffix(".arrow")
    runs = tuple(n for r in records for n in sorted(r["files"]) if n.startswith(wanted))
    phases = phases_of(run)
    ranges = token_ranges(counts["tokens"], run.settings, phases)
    source = output_fingerprint(records)
    tasks = [
        Task(
            name,
            (("runs", source), ("range", f"{low:016x}-{high:016x}")),
            4 * counts["tokens"] // len(ranges),
            (low, high, runs),
        )
        for name, (low, high) in ranges
    ]
    run.run(PackShards(run.settings_key, run.settings), tasks)
    notes: dict[str, Any] = {"phases": _schedule(phases, ranges)} if phases else {}
    if counts["tokens"] > counts["distinct_tokens"]:
        notes["blocks"] = _BLOCKS
    extra = {"notes": notes} if notes else None
    return run.finish(tasks, run.read, extra, counts=counts, also=records)
