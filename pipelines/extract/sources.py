"""Raw input files of the first stage: their content fingerprints, and how they form shards.

A shard is several small files, one file, or a range of a large one. Ranges follow from the size of
the file and `readers.split_bytes`, never from the number of workers.
"""

import contextlib
import dataclasses
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import xxhash

from curation import stores
from curation.errors import InputError
from curation.readers.discover import InputFile
from curation.readers.ranges import Checkpoint, Reading, Span, misread, spans, why_whole
from curation.readers.settings import ReaderSettings
from pipelines.engine.stage import StageRun
from pipelines.runners.tasks import Step, Task, read_record, record_name
from pipelines.storage.damage import DamagedError
from pipelines.storage.files import SCRATCH, Folder
from pipelines.storage.manifest import TIMINGS

#: Hashes of the input files, with file attributes that show a resumed run they are unchanged.
KNOWN_INPUTS = f"{SCRATCH}/inputs.json"

_CHANGED = "changed since it was hashed"
_CHUNK = 4 << 20
#: Files smaller than this share a shard; larger ones have their own.
_GROUP_BELOW = 1 << 20
#: One name in this many ends a group, whatever precedes it: adding a file changes one group.
_GROUP_CUT = 256
#: A group is also cut when it reaches this many bytes.
_GROUP_BYTES = 32 << 20


@dataclass(frozen=True)
class Part:
    """A range of a file that is split."""

    number: int
    span: Span
    content: str = ""  # hash of its bytes; of an object, the fingerprint of the whole serves
    begin: Checkpoint | None = None  # offset of its first record, once known


@dataclass(frozen=True)
class SourceShard:
    """Input files that become one shard, in order, or one range of one file."""

    name: str
    files: tuple[tuple[str, str], ...]  # (path, name)
    size: int
    part: Part | None = None
    records: Mapping[str, str] = field(default_factory=dict)  # of archives in an index, by name


def content_fingerprints(
    files: Sequence[InputFile], folder: Folder, split_bytes: int
) -> dict[str, str]:
    """Return the hash of every file's content by name; `part_hashes` then has those of ranges.

    A local file with the size, inode, mtime and ctime of an earlier run is not read again: no
    program can set the ctime. For an object, its listed size and entity tag replace a hash.
    """
    known = _known_fingerprints(folder)
    parts = part_hashes(folder, split_bytes)
    found: dict[str, list[Any]] = {}

    def one(file: InputFile) -> None:
        if file.records or stores.is_url(file.path):
            found[file.name] = [f"{file.size} {file.version or _checksum(file.path)}"]
            return
        state = _state(file.path)
        old = known.get(file.name)
        bounds = spans(file.size, split_bytes)
        if old and old[1:] == state and len(parts.get(file.name, [""])) == len(bounds):
            found[file.name] = old
            return
        whole, by_part = _content_hashes(file.path, bounds)
        found[file.name] = [whole, *state]
        parts.pop(file.name, None)
        if len(bounds) > 1:
            parts[file.name] = by_part

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, files))
    ordered = {name: found[name] for name in sorted(found)}
    kept = {name: parts[name] for name in sorted(ordered.keys() & parts.keys())}
    noted = {"parts": {str(split_bytes): kept}} if kept else {}
    folder.write_own_json(KNOWN_INPUTS, {"inputs": ordered} | noted)
    return {name: entry[0] for name, entry in ordered.items()}


def fingerprints_now(
    files: Iterable[InputFile], folder: Folder, before: Mapping[str, str]
) -> dict[str, str]:
    """Return by name the fingerprints of files that are still `before`; anything else for others.

    A local file is read only if its size is the same, but not its other attributes.
    """
    known = _known_fingerprints(folder)

    def one(file: InputFile, then: str) -> str:
        if file.records or stores.is_url(file.path):
            return f"{file.size} {file.version or _checksum(file.path)}"
        state = _state(file.path)
        old = known.get(file.name, [then, *state[:1]])
        if old[1:] == state:
            return str(old[0])
        return _content_hash(file.path) if then and old[1] == state[0] else ""

    return {file.name: one(file, before.get(file.name, "")) for file in files}


