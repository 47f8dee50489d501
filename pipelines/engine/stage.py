"""A stage folder: its inputs, its completion, its manifest."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from curation import stores
from curation.credentials import redact, redact_all
from curation.errors import ConfigError, InputError
from curation.readers.discover import InputFile
from curation.schema import COLUMN_TYPES, DOCUMENTS, fits
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Step, Task, records_of
from pipelines.storage.damage import damaged, noticed
from pipelines.storage.files import SCRATCH, Folder, fingerprint, unsealed
from pipelines.storage.manifest import (
    MANIFEST,
    PATHS,
    TIMINGS,
    after,
    complete_manifest,
    files_of,
    is_stage,
    named_files,
    read_manifest,
    remove_manifest,
    shard_name,
    write_manifest,
)
from pipelines.storage.own import note_own, refuse_foreign, remove_own
from pipelines.storage.shards import add_counts, open_parquet, read_batches

if TYPE_CHECKING:  # guarded processes need documents but not Beam
    from pipelines.runners.execute import Executor


@dataclass(frozen=True)
class Shard:
    """One input shard of a stage: a Parquet file of documents."""

    name: str  # without suffix; the same in all stages
    folder: Folder
    file: str
    fingerprint: str
    rows: int
    bytes: int

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield batches as `read_batches` does. Raises DamagedError if the content has changed."""
        return read_batches(self.folder, self.file, columns, self.fingerprint)

    def schema(self) -> pa.Schema:
        """Columns of the file. Raises DamagedError as `batches` does."""
        sha256 = self.fingerprint if self.folder.is_local else None  # objects would be copied
        try:
            with open_parquet(self.folder, self.file, sha256) as parquet:
                return parquet.schema_arrow
        except (OSError, pa.ArrowInvalid) as error:
            raise damaged(self.folder, self.file, str(error)) from error


