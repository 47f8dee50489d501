"""The ledger: one row per document of a run, with its outcome, reason and dimensions.

The rows are those of `documents` of the last stage, then of `removed` of every stage from the last
to the first, file by file: what came furthest is shown first.
Strings are kept once, as codes, so that ten million documents are counted in milliseconds.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from curation.errors import InputError
from curation.schema import column_of
from curation.stages import find
from pipelines.run_folder import root_hash
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, read_manifest
from pipelines.storage.shards import open_parquet, read_rows

#: What documents are counted by: a column of theirs, or made of one.
DIMENSIONS = ("language", "domain", "topic", "format", "host", "input", "year")
#: Further columns of the ledger with their types.
_NUMBERS: dict[str, Any] = {
    "fate": np.int32,
    "characters": np.int64,
    "tokens": np.int64,
    "value": np.float64,
    "date": np.int64,
}
#: Keys of the document and of the one that was kept in its place, 0 where there is none.
_KEYS = ("key", "kept_key")
#: A document without a date, and the tokens of one that no tokenizer counted.
NO_DATE, NO_TOKENS = np.iinfo(np.int64).min, -1
_BATCH = 1 << 16
_META, _URLS = "ledger.json", "url.arrow"
_VERSION = 7


class Groups(NamedTuple):
    """Rows in the order of their keys."""

    keys: npt.NDArray[np.uint64]  # ascending
    rows: npt.NDArray[Any]

    @classmethod
    def of(cls, keys: npt.NDArray[np.uint64], rows: npt.NDArray[Any]) -> Groups:
        """Sort some rows by their keys, of which there is one for every row."""
        order = rows[np.argsort(keys[rows], kind="stable")]
        return cls(keys[order], small(order))

    def of_key(self, key: int) -> npt.NDArray[Any]:
        """Return the rows with one key, ascending."""
        low, high = (np.searchsorted(self.keys, np.uint64(key), side) for side in ("left", "right"))
        return self.rows[low:high]


T = TypeVar("T")


class Fate(NamedTuple):
    """How a document ended: removed by a stage for a reason, or kept by all (reason None)."""

    stage: str
    reason: str | None


class Source(NamedTuple):
    """A Parquet file of a stage whose rows are in the ledger, from number `first` on."""

    stage: str
    name: str
    first: int
    rows: int


@dataclass
class Ledger:
    """Columns of equal length, the strings behind codes, and the files that the rows came from."""

    numbers: dict[str, npt.NDArray[Any]]
    codes: dict[str, npt.NDArray[Any]]
    values: dict[str, list[str]]  # strings by code, "" for unknown
    fates: list[Fate]
    sources: list[Source]
    stages: list[str]
    urls: pa.ipc.RecordBatchFileReader  # read part by part: a search keeps none in memory
    read_groups: Callable[[str], Groups]  # of "key" and "kept_key"
    prepared: Path | None = None  # the folder that it was read from, with the signals

    def __len__(self) -> int:
        return len(self.numbers["fate"])

    @functools.cached_property
    def stage_of_fate(self) -> npt.NDArray[np.int32]:
        """Number of the stage of each fate; of `kept`, one beyond the last."""
        end = len(self.stages)
        order = {stage: i for i, stage in enumerate(self.stages)}
        return np.array([end if f.reason is None else order[f.stage] for f in self.fates], np.int32)

    @functools.cached_property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Documents that no stage removed -> [documents]."""
        return (self.stage_of_fate == len(self.stages))[self.numbers["fate"]]

    @functools.cached_property
    def by_key(self) -> Groups:
        """Rows by the key of their id."""
        return self.read_groups("key")

    @functools.cached_property
    def fates_by_key(self) -> npt.NDArray[Any]:
        """Numbers of fates in the order of `by_key` -> [documents]."""
        return self.numbers["fate"][self.by_key.rows]  # type: ignore[no-any-return]

    @functools.cached_property
    def copies(self) -> Groups:
        """Rows of removed copies by the key of the document that was kept."""
        return self.read_groups("kept_key")

    def read(
        self,
        folder: Folder,
        rows: Sequence[int],
        columns: Sequence[str],
        shorten: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> list[dict[str, Any]]:
        """Return these columns of some documents, in the order of `rows`; absent ones are None.

        `shorten` changes each document as it is read, before there are many long texts.
        """
        found: dict[int, dict[str, Any]] = {}
        for source, some in itertools.groupby(sorted({int(row) for row in rows}), self.source_of):
            places = [row - source.first for row in some]
            for place, row in read_rows(folder / source.stage, source.name, places, columns):
                found[source.first + place] = shorten(dict.fromkeys(columns) | row)
        return [found[int(row)] for row in rows]

    def source_of(self, row: int) -> Source:
        """Return the file that a document is in."""
        at = bisect.bisect_right(self.sources, row, key=lambda source: source.first)
        return self.sources[at - 1]


def key_of(name: str) -> int:
    """Return the key of an id."""
    return xxhash.xxh3_64_intdigest(name.encode())


def main_stages(stages: Sequence[str]) -> list[str]:
    """Stages that leave documents, those of named mixes left out."""
    return [s for s in stages if "/" not in s and not find(s).is_sink]


def load(
    folder: Folder,
    stages: Sequence[str],
    root: str,
    prepared: Path | None = None,
    most: int | None = None,
) -> Ledger:
    """Return the ledger of a run: as it was prepared, where that is of this run, else from its
    files.

    Of a run with more than `most` documents, only files with about so many are read.
    """
    if prepared is not None and (held := _load_prepared(prepared, root)):
        return held
    return build(folder, main_stages(stages), most)


def build(
    folder: Folder,
    stages: Sequence[str],
    most: int | None = None,
    place: Path | None = None,
) -> Ledger:
    """Read the columns of the documents of a run; with `place`, URLs go to a file there."""
    sources, fates = _drawn(sources_of(folder, stages), most), _Codes[Fate]()
    labels = {name: _Codes[str]([""]) for name in DIMENSIONS}
    parts: dict[str, list[npt.NDArray[Any]]] = {n: [] for n in (*_NUMBERS, *DIMENSIONS, *_KEYS)}
    memory, path = pa.BufferOutputStream(), "" if place is None else str(place / _URLS)
    options = pa.ipc.IpcWriteOptions(compression="zstd" if path else None)
    schema = pa.schema({"url": pa.large_string()})
    with pa.ipc.new_file(path or memory, schema, options=options) as urls:
        for source in sources:
            for batch in _batches(folder, source):
                _add(parts, labels, fates, source, batch)
                part = pc.cast(column_of(batch, "url"), pa.large_string())
                urls.write_batch(pa.record_batch([part], schema))
    numbers = {name: small(_joined(parts.pop(name), kind)) for name, kind in _NUMBERS.items()}
    codes = {name: small(_joined(parts.pop(name), np.int32)) for name in DIMENSIONS}
    return Ledger(
        numbers,
        codes,
        {name: held.names for name, held in labels.items()},
        fates.names,
        sources,
        list(stages),
        pa.ipc.open_file(pa.memory_map(path) if path else memory.getvalue()),
        functools.partial(_sorted, parts),
    )


def _sorted(parts: dict[str, list[npt.NDArray[Any]]], name: str) -> Groups:
    """Sort what was read of these keys, once."""
    keys = _joined(parts.pop(name), np.uint64)
    return Groups.of(keys, np.arange(len(keys)) if name == "key" else np.flatnonzero(keys))


def _joined(parts: Sequence[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def small(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whole numbers in the smallest type that holds them; keys and other numbers as they are."""
    if column.dtype.kind != "i" or not len(column):
        return column
    return column.astype(np.promote_types(*map(np.min_scalar_type, (column.min(), column.max()))))


class _Codes(Generic[T]):
    """Numbers of names in the order in which they come."""

    def __init__(self, names: Iterable[T] = ()) -> None:
        self.names = list(names)
        self._numbers = {name: i for i, name in enumerate(self.names)}

    def of(self, name: T) -> int:
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


def sources_of(folder: Folder, stages: Sequence[str]) -> list[Source]:
    """Return the files of a ledger, in order; those without rows are left out."""
    found: list[Source] = []
    first = 0
    for stage in reversed(stages):
        kinds = ("documents", "removed") if stage == stages[-1] else ("removed",)
        for name, file in files_of(read_manifest(folder / stage), *kinds).items():
            if file["rows"]:
                found.append(Source(stage, name, first, file["rows"]))
                first += file["rows"]
    return found


def _drawn(sources: Sequence[Source], most: int | None) -> list[Source]:
    """Files at even distances of each stage and kind, with about `most` rows in all."""
    rows = sum(source.rows for source in sources)
    if most is None or rows <= most:
        return list(sources)
    kinds: dict[tuple[str, str], list[Source]] = {}
    for source in sources:
        kinds.setdefault((source.stage, source.name.split("/", 1)[0]), []).append(source)
    drawn: list[Source] = []
    first = 0
    for held in kinds.values():
        count = max(1, len(held) * most // rows)
        for i in range(count):
            source = held[i * len(held) // count]
            drawn.append(source._replace(first=first))
            first += source.rows
    return drawn


_WANTED = (
    *("id", "url", "date", "text", "source", "language", "domain", "topic", "format"),
    *("tokens", "reason", "value", "kept_id"),
)


def _batches(folder: Folder, source: Source) -> Iterator[pa.RecordBatch]:
    with open_parquet(folder / source.stage, source.name) as parquet:
        names = set(parquet.schema_arrow.names)
        columns = [n for n in _WANTED if n in names]
        for group in range(parquet.num_row_groups):  # one alone has bounded texts
            yield from parquet.iter_batches(_BATCH, [group], columns, use_threads=False)


def _add(
    parts: dict[str, list[npt.NDArray[Any]]],
    labels: Mapping[str, _Codes[str]],
    fates: _Codes[Fate],
    source: Source,
    batch: pa.RecordBatch,
) -> None:
    column = functools.partial(column_of, batch)
    dates = pc.cast(column("date"), pa.timestamp("us", "UTC"))
    parts["fate"].append(
        _coded(column("reason"), lambda r: fates.of(Fate(source.stage, r)))  # null: kept
    )
    parts["characters"].append(small(_ints(pc.utf8_length(column("text")), 0)))
    parts["tokens"].append(small(_ints(column("tokens"), NO_TOKENS)))
    parts["value"].append(pc.cast(column("value"), pa.float64()).to_numpy(zero_copy_only=False))
    parts["date"].append(_ints(dates, NO_DATE))
    parts["key"].append(_keys(column("id")))
    parts["kept_key"].append(_keys(column("kept_id")))
    texts = {name: column(name) for name in ("language", "domain", "topic", "format")}
    if "source" in batch.schema.names:
        texts["input"] = pc.struct_field(batch.column("source"), "file")
    else:
        texts["input"] = column("source")
    texts["year"] = pc.cast(pc.year(dates), pa.string())
    texts["host"] = hosts(column("url"))
    for name, held in texts.items():
        parts[name].append(_coded(held, lambda v, labels=labels[name]: labels.of(v or "")))


def hosts(urls: pa.Array) -> pa.Array:
    """Host of each URL, in lower case and without a port; empty where it has none."""
    found = pc.struct_field(
        pc.extract_regex(
            pc.cast(urls, pa.string()),
            r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(?P<h>\[[^\]]*\]|[^/?#:]*)",
        ),
        "h",
    )
    return pc.utf8_lower(pc.fill_null(found, ""))


def _coded(column: pa.Array, code: Any) -> npt.NDArray[np.int32]:
    held = pc.dictionary_encode(column, null_encoding="encode")
    numbers = np.array([code(value) for value in held.dictionary.to_pylist()], np.int32)
    codes = numbers[held.indices.to_numpy(zero_copy_only=False)] if len(column) else numbers
    return small(codes)


def _ints(column: pa.Array, absent: int) -> npt.NDArray[np.int64]:
    return pc.fill_null(pc.cast(column, pa.int64()), absent).to_numpy(zero_copy_only=False)


def _keys(ids: pa.Array) -> npt.NDArray[np.uint64]:
    values = (0 if name is None else key_of(name) for name in ids.to_pylist())
    return np.fromiter(values, np.uint64, len(ids))


def read_column(place: Path, name: str) -> npt.NDArray[Any]:
    """Map a column of a prepared run into memory, of which only what is looked at is read."""
    return np.asarray(np.load(place / f"{name}.npy", mmap_mode="r"))


def write_ledger(folder: Folder, stages: Sequence[str], place: Path) -> Ledger:
    """Write the ledger of a run to a folder, for `load`, and read it from there."""
    root = root_hash(folder, stages)
    place.mkdir(parents=True, exist_ok=True)
    ledger = build(folder, main_stages(stages), place=place)
    columns = ledger.numbers | ledger.codes
    for name, groups in zip(_KEYS, (ledger.by_key, ledger.copies), strict=True):
        columns |= {name: groups.keys, f"{name}.rows": groups.rows}
    for name, column in columns.items():
        np.save(place / f"{name}.npy", column)
    facts = {
        "version": _VERSION,
        "root": root,
        "fates": ledger.fates,
        "sources": ledger.sources,
        "stages": ledger.stages,
        "values": ledger.values,
    }
    (place / _META).write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")
    held = _load_prepared(place, root)
    assert held is not None  # just written
    return held


def _load_prepared(place: Path, root: str) -> Ledger | None:
    try:
        facts = json.loads((place / _META).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(f"{place / _META}: {error}; remove it and run --prepare again") from None
    if facts["version"] != _VERSION or facts["root"] != root:
        return None
    return Ledger(
        {name: read_column(place, name) for name in _NUMBERS},
        {name: read_column(place, name) for name in DIMENSIONS},
        facts["values"],
        [Fate(*fate) for fate in facts["fates"]],
        [Source(*source) for source in facts["sources"]],
        facts["stages"],
        pa.ipc.open_file(pa.memory_map(str(place / _URLS))),
        lambda name: Groups(read_column(place, name), read_column(place, f"{name}.rows")),
        place,
    )