def part_hashes(folder: Folder, split_bytes: int) -> dict[str, list[str]]:
    """Return the hashes of the ranges of local files larger than `split_bytes`, by file name."""
    found: dict[str, list[str]] = {}
    for name in (TIMINGS, KNOWN_INPUTS):
        found |= folder.read_own_json(name).get("parts", {}).get(str(split_bytes), {})
    return found


def _checksum(url: str) -> str:
    system, path = stores.file_system(url)
    return str(stores.persistently(url, lambda: system.checksum(path)))


@contextlib.contextmanager
def as_planned(path: str, fingerprint: str, part: Part | None = None) -> Iterator[None]:
    """Check around reading an input file that its content is what was hashed for the plan.

    For a part of a local file, only the part's own bytes are hashed: bytes that its reader sees of
    the next part are checked by that part's reader. Raises DamagedError if the content differs.
    """
    before = _state(path)
    if stores.is_url(path):
        found = f"{before[0]} {before[1] or _checksum(path)}"
    elif part:
        found = f"{before[0]} {_content_hash(path, part.span)}"
        fingerprint = f"{part.span.size} {part.content}"
    else:
        found = _content_hash(path)
    if found != fingerprint:
        raise DamagedError({path: _CHANGED})
    try:
        yield
    except InputError as error:
        if _state(path) != before:
            raise DamagedError({path: _CHANGED}) from error
        raise
    if _state(path) != before:
        raise DamagedError({path: _CHANGED})


def _state(path: str) -> list[Any]:
    """Return attributes that change with a file's content. Raises InputError if it is missing."""
    if not stores.is_url(path):
        try:
            facts = os.stat(path)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        return [facts.st_size, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns]
    system, place = stores.file_system(path)
    found = stores.info(system, place, path)
    if found is None:
        raise InputError(f"{path}: no such object")
    return [found.get("size"), stores.version(found)]