@dataclass
class StageRun:
    """Everything a stage's module needs to run: input, output folder, settings, executor."""

    stage: str
    folder: Folder
    settings: Any  # the stage's settings model
    settings_key: str  # fingerprint of settings, lists, models and versions
    executor: Executor
    recipe: dict[str, Any]  # for the manifest: name and sha256
    facts: dict[str, Any] = field(default_factory=dict)  # for the manifest: versions, models
    inputs: Sequence[Shard] = ()
    also: dict[str, Any] = field(default_factory=dict)  # other sections that the stage reads
    files: tuple[InputFile, ...] = ()  # raw input of the first stage
    passed_over: str = ""  # files next to the raw input that are not read
    follows: str = ""  # stage of the same run whose documents it reads
    indexed: Sequence[tuple[str, str]] = ()  # names and fingerprints of the indexes' files
    measures: bool = False  # only measure: record verdicts, remove nothing by them

    @property
    def documents(self) -> int:
        return sum(s.rows for s in self.inputs)

    @property
    def read(self) -> list[tuple[str, str]]:
        """Names and fingerprints of the input shards."""
        return [(s.name, s.fingerprint) for s in self.inputs]

    @property
    def compared(self) -> list[tuple[str, str]]:
        """The same, and those of the indexes of earlier runs."""
        return [*self.read, *self.indexed]

    def run(self, step: Step, tasks: Sequence[Task], folder: Folder | None = None) -> int:
        """Run a step, in this folder or another. Raises DamagedError for unreadable files."""
        place = folder or self.folder
        with noticed(place):
            return self.executor.run(self.stage, step, place, tasks, self.documents)

    def chain(self, passes: Sequence[Pass]) -> None:
        """Run steps that each read what earlier ones wrote. Raises DamagedError."""
        passes = [replace(p, folder=p.folder or self.folder) for p in passes]
        if not self.executor.options.by_files:
            with contextlib.ExitStack() as stack:
                for folder in {p.place for p in passes}:
                    stack.enter_context(noticed(folder))
                self.executor.run_chain(self.stage, passes)
            return
        records: dict[str, list[dict[str, Any]]] = {}
        for p in passes:
            tasks = p.planned(records)
            self.run(p.step, tasks, p.place)
            records[p.step.name] = records_of(p.place, p.step, tasks)

    def key(self, inputs: Sequence[tuple[str, str]]) -> str:
        """Return the stage's fingerprint: its inputs and everything that decides its outputs."""
        return fingerprint([self.stage, self.settings_key, list(inputs)])

    def complete(self, inputs: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
        """Return the manifest if it matches these inputs and all its files are intact.

        If only other stages' part of the recipe has changed, the recipe's name and hash in it are
        updated: the outputs do not depend on them.
        """
        manifest = read_manifest(self.folder)
        named = named_files(manifest)
        if manifest.get("key") != self.key(inputs) or not self.folder.holds(named, MANIFEST, None):
            return None
        manifest |= {"recipe": self.recipe, **self._after()}
        scratch = partial(self.folder.remove, SCRATCH)
        scratch()
        self.executor.later += [partial(write_manifest, self.folder, manifest), scratch]
        return manifest

    def _after(self) -> dict[str, Any]:
        return {"after": after(self.follows, self.read)} if self.follows else {}

    def begin(self) -> None:
        """Remove the manifest: until `finish` the stage does not exist for others.

        Raises ConfigError if its folder has files that no run wrote, or the runner can't be used.
        """
        refuse_foreign(self.folder)
        self.executor.prepare()
        self.executor.settle()
        self.folder.remove_parts()
        note_own(self.folder, files=named_files(read_manifest(self.folder)))
        remove_manifest(self.folder)

    def finish(
        self,
        tasks: Sequence[Task],
        inputs: Sequence[tuple[str, str]],
        extra: dict[str, Any] | None = None,
        timings: dict[str, Any] | None = None,
        counts: dict[str, Any] | None = None,
        also: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        """Sum the commit records into the manifest, write it last, clear the scratch folder.

        `counts` of earlier steps are added to those of the records; `also` are records of theirs.
        """
        counts = dict(counts or {})
        files: dict[str, dict[str, Any]] = {}
        records: dict[str, dict[str, Any]] = {}
        names = [f"shards/{name}.json" for name in sorted(t.name for t in tasks)]
        for name, data in zip(names, self.folder.each(self._record, names), strict=True):
            record = unsealed(data)
            if record is None:
                raise damaged(self.folder, name, "not what was written")
            add_counts(counts, record["counts"])
            files.update(record["files"])
            records[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for record in also:
            files |= {n: f for n, f in record["files"].items() if not n.startswith(SCRATCH)}
        manifest = {
            "stage": self.stage,
            "key": self.key(inputs),
            "recipe": self.recipe,
            "settings": settings_written(self.settings),
            **{k: settings_written(v) for k, v in self.also.items()},
            **self.facts,
            "counts": counts,
            "inputs": [{"name": n, "fingerprint": f} for n, f in inputs],
            "bytes": sum(f["bytes"] for f in files.values()),
            "files": files,
            "records": records,
            **self._after(),
            **redact_all(extra or {}),
        }
        # Files in no record were written by an interrupted run, for other inputs.
        remove_own(self.folder, keep={*files, *names})
        jobs = {"jobs": self.executor.jobs} if self.executor.jobs else {}
        self.executor.jobs = 0
        places = {} if self.follows else {PATHS: self._paths()}
        self.folder.write_own_json(TIMINGS, self._seconds() | jobs | places | (timings or {}))
        write_manifest(self.folder, manifest)
        self.folder.remove(SCRATCH)
        return manifest

    def _paths(self) -> dict[str, str]:
        """Return where the inputs of a run's first stage are, by name."""
        files = {file.name: as_given(file.path) for file in self.files}
        return files or {s.name: as_given(s.folder.url_of(s.file)) for s in self.inputs}

    def _record(self, name: str) -> bytes:
        try:
            return self.folder.read_bytes(name)
        except FileNotFoundError:
            raise damaged(self.folder, name, "no such file") from None

    def _seconds(self) -> dict[str, Any]:
        steps: dict[str, dict[str, float]] = {}
        seconds = self.folder / SCRATCH / "seconds"
        names = seconds.names(".json")
        for name, record in zip(names, seconds.each(seconds.read_own_json, names), strict=True):
            if not record:
                continue
            zero = {"wall": 0.0, "cpu": 0.0, "bytes": 0, "tasks": 0}
            step = steps.setdefault(name.split("~")[0], zero)
            for quantity in ("wall", "cpu", "bytes"):
                step[quantity] += record[quantity]
            step["tasks"] += 1
        return {"steps": steps}


def as_given(path: str) -> str:
    """Return a path as the seconds of a run name it: absolute, and without secrets."""
    return redact(path if stores.is_url(path) else os.path.abspath(os.path.expanduser(path)))


def settings_written(settings: Any) -> Any:
    """Return settings as written to a manifest."""
    return redact_all(json.loads(settings.model_dump_json(by_alias=True)))


def stage_inputs(paths: Sequence[str]) -> list[Shard]:
    """Return the shards of a stage folder, or Parquet files named by path or glob.

    Raises InputError for a stage folder without a complete manifest.
    """
    shards: list[Shard] = []
    for path in paths:
        folder = Folder(path)
        if manifest := read_manifest(folder):
            shards += manifest_shards(folder, manifest)
        elif folder.exists("documents") or is_stage(folder):
            raise InputError(
                f"{path}: no intact {MANIFEST}: the stage is not complete; run it again"
            )
        else:
            shards += _loose_shards(path)
    return in_order(shards)


def in_order(shards: Sequence[Shard]) -> list[Shard]:
    """Return shards by name. Raises ConfigError for two of one name."""
    ordered = sorted(shards, key=lambda s: s.name)
    twice = [(a, b) for a, b in pairwise(ordered) if a.name == b.name]
    for a, b in twice:
        if a == b:
            raise ConfigError(f"{a.folder.shown}: given twice")
    if names := sorted({a.name for a, _ in twice}):
        raise ConfigError(f"two inputs have a shard of the same name: {', '.join(names[:3])}")
    return ordered


def removed_shards(stage: str, inputs: Sequence[Shard]) -> list[Shard]:
    """Return what a stage removed before these inputs were left; empty if it isn't known.

    The stage is the one that wrote them, or one in the same run.
    """
    for own in inputs[:1]:
        place = Folder(own.folder.url.rpartition("/")[0]) / stage
        if (manifest := complete_manifest(place)).get("stage") == stage:
            return shards_of(place, manifest, "removed")
    return []


def shards_of(folder: Folder, manifest: dict[str, Any], kind: str) -> list[Shard]:
    """Return a stage's files of a kind as shards, in the order of the files."""
    return [
        Shard(shard_name(n), folder, n, f["sha256"], f["rows"], f["bytes"])
        for n, f in files_of(manifest, kind).items()
    ]


def manifest_shards(folder: Folder, manifest: dict[str, Any]) -> list[Shard]:
    """Return the shards that a finished stage left. Raises InputError if it leaves no documents."""
    found = shards_of(folder, manifest, "documents")
    if not found:
        raise InputError(f"{folder.shown}: this stage writes no documents for another stage")
    return in_order(found)


def _check_columns(file: str, schema: pa.Schema) -> None:
    hint = "`curate extract` makes documents of any table"
    for name in DOCUMENTS.names:
        if name not in schema.names:
            raise InputError(f"{file}: no column {name!r}; {hint}")
    for name, kind in zip(schema.names, schema.types, strict=True):
        if not fits(name, kind):
            wanted = COLUMN_TYPES.get(name, "a number")
            raise InputError(f"{file}: column {name!r} is {kind}, not {wanted}; {hint}")


def _parquet_inside(path: str) -> list[str]:
    """List Parquet files below a local folder, without hidden ones. Raises InputError."""
    if not os.path.isdir(path):
        return []
    try:
        below = stores.local_tree(path, lambda folder: not _is_hidden(folder))
    except OSError as error:
        raise InputError(f"{path}: can't be listed: {error}") from error
    return sorted(name for name in below if name.endswith(".parquet") and not _is_hidden(name))


def _is_hidden(path: str) -> bool:
    return os.path.basename(path).startswith(".")


def _loose_shards(path: str) -> list[Shard]:
    probe = Folder(path)
    found: list[str] = []
    if probe.is_local:
        for match in [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True)):
            found += _parquet_inside(match) or [match]
    elif glob.has_magic(probe.path()):
        matched = stores.glob(probe.fs, probe.path(), path)
        found = sorted(name for name, info in matched.items() if info["type"] == "file")
    elif probe.exists():
        names = (n for n in probe.tree() if n.endswith(".parquet") and "/." not in f"/{n}")
        found = [probe.path(n) for n in names] or [probe.path()]
    if not found:
        raise InputError(f"{path}: no such file or stage folder, and no file matches it as a glob")
    shards = []
    for file in found:
        base, _, name = file.rpartition("/")
        root = "/" if file.startswith("/") else "."
        folder = Folder((base if probe.is_local else probe.fs.unstrip_protocol(base)) or root)
        if not name.endswith(".parquet"):
            raise InputError(
                f"{file}: this stage reads Parquet documents; `curate extract` makes them"
            )
        try:
            with open_parquet(folder, name) as parquet:
                metadata = parquet.metadata
        except Exception as error:
            raise InputError(f"{file}: {error}") from error
        _check_columns(file, metadata.schema.to_arrow_schema())
        digest, size = folder.digest(name), folder.size(name) or 0
        stem = name.removesuffix(".parquet")
        shards.append(Shard(stem, folder, name, digest, metadata.num_rows, size))
    return shards
