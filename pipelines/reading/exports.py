"""Write the documents of a stage as JSON lines, Parquet, Hugging Face datasets.

Each shard of the stage gives one file of each split, its rows in order. A document's split depends
only on its id and the seed. Files are written whole or not at all, with the same bytes every time;
`export.json`, which lists them, comes last.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import xxhash
import zstandard

from curation.arrow import plain
from curation.config import nearest
from curation.errors import ConfigError, InputError
from curation.schema import aligned, conformed
from pipelines.engine.stage import Shard, stage_inputs
from pipelines.run_folder import EXPORT, load_run
from pipelines.storage.files import SCRATCH, FileRecord, Folder
from pipelines.storage.shards import TableWriter

#: Lists what an export wrote, so that a later export recognizes it.
NOTE = "export.json"
_CARD = "README.md"
#: Tolerance for the sum of the splits' shares, which are rounded decimals.
_ROUNDING = 1e-9
#: Compression levels of zstd (as in a run's Parquet files) and gzip.
_ZSTD_LEVEL, _GZIP_LEVEL = 3, 6


@dataclass(frozen=True)
class Format:
    """A format: its file names, and how lines of JSON are compressed; None: a table."""

    suffix: str
    compress: Callable[[BinaryIO], AbstractContextManager[Any]] | None = None
    folder: str = ""  # of the data files
    card: bool = False  # whether a README.md tells Hugging Face where the splits are


class LinesWriter(contextlib.ExitStack):
    """Writes record batches as lines of JSON, as `TableWriter` writes them to a table."""

    def __init__(self, folder: Folder, name: str, compress: Callable[[BinaryIO], Any]) -> None:
        super().__init__()
        self._sink = self.enter_context(folder.create(name))
        self._stream = self.enter_context(compress(cast(BinaryIO, self._sink)))
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._stream.write("".join(f"{json_of(row)}\n" for row in batch.to_pylist()).encode())
        self.rows += batch.num_rows

    @property
    def record(self) -> FileRecord:
        """Record of the file; only valid after closing."""
        return self._sink.record(self.rows)


def json_of(row: dict[str, Any]) -> str:
    """Return a row as one line of JSON.
    Dates are ISO 8601, bytes base64; NaN, which JSON lacks, is null.
    """
    return json.dumps(plain(row), ensure_ascii=False, separators=(",", ":"), default=_as_text)


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _zstd(file: BinaryIO) -> AbstractContextManager[Any]:
    return zstandard.ZstdCompressor(_ZSTD_LEVEL).stream_writer(file, closefd=False)


FORMATS = {
    "jsonl": Format(".jsonl", contextlib.nullcontext),
    "jsonl.gz": Format(".jsonl.gz", lambda file: gzip.GzipFile("", "wb", _GZIP_LEVEL, file, 0)),
    "jsonl.zst": Format(".jsonl.zst", _zstd),
    "parquet": Format(".parquet"),
    "hf": Format(".parquet", None, "data/", card=True),
}


def dataset_card(splits: list[str]) -> bytes:
    """Return the README.md that tells `datasets.load_dataset` the files of each split."""
    files = "".join(f"  - split: {s}\n    path: data/{s}-*.parquet\n" for s in splits)
    return f"---\nconfigs:\n- config_name: default\n  data_files:\n{files}---\n".encode()


def export_of(
    run: str,
    stage: str,
    to: str,
    output: str | None = None,
    columns: str | None = None,
    split: str = "",
    seed: int = 0,
) -> Export:
    """Return the export of a stage's documents, checked and not yet written.

    Args:
        to: a name of FORMATS.
        output: folder or URL; default: `export` in the run.
        columns: "a,b", all if None.
        split: "train=0.99,val=0.01".

    Raises ConfigError for something that the run lacks, and a folder with other files.
    """
    splits = parse_splits(split)
    shards = _shards(run, stage)
    schema = _chosen(common_schema([shard.schema() for shard in shards]), columns)
    name = stage.replace("/", "-")
    folder = Folder(output or f"{run.rstrip('/')}/{EXPORT}/{name}-{to}")
    work = Export(stage, to, folder, shards, schema, splits, seed)
    work.check_folder()
    return work


def parse_splits(text: str) -> dict[str, float]:
    """Parse `train=0.99,val=0.01` into shares that sum to 1; an empty string gives none.

    Raises ConfigError naming the invalid part.
    """
    splits: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, share = part.partition("=")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or not 0 < value <= 1:
            raise ConfigError(
                f"--split {part}: expected NAME=SHARE with a share above 0 and at most 1"
            )
        if name in splits:
            raise ConfigError(f"--split: {name} is named twice")
        splits[name] = value
    if splits and abs(sum(splits.values()) - 1) > _ROUNDING:
        raise ConfigError(f"--split {text}: the shares sum to {sum(splits.values()):g}, not to 1")
    return splits


def _shards(run: str, stage: str) -> list[Shard]:
    folder, stages = load_run(run)
    if stage not in stages:
        hint = nearest(stage, stages) or f" (complete: {', '.join(stages)})"
        raise ConfigError(f"--stage {stage}: not a complete stage of {folder.shown}{hint}")
    return stage_inputs([(folder / stage).url])


def common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return a schema that fits the rows of all shards, with the types used for reading.

    Raises InputError for a column whose types in two shards have no common type.
    """
    read = [conformed(pa.RecordBatch.from_pylist([], schema=s)).schema for s in schemas]
    try:
        unified = pa.unify_schemas(read, promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise InputError(f"the shards have no common columns: {error}") from None
    return pa.schema([pa.field(field.name, field.type) for field in unified])


def _chosen(schema: pa.Schema, chosen: str | None) -> pa.Schema:
    """Return the columns to export, in order. Raises ConfigError for an absent one."""
    columns = [name.strip() for name in (chosen or "").split(",") if name.strip()]
    if chosen is not None and not columns:
        raise ConfigError(f"--columns {chosen!r}: no column is named")
    for name in columns:
        if name not in schema.names:
            hint = nearest(name, schema.names) or f" (there are: {', '.join(schema.names)})"
            raise ConfigError(f"--columns: no column {name!r}{hint}")
        if columns.count(name) > 1:
            raise ConfigError(f"--columns: {name} is named twice")
    return pa.schema([schema.field(name) for name in columns or schema.names])


@dataclass(frozen=True)
class Export:
    """One export: what to write and where."""

    stage: str
    to: str
    folder: Folder
    shards: Sequence[Shard]
    schema: pa.Schema  # of the columns to export
    splits: dict[str, float]
    seed: int

    @property
    def format(self) -> Format:
        return FORMATS[self.to]

    def run(self) -> dict[str, Any]:
        """Write every file; return what was written, as in `export.json`."""
        rows = dict.fromkeys(self.splits or [self._whole], 0)
        planned = [self._name(split, n) for split in rows for n in range(len(self.shards))]
        self._begin([*planned, _CARD] if self.format.card else planned)
        files: dict[str, Any] = {}
        for number, shard in enumerate(self.shards):
            with contextlib.ExitStack() as stack:
                outputs = {
                    split: stack.enter_context(self._open(self._name(split, number)))
                    for split in rows
                }
                for batch in self._batches(shard):
                    for split, part in self._divided(batch):
                        outputs[split].write(part)
            for split, output in outputs.items():
                rows[split] += output.rows
                files[self._name(split, number)] = output.record._asdict()
        if self.format.card:
            card = self.folder.write_bytes(_CARD, dataset_card(list(rows)))
            files[_CARD] = card._asdict()
        facts = {
            "stage": self.stage,
            "format": self.to,
            "columns": self.schema.names,
            "seed": self.seed,
            "split": self.splits,
            "rows": rows,
            "files": dict(sorted(files.items())),
        }
        self.folder.write_own_json(NOTE, {"complete": True, **facts})
        self.folder.remove(SCRATCH)
        return facts

    def check_folder(self) -> None:
        """Raise ConfigError if the folder has files besides those of an export, or is a file."""
        if self.folder.is_local and os.path.isfile(self.folder.path()):
            raise ConfigError(f"--output {self.folder.shown}: a file, not a folder")
        old = self.folder.read_own_json(NOTE).get("files", {})
        for name in self.folder.tree() if self.folder.exists() else ():
            if name not in old and name != NOTE and not name.startswith((f"{SCRATCH}/", ".")):
                raise ConfigError(
                    f"{self.folder.shown}/{name}: not written by curate export; "
                    "give an empty folder as --output"
                )

    def _begin(self, planned: Sequence[str]) -> None:
        """Remove an earlier export."""
        old = self.folder.read_own_json(NOTE).get("files", {})
        names = sorted({*old, *planned})
        self.folder.remove_parts()
        self.folder.write_own_json(NOTE, {"complete": False, "files": dict.fromkeys(names)})
        for name in old:
            self.folder.remove(name)

    @property
    def _whole(self) -> str:
        """Name of the single split when there are no splits."""
        return "train" if self.format.card else "documents"

    def _name(self, split: str, number: int) -> str:
        own = self.format
        return f"{own.folder}{split}-{number:05d}-of-{len(self.shards):05d}{own.suffix}"

    def _open(self, name: str) -> AbstractContextManager[Any]:
        if self.format.compress is None:
            return TableWriter(self.folder, name, self.schema)
        return LinesWriter(self.folder, name, self.format.compress)

    def _split_of(self, batch: pa.RecordBatch) -> Any:
        """Return the number of each document's split -> int64 [rows]."""
        ids = batch.column("id").to_pylist()
        draws = [xxhash.xxh3_64_intdigest(f"{self.seed} {i}".encode()) / 2**64 for i in ids]
        ends = np.cumsum(list(self.splits.values()))[:-1]
        return np.searchsorted(ends, draws, side="right")

    def _batches(self, shard: Shard) -> Iterator[pa.RecordBatch]:
        wanted = {*self.schema.names, *(["id"] if self.splits else [])}
        return shard.batches([n for n in shard.schema().names if n in wanted])

    def _divided(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of each split, with the exported columns."""
        if not self.splits:
            yield self._whole, aligned(batch, self.schema)
            return
        places = self._split_of(batch)
        for number, name in enumerate(self.splits):
            yield name, aligned(batch.filter(pa.array(places == number)), self.schema)
