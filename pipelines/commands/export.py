"""`curate export`: write the documents of a stage in the formats of other tools.

Rows keep the order of the stage's shards. A document's split depends only on its id and the seed.
Files are written whole or not at all; `export.json`, which lists them, comes last.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from curation.config import nearest
from curation.errors import ConfigError, InputError
from curation.schema import aligned, conformed
from pipelines.commands.options import add_dry_run, add_run, end_dry_run
from pipelines.engine.stage import Shard, stage_inputs
from pipelines.export_formats import FORMATS, Format, Written, dataset_card
from pipelines.run_folder import EXPORT, load_run
from pipelines.storage.files import SCRATCH, FileRecord, Folder
from pipelines.terminal import say, say_json

#: Lists what an export wrote, so that a later export recognizes it.
NOTE = "export.json"
_CARD = "README.md"
#: Tolerance for the sum of the splits' shares, which are rounded decimals.
_ROUNDING = 1e-9


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--stage", required=True, metavar="STAGE", help="stage to export, such as classify"
    )
    parser.add_argument("--to", required=True, choices=list(FORMATS), help="format")
    parser.add_argument(
        "--output", metavar="DIR", help="folder or URL (default: RUN/export/STAGE-FORMAT)"
    )
    parser.add_argument("--columns", metavar="A,B", help="only these columns, in this order")
    parser.add_argument(
        "--shards",
        type=_positive,
        metavar="N",
        help="files per split, with equal numbers of rows (default: as many as the stage has)",
    )
    parser.add_argument(
        "--split",
        default="",
        metavar="NAME=SHARE,...",
        help="divide documents by a hash of their id: train=0.99,val=0.01",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of the split (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    add_dry_run(parser)
    parser.set_defaults(command=export)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text}")
    return int(text)


def export(options: argparse.Namespace) -> int:
    """Write the documents and print what was written."""
    splits = parse_splits(options.split)
    shards = _shards(options.run, options.stage)
    schema = _chosen(common_schema([shard.schema() for shard in shards]), options.columns)
    name = options.stage.replace("/", "-")
    folder = Folder(options.output or f"{options.run.rstrip('/')}/{EXPORT}/{name}-{options.to}")
    work = Export(FORMATS[options.to], folder, shards, schema, options.shards, splits, options.seed)
    work.check_folder()
    end_dry_run(options, folder, documents=sum(shard.rows for shard in shards))
    facts = {
        "stage": options.stage,
        "format": options.to,
        "columns": schema.names,
        "seed": options.seed,
        "split": splits,
        **work.run(),
    }
    folder.write_own_json(NOTE, {"complete": True, **facts})
    folder.remove(SCRATCH)
    _print(folder, facts, options.json)
    return 0


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

    format: Format
    folder: Folder
    shards: Sequence[Shard]
    schema: pa.Schema  # of the columns to export
    count: int | None  # files of each split; None: one per shard of the stage
    splits: dict[str, float]
    seed: int

    def run(self) -> dict[str, Any]:
        """Write every file; return their records and the rows of each split."""
        rows = self._rows()
        count = self.count or len(self.shards)
        outputs = {name: _Output(self, name, total, count) for name, total in rows.items()}
        planned = [file for output in outputs.values() for file in output.names()]
        if self.format.card:
            planned.append(_CARD)
        self._begin(planned)
        with contextlib.ExitStack() as stack:
            for output in outputs.values():
                stack.enter_context(output)
            for batch in self._batches():
                for name, part in self._divided(batch):
                    outputs[name].write(part)
        files = {n: r.as_dict() for output in outputs.values() for n, r in output.files.items()}
        if self.format.card:
            card = self.folder.write_bytes(_CARD, dataset_card(list(rows)))
            files[_CARD] = card.as_dict()
        return {"rows": rows, "files": dict(sorted(files.items()))}

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

    def _rows(self) -> dict[str, int]:
        """Rows of each split."""
        if not self.splits:
            return {self._whole: sum(shard.rows for shard in self.shards)}
        counts = np.zeros(len(self.splits), np.int64)
        for shard in self.shards:
            for batch in shard.batches(["id"]):
                counts += np.bincount(self._split_of(batch), minlength=len(counts))
        return dict(zip(self.splits, counts.tolist(), strict=True))

    def _split_of(self, batch: pa.RecordBatch) -> Any:
        """Number of each document's split -> int64 [rows]."""
        ids = batch.column("id").to_pylist()
        draws = [xxhash.xxh3_64_intdigest(f"{self.seed} {i}".encode()) / 2**64 for i in ids]
        ends = np.cumsum(list(self.splits.values()))[:-1]
        return np.searchsorted(ends, draws, side="right")

    def _batches(self) -> Iterator[pa.RecordBatch]:
        wanted = {*self.schema.names, *(["id"] if self.splits else [])}
        for shard in self.shards:
            yield from shard.batches([n for n in shard.schema().names if n in wanted])

    def _divided(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of each split, with the exported columns."""
        if not self.splits:
            yield self._whole, aligned(batch, self.schema)
            return
        places = self._split_of(batch)
        for number, name in enumerate(self.splits):
            yield name, aligned(batch.filter(pa.array(places == number)), self.schema)


class _Output:
    """The files of one split, one open at a time; file k has rows [k, k + 1) * rows / files."""

    def __init__(self, export: Export, split: str, rows: int, count: int) -> None:
        self._export, self._split, self._rows, self._count = export, split, rows, count
        self._stack = contextlib.ExitStack()
        self._file: Written | None = None
        self._number = self._row = 0
        self.files: dict[str, FileRecord] = {}

    def names(self) -> list[str]:
        return [self._name(number) for number in range(self._count)]

    def _name(self, number: int) -> str:
        held = self._export.format
        return f"{held.folder}{self._split}-{number:05d}-of-{self._count:05d}{held.suffix}"

    def _end(self, number: int) -> int:
        return (number + 1) * self._rows // self._count

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            while self._row == self._end(self._number):
                self._close()
            part = batch.slice(0, self._end(self._number) - self._row)
            self._opened().write(part)
            self._row += part.num_rows
            batch = batch.slice(part.num_rows)

    def _opened(self) -> Written:
        if self._file is None:
            held, name = self._export, self._name(self._number)
            file = held.format.open(held.folder, name, held.schema, self._row)
            self._file = self._stack.enter_context(file)
        return self._file

    def _close(self) -> None:
        """Close the current file, which may have no rows."""
        file = self._opened()
        self._stack.close()
        self.files[self._name(self._number)] = file.record
        self._file = None
        self._number += 1

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        while self._number < self._count:
            self._close()


def _print(folder: Folder, facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json({"folder": folder.url, **facts})
        return
    size = sum(file["bytes"] for file in facts["files"].values())
    for name, rows in facts["rows"].items():
        say(f"{name}: {rows:,} documents")
    say(f"{len(facts['files'])} files, {size:,} bytes: {folder.shown}")