def _chunks(path: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes [start, end) of a local file, in chunks."""
    try:
        with open(path, "rb") as file:
            at = file.seek(start)
            while chunk := file.read(_CHUNK if end is None else min(_CHUNK, end - at)):
                yield chunk
                at += len(chunk)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _content_hash(path: str, span: Span | None = None) -> str:
    digest = xxhash.xxh3_128()
    for chunk in _chunks(path, span.start, span.end) if span else _chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def _content_hashes(path: str, bounds: Sequence[Span]) -> tuple[str, list[str]]:
    """Return the hashes of a file and of its ranges, computed in one pass."""
    whole, by_part = xxhash.xxh3_128(), []
    for number, span in enumerate(bounds):
        last = number + 1 == len(bounds)
        part = xxhash.xxh3_128()
        for chunk in _chunks(path, span.start, None if last else span.end):
            whole.update(chunk)
            part.update(chunk)
        by_part.append(part.hexdigest())
    return whole.hexdigest(), by_part


def _known_fingerprints(folder: Folder) -> dict[str, list[Any]]:
    known: dict[str, list[Any]] = {}
    for name in (TIMINGS, KNOWN_INPUTS):
        known |= folder.read_own_json(name).get("inputs", {})
    return known


def source_shards(
    files: Sequence[InputFile],
    split: Collection[str],
    split_bytes: int,
    parts: Mapping[str, Sequence[str]] | None = None,
) -> list[SourceShard]:
    """Plan shards: one per large file, groups of neighbouring small files.

    Files named in `split` get a shard for each of their ranges, in the order of the shards' names;
    `parts` are the hashes of the ranges of those that are local.

    Where a group ends depends only on the names and a size limit, so adding or removing a file
    changes its own group and no other.
    """
    shards: list[SourceShard] = []
    group: list[InputFile] = []

    def close() -> None:
        if group:
            shards.append(_shard(group, grouped=len(group) > 1))
            group.clear()

    for file in sorted(files, key=lambda f: f.name):
        if file.name in split:
            shards += _parts(file, split_bytes, (parts or {}).get(file.name))
            continue
        if file.size >= _GROUP_BELOW:
            shards.append(_shard([file], grouped=False))
            continue
        group.append(file)
        ends = xxhash.xxh64_intdigest(file.name.encode()) % _GROUP_CUT == 0
        if ends or sum(f.size for f in group) >= _GROUP_BYTES:
            close()
    close()
    return sorted(shards, key=lambda s: s.name)


def tasks_of(shards: Sequence[SourceShard], hashes: Mapping[str, str]) -> list[Task]:
    """Return a task for each shard; `hashes` are the fingerprints of the files by name."""
    named = ((shard, tuple((name, hashes[name]) for _, name in shard.files)) for shard in shards)
    return [Task(shard.name, inputs, shard.size, shard) for shard, inputs in named]


def _shard(files: Sequence[InputFile], grouped: bool) -> SourceShard:
    first = files[0].name
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", first.rsplit("/", 1)[-1])[:80].strip("._") or "input"
    name = f"{stem}{'-and-more' if grouped else ''}-{xxhash.xxh32_hexdigest(first.encode())}"
    paths = (f.path if stores.is_url(f.path) else os.path.abspath(f.path) for f in files)
    places = tuple(zip(paths, (f.name for f in files), strict=True))
    records = {f.name: f.records for f in files if f.records}
    return SourceShard(name, places, sum(f.size for f in files), records=records)


def _parts(file: InputFile, split_bytes: int, hashes: Sequence[str] | None) -> list[SourceShard]:
    whole = _shard([file], grouped=False)
    bounds = spans(file.size, split_bytes)
    digits = max(5, len(str(len(bounds) - 1)))
    return [
        SourceShard(
            f"{whole.name}-{number:0{digits}d}",
            whole.files,
            span.end - span.start,
            Part(number, span, hashes[number] if hashes else ""),
        )
        for number, span in enumerate(bounds)
    ]


_RANGE = "range"  # entry of a commit record


def noted(reading: Reading) -> dict[str, Any]:
    """Return the entry of a range's commit record."""
    return {_RANGE: dataclasses.asdict(reading)}


def split_files(run: StageRun, readers: ReaderSettings) -> set[str]:
    """Return the names of files to read by ranges; report large ones that can't be, and why."""
    large = [file for file in run.files if file.size > readers.split_bytes and not file.records]
    reasons = stores.each(lambda f: why_whole(f.path, f.name, readers), large)
    whole: defaultdict[str, list[InputFile]] = defaultdict(list)
    for file, reason in zip(large, reasons, strict=True):
        whole[reason].append(file)
    split = {file.name for file in whole.pop("", [])}
    for reason, files in sorted(whole.items()):
        run.executor.display.message(_one_worker(reason, files))
    return split


def _one_worker(reason: str, files: Sequence[InputFile]) -> str:
    more = f" (and {len(files) - 1} more)" if len(files) > 1 else ""
    size = max(file.size for file in files) / 1e9
    each = "each, up to " if more else ""
    return f"{files[0].name}{more}: {reason}: {each}{size:,.1f} GB are read by one worker"


def run_until_ranges_fit(run: StageRun, step: Step, tasks: Sequence[Task]) -> None:
    """Run tasks; rerun those whose range did not begin where the previous one ended."""
    run.run(step, tasks)
    while again := _misread(run.folder, step, tasks):
        records = [record_name(step, task) for task in again.values()]
        run.folder.each(run.folder.remove, records)
        tasks = [again.get(task.name, task) for task in tasks]
        run.run(step, tasks)


def _misread(folder: Folder, step: Step, tasks: Iterable[Task]) -> dict[str, Task]:
    """Return the tasks to rerun by name, with the true begin of their ranges."""
    parts = [task for task in tasks if task.payload.part]
    records = folder.each(lambda t: read_record(folder, record_name(step, t)), parts)
    files: defaultdict[str, list[tuple[Task, Reading]]] = defaultdict(list)
    for task, record in zip(parts, records, strict=True):
        files[task.inputs[0][0]].append((task, _reading(record[_RANGE])))
    again: dict[str, Task] = {}
    for found in files.values():
        spans = [task.payload.part.span for task, _ in found]
        wrong = misread(spans, [reading for _, reading in found])
        again |= {found[k][0].name: _from(found[k][0], begin) for k, begin in wrong.items()}
    return again


def _reading(noted: dict[str, Any]) -> Reading:
    begin = noted["begin"]
    return Reading(**noted | {"begin": begin and Checkpoint(**begin)})


def _from(task: Task, begin: Checkpoint) -> Task:
    shard: SourceShard = task.payload
    assert shard.part is not None
    part = dataclasses.replace(shard.part, begin=begin)
    return dataclasses.replace(task, payload=dataclasses.replace(shard, part=part))
